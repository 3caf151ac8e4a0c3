"""Least squares as calibration needs it: weighted, robust and bounded.

Systems are solved by QR and a singular value decomposition of the small triangle, never by normal equations, and their
columns are scaled first: the condition number that is reported is that of the problem and not of its units.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from haptics.errors import ConfigurationError

Array = NDArray[np.float64]

_HUBER, _TUKEY = 1.345, 4.685
"""Where the losses begin to doubt a residual, in standard deviations: 95 % efficient on normal errors."""
ROUNDS, SETTLED = 50, 1e-6
"""How often samples are weighed anew at most, and the change of the unknowns, relative, at which that ends."""
_BLOCK = 128


@dataclass(frozen=True)
class LinearFit:
    """A weighted least squares solution.

    Attributes
    ----------
    coefficients : array, (p,)
        One per column; the smallest ones that fit, where the columns do not tell them apart.
    residual : array, (n,)
        What was measured without what is explained.
    condition : float
        Largest by smallest singular value of the weighted matrix, its columns scaled to the same length.
    rank : int
        How many combinations of the columns the data tell apart.
    weights : array, (n,)
        Of the squared residuals.
    """

    coefficients: Array
    residual: Array
    condition: float
    rank: int
    weights: Array

    @property
    def cost(self) -> float:
        """Weighted sum of squares."""
        return float(np.einsum("i,i,i->", self.weights, self.residual, self.residual))


def least_squares(
    matrix: Array, target: Array, *, weights: Array | None = None, lower: Array | None = None
) -> LinearFit:
    """Return the coefficients that explain a target best.

    Parameters
    ----------
    matrix : array, (n, p)
        Columns.
    target : array, (n,)
        What they shall add up to.
    weights : array, (n,), optional
        Of the squared residuals, at least 0.
    lower : array, (p,), optional
        The least each coefficient may be; minus infinity where it is free.

    Raises
    ------
    ConfigurationError
        Where shapes do not fit, there are fewer rows than columns, or a number is not finite.
    """
    matrix, target, weights = _checked(matrix, target, weights)
    root = np.sqrt(weights)
    weighted = matrix * root[:, None]
    lengths = np.linalg.norm(weighted, axis=0)
    lengths[lengths == 0.0] = 1.0
    # The triangle of the matrix with the target beside it holds the product of Q and the target: Q is never built.
    triangle = _triangle(np.column_stack((weighted / lengths, target * root)))
    r, right = triangle[: matrix.shape[1], :-1], triangle[: matrix.shape[1], -1]
    u, singular, vt = np.linalg.svd(r)
    told = singular > singular[0] * max(matrix.shape) * np.finfo(float).eps
    condition = float(singular[0] / singular[-1]) if told[-1] else np.inf
    scaled = vt[told].T @ ((u.T @ right)[told] / singular[told])
    if lower is not None and bool(np.any(scaled < lower * lengths)):
        scaled = bounded(r, right, lower * lengths)
    coefficients = scaled / lengths
    return LinearFit(coefficients, target - times(matrix, coefficients), condition, int(told.sum()), weights)


def times(matrix: Array, vector: Array) -> Array:
    """Return the product of a tall matrix and a vector, without the threads of a linear algebra library."""
    return np.asarray(np.einsum("ij,j->i", matrix, vector))


def _triangle(matrix: Array) -> Array:
    """Return the triangle R of the QR decomposition of a tall matrix, block by block (Demmel et al. 2012).

    In blocks this small no linear algebra library starts threads, which cost more than they save here.
    """
    height, width = max(_BLOCK, 4 * matrix.shape[1]), matrix.shape[1]
    while len(matrix) > 2 * height:
        padded = np.concatenate((matrix, np.zeros((-len(matrix) % height, width))))
        matrix = np.asarray(np.linalg.qr(padded.reshape(-1, height, width), mode="r")).reshape(-1, width)
    return np.asarray(np.linalg.qr(matrix, mode="r"))


def _checked(matrix: Array, target: Array, weights: Array | None) -> tuple[Array, Array, Array]:
    matrix, target = np.asarray(matrix, float), np.asarray(target, float)
    if matrix.ndim != 2 or target.shape != matrix.shape[:1]:
        raise ConfigurationError(f"columns of shape {matrix.shape} do not fit a target of shape {target.shape}")
    if matrix.shape[0] < matrix.shape[1]:
        raise ConfigurationError(f"{matrix.shape[0]} samples cannot tell {matrix.shape[1]} unknowns")
    weights = np.ones_like(target) if weights is None else np.asarray(weights, float)
    if weights.shape != target.shape or not bool(np.all(weights >= 0.0)):
        raise ConfigurationError("weights must be one number of at least 0 per sample")
    if not (np.isfinite(matrix).all() and np.isfinite(target).all() and np.isfinite(weights).all()):
        raise ConfigurationError("the data of a fit hold a number that is not finite")
    return matrix, target, weights


def bounded(matrix: Array, target: Array, lower: Array) -> Array:
    """Solve a small least squares problem with lower bounds.

    Parameters
    ----------
    matrix : (m, p) float array
        With independent columns, such as a triangular factor.
    target : (m,) float array
    lower : (p,) float array
        Lower bounds; minus infinity where a coefficient is free.

    Returns
    -------
    (p,) float array
        Coefficients. Those at a bound equal it exactly.
    """
    from scipy.optimize import nnls

    free = ~np.isfinite(lower)
    start = np.where(free, 0.0, lower)
    # Free coefficients are eliminated: what remains is a problem with bounds at zero (Lawson and Hanson 1974).
    basis = np.linalg.qr(matrix[:, free])[0]
    rest = target - matrix @ start
    reduced, right = (part - basis @ (basis.T @ part) for part in (matrix[:, ~free], rest))
    solution = start.copy()
    above = nnls(reduced, right)[0] if reduced.shape[1] else np.empty(0)
    solution[~free] += above
    solution[free] = np.linalg.lstsq(matrix[:, free], rest - matrix[:, ~free] @ above, rcond=None)[0]
    inside = free.copy()
    inside[~free] = above > 0.0
    if inside.any():  # to the last digits, on the columns that are not at a bound
        fixed = np.where(inside, 0.0, start)
        solution = np.where(inside, 0.0, start)
        solution[inside] = np.linalg.lstsq(matrix[:, inside], target - matrix @ fixed, rcond=None)[0]
    return np.maximum(solution, lower)


def spread(residual: Array) -> float:
    """Return the standard deviation that normal errors would have with this median deviation."""
    return float(1.4826 * np.median(np.abs(residual - np.median(residual))))


def robust_weights(residual: Array, loss: str) -> Array:
    """Return what each squared residual shall count for: 1 at the centre, less the further out.

    Parameters
    ----------
    residual : array, (n,)
        Residuals of the last fit.
    loss : str
        ``"square"`` (all count alike), ``"huber"`` (far ones count by their distance) or ``"tukey"`` (beyond 4.7
        standard deviations they do not count at all).
    """
    width = spread(residual)
    if _known(loss) == "square" or width == 0.0:
        return np.ones_like(residual)
    distance = np.abs(residual) / width
    if loss == "huber":
        return np.minimum(1.0, _HUBER / np.maximum(distance, 1e-300))
    return np.maximum(1.0 - (distance / _TUKEY) ** 2, 0.0) ** 2


def loss_slope(residual: Array, loss: str) -> float:
    """Return the mean second derivative of a loss over the residuals, 1 for squares: how firmly they hold a fit."""
    width = spread(residual)
    if loss == "square" or width == 0.0:
        return 1.0
    distance = np.abs(residual) / width
    if loss == "huber":
        return float(np.mean(distance <= _HUBER))
    square = (distance / _TUKEY) ** 2
    return float(np.mean(np.where(square < 1.0, (1.0 - square) * (1.0 - 5.0 * square), 0.0)))


def robust_least_squares(
    matrix: Array, target: Array, *, weights: Array | None = None, loss: str = "huber", lower: Array | None = None
) -> LinearFit:
    """Return the coefficients that explain most of a target best, whatever a few samples say.

    As `least_squares`; each round weighs the samples by the residuals of the last (`robust_weights`).
    """
    given = np.ones(len(target)) if weights is None else np.asarray(weights, float)
    fit = least_squares(matrix, target, weights=given, lower=lower)
    for stage in stages(loss):
        for _ in range(ROUNDS):
            last = fit.coefficients
            fit = least_squares(matrix, target, weights=given * robust_weights(fit.residual, stage), lower=lower)
            if np.linalg.norm(fit.coefficients - last) <= SETTLED * np.linalg.norm(last):
                break
    return fit


def stages(loss: str) -> tuple[str, ...]:
    """Return the losses to go through: one that ignores far samples must not begin where they drew the fit to."""
    return {"square": (), "huber": ("huber",), "tukey": ("huber", "tukey")}[_known(loss)]


def _known(loss: str) -> str:
    if loss not in {"square", "huber", "tukey"}:
        raise ConfigurationError(f'loss "{loss}" is not one of square, huber, tukey')
    return loss


def blocks(samples: int, number: int, gap: int = 0) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return contiguous parts to judge a fit on, each with the samples it may be fitted to.

    Neighbouring samples resemble each other; a part judged must lie apart from those fitted, by `gap` samples.

    Returns
    -------
    list of (array, array)
        Indices to fit to, indices to judge on; `number` of them.
    """
    if not 2 <= number <= samples:
        raise ConfigurationError(f"{samples} samples cannot be cut into {number} blocks: at least 2, one sample each")
    every = np.arange(samples)
    bounds = np.linspace(0, samples, number + 1).astype(int)
    return [
        (every[(every < first - gap) | (every >= last + gap)], every[first:last]) for first, last in pairwise(bounds)
    ]
