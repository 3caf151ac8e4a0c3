"""Simulation of observers in an experiment without a device: procedures, answers and fits."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist, stdev
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from apps.experiment.observers import ROOT_2, Z75, SimulatedObserver, different, make_observer, yes_criterion
from apps.experiment.procedures import (
    Procedure,
    child,
    make_procedure,
    person_seed,
    possible_levels,
    procedure_settings,
    trial_seed,
)
from apps.experiment.trial import TASKS, TrialView

if TYPE_CHECKING:
    from calibration.psychometric import Tables
    from calibration.psychometric.posterior import Guess

Array = NDArray[np.float64]

SIGNAL = {"detection": "yes", "same-different": "different"}
"""Response that reports a stimulus or difference, by task."""

_NORMAL = NormalDist()

_PORTION = 20
"""Observers in a job, which takes some tenths of a second."""


@dataclass(frozen=True)
class Arm:
    """Simulated condition.

    Attributes
    ----------
    name, task, axis : str
        Name of the condition, task and axis of the experiment.
    reference : float
        Value of the reference.
    tracks : int
        Runs of the procedure, whose answers are fitted together.
    procedure : mapping
        Table of the procedure.
    factor : float
        Effect: factor on the discrimination thresholds of the typical observer.
    spread : float
        Standard deviation of the logarithm of this factor between observers.
    null : float
        Fraction of trials without a stimulus, which measure the false alarms in detection and same-different tasks.
    """

    name: str
    task: str
    axis: str
    reference: float
    tracks: int
    procedure: Mapping[str, Any]
    factor: float = 1.0
    spread: float = 0.0
    null: float = 0.0


@dataclass(frozen=True)
class Study:
    """Simulated study.

    Attributes
    ----------
    arms : tuple of Arm
        Conditions of the study.
    observer : mapping
        Table of the observer.
    shape : str
        Psychometric function, fitted to the logarithm of the level.
    proportion : float
        Proportion at the threshold.
    seed : int
        Seed of the study. The random numbers of an observer depend only on it and on the observer's number.
    """

    arms: tuple[Arm, ...]
    observer: Mapping[str, Any]
    shape: str
    proportion: float
    seed: int


def simulate_people(study: Study, first: int, count: int) -> Array:
    """Return the results of `count` observers with numbers from `first`, shape (count, arms, 3).

    The columns are, for each condition, the logarithm of the fitted threshold, the logarithm of the true threshold at
    the same proportion without lapses, and the number of trials. A threshold that is only a bound is nan.
    """
    found = np.empty((count, len(study.arms), 3))
    for row, number in enumerate(range(first, first + count)):
        person = make_observer(study.observer, seed=person_seed(study.seed, number))
        for place, arm in enumerate(study.arms):
            found[row, place] = _simulate_arm(study, arm, trial_seed(study.seed, number, 1, place + 1, 0), person)
    return found


def simulate_pool(
    study: Study,
    people: int,
    *,
    executor: Executor | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> Array:
    """Return the results of `people` simulated observers, like `simulate_people`.

    The results do not depend on the number of workers.

    Parameters
    ----------
    study : Study
        The study.
    people : int
        Number of observers. An observer does not depend on the total number.
    executor : Executor, optional
        Executor of the jobs. Without it they run sequentially.
    progress : callable
        Function that takes the completed fraction.
    """
    jobs = [(first, min(_PORTION, people - first)) for first in range(0, people, _PORTION)]
    found = np.empty((people, len(study.arms), 3))
    if executor is None:
        for first, count in jobs:
            found[first : first + count] = simulate_people(study, first, count)
            progress((first + count) / people)
        return found
    waiting = {executor.submit(simulate_people, study, first, count): (first, count) for first, count in jobs}
    try:
        for done, future in enumerate(as_completed(waiting), 1):
            first, count = waiting[future]
            found[first : first + count] = future.result()
            progress(done / len(jobs))
    except BaseException:  # also on Ctrl-C: cancel the jobs that have not started
        for future in waiting:
            future.cancel()
        raise
    return found


def _simulate_arm(
    study: Study, arm: Arm, seed: np.random.SeedSequence, typical: SimulatedObserver
) -> tuple[float, float, float]:
    """Simulate an observer in a condition: log of the fitted and of the true threshold, and number of trials."""
    rng = child(seed, 0)
    person = copy.copy(typical)
    person.acuity_factor *= arm.factor * math.exp(arm.spread * float(rng.standard_normal()))
    guess = TASKS[arm.task].guess or 0.0
    procedures = []
    for track in range(arm.tracks):
        own = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 1, track))
        procedures.append(make_procedure(arm.procedure, guess=guess, seed=own))
    truth = person.truth(arm.axis, arm.reference)
    if arm.task in ("adjustment", "estimation"):
        levels, numbers = _give_numbers(procedures, arm, person, rng)
        if arm.task == "adjustment":
            # With n degrees of freedom, the log of the sample variance is biased by psi(n/2) - ln(n/2), about -1/n.
            spread, freedom = (stdev(numbers), len(numbers) - 1) if len(numbers) > 1 else (0.0, 1)
            found = math.log(spread) + 0.5 / freedom if spread > 0.0 else math.nan
            return found, math.log(truth["adjustment_sd"]), len(numbers)
        slope = float(np.polyfit(np.log(levels), np.log(numbers), 1)[0])
        return (math.log(slope) if slope > 0.0 else math.nan), math.log(truth["exponent"]), len(numbers)
    levels, reported = [], []
    for procedure in procedures:
        for level, answer in _run(procedure, arm, person, rng):
            levels.append(level)
            reported.append(answer)
    if arm.task in SIGNAL:
        count = round(arm.null * len(levels) / (1.0 - arm.null))
        null = [_reports_signal(arm, person, 0.0, rng) for _ in range(count)]
        levels, reported = [0.0] * len(null) + levels, null + reported
        relative = noticed_at(arm.task, study.proportion, person.settings.false_alarms)
    else:
        relative = _NORMAL.inv_cdf(study.proportion) / _NORMAL.inv_cdf(0.75)  # two intervals, relative to 75 %
    return _fitted(study, arm, levels, reported), math.log(truth["increment_75"] * relative), len(levels)


def _run(
    procedure: Procedure, arm: Arm, person: SimulatedObserver, rng: np.random.Generator
) -> Iterator[tuple[float, bool]]:
    """Run a track to completion, and yield its levels and whether they were reported or answered correctly."""
    while not procedure.finished:
        level = procedure.level()
        if arm.task in SIGNAL:
            answer = _reports_signal(arm, person, level, rng)
        else:
            order = 1 + int(rng.random() < 0.5)
            values = (arm.reference, arm.reference + level)
            trial = TrialView(arm.task, arm.axis, arm.reference, level, values if order == 2 else values[::-1], order)
            answer = bool(person.answer(trial, rng).correct(trial))
        procedure.add_outcome(level, answer)
        yield level, answer


def _reports_signal(arm: Arm, person: SimulatedObserver, level: float, rng: np.random.Generator) -> bool:
    """Return whether a stimulus or difference is reported in a trial of a detection or same-different task."""
    reference = arm.reference
    values = (reference + level,) if arm.task == "detection" else (reference, reference + level)
    trial = TrialView(arm.task, arm.axis, reference, level, values, 2 if len(values) == 2 else None)
    return person.answer(trial, rng).response == SIGNAL[arm.task]


def noticed_at(task: str, proportion: float, false_alarms: float) -> float:
    """Return the increment detected with a given proportion, relative to the increment with 75 % correct.

    The proportion excludes guesses: the probability of the response is P = F + (1 - F) proportion, where F is the false
    alarm rate. The 75 % refer to two intervals.
    """
    wanted = false_alarms + (1.0 - false_alarms) * proportion
    if task == "detection":
        return (_NORMAL.inv_cdf(wanted) + yes_criterion(false_alarms)) / (ROOT_2 * Z75)
    low, high = 0.0, 20.0
    for _ in range(80):  # bisection
        middle = 0.5 * (low + high)
        low, high = (middle, high) if different(middle, false_alarms) - wanted < 0.0 else (low, middle)
    return 0.5 * (low + high) / Z75


def _give_numbers(
    procedures: Sequence[Procedure], arm: Arm, person: SimulatedObserver, rng: np.random.Generator
) -> tuple[list[float], list[float]]:
    """Run adjustments or magnitude estimations. Return the levels and the responses."""
    levels, numbers = [], []
    for procedure in procedures:
        while not procedure.finished:
            level = procedure.level()
            trial = TrialView(arm.task, arm.axis, arm.reference, level, (level,))
            number = float(person.answer(trial, rng).response)
            procedure.add_outcome(level if arm.task == "estimation" else number, True)
            levels.append(level)
            numbers.append(number)
    return levels, numbers


def _fitted(study: Study, arm: Arm, levels: list[float], correct: list[bool]) -> float:
    """Return the logarithm of the threshold fitted to the answers."""
    from calibration.psychometric import fit_psychometric

    grid = possible_levels(procedure_settings(arm.procedure))
    chance = TASKS[arm.task].guess or 0.0
    distinct, place = np.unique(levels, return_inverse=True)
    right, total = np.bincount(place, correct), np.bincount(place)
    if not grid or arm.task in SIGNAL:
        guess: Guess = "free" if arm.task in SIGNAL else chance
        fit = fit_psychometric(distinct, right, total, guess=guess, shape=study.shape, scale="log")
        estimate = fit.threshold(study.proportion)
        return math.nan if estimate.bound else math.log(estimate.value)
    all_right, all_total = np.zeros((2, len(grid)))
    rows = np.searchsorted(grid, distinct)
    all_right[rows], all_total[rows] = right, total
    return math.log(_tables(grid, chance, study.shape).threshold(all_right, all_total, study.proportion).value)


@lru_cache(maxsize=16)
def _tables(levels: tuple[float, ...], guess: float, shape: str) -> Tables:
    from calibration.psychometric import psychometric_tables

    return psychometric_tables(levels, guess=guess, shape=shape, scale="log")
