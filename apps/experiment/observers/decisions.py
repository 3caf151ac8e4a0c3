"""Signal detection decisions: from a difference between stimuli to a response (Green and Swets 1966).

All functions take ``z``, the difference in units of the increment with 75 % correct in two intervals, times 0.6745. A
single presentation has a sensitivity d' = sqrt(2) z, because a comparison has the noise of two presentations.
"""

from __future__ import annotations

import math
from statistics import NormalDist

_NORMAL = NormalDist()
ROOT_2 = math.sqrt(2.0)
"""Ratio of the standard deviations of a comparison and of a single presentation, and of d' and z."""


def phi(z: float) -> float:
    """Return the standard normal distribution function."""
    return 0.5 * math.erfc(-z / ROOT_2)


def with_lapses(probability: float, lapse: float) -> float:
    """Return the probability of one of two responses if a fraction `lapse` of each is given by mistake."""
    return lapse + (1.0 - 2.0 * lapse) * probability


def second_stronger(z: float, bias: float) -> float:
    """Return the probability of ``2`` if the second interval is stronger by `z`."""
    return phi(z + bias)


def yes_criterion(false_alarms: float) -> float:
    """Return the criterion of ``yes``, in standard deviations of a presentation."""
    return -_NORMAL.inv_cdf(false_alarms)


def yes(z: float, false_alarms: float) -> float:
    """Return the probability of ``yes`` to a stimulus of strength `z`."""
    return phi(ROOT_2 * z - yes_criterion(false_alarms))


def different_criterion(false_alarms: float) -> float:
    """Return the two-sided criterion of ``different``, in standard deviations of the difference."""
    return -_NORMAL.inv_cdf(0.5 * false_alarms)


def different(z: float, false_alarms: float) -> float:
    """Return the probability of ``different`` by the differencing rule (Macmillan et al. 1977)."""
    criterion = different_criterion(false_alarms)
    return phi(z - criterion) + phi(-z - criterion)
