"""From many simulated people to the power of a study with N of them, and to how well it would know what it found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apps.experiment.power.settings import PowerSettings
from apps.experiment.procedures import child, trial_seed

Array = NDArray[np.float64]

_STUDIES = 4000
"""Studies that are drawn for each number of participants."""

_POOLS, _STUDIES_OF_A_POOL = 300, 300
"""Pools drawn from the simulated people, and studies drawn from each of them, for the interval of the power."""

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Row:
    """A number of participants and what a study with so many would come to.

    Attributes
    ----------
    participants : int
        How many.
    power, low, high : float
        Share of studies that find what is asked for, with the 95 % interval of the simulation.
    half_width : float
        Half of the 95 % interval of the result that is to be expected, as a share of it: 0.1 is plus or minus 10 %.
    """

    participants: int
    power: float
    low: float
    high: float
    half_width: float


def plan(results: Array, settings: PowerSettings) -> list[Row]:
    """Return the power for each number of participants.

    Studies are drawn with replacement from the simulated people. A study of a difference finds it if Student's t test
    of the logarithms of the ratios, each participant with both conditions, is significant; one of a precision if the
    95 % interval of the geometric mean is narrow enough. The interval of the power comes from pools that are drawn from
    the simulated people in the same way: it has what another pool of so many people would change, too.

    Parameters
    ----------
    results : (people,) float array
        For each person the logarithm of the ratio, or of the Weber fraction.
    settings : PowerSettings
        The question and the numbers of participants.
    """
    return [_row(results, count, settings) for count in settings.participants]


def _row(results: Array, count: int, settings: PowerSettings) -> Row:
    seed = trial_seed(settings.seed, 0, 0, 0, 0)
    found, half = _studies(results, count, _STUDIES, settings, child(seed, 0, count))
    powers = []
    for number in range(_POOLS):  # the same pools for all numbers of participants: the intervals go along
        pool = results[child(seed, 1, number).integers(len(results), size=len(results))]
        drawn, _ = _studies(pool, count, _STUDIES_OF_A_POOL, settings, child(seed, 2, number))
        powers.append(float(drawn.mean()))
    power = float(found.mean())
    low, high = np.quantile(powers, (0.025, 0.975))
    return Row(count, power, min(float(low), power), max(float(high), power), float(np.expm1(np.mean(half))))


def _studies(
    results: Array, count: int, studies: int, settings: PowerSettings, rng: np.random.Generator
) -> tuple[NDArray[np.bool_], Array]:
    """Draw studies; return which find what is asked for, and half the width of the 95 % interval of each."""
    sample = results[rng.integers(len(results), size=(studies, count))]
    error = sample.std(axis=1, ddof=1) / np.sqrt(count)
    half = error * reach(_CONFIDENCE, count)
    if settings.question == "precision":
        return half <= np.log1p(settings.precision), half
    return np.abs(sample.mean(axis=1)) > error * reach(1.0 - settings.alpha, count), half


def reach(confidence: float, count: int) -> float:
    """Return how many standard errors the interval of a mean of `count` values reaches to either side (Student's t)."""
    from calibration.fitting.intervals import quantile

    return float(quantile(confidence, np.array([count - 1.0]))[0])


def enough(rows: list[Row], wanted: float) -> int | None:
    """Return the fewest participants from which on the power is as wanted; None if no number has it."""
    for place, row in enumerate(rows):
        if all(each.power >= wanted for each in rows[place:]):
            return row.participants
    return None
