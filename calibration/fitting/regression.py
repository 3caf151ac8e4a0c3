"""Least squares: weighted, robust, bounded and separable fits, and cross-validation on blocks.

Systems are solved by QR and a singular value decomposition of the small triangle. Columns are scaled first, so that the
reported condition number does not depend on units. Searches that solve many systems use normal equations, whose sums
are computed in blocks too small for multi-threaded linear algebra: on a busy machine the threads of the library wait
for each other, which costs more than they save. The results of such searches are refined by `least_squares`, which does
not square the condition number.

Cross-validation on blocks (`BlockFits`) is fast enough to compare hundreds of models. The products of all columns are
summed once for every block. A fit is then the solution of a small system. Such normal equations lose precision if
columns are nearly collinear. This suffices to choose a model, but the chosen one should be fitted by `least_squares`.

Separable models y = A(a) c are linear in most of their unknowns: the best c is a linear fit for every a. Only a is
searched, on the sum of squares that remains for the best c (variable projection: Golub and Pereyra 1973, with the
simplified derivative of Kaufman 1975). No start values are needed for c.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
        If there are fewer rows than columns.
    """
    if matrix.shape[0] < matrix.shape[1]:
        raise ConfigurationError(f"{matrix.shape[0]} samples cannot tell {matrix.shape[1]} unknowns")
    matrix, target = np.asarray(matrix, float), np.asarray(target, float)
    weights = np.ones_like(target) if weights is None else weights
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


def robust_least_squares(matrix: Array, target: Array, *, loss: str, lower: Array | None = None) -> LinearFit:
    """Fit by iteratively reweighted least squares, robust against outliers.

    As `least_squares`; each iteration weights the samples by the residuals of the last (`robust_weights`).
    """
    fit = least_squares(matrix, target, lower=lower)
    for stage in stages(loss):
        for _ in range(ROUNDS):
            last = fit.coefficients
            fit = least_squares(matrix, target, weights=robust_weights(fit.residual, stage), lower=lower)
            if np.linalg.norm(fit.coefficients - last) <= SETTLED * np.linalg.norm(last):
                break
    return fit


def stages(loss: str) -> tuple[str, ...]:
    """Return the sequence of losses of a robust fit.

    A redescending loss must not start from a fit that outliers have biased.
    """
    return {"square": (), "huber": ("huber",), "tukey": ("huber", "tukey")}[loss]


def blocks(samples: int, number: int, gap: int = 0) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return contiguous test blocks, each with the training samples.

    Adjacent samples are correlated, so that training samples are at least `gap` samples away from the test block.

    Returns
    -------
    list of (array, array)
        Training indices and test indices; `number` pairs.
    """
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
            every, rows = np.ones(length, bool), whole[start : start + length]
            for fit, test in blocks(length, folds, round(gap * length / folds)):
                left = every.copy()
                left[fit] = False
                tested, others = rows[test], rows[left]
                judged.append(tested.T @ tested / len(test))
                unfitted.append(others.T @ others)
        self.judged = np.array(judged)
        self.fitted = self.products - np.array(unfitted)

    def coefficients(self, columns: list[int]) -> Array:
        """Return the coefficients (k,) of some columns, fitted to all samples."""
        return np.asarray(self._solve(self.products[None], columns)[0] / self.scales[columns])

    def left_out(self, columns: list[int]) -> Array:
        """Return the coefficients (blocks, k) of some columns, each fitted without one block."""
        return np.asarray(self._solve(self.fitted, columns) / self.scales[columns])

    def errors(self, columns: list[int]) -> Array:
        """Return the mean squared test error (blocks,) on every block of the fit without it."""
        solution = np.column_stack((self._solve(self.fitted, columns), np.full(len(self.fitted), -1.0)))
        rows = [*columns, -1]
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


# --- separable models -------------------------------------------------------------------------------------------------

Columns = Callable[[Array], Array]

_STEPS, _LONGEST, _SMALL = 60, 1.0, 1e-8
"""Maximum number of steps; maximum step and step of convergence, in logarithms of the unknowns."""
_DIFFERENCE, _HALVINGS = 1e-5, 12
_POLISH, _SHRINKS = 6, 0.5
"""Maximum number of final steps, and factor by which each must be shorter than the last."""
_EXACT = 1e-13
"""Fraction of the target's sum of squares that is rounding error."""
_VALLEYS, _FAR = 3, 1.5
"""Maximum number of descents, and minimum distance between starts of several unknowns, in logarithms."""
_UNSEEN = 1e-6
"""Change of the sum of squares, in variances of a residual, below which a search ends."""
_SAME = 1e-3
"""Maximum distance between identical minima, in logarithms of the unknowns."""


@dataclass(frozen=True)
class SeparableFit:
    """Solution of a separable model.

    Attributes
    ----------
    nonlinear : array, (q,)
        Unknowns that the columns depend on.
    linear : LinearFit
        Linear fit for these.
    jacobian : array, (n, p + q)
        Derivatives of the model with respect to the coefficients, then to `nonlinear`.
    converged : bool
        Whether the search converged.
    others : tuple of SeparableFit
        Other local minima with the same weights, in increasing order of their cost.
    """

    nonlinear: Array
    linear: LinearFit
    jacobian: Array
    converged: bool
    others: tuple[SeparableFit, ...] = ()


def separable_least_squares(
    columns: Columns,
    target: Array,
    starts: Array,
    *,
    loss: str = "square",
    lower: Array | None = None,
    limits: tuple[Array, Array] | None = None,
) -> SeparableFit:
    """Fit a model that is linear except for a few positive unknowns.

    Parameters
    ----------
    columns : callable
        Maps the nonlinear unknowns (q,) to the columns (n, p).
    target : array, (n,)
        Dependent variable.
    starts : array, (m, q)
        Start values, all greater than 0, in any order. The search descends from those that are better than their
        neighbours, judged on all samples, and stays within their range.
    loss
        As in `robust_least_squares`.
    lower : (p,) float array, optional
        Lower bounds of the linear coefficients, each 0 or minus infinity.
    limits : pair of (q,) float arrays, optional
        Bounds of the nonlinear unknowns; by default the range of `starts`.
    """
    starts = np.atleast_2d(np.asarray(starts, float))
    target = np.asarray(target, float)
    least, most = (starts.min(axis=0), starts.max(axis=0)) if limits is None else limits
    search = _Search(columns, target, lower, np.log(least), np.log(most))
    minima = search.minima(np.log(starts), np.ones_like(target))
    fit = minima[0]
    for stage in stages(loss):
        for _ in range(ROUNDS):
            last = np.log(fit.nonlinear)
            fit = search.descend(last, robust_weights(fit.linear.residual, stage))
            if np.linalg.norm(np.log(fit.nonlinear) - last) <= SETTLED:
                break
    if len(minima) == 1:
        return fit
    others = minima[1:]
    if stages(loss):  # the minima for the final weights of the best fit, without those that coincide with it
        again = [search.descend(np.log(one.nonlinear), fit.linear.weights) for one in others]
        others = sorted((one for one in again if _apart(one, fit)), key=lambda one: one.linear.cost)
    return replace(fit, others=tuple(others))


@dataclass(frozen=True)
class _Search:
    """Descent on the variable projection functional, in the logarithms of the nonlinear unknowns."""

    columns: Columns
    target: Array
    lower: Array | None
    least: Array
    most: Array

    def minima(self, starts: Array, weights: Array) -> list[SeparableFit]:
        """Return the distinct minima reached from the starts, in increasing order of their cost."""
        found: list[SeparableFit] = []
        for start in self.valleys(starts, weights):
            fit = self.descend(start, weights)
            if all(_apart(fit, other) for other in found):
                found.append(fit)
        return sorted(found, key=lambda fit: fit.linear.cost)

    def valleys(self, starts: Array, weights: Array) -> Array:
        """Return the starts for descents, in increasing order of their cost.

        With one unknown, the local minima of the starts; with several, the best ones that are far apart.
        """
        if len(starts) <= _VALLEYS:
            return starts
        if starts.shape[1] == 1:
            starts = starts[np.argsort(starts[:, 0])]
        costs = np.array([self.cost(start, weights) for start in starts])
        if starts.shape[1] > 1:
            chosen: list[Array] = []
            for start in starts[np.argsort(costs)]:
                if len(chosen) < _VALLEYS and all(np.abs(start - other).max() > _FAR for other in chosen):
                    chosen.append(start)
            return np.array(chosen)
        if float(costs.min()) <= _EXACT:  # an exact fit: rounding errors create many minima
            return np.asarray(starts[[int(np.argmin(costs))]])
        walls = np.concatenate(([np.inf], costs, [np.inf]))
        lowest = np.flatnonzero((costs <= walls[:-2]) & (costs <= walls[2:]))
        return np.asarray(starts[lowest[np.argsort(costs[lowest])][:_VALLEYS]])

    def cost(self, start: Array, weights: Array) -> float:
        """Return the fraction of the target's sum of squares that remains for the best linear coefficients."""
        return solve_normal_equations(self.columns(np.exp(start)), self.target, weights, self.lower)[1]

    def solved(self, place: Array, weights: Array) -> LinearFit:
        """Return the linear fit for given unknowns."""
        return least_squares(self.columns(np.exp(place)), self.target, weights=weights, lower=self.lower)

    def nearly_solved(self, place: Array, weights: Array) -> LinearFit:
        """Return the solution by normal equations, which is accurate enough during the descent."""
        matrix = self.columns(np.exp(place))
        found, _ = solve_normal_equations(matrix, self.target, weights, self.lower)
        return LinearFit(found, self.target - times(matrix, found), np.nan, len(found), weights)

    def descend(self, place: Array, weights: Array) -> SeparableFit:
        """Descend by Gauss-Newton steps with step halving until convergence."""
        fit, converged, way = self.nearly_solved(place, weights), False, _Way()
        for _ in range(_STEPS):
            step, last, cost = way.onward(place, self._step(place, fit, nearly=True)), place, fit.cost
            if np.abs(step).max() <= _SMALL:
                place, converged = self._within(place + step), True
                break
            for _ in range(_HALVINGS):
                trial = self._within(place + step)
                found = self.nearly_solved(trial, fit.weights)
                if found.cost < fit.cost:
                    place, fit = trial, found
                    break
                step = 0.5 * step
            if (cost - fit.cost) * len(fit.residual) <= _UNSEEN * fit.cost or np.array_equal(place, last):
                # the descent leaves the range, or its gain is below noise or rounding errors
                converged = True
                break
        fit = self.solved(place, fit.weights)
        if converged:
            place, fit = self._polished(place, fit)
        jacobian = stacked((*self.columns(np.exp(place)).T, *(self._slopes(place, fit) / np.exp(place)).T))
        return SeparableFit(np.exp(place), fit, jacobian, converged)

    def _step(self, place: Array, fit: LinearFit, nearly: bool = False) -> Array:
        free = np.ones(len(fit.coefficients), bool)
        if self.lower is not None:
            free = fit.coefficients > self.lower
        matrix = stacked((*self.columns(np.exp(place))[:, free].T, *self._slopes(place, fit).T))
        if nearly:
            found, _ = solve_normal_equations(matrix, fit.residual, fit.weights)
        else:
            found = least_squares(matrix, fit.residual, weights=fit.weights).coefficients
        return np.asarray(np.clip(found[int(free.sum()) :], -_LONGEST, _LONGEST))

    def _polished(self, place: Array, fit: LinearFit) -> tuple[Array, LinearFit]:
        """Refine a solution by Gauss-Newton steps while they shrink, where rounding hides changes of the cost."""
        largest, way = np.inf, _Way()
        for _ in range(_POLISH):
            step = self._within(place + way.onward(place, self._step(place, fit))) - place
            size = float(np.abs(step).max())
            if not 0.0 < size <= min(_SHRINKS * largest, np.sqrt(_SMALL)):
                break
            place, largest = place + step, size
            fit = self.solved(place, fit.weights)
        return place, fit

    def _within(self, place: Array) -> Array:
        return np.asarray(np.clip(place, self.least, self.most))

    def _slopes(self, place: Array, fit: LinearFit) -> Array:
        """Return the derivatives (n, q) of the model with respect to the logarithms, by central differences."""
        slopes = [
            times(self.columns(np.exp(place + shift)) - self.columns(np.exp(place - shift)), fit.coefficients)
            for shift in _DIFFERENCE * np.eye(len(place))
        ]
        return stacked(slopes) / (2.0 * _DIFFERENCE)


class _Way:
    """Secant acceleration of the Gauss-Newton steps for a single unknown.

    Gauss-Newton steps alone oscillate or creep if residuals are large compared with the effect of the unknown.
    """

    def __init__(self) -> None:
        self._last: tuple[float, float] | None = None

    def onward(self, place: Array, step: Array) -> Array:
        """Return the step that replaces a Gauss-Newton step."""
        if len(place) > 1 or abs(step[0]) >= _LONGEST:
            self._last = None
            return step
        before, self._last = self._last, (float(place[0]), float(step[0]))
        if before is None or before[0] == place[0]:
            return step
        slope = (step[0] - before[1]) / (place[0] - before[0])
        return np.asarray(np.clip(-step / slope, -_LONGEST, _LONGEST) if slope < 0.0 else step)


def _apart(one: SeparableFit, other: SeparableFit) -> bool:
    return bool(np.abs(np.log(one.nonlinear / other.nonlinear)).max() > _SAME)
