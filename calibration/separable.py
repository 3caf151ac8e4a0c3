"""Least squares for models that are linear in most of their unknowns, once a few others are known.

Of a model y = A(a) c the best c is a linear fit for every a, so only a is searched, along the sum of squares that this
best c leaves (variable projection: Golub and Pereyra 1973, with the shortened derivative of Kaufman 1975). No start
values are needed for c.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.regression import ROUNDS, SETTLED, LinearFit, least_squares, robust_weights, stages, times
from haptics.errors import ConfigurationError

Array = NDArray[np.float64]
Columns = Callable[[Array], Array]

_STEPS, _LONGEST, _SMALL = 60, 1.0, 1e-8
"""Steps of a search at most; the longest one, and the one that is the last, in logarithms of the unknowns."""
_DIFFERENCE, _HALVINGS, _THINNED = 1e-5, 12, 1500


@dataclass(frozen=True)
class SeparableFit:
    """A solution of a model that is linear but for a few unknowns.

    Attributes
    ----------
    nonlinear : array, (q,)
        The unknowns the columns depend on.
    linear : LinearFit
        All else, at these.
    jacobian : array, (n, p + q)
        Derivatives of the model with regard to the coefficients, then to `nonlinear`.
    converged : bool
        Whether the search came to rest.
    """

    nonlinear: Array
    linear: LinearFit
    jacobian: Array
    converged: bool


def separable_least_squares(
    columns: Columns,
    target: Array,
    starts: Array,
    *,
    weights: Array | None = None,
    loss: str = "square",
    lower: Array | None = None,
) -> SeparableFit:
    """Return the best fit of a model that is linear but for a few positive unknowns.

    Parameters
    ----------
    columns : callable
        From the nonlinear unknowns (q,) to the columns (n, p).
    target : array, (n,)
        What they shall add up to.
    starts : array, (m, q)
        Values to try first, all greater than 0. The search begins at the best and stays within their range.
    weights, loss, lower
        As of `robust_least_squares`, for the linear coefficients.
    """
    starts = np.atleast_2d(np.asarray(starts, float))
    if not bool(np.all(starts > 0.0)):
        raise ConfigurationError("start values of a separable fit must be greater than 0")
    target = np.asarray(target, float)
    given = np.ones_like(target) if weights is None else np.asarray(weights, float)
    search = _Search(columns, target, lower, np.log(starts.min(axis=0)), np.log(starts.max(axis=0)))
    fit = search.descend(search.best_of(np.log(starts), given), given)
    for stage in stages(loss):
        for _ in range(ROUNDS):
            last = np.log(fit.nonlinear)
            fit = search.descend(last, given * robust_weights(fit.linear.residual, stage))
            if np.linalg.norm(np.log(fit.nonlinear) - last) <= SETTLED:
                break
    return fit


@dataclass(frozen=True)
class _Search:
    """The descent along what the best linear coefficients leave, in the logarithms of the other unknowns."""

    columns: Columns
    target: Array
    lower: Array | None
    least: Array
    most: Array

    def best_of(self, starts: Array, weights: Array) -> Array:
        """Return the start of the smallest cost, judged by at most some 1500 samples."""
        thin = slice(None, None, max(1, len(self.target) // _THINNED))

        def cost(start: Array) -> float:
            matrix = self.columns(np.exp(start))[thin]
            return least_squares(matrix, self.target[thin], weights=weights[thin], lower=self.lower).cost

        best: Array = starts[int(np.argmin([cost(start) for start in starts]))]
        return best

    def solved(self, place: Array, weights: Array) -> LinearFit:
        return least_squares(self.columns(np.exp(place)), self.target, weights=weights, lower=self.lower)

    def descend(self, place: Array, weights: Array) -> SeparableFit:
        """Return where Gauss-Newton steps with halving come to rest."""
        fit, converged = self.solved(place, weights), False
        for _ in range(_STEPS):
            step = self._step(place, fit)
            last = place
            if np.abs(step).max() <= _SMALL:
                place = self._kept_within(place + step)
                fit, converged = self.solved(place, fit.weights), True
                break
            place, fit = self._downhill(place, step, fit)
            if np.array_equal(place, last):
                # downhill leads out of the range, or nowhere that rounding errors let be seen
                converged = True
                break
        jacobian = np.column_stack((self.columns(np.exp(place)), self._slopes(place, fit) / np.exp(place)))
        return SeparableFit(np.exp(place), fit, jacobian, converged)

    def _step(self, place: Array, fit: LinearFit) -> Array:
        free = np.ones(len(fit.coefficients), bool)
        if self.lower is not None:
            free = fit.coefficients > self.lower
        matrix = np.column_stack((self.columns(np.exp(place))[:, free], self._slopes(place, fit)))
        step = least_squares(matrix, fit.residual, weights=fit.weights).coefficients[int(free.sum()) :]
        return np.asarray(np.clip(step, -_LONGEST, _LONGEST))

    def _downhill(self, place: Array, step: Array, fit: LinearFit) -> tuple[Array, LinearFit]:
        for _ in range(_HALVINGS):
            trial = self._kept_within(place + step)
            found = self.solved(trial, fit.weights)
            if found.cost < fit.cost:
                return trial, found
            step = 0.5 * step
        return place, fit

    def _kept_within(self, place: Array) -> Array:
        return np.asarray(np.clip(place, self.least, self.most))

    def _slopes(self, place: Array, fit: LinearFit) -> Array:
        """Return the derivatives (n, q) of the model with regard to the logarithms, by central differences."""
        slopes = [
            times(self.columns(np.exp(place + shift)) - self.columns(np.exp(place - shift)), fit.coefficients)
            for shift in _DIFFERENCE * np.eye(len(place))
        ]
        return np.column_stack(slopes) / (2.0 * _DIFFERENCE)
