"""Compiled likelihoods of psychometric functions on a grid of parameters."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from calibration.psychometric.shapes import (
    DPRIME_SPAN,
    HALF_DPRIME,
    LOGISTIC,
    LOGISTIC_SPAN,
    PHI,
    PHI_SPAN,
    WEIBULL,
    WEIBULL_SPAN,
)
from haptics.jit import kernel

Array = NDArray[np.float64]

SMALLEST = 1e-12
"""Minimum distance of probabilities from 0 and 1.

A response that is impossible under some parameters then makes them improbable instead of giving nan.
"""

_ROOT_HALF = math.sqrt(0.5)
_LOG_2 = math.log(2.0)
_FARTHEST = 700.0
"""Maximum argument of exp in double precision."""


@kernel
def sigmoid(shape: int, t: float) -> float:
    """Return F at t = (u - threshold)/width (`calibration.psychometric.shapes`)."""
    if shape == PHI:
        return 0.5 * math.erfc(-PHI_SPAN * t * _ROOT_HALF)
    if shape == LOGISTIC:
        return 1.0 / (1.0 + math.exp(min(-LOGISTIC_SPAN * t, _FARTHEST)))
    if shape == WEIBULL:
        return -math.expm1(-_LOG_2 * math.exp(min(WEIBULL_SPAN * t, _FARTHEST)))
    return math.erf(HALF_DPRIME * _ROOT_HALF * math.exp(min(DPRIME_SPAN * t, _FARTHEST)))


@kernel
def clamped(p: float) -> float:
    """Return a probability at least `SMALLEST` away from 0 and 1."""
    return min(max(p, SMALLEST), 1.0 - SMALLEST)


@kernel
def log_beta(a: float, b: float) -> float:
    """Return the logarithm of the beta function."""
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


@kernel
def log_answers(p: float, right: float, wrong: float, overdispersion: float) -> float:
    """Return the log probability of right and wrong responses, without the binomial coefficient.

    With an overdispersion eta above 0 the proportion itself varies between blocks: it follows Beta(p v, (1 - p) v) with
    v = 1/eta^2 - 1 (beta-binomial; Schuett et al. 2016).
    """
    p = clamped(p)
    if overdispersion == 0.0:
        return right * math.log(p) + wrong * math.log1p(-p)
    v = 1.0 / (overdispersion * overdispersion) - 1.0
    a, b = p * v, (1.0 - p) * v
    return log_beta(right + a, wrong + b) - log_beta(a, b)


@kernel
def add_log_likelihood(
    total: Array,
    shape: int,
    positions: Array,
    right: Array,
    wrong: Array,
    thresholds: Array,
    widths: Array,
    nuisances: Array,
) -> None:
    """Add the log likelihood of all responses to `total` (thresholds, widths, nuisances).

    `nuisances` (k, 3) contains lapse rate, guess rate and overdispersion of each of k combinations.
    """
    for i in range(len(thresholds)):
        for j in range(len(widths)):
            for row in range(len(positions)):
                f = sigmoid(shape, (positions[row] - thresholds[i]) / widths[j])
                for k in range(len(nuisances)):
                    lapse, guess = nuisances[k, 0], nuisances[k, 1]
                    p = guess + (1.0 - guess - lapse) * f
                    total[i, j, k] += log_answers(p, right[row], wrong[row], nuisances[k, 2])


@kernel
def fill_tables(
    log_right: Array,
    log_wrong: Array,
    shape: int,
    positions: Array,
    thresholds: Array,
    widths: Array,
    nuisances: Array,
) -> None:
    """Fill the log probabilities of a right and a wrong response (levels, cells).

    Cells are numbered as in `add_log_likelihood`, with the nuisances varying fastest.
    """
    count = len(nuisances)
    for row in range(len(positions)):
        for i in range(len(thresholds)):
            for j in range(len(widths)):
                f = sigmoid(shape, (positions[row] - thresholds[i]) / widths[j])
                for k in range(count):
                    lapse, guess = nuisances[k, 0], nuisances[k, 1]
                    p = clamped(guess + (1.0 - guess - lapse) * f)
                    cell = (i * len(widths) + j) * count + k
                    log_right[row, cell] = math.log(p)
                    log_wrong[row, cell] = math.log1p(-p)


@kernel
def add_from_tables(total: Array, log_right: Array, log_wrong: Array, right: Array, wrong: Array) -> None:
    """Add the log likelihood of responses to `total` (cells), from the tables of `fill_tables`."""
    for row in range(len(right)):
        if right[row] != 0.0:
            for cell in range(len(total)):
                total[cell] += right[row] * log_right[row, cell]
        if wrong[row] != 0.0:
            for cell in range(len(total)):
                total[cell] += wrong[row] * log_wrong[row, cell]


@kernel
def best_log_likelihoods(log_right: Array, log_wrong: Array, right: Array, wrong: Array) -> Array:
    """Return the largest log likelihood on the grid of each of several data sets (sets, levels)."""
    best = np.empty(len(right))
    total = np.empty(log_right.shape[1])
    for one in range(len(right)):
        total[:] = 0.0
        add_from_tables(total, log_right, log_wrong, right[one], wrong[one])
        best[one] = total.max()
    return best


@kernel
def predicted(
    histogram: Array,
    mean: Array,
    shape: int,
    positions: Array,
    thresholds: Array,
    widths: Array,
    nuisances: Array,
    mass: Array,
) -> None:
    """Compute the posterior distribution of P in even bins (positions, bins), and its mean."""
    bins = histogram.shape[1]
    for row in range(len(positions)):
        for i in range(len(thresholds)):
            for j in range(len(widths)):
                f = sigmoid(shape, (positions[row] - thresholds[i]) / widths[j])
                for k in range(len(nuisances)):
                    lapse, guess = nuisances[k, 0], nuisances[k, 1]
                    p = guess + (1.0 - guess - lapse) * f
                    histogram[row, min(int(p * bins), bins - 1)] += mass[i, j, k]
                    mean[row] += p * mass[i, j, k]
