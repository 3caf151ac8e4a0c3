"""Magnitude estimation, and estimates over participants with the variation between them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.psychometric.estimate import USUAL_PROBABILITY, Estimate, checked_probability, positive
from haptics.errors import ConfigurationError


@dataclass(frozen=True)
class Group:
    """Estimate over participants.

    Attributes
    ----------
    mean : Estimate
        Geometric mean, with the interval of Student's t on the logarithms.
    cv : float
        Coefficient of variation of the participants' estimates, sqrt(exp(s^2) - 1) with the standard deviation s of the
        logarithms; nan for one participant.
    cv_between : float
        The same without the variance of the estimates themselves, as given by their intervals; 0 if that explains all.
    count : int
        Number of participants with a value.
    bounds : int
        Number of participants with only a bound, who are excluded.
    """

    mean: Estimate
    cv: float
    cv_between: float
    count: int
    bounds: int


def group_estimate(estimates: Sequence[Estimate], probability: float = USUAL_PROBABILITY) -> Group:
    """Return the estimate over participants of a positive quantity, such as a threshold or Weber fraction.

    Parameters
    ----------
    estimates : sequence of Estimate
        One per participant. Bounds are excluded and counted.
    probability : float
        Probability of the interval.

    Raises
    ------
    ConfigurationError
        If no participant has a value.
    """
    from scipy.special import ndtri

    known = [one for one in estimates if not one.bound]
    if not known:
        raise ConfigurationError("No participant's estimate is a number; nothing can be said of the group.")
    logs = np.log(positive("estimates", [one.value for one in known]))
    mean = mean_with_interval(list(map(float, logs)), probability).transformed(math.exp)
    variance = float(np.var(logs, ddof=1)) if len(known) > 1 else math.nan
    # the variance of the logarithm of each estimate from its interval, assumed normal; 0 if open
    own = []
    for one in known:
        reach = 2.0 * float(ndtri(0.5 + 0.5 * one.probability))
        limited = one.low > 0.0 and not math.isinf(one.high)
        own.append((math.log(one.high / one.low) / reach) ** 2 if limited else 0.0)
    cv, between = (
        math.sqrt(math.expm1(value)) if math.isfinite(value) else math.nan
        for value in (variance, max(0.0, variance - float(np.mean(own))))
    )
    return Group(mean, cv, between, len(known), len(estimates) - len(known))


def mean_and_spread(values: Sequence[float], probability: float = USUAL_PROBABILITY) -> tuple[Estimate, Estimate]:
    """Return mean and standard deviation of normal values, with t and chi-squared intervals.

    Raises
    ------
    ConfigurationError
        If there are fewer than two values.
    """
    from scipy.special import chdtri

    if len(values) < 2:
        raise ConfigurationError(f"{len(values)} values: a standard deviation needs at least two.")
    free, tail, sd = len(values) - 1, 0.5 * (1.0 - probability), float(np.std(values, ddof=1))
    low, high = (sd * math.sqrt(free / float(chdtri(free, share))) for share in (tail, 1.0 - tail))
    return mean_with_interval(list(values), probability), Estimate(sd, low, high, probability)


# --- magnitude estimation ---------------------------------------------------------------------------------------------

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Magnitude:
    """Fitted power law: estimate = factor times stimulus^exponent.

    Attributes
    ----------
    exponent, factor : Estimate
        Over participants, or over the responses of a single participant.
    levels, means : (n,) float arrays
        Stimuli, and geometric means of the normalised estimates.
    exponents : dict
        Exponent of each participant.
    normalised : (rows,) float array
        Estimates after modulus equalisation, in their original order.
    """

    exponent: Estimate
    factor: Estimate
    levels: Array
    means: Array
    exponents: dict[Hashable, float]
    normalised: Array


def magnitude_exponent(
    stimuli: ArrayLike,
    estimates: ArrayLike,
    participants: Sequence[Hashable] | None = None,
    probability: float = USUAL_PROBABILITY,
) -> Magnitude:
    """Fit a power law to magnitude estimates with a free modulus.

    Each participant's numbers are divided by their geometric mean and multiplied by the overall geometric mean (modulus
    equalisation: Lane, Catania and Stevens 1961, J. Acoust. Soc. Am. 33, 160-167; Gescheider 1997, Psychophysics, ch.
    11), which removes individual preferences for large or small numbers. Exponents are least-squares slopes of the
    logarithms, one per participant; their mean has the interval of Student's t over participants. For one participant,
    the interval of the regression is used.

    Parameters
    ----------
    stimuli, estimates : (n,) array-likes
        Level and response in each trial, greater than 0.
    participants : sequence, optional
        Participant of each trial; by default a single one.
    probability : float
        Probability of the intervals.

    Raises
    ------
    ConfigurationError
        If a number has no logarithm, or a participant judged fewer than two different stimuli.
    """
    x = np.log(positive("stimuli", np.atleast_1d(np.asarray(stimuli, dtype=float))))
    y = np.log(positive("estimates", np.atleast_1d(np.asarray(estimates, dtype=float))))
    who = ["one"] * len(x) if participants is None else list(participants)
    if not len(x) == len(y) == len(who) or len(x) == 0:
        raise ConfigurationError(
            f"stimuli, estimates, participants: {len(x)}, {len(y)} and {len(who)} rows; must agree."
        )
    groups = {one: np.array([other == one for other in who]) for one in dict.fromkeys(who)}
    slopes = {one: _slope(x[rows], y[rows], str(one)) for one, rows in groups.items()}
    level = y.copy()
    for rows in groups.values():
        level[rows] -= y[rows].mean()
    level += np.mean([y[rows].mean() for rows in groups.values()])
    stimulus, place = np.unique(x, return_inverse=True)
    means = np.bincount(place, level) / np.bincount(place)
    if len(slopes) > 1:
        offsets = [float(np.mean(level[rows]) - slopes[one] * np.mean(x[rows])) for one, rows in groups.items()]
        exponent, factor = (mean_with_interval(values, probability) for values in (list(slopes.values()), offsets))
    else:
        exponent, factor = _regression(x, level, probability)
    return Magnitude(exponent, factor.transformed(math.exp), np.exp(stimulus), np.exp(means), slopes, np.exp(level))


def mean_with_interval(values: Sequence[float], probability: float) -> Estimate:
    """Return the mean of independent values with the interval of Student's t; infinite for a single value."""
    from scipy.special import stdtrit

    mean, count = float(np.mean(values)), len(values)
    if count < 2:
        return Estimate(mean, -math.inf, math.inf, checked_probability(probability))
    reach = float(stdtrit(count - 1, 0.5 + 0.5 * checked_probability(probability)))
    error = float(np.std(values, ddof=1)) / math.sqrt(count)
    return Estimate(mean, mean - reach * error, mean + reach * error, probability)


def _slope(x: Array, y: Array, who: str) -> float:
    if np.ptp(x) == 0.0:
        raise ConfigurationError(f"{who}: judged fewer than two different stimuli; an exponent needs at least two.")
    centred = x - x.mean()
    return float(np.sum(centred * y) / np.sum(centred**2))


def _regression(x: Array, y: Array, probability: float) -> tuple[Estimate, Estimate]:
    """Return slope and intercept with the intervals of Student's t."""
    from scipy.special import stdtrit

    centred, slope = x - x.mean(), _slope(x, y, "The participant")
    intercept, free = float(y.mean() - slope * x.mean()), len(x) - 2
    checked_probability(probability)
    halves = [math.inf, math.inf]
    if free > 0:
        variance = float(np.sum((y - intercept - slope * x) ** 2)) / free
        reach, spread = float(stdtrit(free, 0.5 + 0.5 * probability)), float(np.sum(centred**2))
        errors = variance / spread, variance * (1.0 / len(x) + float(x.mean()) ** 2 / spread)
        halves = [reach * math.sqrt(error) for error in errors]
    one, other = (
        Estimate(value, value - half, value + half, probability)
        for value, half in zip((slope, intercept), halves, strict=True)
    )
    return one, other
