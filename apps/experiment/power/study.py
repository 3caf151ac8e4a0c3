"""Simulated study of an experiment file, and the duration of its sessions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from apps.experiment.design import ConditionSettings, Design
from apps.experiment.observers import ObserverSettings
from apps.experiment.power.people import Arm, Array, Study
from apps.experiment.power.planning import enough, plan
from apps.experiment.power.settings import PowerSettings
from apps.experiment.power.tasks import SIGNAL
from haptics.errors import ConfigurationError
from haptics.settings import build, unknown_name

_PROCEDURES = ("staircase", "quest+", "constant")
_FITTING = {"adjustment": ("adjustment",), "estimation": ("estimation",)}
"""Permitted procedures by task. All other tasks permit `_PROCEDURES`, which measure thresholds."""


def make_study(design: Design, settings: PowerSettings, observer: Mapping[str, Any]) -> Study:
    """Return the simulated study of an experiment.

    Raises
    ------
    ConfigurationError
        If the experiment does not measure a suitable quantity, or a condition does not exist.
    """
    if design.experiment.task == "estimation" and settings.question != "precision":
        raise ConfigurationError(
            "power.question = 'difference': the exponent of magnitude estimates is one of all conditions; ask for "
            "'precision'."
        )
    conditions = _conditions(design, settings)
    typical = build(ObserverSettings, {**observer, "level": 1}, "observer")
    arms = [_arm(design, condition) for condition in conditions]
    if settings.question == "difference":
        first, second = (typical.acuity(arm.axis).increment(arm.reference) / (arm.reference or 1.0) for arm in arms)
        spread = math.sqrt(math.log1p(settings.ratio_spread**2))
        arms[1] = replace(arms[1], factor=settings.ratio * first / second, spread=spread)
    table = {**observer, "level": 1}
    return Study(tuple(arms), table, settings.shape, settings.proportion, settings.seed)


def _conditions(design: Design, settings: PowerSettings) -> list[ConditionSettings]:
    """Return the one or two conditions of the question."""
    names = [one.name for one in design.conditions]
    wanted = 1 if settings.question == "precision" else 2
    chosen = [settings.first or names[0]]
    if wanted == 2:
        others = [name for name in names if name != chosen[0]]
        if not settings.second and not others:
            raise ConfigurationError(
                "power.question = 'difference': needs two conditions, and the file has one; ask for 'precision'."
            )
        chosen.append(settings.second or others[0])
    for name in chosen:
        if name not in names:
            raise unknown_name("condition", name, names)
    if len(set(chosen)) < len(chosen):
        raise ConfigurationError(f"power.second = {chosen[1]!r}: must be another condition than power.first.")
    return [design.condition(name) for name in chosen]


def _arm(design: Design, condition: ConditionSettings) -> Arm:
    table = design.procedure_of(condition)
    task, axis = design.experiment.task, design.axis
    allowed = _FITTING.get(task, _PROCEDURES)
    if table["kind"] not in allowed:
        raise ConfigurationError(
            f"procedure.kind = {table['kind']!r}: does not find what the task {task!r} is for; power is known for "
            f"{', '.join(allowed)}."
        )
    if task in SIGNAL and not design.catch.null:
        raise ConfigurationError(
            f"catch.null = 0: in a task of {task} guesses are known from trials without a stimulus only; give a share."
        )
    null = design.catch.null if task in SIGNAL else 0.0
    reference = 0.0 if task == "estimation" else condition.reference  # exponents have no reference
    return Arm(condition.name, task, axis, reference, condition.tracks, table, null=null)


def minutes(design: Design, trials: Mapping[str, float], reaction_time: float) -> float:
    """Return the maximum duration of a participant's session [min]; strokes may end intervals earlier.

    Parameters
    ----------
    design : Design
        Design with its times, breaks, catch trials and practice.
    trials : mapping
        Number of trials of each simulated condition. Other conditions are assumed to have their average.
    reaction_time : float
        Median time to an answer [s].
    """
    average = sum(trials.values()) / len(trials)
    tests = sum(trials.get(one.name, average * one.tracks) for one in design.conditions)
    null = 0.0 if design.experiment.task in SIGNAL else design.catch.null  # counted with the others in these tasks
    catches = null + design.catch.easy if design.task.responses else 0.0
    count = tests / (1.0 - catches) + design.practice.window
    times, intervals = design.trials, design.task.intervals
    trial = intervals * (times.interval + design.exploration.rest) + (intervals - 1) * times.gap + reaction_time
    breaks = max(math.ceil(count / times.block) - 1, 0)
    return (count * trial + breaks * times.rest) / 60.0


def outcome(
    design: Design, study: Study, settings: PowerSettings, results: Array, reaction_time: float
) -> dict[str, Any]:
    """Return the result of the power analysis for JSON.

    Parameters
    ----------
    design, study, settings
        Experiment, simulated study, and question.
    results : (people, arms, 3) float array
        Results of `apps.experiment.power.people.simulate_people`.
    reaction_time : float
        Median time to an answer [s].

    Raises
    ------
    ConfigurationError
        If most observers have no threshold.
    """
    found, truth = (_effects(study, results[:, :, column]) for column in (0, 1))
    known = ~np.isnan(found)
    if known.mean() < LEAST_KNOWN:
        raise ConfigurationError(
            f"{np.sum(~known)} of {len(known)} simulated people have no threshold within the levels of the procedure; "
            "give it other levels or more trials."
        )
    rows = plan(found[known], settings)
    trials = {arm.name: float(count) for arm, count in zip(study.arms, results[:, :, 2].mean(axis=0), strict=True)}
    asked = (
        "question",
        "ratio",
        "ratio_spread",
        "precision",
        "proportion",
        "shape",
        "alpha",
        "wanted",
        "people",
        "seed",
    )
    return {
        "experiment": design.experiment.name,
        **{name: getattr(settings, name) for name in asked},
        "found": math.exp(float(found[known].mean())),
        "truth": math.exp(float(truth[known].mean())),
        "left_out": int(np.sum(~known)),
        "trials": trials,
        "minutes": minutes(design, trials, reaction_time),
        "power": [vars(row) for row in rows],
        "enough": enough(rows, settings.wanted),
    }


LEAST_KNOWN = 0.5
"""Minimum fraction of observers with a threshold for a valid power analysis."""


def _effects(study: Study, logs: Array) -> Array:
    """Return the log Weber fraction, or log ratio, of each observer; `logs` has shape (people, arms)."""
    fractions = logs - np.log([arm.reference or 1.0 for arm in study.arms])
    return np.asarray(fractions[:, 1] - fractions[:, 0] if len(study.arms) > 1 else fractions[:, 0])
