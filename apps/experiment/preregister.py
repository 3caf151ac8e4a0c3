"""Preregistration of an experiment: decisions of its file that are fixed before the first participant."""

from __future__ import annotations

import importlib.metadata
import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from apps.experiment.design import Design
from apps.experiment.procedures.methods import catch_kinds
from apps.experiment.procedures.settings import procedure_settings, trial_counts
from apps.experiment.session.session import LEAST_REPEATED
from haptics.errors import ConfigurationError
from haptics.files import read_small

WANTED = ("hypotheses", "exclusions", "plan")
"""Entries that the table ``analysis`` should contain. Others are permitted."""

_SEEDS = (
    "Every draw comes from numpy.random.SeedSequence of the seed, with the participant's code, session, block and "
    "trial as its spawn key: what a trial draws never depends on earlier draws."
)
_PLACES = "A participant's place in the order of arrival is reserved once, across all stations; "
_ROW_OF_ARRIVAL = "it chooses the row of the square, the same in all sessions."
_ROW_OF_GROUP = "the place in the order of assignments to the group chooses the row of the square, in all sessions."
_NO_ROW = "orders of mixed conditions do not depend on it."
_UNSTATED = "**Not stated yet**: write it into the table `[analysis]` of the file."

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
    analysis = design.tables.get("analysis", {})
    for name, value in analysis.items():
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(part, str | int | float | bool) for part in parts):
            raise ConfigurationError(
                f"analysis.{name} = {str(value)[:40]!r}: must be a text, a number, or a list of them."
            )
    conditions: list[Facts] = []
    for condition in design.conditions:
        table = design.procedure_of(condition)
        least, most = trial_counts(procedure_settings(table))
        different = {name: dict(getattr(condition, name)) for name in ("law", "element") if getattr(condition, name)}
        conditions.append(
            {
                "name": condition.name,
                "reference": condition.reference,
                "tracks": condition.tracks,
                "different": different,
                "procedure": {"kind": table["kind"], **asdict(procedure_settings(table))},
                "trials": {"least": least * condition.tracks, "most": most * condition.tracks},
            }
        )
    if participants is None and power is not None and type(power.get("enough")) is int:
        participants = power["enough"]
    order, places = "mixed", _PLACES + _NO_ROW
    if not design.trials.interleave:
        order = "one after the other, in the order of a row of a Williams square"
        places = _PLACES + (_ROW_OF_GROUP if design.groups.names else _ROW_OF_ARRIVAL)
    own = design.groups.conditions
    totals = {}  # trials of a participant, by group
    for group in design.groups.names or ("",):
        spans = [one["trials"] for one in conditions if group not in own or one["name"] in own[group]]
        totals[group] = {bound: sum(span[bound] for span in spans) for bound in ("least", "most")}
    answered, catch = bool(design.task.responses), design.catch  # other tasks have no catch trials and no practice
    kinds, share = catch_kinds(catch.null, catch.easy), catch.null + catch.easy if answered else 0.0
    shares = {kind: round(share * kinds.count(kind) / max(len(kinds), 1), 12) for kind in ("null", "easy")}
    factors: dict[str, list[str]] = {}
    for name, level in (pair for condition in design.conditions for pair in condition.factors.items()):
        if level not in factors.setdefault(name, []):
            factors[name].append(level)
    return {
        "title": design.experiment.title or design.experiment.name,
        "experiment": design.experiment.name,
        "design_sha256": design.sha256,
        "haptics_version": importlib.metadata.version("haptics"),
        "task": {"name": design.experiment.task, "what": design.task.text, "guess": design.task.guess},
        "stimulus": {**asdict(design.stimulus), "device": design.session.device, "model": design.session.session.model},
        "conditions": conditions,
        "trials": {
            "least": min(one["least"] for one in totals.values()),
            "most": max(one["most"] for one in totals.values()),
            **({"groups": totals} if own else {}),
            "catch": asdict(design.catch) | shares,
            "practice": asdict(design.practice) | ({} if answered else {"window": 0}),
            **asdict(design.trials),
        },
        "exploration": asdict(design.exploration),
        "fields": list(design.fields.demanded),
        "blind": design.experiment.blind,
        "exclusions": _exclusions(design),
        "analysis": dict(analysis),
        "missing": [f"analysis.{name}" for name in WANTED if name not in analysis],
        "participants": participants,
        "power": None if power is None else dict(power),
        "seeds": {"seed": design.experiment.seed, "policy": _SEEDS, "conditions": order, "places": places},
        "file": design.text,
        **({"conditions_file": design.csv_text} if design.csv_text else {}),
        **({"factors": factors} if factors else {}),
        **({"groups": asdict(design.groups)} if design.groups.names else {}),
        **({"schedule": asdict(design.schedule)} if design.schedule.sessions else {}),
    }


def read_power(path: Path) -> Facts:
    """Return the result of ``haptics experiment power --json``.

    Raises
    ------
    ConfigurationError
        If the file is not such a result.
    """
    text = read_small(path)
    try:
        found = json.loads(text)
        rows = found["power"]
        good = isinstance(rows, list) and all(isinstance(row, dict) for row in rows)
    except (ValueError, LookupError, TypeError, RecursionError):
        good = False
    if not good:
        raise ConfigurationError(f"--power {path}: is not the output of 'haptics experiment power --json'.")
    return dict(found)


def _exclusions(design: Design) -> list[str]:
    """Return the exclusion rules that the program applies, as text."""
    trials, exploration, practice = design.trials, design.exploration, design.practice
    answered = bool(design.task.responses)  # other tasks have no catch trials and no practice
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
    rules.append(
        f"A session is stopped if more than {trials.most_repeated:.0%} of its trials, and more than {LEAST_REPEATED}, "
        "had to be repeated."
    )
    if answered and design.catch.easy:
        rules.append(
            f"A participant is excluded if more than {design.catch.most_errors:.0%} of the easy catch trials in all "
            "analysed sessions were answered wrong."
        )
    if answered and practice.window and practice.failing == "stop":
        rules.append(
            f"A session ends if {practice.correct} of {practice.window} practice trials in a row were not right within "
            f"{practice.most} trials."
        )
    return rules


# --- page ---


def as_markdown(facts: Facts) -> str:
    """Return the preregistration as Markdown."""
    task, stimulus, conditions, trials = facts["task"], facts["stimulus"], facts["conditions"], facts["trials"]
    catch, practice, analysis, seeds = trials["catch"], trials["practice"], facts["analysis"], facts["seeds"]
    guess = "" if task["guess"] is None else f"; guess rate {task['guess']:g}"
    blind = "does not see condition, level and track until a session has ended" if facts["blind"] else "is not blind"
    described = [
        [one["name"], _plain(one["reference"]), one["tracks"], _settings(one["different"])] for one in conditions
    ]
    window, practised = practice["window"], "none"
    if window:
        practised = f"until {practice['correct']} of {window} are right, at most {practice['most']}"
    count, power = facts["participants"], facts["power"]
    planned = f"{count} participants"
    if count is None:
        planned = "**not stated** (--participants N, or --power FILE.json)"
    powered = []
    if power is not None:
        scalars = {
            name: value for name, value in power.items() if isinstance(value, str | int | float) and name != "enough"
        }
        names = list(dict.fromkeys(name for row in power["power"] for name in row))
        rows = [[_plain(row.get(name)) for name in names] for row in power["power"]]
        powered = [f"Power analysis with simulated observers ({_settings(scalars)}):", "", *_table(names, rows)]
    further = [f"- {name}: {_cell(_plain(value))}" for name, value in analysis.items() if name not in WANTED]
    csv_text, factors = facts.get("conditions_file", ""), facts.get("factors", {})
    listed = [f"{name} ({', '.join(levels)})" for name, levels in factors.items()]
    groups = facts.get("groups")
    if groups is not None:
        rule = f"permuted blocks of {' or '.join(map(str, groups['block']))}"
        if groups["method"] == "minimisation":
            rule = f"minimisation (Pocock and Simon 1975), probability {groups['probability']:g}"
        shares = [f"{name} (share {share})" for name, share in zip(groups["names"], groups["shares"], strict=True)]
        separate = f", by {', '.join(groups['fields'])}" if groups["fields"] else ""
        assigned = [f"- Groups between participants: {', '.join(shares)}; {rule}{separate}"]
        assigned += [
            f"- Conditions of the group {name}: {', '.join(own)}" for name, own in groups["conditions"].items()
        ]
    else:
        assigned = []
    scheduled, schedule = [], facts.get("schedule")
    if schedule is not None:
        least, most = (", ".join(map(str, schedule[name])) for name in ("minimum_days", "maximum_days"))
        days = f"; days after the previous one: at least {least}" if least else ""
        days += f", at most {most}" if most else ""
        scheduled = [f"- Sessions of each participant: {schedule['sessions']}{days}"]
        if schedule["training"]:
            scheduled.append(f"- Training, which is not analysed: session {', '.join(map(str, schedule['training']))}")
        if schedule["carry_over"]:
            scheduled.append("- Staircases and QUEST+ begin with the threshold of the participant's last session")
    spans = [["all", _span(trials)]]
    if "groups" in trials:
        spans = [[f"all of the group {name}", _span(one)] for name, one in trials["groups"].items()]
    blocks = f"{trials['block']} trials" + ("" if trials["interleave"] else " and each condition")
    runs = re.findall(r"`+", facts["file"] + csv_text)
    fence = "`" * max(max(map(len, runs), default=0) + 1, 3)
    lines = [
        f"# Preregistration: {_cell(facts['title'])}",
        "",
        f"Experiment `{facts['experiment']}`, run by haptics {facts['haptics_version']} from one file. Its SHA-256 is",
        f"`{facts['design_sha256']}`; the journal of every session begins with it.",
        "",
        *("## Hypotheses", "", *_stated(facts, "hypotheses"), ""),
        *("## Design", ""),
        f"- Task: `{task['name']}` ({task['what']}){guess}",
        f"- What varies: `{stimulus['axis']}`, on a {stimulus['scale']} scale",
        f"- Device `{stimulus['device']}`, model `{stimulus['model']}`",
        *([f"- Factors: {'; '.join(listed)}"] if listed else []),
        *map(_cell, (*assigned, *scheduled)),
        f"- The experimenter {blind}",
        f"- Noted of every participant: {', '.join(facts['fields']) or 'the code'}",
        "",
        *_table(["condition", "reference", "tracks", "different"], described),
        *("## Procedure", ""),
        *(f"- {_cell(one['name'])}: {_settings(one['procedure'])}" for one in conditions),
        "",
        *("## Trials", ""),
        *_table(
            ["condition", "trials of the test"],
            [*([one["name"], _span(one["trials"])] for one in conditions), *spans],
        ),
        f"- Catch trials: {catch['null']:.1%} without a difference, {catch['easy']:.1%} with an easy one",
        f"- Practice: {practised}",
        f"- An interval lasts up to {trials['interval']:g} s, the gap {trials['gap']:g} s",
        f"- A break of at least {trials['rest']:g} s follows {blocks}",
        f"- Exploration: {_settings(facts['exploration'])}",
        "",
        *("## Participants", "", f"Planned: {planned}.", "", *powered),
        *("## Exclusions", "", "By the program, before anybody has looked at the answers:", ""),
        *(f"- {rule}" for rule in facts["exclusions"]),
        *("", *_stated(facts, "exclusions"), ""),
        *("## Analysis", "", *_stated(facts, "plan"), ""),
        *((*further, "") if further else ()),
        *("## Randomisation", ""),
        f"- Seed: {seeds['seed']}",
        f"- {seeds['policy']}",
        f"- Conditions: {seeds['conditions']}",
        f"- {seeds['places']}",
        "",
        *("## The file", "", f"{fence}toml", facts["file"].rstrip("\n"), fence, ""),
        *(("## The conditions", "", f"{fence}csv", csv_text.rstrip("\n"), fence, "") if csv_text else ()),
    ]
    return "\n".join(lines)


def _stated(facts: Facts, name: str) -> list[str]:
    """Return the list of an entry of the table ``analysis``, or that it is missing."""
    value = facts["analysis"].get(name)
    parts = value if isinstance(value, list) else [] if value is None else [value]
    return [f"- {_cell(_plain(part))}" for part in parts] or [_UNSTATED]


def _table(names: list[str], rows: list[list[Any]]) -> list[str]:
    cells = [f"| {' | '.join(_cell(str(one)) for one in row)} |" for row in rows]
    return [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}", *cells, ""]


def _settings(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {_plain(value)}" for name, value in values.items()) or "nothing"


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return f"({_settings(value)})" if value else "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return "; ".join(map(_plain, value)) or "none"
    return "" if value is None else str(value)


def _span(trials: Mapping[str, Any]) -> str:
    least, most = trials["least"], trials["most"]
    return str(least) if least == most else f"{least} to {most}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
