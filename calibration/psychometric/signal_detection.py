"""Detectability d' and criterion from hits and false alarms, with intervals.

Rates have the posterior Beta(count + 1/2, others + 1/2) of Jeffreys' prior. Intervals are based on the pair of
independent rates, so that a rate of 0 or 1 gives a large but finite d' with a wide interval. Formulas: Macmillan and
Creelman 2005, Detection Theory, 2nd ed., chapters 1, 2, 7 and 9.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calibration.psychometric.estimate import USUAL_PROBABILITY, Estimate, interval_of
from haptics.errors import ConfigurationError

Array = NDArray[np.float64]
Task = Literal["yes-no", "2afc", "same-different"]

_POINTS = 200
"""Number of equally probable points of each rate's posterior."""

_LARGEST = 12.0
"""Maximum d' that a realistic number of trials can distinguish."""


@dataclass(frozen=True)
class Detectability:
    """Detectability and criterion.

    Attributes
    ----------
    d_prime : Estimate
        Distance of the stimuli in standard deviations of one presentation.
    criterion : Estimate
        Bias towards "no" ("first", "same") if greater than 0 [standard deviations].
    """

    d_prime: Estimate
    criterion: Estimate


def detectability(
    hits: int,
    misses: int,
    false_alarms: int,
    correct_rejections: int,
    *,
    task: Task = "yes-no",
    probability: float = USUAL_PROBABILITY,
) -> Detectability:
    """Return d' and criterion of a task.

    Parameters
    ----------
    hits, misses : int
        Responses to the signal: "yes" and "no"; in two intervals, "second" and "first" with the signal in the second;
        "different" and "same" to different pairs.
    false_alarms, correct_rejections : int
        The same responses without the signal; with the signal in the first; to equal pairs.
    task : str
        ``yes-no``, ``2afc`` or ``same-different`` (differencing rule: pairs seem different if their difference exceeds
        a criterion, which is returned).
    probability : float
        Probability of the intervals.

    Raises
    ------
    ConfigurationError
        If a count is invalid, or one of the stimuli was never presented.
    """
    if task not in _RULES:
        raise ConfigurationError(f"task = {task!r}: must be one of {', '.join(_RULES)}.")
    hit, false_alarm = rate_grid(hits, hits + misses), rate_grid(false_alarms, false_alarms + correct_rejections)
    d_prime, criterion = _RULES[task](hit[:, None], false_alarm[None, :])
    even = np.ones((_POINTS, _POINTS))
    estimates = [interval_of(np.broadcast_to(values, even.shape), even, probability) for values in (d_prime, criterion)]
    return Detectability(*estimates)


def d_prime(hits: int, misses: int, false_alarms: int, correct_rejections: int, *, task: Task = "yes-no") -> Estimate:
    """Return d' (see `detectability`)."""
    return detectability(hits, misses, false_alarms, correct_rejections, task=task).d_prime


def criterion(hits: int, misses: int, false_alarms: int, correct_rejections: int, *, task: Task = "yes-no") -> Estimate:
    """Return the criterion (see `detectability`)."""
    return detectability(hits, misses, false_alarms, correct_rejections, task=task).criterion


def rate_grid(count: int, total: int) -> Array:
    """Return equally probable values of a rate given `count` of `total` (Jeffreys' prior)."""
    from scipy.special import betaincinv

    if total <= 0 or not 0 <= count <= total:
        raise ConfigurationError(f"{count} of {total}: each kind of trial must have been shown at least once.")
    middles = (np.arange(_POINTS) + 0.5) / _POINTS
    return np.asarray(np.clip(betaincinv(count + 0.5, total - count + 0.5, middles), 1e-12, 1.0 - 1e-12))


def _z(p: Array) -> Array:
    from scipy.special import ndtri

    return np.asarray(ndtri(p))


def _yes_no(hit: Array, false_alarm: Array) -> tuple[Array, Array]:
    """Return d' = z(H) - z(F) and c = -(z(H) + z(F))/2."""
    return _z(hit) - _z(false_alarm), -0.5 * (_z(hit) + _z(false_alarm))


def _two_intervals(hit: Array, false_alarm: Array) -> tuple[Array, Array]:
    """Return d' = (z(H) - z(F))/sqrt(2): a difference of two presentations has twice the variance."""
    return (_z(hit) - _z(false_alarm)) / np.sqrt(2.0), -0.5 * (_z(hit) + _z(false_alarm))


def _same_different(hit: Array, false_alarm: Array) -> tuple[Array, Array]:
    """Solve for the criterion k and d' by bisection.

    F = 2 Phi(-k/sqrt(2)) and H = Phi((d'-k)/sqrt(2)) + Phi((-d'-k)/sqrt(2)).
    """
    from scipy.special import ndtr

    k = -np.sqrt(2.0) * _z(0.5 * false_alarm)
    low = np.zeros(np.broadcast_shapes(hit.shape, k.shape))
    high = np.full_like(low, _LARGEST)
    for _ in range(40):
        middle = 0.5 * (low + high)
        less = ndtr((middle - k) / np.sqrt(2.0)) + ndtr((-middle - k) / np.sqrt(2.0)) < hit
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    return 0.5 * (low + high), k


_RULES: dict[str, Callable[[Array, Array], tuple[Array, Array]]] = {
    "yes-no": _yes_no,
    "2afc": _two_intervals,
    "same-different": _same_different,
}
