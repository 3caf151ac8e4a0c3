"""Simulation of observers in an experiment without a device: procedures, answers and fits."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from apps.experiment.observers import SimulatedObserver, make_observer
from apps.experiment.power.tasks import (
    SIGNAL,
    answer_nothing,
    answer_words,
    exponent_of_estimates,
    noticed_at,
    spread_of_settings,
)
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

    @property
    def guess(self) -> float:
        """Proportion correct by chance."""
        return TASKS[self.task].guess or 0.0


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
            found[row, place] = _done(study, arm, number, place + 1, person)
    return found


def _done(study: Study, arm: Arm, number: int, block: int, typical: SimulatedObserver) -> tuple[float, float, float]:
    """Simulate an observer in a condition."""
    seed = trial_seed(study.seed, number, 1, block, 0)
    rng = child(seed, 0)
    person = copy.copy(typical)
    person.acuity_factor *= arm.factor * math.exp(arm.spread * float(rng.standard_normal()))
    procedures = [
        make_procedure(
            arm.procedure,
            guess=arm.guess,
            seed=np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 1, track)),
        )
        for track in range(arm.tracks)
    ]
    truth = person.truth(arm.axis, arm.reference)
    if arm.task == "adjustment":
        found, count = spread_of_settings(procedures, person, arm.axis, arm.reference, rng)
        return found, math.log(truth["adjustment_sd"]), count
    if arm.task == "estimation":
        found, count = exponent_of_estimates(procedures, person, arm.axis, arm.reference, rng)
        return found, math.log(truth["exponent"]), count
    increment = truth["increment_75"]
    if arm.task in SIGNAL:
        return _worded(study, arm, procedures, person, rng, increment)
    levels: list[float] = []
    correct: list[bool] = []
    for procedure in procedures:
        _run(procedure, arm, person, rng, levels, correct)
    return _fitted(study, arm, levels, correct), math.log(increment * _beyond_75(study.proportion)), len(levels)


def _worded(
    study: Study,
    arm: Arm,
    procedures: list[Procedure],
    person: SimulatedObserver,
    rng: np.random.Generator,
    increment: float,
) -> tuple[float, float, float]:
    """Simulate a detection or same-different task.

    Trials without a stimulus measure the false alarms.
    """
    levels: list[float] = []
    noticed: list[bool] = []
    for procedure in procedures:
        levels_of_track, said = answer_words(procedure, person, arm.task, arm.axis, arm.reference, rng)
        levels += levels_of_track
        noticed += said
    null = answer_nothing(
        round(arm.null * len(levels) / (1.0 - arm.null)), person, arm.task, arm.axis, arm.reference, rng
    )
    found = _fitted(study, arm, [0.0] * len(null) + levels, null + noticed)
    true = increment * noticed_at(arm.task, study.proportion, person.settings.false_alarms)
    return found, math.log(true), len(levels) + len(null)


def _beyond_75(proportion: float) -> float:
    """Return the increment at `proportion` correct, relative to 75 %, in two intervals."""
    normal = NormalDist()
    return normal.inv_cdf(proportion) / normal.inv_cdf(0.75)


def _run(
    procedure: Procedure,
    arm: Arm,
    person: SimulatedObserver,
    rng: np.random.Generator,
    levels: list[float],
    correct: list[bool],
) -> None:
    """Run a track to completion, and append its levels and answers to the lists."""
    while not procedure.finished:
        level = procedure.level()
        order = 1 + int(rng.random() < 0.5)
        values = (arm.reference, arm.reference + level)
        trial = TrialView(arm.task, arm.axis, arm.reference, level, values if order == 2 else values[::-1], order)
        right = bool(person.answer(trial, rng).correct(trial))
        procedure.add_outcome(level, right)
        levels.append(level)
        correct.append(right)


def _fitted(study: Study, arm: Arm, levels: list[float], correct: list[bool]) -> float:
    """Return the logarithm of the threshold fitted to the answers."""
    from calibration.psychometric import fit_psychometric

    settings = procedure_settings(arm.procedure)
    grid = possible_levels(settings)
    distinct, place = np.unique(levels, return_inverse=True)
    right, total = np.bincount(place, correct), np.bincount(place)
    if not grid or arm.task in SIGNAL:
        guess: Guess = "free" if arm.task in SIGNAL else arm.guess
        fit = fit_psychometric(distinct, right, total, guess=guess, shape=study.shape, scale="log")
        estimate = fit.threshold(study.proportion)
        return math.nan if estimate.bound else math.log(estimate.value)
    all_right, all_total = np.zeros((2, len(grid)))
    rows = np.searchsorted(grid, distinct)
    all_right[rows], all_total[rows] = right, total
    estimate = _tables(grid, arm.guess, study.shape).threshold(all_right, all_total, study.proportion)
    return math.log(estimate.value)


@lru_cache(maxsize=16)
def _tables(levels: tuple[float, ...], guess: float, shape: str) -> Tables:
    from calibration.psychometric import psychometric_tables

    return psychometric_tables(levels, guess=guess, shape=shape, scale="log")
