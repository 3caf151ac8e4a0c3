"""Sums of products of columns, in blocks too small for multi-threaded linear algebra.

On a busy machine the threads of the library wait for each other, which costs more than they save. Searches may use
these sums. Their results are refined by `calibration.fitting.regression.least_squares`, which does not square the
condition number.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.regression import bounded

Array = NDArray[np.float64]

_BLOCK = 256
_DISTINCT = 1e-12


def stacked(columns: list[Array] | tuple[Array, ...]) -> Array:
    """Return columns side by side (n, p), each contiguous in memory."""
    return np.asarray(np.array(columns, dtype=float).T)


def products(left: Array, right: Array) -> Array:
    """Return the products (p, q) of the columns of two tall matrices."""
    rows, others = np.ascontiguousarray(left.T), np.ascontiguousarray(right.T)
    count = len(left) // _BLOCK
    whole = count * _BLOCK
    rest = np.einsum("ik,jk->ij", rows[:, whole:], others[:, whole:])
    blocks = rows[:, :whole].reshape(len(rows), count, _BLOCK).transpose(1, 0, 2)
    other_blocks = others[:, :whole].reshape(len(others), count, _BLOCK).transpose(1, 2, 0)
    return np.asarray(np.matmul(blocks, other_blocks).sum(axis=0) + rest)


def norm(values: Array) -> float:
    """Return the Euclidean norm of a long vector."""
    return math.sqrt(float(np.einsum("i,i->", values, values)))


def solve(matrix: Array, target: Array, weights: Array, lower: Array | None = None) -> tuple[Array, float]:
    """Solve a weighted least squares problem by its normal equations.

    Accurate to about the square root of the precision of `calibration.fitting.regression.least_squares`.

    Parameters
    ----------
    matrix : (n, p) float array
    target, weights : (n,) float array
    lower : (p,) float array, optional
        Lower bounds, 0 or minus infinity.

    Returns
    -------
    coefficients : (p,) float array
    share : float
        Remaining fraction of the weighted sum of squares of the target.
    """
    whole = stacked((*matrix.T, target))
    sums = products(whole * weights[:, None], whole)
    scale = np.sqrt(np.maximum(np.diag(sums), 1e-300))
    sums = sums / np.outer(scale, scale)
    found = np.linalg.lstsq(sums[:-1, :-1], sums[:-1, -1], rcond=_DISTINCT)[0]
    remaining = 1.0 - sums[-1, :-1] @ found
    if lower is not None and bool(np.any(found < lower)):
        found = _bounded(sums[:-1, :-1], sums[:-1, -1], lower)
        remaining = 1.0 - 2.0 * (sums[-1, :-1] @ found) + found @ sums[:-1, :-1] @ found
    return np.asarray(found * scale[-1] / scale[:-1]), float(remaining)


def _bounded(matrix: Array, right: Array, lower: Array) -> Array:
    """Minimise x'Ax - 2b'x subject to lower bounds of 0 or minus infinity."""
    values, vectors = np.linalg.eigh(matrix)
    kept = values > _DISTINCT * values[-1]
    root = np.sqrt(values[kept])
    return bounded(root[:, None] * vectors[:, kept].T, (vectors[:, kept].T @ right) / root, lower)
