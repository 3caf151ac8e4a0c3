"""Least squares for a motor: correlated errors, and a friction that may have changed.

The friction of a joint is not constant: in a warm gear, levels and viscosity may be tens of percent lower. Each
possible change is a column whose unknown coefficient has mean 0 and standard deviation 1. If drive and motion are
independent, the recording determines the change; if they are correlated, it cannot, and the interval of the gain widens
(a mixed model; Robinson 1991).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.regression import least_squares, times

Array = NDArray[np.float64]

_EXACT = 1e-6
"""Minimum error as a fraction of the target's rms, so that a recording without noise can be solved."""


@dataclass(frozen=True, eq=False)
class Estimated:
    """Estimated coefficients with their uncertainty.

    Attributes
    ----------
    coefficients, deviations : (p,) float array
        Coefficients of the columns, and their standard deviations.
    residual : (n,) float array
        Residual after columns and changes.
    changes : (k,) float array
        Coefficients of the changes, in their standard deviations.
    condition : float
        Condition number of the columns alone.
    rank : int
        Numerical rank of the columns.
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
    """Estimate the coefficients of columns.

    Parameters
    ----------
    matrix : (n, p) float array
        Columns, in the order of time.
    target : (n,) float array
        Dependent variable.
    spread : tuple of (n,) float array
        Change of the target for one standard deviation of each of its parameters; widens the intervals.
    change : tuple of (n,) float array
        Possible changes of the target since its identification, one standard deviation each; estimated with the
        columns.
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
    errors = _variance_correction(residual, columns.shape[1]) * _correlated(own * residual, memory(residual))
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
    """Return the lag [samples] at which the residual is uncorrelated, at most a tenth of the samples."""
    correlation = _correlation(residual)
    below = np.flatnonzero(correlation < 2.0 / np.sqrt(len(residual)) * correlation[0])
    return int(min(below[0] if len(below) else len(residual), len(residual) // 10))


def multiple_correlation(column: Array, others: Array) -> float:
    """Return the multiple correlation coefficient of a column with others and a constant, 0 to 1."""
    centred = column - column.mean()
    left = least_squares(np.column_stack((np.ones(len(column)), others)), column).residual
    unexplained = float(left @ left) / max(float(centred @ centred), float(np.finfo(float).tiny))
    return math.sqrt(max(0.0, 1.0 - unexplained))


def _correlated(scores: Array, lags: int) -> Array:
    """Return the variance of sums of correlated numbers, at least the variance without correlation.

    Newey and West 1987.
    """
    count = scores.shape[1]
    spectrum = np.abs(np.fft.rfft(scores, 2 * count, axis=1)) ** 2
    products = np.fft.irfft(spectrum, axis=1)[:, : lags + 1]
    weights = 2.0 * (1.0 - np.arange(lags + 1) / (lags + 1.0))
    weights[0] = 1.0
    return np.asarray(np.maximum(times(products, weights), products[:, 0]))


def _variance_correction(residual: Array, unknowns: int) -> float:
    """Return the correction of the residual variance for the number of unknowns.

    It is based on the effective sample size.
    """
    summed = float(_correlated(residual[None, :], memory(residual))[0])
    independent = float(residual @ residual) / summed * len(residual) if summed > 0.0 else float(len(residual))
    return independent / max(independent - unknowns, 1.0)


def _noise(residual: Array, target: Array) -> float:
    """Return the standard deviation of independent errors with the same information as the residual."""
    lags = memory(residual)
    summed = float(_correlated(residual[None, :], lags)[0]) / len(residual)
    return float(np.sqrt(max(summed, _EXACT**2 * float(np.mean(target**2)))))


def _correlation(residual: Array) -> Array:
    centred = residual - residual.mean()
    spectrum = np.abs(np.fft.rfft(centred, 2 * len(centred))) ** 2
    return np.asarray(np.fft.irfft(spectrum)[: len(centred)])
