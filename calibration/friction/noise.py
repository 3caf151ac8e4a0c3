"""Errors in variables: correction of a friction fit for velocity noise.

Friction falls so steeply from its static levels that little noise on the velocity flattens it: the fit then yields
levels that are too low by many standard errors. If the size of the noise is known, this can be corrected. The measured
velocities w_i are treated as true values, and noise n is added. The parameters t are sought whose law, seen through
that noise, would lead to the fit f that was found:

    sum_i  E[ J(w_i + n; f) 1(|w_i + n| > band) (F(w_i; t) - F(w_i + n; f)) ] = 0

where J is the derivative of the law F, and the band is the interval around rest in which samples are excluded. The
noise in w_i itself has an effect of second order only. The expectation is a sum over a few points (Gauss-Hermite
quadrature); without noise the result is the fit itself. For the covariance of t, the derivative of the left side with
respect to t replaces the matrix of the normal equations.

Noise on the acceleration biases the inertia towards zero in the same way. If an instrument with negligible noise exists
(`calibration.data.signals.Motion`), it replaces the acceleration in J, and the measured friction replaces f in the sum:
the method of instrumental variables (Soederstroem and Stoica 1989, section 8; for robots Janot et al. 2014). For
commanded motion (`calibration.friction.commanded`), J is evaluated at the commanded motion z_i throughout, and only the
effect of noise on the law itself remains to be corrected:

    sum_i  J(z_i; f) (F(w_i; t) - E[F(w_i + n; f)] + F(w_i; f) - measured_i) = 0
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.normal_equations import norm, products
from calibration.fitting.regression import times
from calibration.friction.problem import Problem
from calibration.friction.samples import Samples

Array = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_STEPS, _SETTLED = 12, 1e-9


@dataclass(frozen=True)
class Corrected:
    """Fit without the bias of velocity noise.

    Attributes
    ----------
    place : array, (r,)
        Searched parameters (`Problem`).
    matrix : array, (r, r)
        Derivative of the estimating equations with respect to all parameters.
    settled : bool
        Whether the search converged; otherwise the uncorrected parameters are returned.
    commanded : array, (k, r), optional
        Factors of the residuals of the kept samples, for commanded motion.
    """

    place: Array
    matrix: Array
    settled: bool
    commanded: Array | None = None


def corrected(
    problem: Problem,
    samples: Samples,
    place: Array,
    free: NDArray[np.bool_],
    noise: float,
    band: float,
    kept: NDArray[np.bool_],
    residual: Array,
) -> Corrected:
    """Correct the parameters of a fit for velocity noise.

    Parameters
    ----------
    problem : Problem
    samples : Samples
    place : array, (r,)
        Parameters of the fit.
    free : array of bool, (r,)
        Parameters that may change; the others are at a bound.
    noise : float
        Standard deviation of the velocity error.
    band : float
        Speed up to which samples were excluded from the fit.
    kept : array of bool, (n,)
        Fitted samples.
    residual : array, (n,)
        Weighted residuals of the fit; 0 for excluded samples.
    """
    if problem.commanded is not None:
        return _by_command(problem, samples, place, free, noise, kept, residual)
    left_out = ~kept & (np.abs(samples.velocity) > band)  # for other reasons than their speed
    usable = samples.inner & ~left_out
    problem, residual, velocity = problem.of(usable), residual[usable], samples.velocity[usable]
    weights = np.ones(len(velocity)) if samples.weights is None else samples.weights[usable]
    instruments, seen = _expectations(problem, velocity, weights, place, noise, band)
    if problem.instrument is not None:
        seen[problem.inertial] += float(np.einsum("i,i->", problem.instrument, residual))
    return _searched(problem, velocity, place, free, instruments, seen, _SETTLED * norm(samples.friction))


def _by_command(
    problem: Problem,
    samples: Samples,
    place: Array,
    free: NDArray[np.bool_],
    noise: float,
    kept: NDArray[np.bool_],
    residual: Array,
) -> Corrected:
    """Return the parameters whose residuals are uncorrelated with the commanded motion."""
    problem, velocity, residual = problem.of(kept), samples.velocity[kept], residual[kept]
    weights = np.ones(len(velocity)) if samples.weights is None else samples.weights[kept]
    assert problem.commanded is not None
    instruments = problem.commanded_instruments(problem.commanded, place, weights)
    weighted = instruments * weights[:, None]
    mean = np.zeros(len(velocity))
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        mean += weight * problem.evaluate(velocity + node * noise, place)
    seen = times(weighted.T, mean) + times(instruments.T, residual)
    found = _searched(problem, velocity, place, free, weighted, seen, _SETTLED * norm(samples.friction))
    return replace(found, commanded=instruments)


def _searched(
    problem: Problem,
    velocity: Array,
    place: Array,
    free: NDArray[np.bool_],
    instruments: Array,
    seen: Array,
    smallest: float,
) -> Corrected:
    """Solve for the parameters whose law has the products `seen` (r,) with instruments (n, r).

    The search starts from `place`. Parameters that are not `free` are fixed.
    """
    found = place
    for _ in range(_STEPS):
        law, jacobian = problem.expanded(velocity, found)
        matrix = products(instruments, jacobian)
        step = np.zeros_like(place)
        step[free] = _solved(matrix[np.ix_(free, free)], (seen - times(instruments.T, law))[free])
        found = found + step
        start, now = problem.split(place)[1], problem.split(found)[1]
        if not bool(np.all((0.2 * start < now) & (now < 5.0 * start))):
            break
        if np.all(np.abs(step[free]) * np.sqrt(np.abs(np.diag(matrix)))[free] <= smallest):
            return Corrected(problem.within_bounds(found), matrix, True)
    return Corrected(place, products(instruments, problem.jacobian(velocity, place)), False)


def _expectations(
    problem: Problem, measured: Array, weights: Array, place: Array, noise: float, band: float
) -> tuple[Array, Array]:
    """Return the expected derivative of each sample (n, r), and the sum of its products with the law (r,)."""
    instruments, seen = np.zeros((len(place), len(measured))).T, np.zeros(len(place))
    for node, weight in zip(_NODES if noise else (0.0,), _WEIGHTS if noise else (1.0,), strict=True):
        velocity = measured + node * noise
        counted = weight * weights * (np.abs(velocity) > band)
        law, jacobian = problem.expanded(velocity, place)
        part = problem.instrumental(jacobian) * counted[:, None]
        instruments += part
        seen += times(part.T, law)
    return instruments, seen


def _solved(matrix: Array, right: Array) -> Array:
    scale = np.maximum(np.abs(matrix).max(axis=0), 1e-300)
    return np.asarray(np.linalg.lstsq(matrix / scale, right, rcond=None)[0] / scale)
