"""Decisions of an experiment file that are fixed before the first participant."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from apps.experiment.design import ConditionSettings, Design
from apps.experiment.procedures import procedure_settings
from haptics.errors import ConfigurationError
from haptics.reading import read_small

WANTED = ("hypotheses", "exclusions", "plan")
"""Entries that the table ``analysis`` should contain. Others are permitted."""

Facts = dict[str, Any]


def preregistration(design: Design, power: Mapping[str, Any] | None, participants: int | None) -> Facts:
    """Return the fixed decisions for JSON.

    Parameters
    ----------
    design : Design
        Design of the experiment.
    power : mapping, optional
        Output of ``haptics experiment power --json``.
    participants : int, optional
        Planned number of participants. Default: the lowest number with the wanted power.

    Raises
    ------
    ConfigurationError
        If the table ``analysis`` contains values other than texts, numbers and lists of them.
    """
    analysis = _analysis(design.tables.get("analysis", {}))
    return {
        "title": design.experiment.title or design.experiment.name,
        "experiment": design.experiment.name,
        "design_sha256": design.sha256,
        "haptics_version": importlib.metadata.version("haptics"),
        "task": {"name": design.experiment.task, "what": design.task.text, "guess": design.task.guess},
        "stimulus": {**asdict(design.stimulus), "device": design.session.device, "model": design.session.session.model},
        "conditions": [_condition(design, one) for one in design.conditions],
        "trials": _trials(design),
        "exploration": asdict(design.exploration),
        "fields": list(design.fields.demanded),
        "blind": design.experiment.blind,
        "exclusions": _exclusions(design),
        "analysis": analysis,
        "missing": [f"analysis.{name}" for name in WANTED if name not in analysis],
        "participants": _participants(power, participants),
        "power": None if power is None else dict(power),
        "seeds": _seeds(design),
        "file": design.text,
    }


def read_power(path: Path) -> Facts:
    """Return the result of ``haptics experiment power --json``.

    Raises
    ------
    ConfigurationError
        If the file is not such a result.
    """
    try:
        found = json.loads(read_small(path))
        rows = found["power"]
        good = isinstance(rows, list) and all(isinstance(row, dict) for row in rows)
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(f"--power {path}: is not what 'haptics experiment power --json' prints.") from error
    if not good:
        raise ConfigurationError(f"--power {path}: is not what 'haptics experiment power --json' prints.")
    return dict(found)


def _condition(design: Design, condition: ConditionSettings) -> Facts:
    table = design.procedure_of(condition)
    least, most = _counts(table)
    return {
        "name": condition.name,
        "reference": condition.reference,
        "tracks": condition.tracks,
        "different": {name: dict(getattr(condition, name)) for name in ("law", "element") if getattr(condition, name)},
        "procedure": {"kind": table["kind"], **asdict(procedure_settings(table))},
        "trials": {"least": least * condition.tracks, "most": most * condition.tracks},
    }


def _counts(table: Mapping[str, Any]) -> tuple[int, int]:
    """Return the minimum and maximum number of trials of a track."""
    told = asdict(procedure_settings(table))
    values = told.get("levels") or told.get("starts")
    if values is not None:
        count = len(values) * int(told["repeats"])
        return count, count
    if "most_trials" in told:  # a staircase: every reversal takes at least one trial
        most = int(told["most_trials"])
        return min(max(int(told["trials"]), int(told["reversals"])), most), most
    most = int(told["trials"])
    return (int(told["least_trials"]) if told.get("posterior_sd") else most), most


def _trials(design: Design) -> Facts:
    counts = [_condition(design, one)["trials"] for one in design.conditions]
    return {
        "least": sum(one["least"] for one in counts),
        "most": sum(one["most"] for one in counts),
        "catch": asdict(design.catch),
        "practice": asdict(design.practice),
        **asdict(design.trials),
    }


def _exclusions(design: Design) -> list[str]:
    """Return the exclusion rules that the program applies, as text."""
    trials, exploration, practice = design.trials, design.exploration, design.practice
    rules = [
        f"A trial is repeated, not dropped, if more than {trials.late_ticks:.3%} of its ticks came late or there was a "
        f"gap of more than {1000.0 * trials.longest_gap:g} ms between two of them."
    ]
    if exploration.strokes:
        rules.append(
            f"A trial is repeated if a stroke was slower than {exploration.least_speed:g} m/s or faster than "
            f"{exploration.greatest_speed:g} m/s on average."
        )
    if trials.time_out:
        rules.append(f"A trial is repeated if the answer took more than {trials.time_out:g} s.")
    rules.append(f"A session is stopped if more than {trials.most_repeated:.0%} of its trials had to be repeated.")
    if design.catch.easy:
        rules.append(
            f"A session is excluded if more than {design.catch.most_errors:.0%} of its easy catch trials were answered "
            "wrong."
        )
    if practice.window and practice.failing == "stop":
        rules.append(
            f"A session ends if {practice.correct} of {practice.window} practice trials in a row were not right within "
            f"{practice.most} trials."
        )
    return rules


def _analysis(table: Any) -> Facts:
    if not isinstance(table, dict):
        raise ConfigurationError(f"analysis = {str(table)[:40]!r}: must be a table, [analysis].")
    for name, value in table.items():
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(part, str | int | float | bool) for part in parts):
            raise ConfigurationError(
                f"analysis.{name} = {str(value)[:40]!r}: must be a text, a number, or a list of them."
            )
    return dict(table)


def _participants(power: Mapping[str, Any] | None, participants: int | None) -> int | None:
    if participants is not None:
        return participants
    enough = None if power is None else power.get("enough")
    return enough if type(enough) is int else None


def _seeds(design: Design) -> Facts:
    order = (
        "one after the other, in the order of a row of a Williams square" if not design.trials.interleave else "mixed"
    )
    return {
        "seed": design.experiment.seed,
        "policy": "Every draw comes from numpy.random.SeedSequence of the seed, with the participant's code, session, "
        "block and trial as its spawn key: what a trial draws never depends on earlier draws.",
        "conditions": order,
        "places": "A participant's place in the order of arrival is reserved once, across all stations; it chooses the "
        "row of the square.",
    }
