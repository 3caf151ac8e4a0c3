"""Power of a study with N participants and width of its interval, by resampling simulated observers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apps.experiment.power.settings import PowerSettings
from apps.experiment.procedures import child, trial_seed

Array = NDArray[np.float64]

_STUDIES = 4000
"""Number of simulated studies for each number of participants."""

_POOLS, _STUDIES_OF_A_POOL = 300, 300
"""Numbers of resampled pools, and of studies in each pool, for the interval of the power."""

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Row:
    """Expected result of a study with a given number of participants.

    Attributes
    ----------
    participants : int
        Number of participants.
    power, low, high : float
        Fraction of studies that find the effect or reach the precision, with its 95 % interval.
    half_width : float
        Expected relative half-width of the 95 % interval of the result: 0.1 is plus or minus 10 %.
    """

    participants: int
    power: float
    low: float
    high: float
    half_width: float


def plan(results: Array, settings: PowerSettings) -> list[Row]:
    """Return the power for each number of participants.

    Studies are drawn with replacement from the simulated observers. A study finds a difference if Student's t test of
    the logarithms of the within-participant ratios is significant. It reaches a precision if the 95 % interval of the
    geometric mean is narrow enough. The interval of the power is found from bootstrapped pools of observers, so that it
    includes the sampling error of the pool.

    Parameters
    ----------
    results : (people,) float array
        Logarithm of the ratio, or of the Weber fraction, of each observer.
    settings : PowerSettings
        Question and numbers of participants.
    """
    return [_row(results, count, settings) for count in settings.participants]


def _row(results: Array, count: int, settings: PowerSettings) -> Row:
    seed = trial_seed(settings.seed, 0, 0, 0, 0)
    found, half = _studies(results, count, _STUDIES, settings, child(seed, 0, count))
    powers = []
    for number in range(_POOLS):  # the same pools for all numbers of participants give comparable intervals
        pool = results[child(seed, 1, number).integers(len(results), size=len(results))]
        drawn, _ = _studies(pool, count, _STUDIES_OF_A_POOL, settings, child(seed, 2, number))
        powers.append(float(drawn.mean()))
    power = float(found.mean())
    low, high = np.quantile(powers, (0.025, 0.975))
    return Row(count, power, min(float(low), power), max(float(high), power), float(np.expm1(np.mean(half))))


def _studies(
    results: Array, count: int, studies: int, settings: PowerSettings, rng: np.random.Generator
) -> tuple[NDArray[np.bool_], Array]:
    """Draw studies.

    Return which of them succeed, and the half-widths of their 95 % intervals.
    """
    sample = results[rng.integers(len(results), size=(studies, count))]
    error = sample.std(axis=1, ddof=1) / np.sqrt(count)
    half = error * reach(_CONFIDENCE, count)
    if settings.question == "precision":
        return half <= np.log1p(settings.precision), half
    return np.abs(sample.mean(axis=1)) > error * reach(1.0 - settings.alpha, count), half


def reach(confidence: float, count: int) -> float:
    """Return the half-width of the interval of a mean of `count` values, in standard errors (Student's t)."""
    from calibration.fitting.intervals import quantile

    return float(quantile(confidence, np.array([count - 1.0]))[0])


def enough(rows: list[Row], wanted: float) -> int | None:
    """Return the lowest number of participants from which the power is at least `wanted`, or None."""
    for place, row in enumerate(rows):
        if all(each.power >= wanted for each in rows[place:]):
            return row.participants
    return None
