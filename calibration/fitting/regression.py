"""Weighted, robust and bounded linear least squares.

Systems are solved by QR and a singular value decomposition of the small triangle. Columns are scaled first, so that the
reported condition number does not depend on units. Searches that solve many systems use normal equations, whose sums
are computed in blocks too small for multi-threaded linear algebra: on a busy machine the threads of the library wait
for each other, which costs more than they save. The results of such searches are refined by `least_squares`, which does
not square the condition number.

Cross-validation on blocks (`BlockFits`) is fast enough to compare hundreds of models.

The products of all columns are summed once for every block. A fit is then the solution of a small system. Such normal
equations lose precision if columns are nearly collinear. This suffices to choose a model, but the chosen one should be
fitted by `least_squares`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from haptics.errors import ConfigurationError

Array = NDArray[np.float64]

_HUBER, _TUKEY = 1.345, 4.685
"""Tuning constants of the losses [standard deviations], for 95 % efficiency with normal errors."""
ROUNDS, SETTLED = 50, 1e-6
"""Maximum number of reweighting iterations, and relative change of the unknowns at which they end."""
_BLOCK = 128


@dataclass(frozen=True)
class LinearFit:
    """Weighted least squares solution.

    Attributes
    ----------
    coefficients : array, (p,)
        One per column; the minimum-norm solution if columns are collinear.
    residual : array, (n,)
        Target minus prediction.
    condition : float
        Ratio of the largest to the smallest singular value of the weighted matrix with columns of equal length.
    rank : int
        Numerical rank of the matrix.
    weights : array, (n,)
        Weights of the squared residuals.
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
    """Solve a weighted linear least squares problem.

    Parameters
    ----------
    matrix : array, (n, p)
        Columns.
    target : array, (n,)
        Dependent variable.
    weights : array, (n,), optional
        Weights of the squared residuals, at least 0.
    lower : array, (p,), optional
        Lower bounds of the coefficients; minus infinity if free.

    Raises
    ------
    ConfigurationError
        If shapes do not match, there are fewer rows than columns, or a number is not finite.
    """
    matrix, target, weights = _checked(matrix, target, weights)
    root = np.sqrt(weights)
    weighted = matrix * root[:, None]
    lengths = np.linalg.norm(weighted, axis=0)
    lengths[lengths == 0.0] = 1.0
    # The triangle of the augmented matrix contains the product of Q and the target, so that Q is never formed.
    triangle = _triangle(np.column_stack((weighted / lengths, target * root)))
    r, right = triangle[: matrix.shape[1], :-1], triangle[: matrix.shape[1], -1]
    u, singular, vt = np.linalg.svd(r)
    kept_values = singular > singular[0] * max(matrix.shape) * np.finfo(float).eps
    condition = float(singular[0] / singular[-1]) if kept_values[-1] else np.inf
    scaled = vt[kept_values].T @ ((u.T @ right)[kept_values] / singular[kept_values])
    if lower is not None and bool(np.any(scaled < lower * lengths)):
        scaled = bounded(r, right, lower * lengths)
    coefficients = scaled / lengths
    return LinearFit(coefficients, target - times(matrix, coefficients), condition, int(kept_values.sum()), weights)


def times(matrix: Array, vector: Array) -> Array:
    """Return the product of a tall matrix and a vector without threads of a linear algebra library."""
    return np.asarray(np.einsum("ij,j->i", matrix, vector))


def _triangle(matrix: Array) -> Array:
    """Return the triangle R of the QR decomposition of a tall matrix, block by block (Demmel et al. 2012).

    With blocks this small no linear algebra library starts threads, whose cost would exceed their benefit.
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
        Matrix with independent columns, such as a triangular factor.
    target : (m,) float array
    lower : (p,) float array
        Lower bounds; minus infinity for free coefficients.

    Returns
    -------
    (p,) float array
        Coefficients. Those at a bound equal it exactly.
    """
    from scipy.optimize import nnls

    free = ~np.isfinite(lower)
    start = np.where(free, 0.0, lower)
    # Eliminate the free coefficients, which leaves a problem with bounds at zero (Lawson and Hanson 1974).
    basis = np.linalg.qr(matrix[:, free])[0]
    rest = target - matrix @ start
    reduced, right = (part - basis @ (basis.T @ part) for part in (matrix[:, ~free], rest))
    solution = start.copy()
    above = nnls(reduced, right)[0] if reduced.shape[1] else np.empty(0)
    solution[~free] += above
    solution[free] = np.linalg.lstsq(matrix[:, free], rest - matrix[:, ~free] @ above, rcond=None)[0]
    inside = free.copy()
    inside[~free] = above > 0.0
    if inside.any():  # full precision on the columns that are not at a bound
        fixed = np.where(inside, 0.0, start)
        solution = np.where(inside, 0.0, start)
        solution[inside] = np.linalg.lstsq(matrix[:, inside], target - matrix @ fixed, rcond=None)[0]
    return np.maximum(solution, lower)


def spread(residual: Array) -> float:
    """Return the standard deviation of normal errors with the same median absolute deviation."""
    return float(1.4826 * np.median(np.abs(residual - np.median(residual))))


def robust_weights(residual: Array, loss: str) -> Array:
    """Return the weights of the squared residuals for a robust loss: 1 at the centre, less outside.

    Parameters
    ----------
    residual : array, (n,)
        Residuals of the last fit.
    loss : str
        ``"square"`` (equal weights), ``"huber"`` (weights decrease with distance) or ``"tukey"`` (zero weight beyond
        4.7 standard deviations).
    """
    stages(loss)  # validates the name
    width = spread(residual)
    if loss == "square" or width == 0.0:
        return np.ones_like(residual)
    distance = np.abs(residual) / width
    if loss == "huber":
        return np.minimum(1.0, _HUBER / np.maximum(distance, 1e-300))
    return np.maximum(1.0 - (distance / _TUKEY) ** 2, 0.0) ** 2


def loss_slope(residual: Array, loss: str) -> float:
    """Return the mean second derivative of a loss over the residuals, 1 for squares."""
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
    """Fit by iteratively reweighted least squares, robust against outliers.

    As `least_squares`; each iteration weights the samples by the residuals of the last (`robust_weights`).
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
    """Return the sequence of losses of a robust fit.

    A redescending loss must not start from a fit that outliers have biased.
    """
    known = {"square": (), "huber": ("huber",), "tukey": ("huber", "tukey")}
    if loss not in known:
        raise ConfigurationError(f'loss "{loss}" is not one of square, huber, tukey')
    return known[loss]


def blocks(samples: int, number: int, gap: int = 0) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return contiguous test blocks, each with the training samples.

    Adjacent samples are correlated, so that training samples are at least `gap` samples away from the test block.

    Returns
    -------
    list of (array, array)
        Training indices and test indices; `number` pairs.
    """
    if not 2 <= number <= samples:
        raise ConfigurationError(f"{samples} samples cannot be cut into {number} blocks: at least 2, one sample each")
    every = np.arange(samples)
    bounds = np.linspace(0, samples, number + 1).astype(int)
    return [
        (every[(every < first - gap) | (every >= last + gap)], every[first:last]) for first, last in pairwise(bounds)
    ]


# --- normal equations -------------------------------------------------------------------------------------------------

_SUMMED = 256
"""Number of samples of a block of sums."""
_DISTINCT = 1e-12


def stacked(columns: list[Array] | tuple[Array, ...]) -> Array:
    """Return columns side by side (n, p), each contiguous in memory."""
    return np.asarray(np.array(columns, dtype=float).T)


def products(left: Array, right: Array) -> Array:
    """Return the products (p, q) of the columns of two tall matrices."""
    rows, others = np.ascontiguousarray(left.T), np.ascontiguousarray(right.T)
    count = len(left) // _SUMMED
    whole = count * _SUMMED
    rest = np.einsum("ik,jk->ij", rows[:, whole:], others[:, whole:])
    blocks = rows[:, :whole].reshape(len(rows), count, _SUMMED).transpose(1, 0, 2)
    other_blocks = others[:, :whole].reshape(len(others), count, _SUMMED).transpose(1, 2, 0)
    return np.asarray(np.matmul(blocks, other_blocks).sum(axis=0) + rest)


def norm(values: Array) -> float:
    """Return the Euclidean norm of a long vector."""
    return math.sqrt(float(np.einsum("i,i->", values, values)))


def solve_normal_equations(
    matrix: Array, target: Array, weights: Array, lower: Array | None = None
) -> tuple[Array, float]:
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
        values, vectors = np.linalg.eigh(sums[:-1, :-1])
        kept = values > _DISTINCT * values[-1]
        root = np.sqrt(values[kept])
        factor = root[:, None] * vectors[:, kept].T
        found = bounded(factor, (vectors[:, kept].T @ sums[:-1, -1]) / root, lower)
        remaining = 1.0 - 2.0 * (sums[-1, :-1] @ found) + found @ sums[:-1, :-1] @ found
    return np.asarray(found * scale[-1] / scale[:-1]), float(remaining)


# --- cross-validation -------------------------------------------------------------------------------------------------

_PRESENT = 0.02
"""Minimum fraction of a column's sum of squares in the fitted samples, below which it is undetermined."""
_RIDGE = 1e-10


class BlockFits:
    """Least squares fits to subsets of columns, each leaving out one block.

    Parameters
    ----------
    matrix : array, (n, p)
        All candidate columns.
    target : array, (n,)
        Dependent variable.
    lengths : sequence of int
        Number of samples of each recording, in the order of the rows.
    folds : int
        Blocks per recording.
    gap : float
        Samples omitted on both sides of a test block, as a fraction of its length.
    """

    def __init__(self, matrix: Array, target: Array, lengths: Sequence[int], folds: int, gap: float) -> None:
        self.scales = np.sqrt(np.mean(matrix**2, axis=0))
        self.scales[self.scales == 0.0] = 1.0
        whole = np.column_stack((matrix / self.scales, target))
        self.products = whole.T @ whole
        judged, unfitted = [], []
        for start, length in zip(np.cumsum([0, *lengths[:-1]]), lengths, strict=True):
            every = np.ones(length, bool)
            for fit, test in blocks(length, folds, round(gap * length / folds)):
                left = every.copy()
                left[fit] = False
                judged.append(_square(whole[start : start + length][test]) / len(test))
                unfitted.append(_square(whole[start : start + length][left]))
        self.judged = np.array(judged)
        self.fitted = self.products - np.array(unfitted)

    def coefficients(self, columns: Sequence[int]) -> Array:
        """Return the coefficients (k,) of some columns, fitted to all samples."""
        return np.asarray(self._solve(self.products[None], list(columns))[0] / self.scales[list(columns)])

    def left_out(self, columns: Sequence[int]) -> Array:
        """Return the coefficients (blocks, k) of some columns, each fitted without one block."""
        return np.asarray(self._solve(self.fitted, list(columns)) / self.scales[list(columns)])

    def errors(self, columns: Sequence[int]) -> Array:
        """Return the mean squared test error (blocks,) on every block of the fit without it."""
        chosen = list(columns)
        solution = np.column_stack((self._solve(self.fitted, chosen), np.full(len(self.fitted), -1.0)))
        rows = [*chosen, -1]
        within = self.judged[:, rows][:, :, rows]
        return np.asarray(np.maximum(np.einsum("bi,bij,bj->b", solution, within, solution), 0.0))

    def _solve(self, products: Array, columns: list[int]) -> Array:
        energy = np.diagonal(products, axis1=1, axis2=2)[:, columns]
        total = np.diag(self.products)[columns]
        present = (energy > _PRESENT * total) & (total > 0.0)
        both = present[:, :, None] & present[:, None, :]
        system = np.where(both, products[:, columns][:, :, columns], 0.0)
        side = np.where(present, products[:, columns, -1], 0.0)
        diagonal = np.where(present, _RIDGE * total, 1.0)
        system[:, range(len(columns)), range(len(columns))] += diagonal
        return np.asarray(np.linalg.solve(system, side[:, :, None])[:, :, 0])


def _square(rows: Array) -> Array:
    return np.asarray(rows.T @ rows)
