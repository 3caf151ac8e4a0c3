"""Simulation of tasks other than forced choice: yes/no answers, adjustments and magnitude estimates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist, stdev
from typing import Any

import numpy as np

from apps.experiment.observers import SimulatedObserver
from apps.experiment.observers.decisions import ROOT_2, different, yes_criterion
from apps.experiment.observers.settings import Z75
from apps.experiment.procedures import Procedure
from apps.experiment.trial import TrialView

SIGNAL = {"detection": "yes", "same-different": "different"}
"""Response that reports a stimulus or difference, by task."""

_NORMAL = NormalDist()

Rng = np.random.Generator


def answer_words(
    procedure: Procedure, person: SimulatedObserver, task: str, axis: str, reference: float, rng: Rng
) -> tuple[list[float], list[bool]]:
    """Run a detection or same-different procedure.

    Return the levels and whether a stimulus was reported.
    """
    levels: list[float] = []
    noticed: list[bool] = []
    while not procedure.finished:
        level = procedure.level()
        said = _word(person, task, axis, reference, level, rng)
        procedure.add_outcome(level, said)
        levels.append(level)
        noticed.append(said)
    return levels, noticed


def answer_nothing(
    count: int, person: SimulatedObserver, task: str, axis: str, reference: float, rng: Rng
) -> list[bool]:
    """Return whether a stimulus was reported in trials without a stimulus."""
    return [_word(person, task, axis, reference, 0.0, rng) for _ in range(count)]


def _word(person: SimulatedObserver, task: str, axis: str, reference: float, level: float, rng: Rng) -> bool:
    values = (reference + level,) if task == "detection" else (reference, reference + level)
    trial = TrialView(task, axis, reference, level, values, 2 if len(values) == 2 else None)
    return person.answer(trial, rng).response == SIGNAL[task]


def noticed_at(task: str, proportion: float, false_alarms: float) -> float:
    """Return the increment detected with a given proportion, relative to the increment with 75 % correct.

    The proportion excludes guesses: the probability of the response is P = F + (1 - F) proportion, where F is the false
    alarm rate. The 75 % refer to two intervals.
    """
    wanted = false_alarms + (1.0 - false_alarms) * proportion
    if task == "detection":
        return (_NORMAL.inv_cdf(wanted) + yes_criterion(false_alarms)) / (ROOT_2 * Z75)
    return _root(lambda z: different(z, false_alarms) - wanted, 0.0, 20.0) / Z75


def _root(f: Callable[[float], float], low: float, high: float) -> float:
    """Return the root of an increasing function by bisection."""
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if f(middle) < 0.0 else (low, middle)
    return 0.5 * (low + high)


def spread_of_settings(
    procedures: Sequence[Procedure], person: SimulatedObserver, axis: str, reference: float, rng: Rng
) -> tuple[float, int]:
    """Return the logarithm of the standard deviation of the adjustments, and their number.

    The logarithm of the sample variance is biased by psi(n/2) - ln(n/2), about -1/n, with n degrees of freedom. The
    bias is corrected.
    """
    values = [one for each in procedures for one in _numbers(each, person, "adjustment", axis, reference, rng)]
    found, freedom = (stdev(values), len(values) - 1) if len(values) > 1 else (0.0, 1)
    return (math.log(found) + 0.5 / freedom if found > 0.0 else math.nan), len(values)


def exponent_of_estimates(
    procedures: Sequence[Procedure], person: SimulatedObserver, axis: str, reference: float, rng: Rng
) -> tuple[float, int]:
    """Return the logarithm of the exponent of the magnitude estimates, and their number."""
    levels: list[float] = []
    values = [one for each in procedures for one in _numbers(each, person, "estimation", axis, reference, rng, levels)]
    slope = float(np.polyfit(np.log(levels), np.log(values), 1)[0])
    return (math.log(slope) if slope > 0.0 else math.nan), len(values)


def _numbers(
    procedure: Procedure,
    person: SimulatedObserver,
    task: str,
    axis: str,
    reference: float,
    rng: Rng,
    levels: list[float] | None = None,
) -> list[float]:
    found: list[float] = []
    while not procedure.finished:
        level = procedure.level()
        trial = TrialView(task, axis, reference, level, (level,))
        answer: Any = person.answer(trial, rng).response
        procedure.add_outcome(level if levels is not None else float(answer), True)
        found.append(float(answer))
        if levels is not None:
            levels.append(level)
    return found
