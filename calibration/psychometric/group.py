"""Estimates over participants: the geometric mean with its interval, and how much people differ."""

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
    """An estimate over participants.

    Attributes
    ----------
    mean : Estimate
        Geometric mean, with the interval of Student's t on the logarithms.
    cv : float
        Coefficient of variation of the participants' estimates, sqrt(exp(s^2) - 1) of the logarithms' deviation s; not
        a number for one participant.
    cv_between : float
        The same without what the estimates themselves vary, which their intervals tell; 0 where these explain it all.
    count : int
        Participants whose estimate is a number.
    bounds : int
        Participants of whom only a bound is known, who are left out.
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
        One a participant. Bounds are left out and counted.
    probability : float
        Of the interval.

    Raises
    ------
    ConfigurationError
        If no participant has a number.
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
    """Return the mean of normal values and their standard deviation, with the intervals of t and of chi squared.

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
    """Return the variance of the logarithm of an estimate that its interval tells, as if normal; 0 for an open one."""
    from scipy.special import ndtri

    if one.low <= 0.0 or math.isinf(one.high):
        return 0.0
    reach = 2.0 * float(ndtri(0.5 + 0.5 * one.probability))
    return (math.log(one.high / one.low) / reach) ** 2


def _cv(variance: float) -> float:
    return math.sqrt(math.expm1(variance)) if math.isfinite(variance) else math.nan
