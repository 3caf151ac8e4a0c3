"""Decisions by signal detection: from how far apart two things are to a word (Green and Swets 1966).

All take ``z``, a difference in units of the increment that is told in 75 % of trials of two intervals, times 0.6745. A
presentation alone has a sensitivity d' = sqrt(2) z, because a comparison has the noise of two of them.
"""

from __future__ import annotations

import math
from statistics import NormalDist

_NORMAL = NormalDist()
ROOT_2 = math.sqrt(2.0)
"""Standard deviations of a presentation in that of a comparison of two, and so z in d'."""


def phi(z: float) -> float:
    """Return the standard normal distribution function."""
    return 0.5 * math.erfc(-z / ROOT_2)


def with_lapses(probability: float, lapse: float) -> float:
    """Return the probability of an answer of two, if a share of `lapse` of each is given by mistake."""
    return lapse + (1.0 - 2.0 * lapse) * probability


def second_stronger(z: float, bias: float) -> float:
    """Return the probability of ``2`` where the second interval is `z` stronger."""
    return phi(z + bias)


def yes_criterion(false_alarms: float) -> float:
    """Return the level above which is said ``yes``, in standard deviations of a presentation."""
    return -_NORMAL.inv_cdf(false_alarms)


def yes(z: float, false_alarms: float) -> float:
    """Return the probability of ``yes`` to a stimulus `z` above none."""
    return phi(ROOT_2 * z - yes_criterion(false_alarms))


def different_criterion(false_alarms: float) -> float:
    """Return the difference to either side above which is said ``different``, in standard deviations of it."""
    return -_NORMAL.inv_cdf(0.5 * false_alarms)


def different(z: float, false_alarms: float) -> float:
    """Return the probability of ``different``, by the differencing rule (Macmillan, Kaplan and Creelman 1977)."""
    criterion = different_criterion(false_alarms)
    return phi(z - criterion) + phi(-z - criterion)
