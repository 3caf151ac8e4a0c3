"""Separable least squares: models that are linear in most of their unknowns.

For a model y = A(a) c, the best c is a linear fit for every a. Only a is searched, on the sum of squares that remains
for the best c (variable projection: Golub and Pereyra 1973, with the simplified derivative of Kaufman 1975). No start
values are needed for c.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.regression import (
    ROUNDS,
    SETTLED,
    LinearFit,
    least_squares,
    robust_weights,
    solve_normal_equations,
    stacked,
    stages,
    times,
)
from haptics.errors import ConfigurationError

Array = NDArray[np.float64]
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
    weights: Array | None = None,
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
    weights, loss
        As in `robust_least_squares`.
    lower : (p,) float array, optional
        Lower bounds of the linear coefficients, each 0 or minus infinity.
    limits : pair of (q,) float arrays, optional
        Bounds of the nonlinear unknowns; by default the range of `starts`.
    """
    starts = np.atleast_2d(np.asarray(starts, float))
    if not bool(np.all(starts > 0.0)):
        raise ConfigurationError("start values of a separable fit must be greater than 0")
    target = np.asarray(target, float)
    given = np.ones_like(target) if weights is None else np.asarray(weights, float)
    least, most = (starts.min(axis=0), starts.max(axis=0)) if limits is None else limits
    search = _Search(columns, target, lower, np.log(least), np.log(most))
    minima = search.minima(np.log(starts), given)
    fit = minima[0]
    for stage in stages(loss):
        for _ in range(ROUNDS):
            last = np.log(fit.nonlinear)
            fit = search.descend(last, given * robust_weights(fit.linear.residual, stage))
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
        if starts.shape[1] > 1:
            costs = np.array([self.cost(start, weights) for start in starts])
            chosen: list[Array] = []
            for start in starts[np.argsort(costs)]:
                if len(chosen) < _VALLEYS and all(np.abs(start - other).max() > _FAR for other in chosen):
                    chosen.append(start)
            return np.array(chosen)
        starts = starts[np.argsort(starts[:, 0])]
        costs = np.array([self.cost(start, weights) for start in starts])
        if float(costs.min()) <= _EXACT:  # an exact fit: rounding errors create many minima
            return np.asarray(starts[[int(np.argmin(costs))]])
        walls = np.concatenate(([np.inf], costs, [np.inf]))
        lowest = np.flatnonzero((costs <= walls[:-2]) & (costs <= walls[2:]))
        return np.asarray(starts[lowest[np.argsort(costs[lowest])][:_VALLEYS]])

    def cost(self, start: Array, weights: Array) -> float:
        """Return the fraction of the target's sum of squares that remains for the best linear coefficients."""
        return solve_normal_equations(self.columns(np.exp(start)), self.target, weights, self.lower)[1]

    def solved(self, place: Array, weights: Array) -> LinearFit:
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
