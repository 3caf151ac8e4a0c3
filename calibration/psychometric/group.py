"""Estimates over participants: geometric mean with its interval, and variation between participants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.psychometric.data import positive
from calibration.psychometric.estimate import USUAL_PROBABILITY, Estimate
from calibration.psychometric.magnitude import mean_with_interval
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
    known = [one for one in estimates if not one.bound]
    if not known:
        raise ConfigurationError("No participant's estimate is a number; nothing can be said of the group.")
    logs = np.log(positive("estimates", [one.value for one in known]))
    mean = mean_with_interval(list(map(float, logs)), probability).transformed(_exp)
    variance = float(np.var(logs, ddof=1)) if len(known) > 1 else math.nan
    own = float(np.mean([_own_variance(one) for one in known]))
    return Group(mean, _cv(variance), _cv(max(0.0, variance - own)), len(known), len(estimates) - len(known))


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


def _exp(x: float) -> float:
    return math.inf if math.isinf(x) and x > 0.0 else math.exp(x)


def _own_variance(one: Estimate) -> float:
    """Return the variance of the logarithm of an estimate from its interval, assumed normal; 0 if open."""
    from scipy.special import ndtri

    if one.low <= 0.0 or math.isinf(one.high):
        return 0.0
    reach = 2.0 * float(ndtri(0.5 + 0.5 * one.probability))
    return (math.log(one.high / one.low) / reach) ** 2


def _cv(variance: float) -> float:
    return math.sqrt(math.expm1(variance)) if math.isfinite(variance) else math.nan
