"""Least squares for a motor: errors that resemble their neighbours, and a friction known only up to a change.

The friction of a joint is not the same on two days: levels and viscosity of a gear that has gone warm may be tens of
percent lower. Each such change is a column whose coefficient is unknown, but expected to be 0 with a standard deviation
of 1. Where drive and motion differ, the recording itself tells the change; where they go together, it cannot, and the
interval of the gain grows (a mixed model; Robinson 1991).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.regression import least_squares, times

Array = NDArray[np.float64]

_EXACT = 1e-6
"""Errors are taken for at least this part of the target's rms, so that a recording without noise can be solved."""


@dataclass(frozen=True, eq=False)
class Estimated:
    """Coefficients and how sure they are.

    Attributes
    ----------
    coefficients, deviations : (p,) float array
        Of the columns, and their standard deviations.
    residual : (n,) float array
        What columns and changes leave.
    changes : (k,) float array
        Coefficients of the changes, in their standard deviations.
    condition : float
        Condition number of the columns alone.
    rank : int
        How many combinations of the columns the recording tells apart.
    """

    coefficients: Array
    deviations: Array
    residual: Array
    changes: Array
    condition: float
    rank: int


def estimated(
    matrix: Array, target: Array, spread: tuple[Array, ...] = (), change: tuple[Array, ...] = ()
) -> Estimated:
    """Return the coefficients of columns.

    Parameters
    ----------
    matrix : (n, p) float array
        Columns, in the order of time.
    target : (n,) float array
        What they shall add up to.
    spread : tuple of (n,) float array
        What the target would change by if each of its parameters were one standard deviation larger: it widens the
        deviations.
    change : tuple of (n,) float array
        What the target may have changed by since, one standard deviation each: estimated with the columns.
    """
    count = matrix.shape[1]
    plain = least_squares(matrix, target)
    columns = np.column_stack((matrix, *change))
    size = _noise(least_squares(columns, target).residual, target) if change else 0.0
    prior = np.column_stack((np.zeros((len(change), count)), size * np.eye(len(change))))
    joint = np.concatenate((columns, prior))
    fit = least_squares(joint, np.concatenate((target, np.zeros(len(change)))))
    inverse = _inverse(joint)[:count]
    residual = fit.residual[: len(target)]
    own, known = inverse[:, : len(target)], inverse[:, len(target) :]
    errors = _lost(residual, columns.shape[1]) * _correlated(own * residual, memory(residual))
    beforehand = [(size * known) ** 2, *(times(own, one)[:, None] ** 2 for one in spread)]
    variance = errors + np.column_stack(beforehand).sum(axis=1)
    return Estimated(
        fit.coefficients[:count],
        np.asarray(np.sqrt(variance)),
        residual,
        fit.coefficients[count:],
        plain.condition,
        plain.rank,
    )


def _inverse(matrix: Array) -> Array:
    """Return the pseudo-inverse of a tall matrix."""
    lengths = np.linalg.norm(matrix, axis=0)
    scaled = matrix / np.where(lengths == 0.0, 1.0, lengths)
    whole = np.linalg.pinv(scaled.T @ scaled, hermitian=True) @ scaled.T
    return np.asarray(whole / np.where(lengths == 0.0, 1.0, lengths)[:, None])


def memory(residual: Array) -> int:
    """Return after how many samples the residual is uncorrelated with itself, at most a tenth of them."""
    correlation = _correlation(residual)
    below = np.flatnonzero(correlation < 2.0 / np.sqrt(len(residual)) * correlation[0])
    return int(min(below[0] if len(below) else len(residual), len(residual) // 10))


def multiple_correlation(column: Array, others: Array) -> float:
    """Return how far others and a constant explain a column, 0 to 1: the multiple correlation coefficient."""
    centred = column - column.mean()
    left = least_squares(np.column_stack((np.ones(len(column)), others)), column).residual
    unexplained = float(left @ left) / max(float(centred @ centred), float(np.finfo(float).tiny))
    return math.sqrt(max(0.0, 1.0 - unexplained))


def _correlated(scores: Array, lags: int) -> Array:
    """Return the variance of sums of correlated numbers (Newey and West 1987), no less than of uncorrelated ones."""
    count = scores.shape[1]
    spectrum = np.abs(np.fft.rfft(scores, 2 * count, axis=1)) ** 2
    products = np.fft.irfft(spectrum, axis=1)[:, : lags + 1]
    weights = 2.0 * (1.0 - np.arange(lags + 1) / (lags + 1.0))
    weights[0] = 1.0
    return np.asarray(np.maximum(times(products, weights), products[:, 0]))


def _lost(residual: Array, unknowns: int) -> float:
    """Return by how much the unknowns make the errors look smaller, of as many as there are independent ones."""
    summed = float(_correlated(residual[None, :], memory(residual))[0])
    independent = float(residual @ residual) / summed * len(residual) if summed > 0.0 else float(len(residual))
    return independent / max(independent - unknowns, 1.0)


def _noise(residual: Array, target: Array) -> float:
    """Return the standard deviation of independent errors that would say as little as those of the residual."""
    lags = memory(residual)
    summed = float(_correlated(residual[None, :], lags)[0]) / len(residual)
    return float(np.sqrt(max(summed, _EXACT**2 * float(np.mean(target**2)))))


def _correlation(residual: Array) -> Array:
    centred = residual - residual.mean()
    spectrum = np.abs(np.fft.rfft(centred, 2 * len(centred))) ** 2
    return np.asarray(np.fft.irfft(spectrum)[: len(centred)])
