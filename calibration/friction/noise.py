"""Errors in variables: what noise on the velocity does to a friction fit, and the fit corrected for it.

Friction falls so steeply from its static levels that little noise on the velocity flattens it: the fit then finds
levels that are too low, by many of its own standard errors. With the size of the noise known this can be undone. The
velocities w_i of the samples are taken for the true ones and noise n is put on top; the parameters t are sought whose
law, seen through that noise, would have led to the fit f that was found:

    sum_i  E[ J(w_i + n; f) 1(|w_i + n| > band) (F(w_i; t) - F(w_i + n; f)) ] = 0

where J is the derivative of the law F and the band is that around rest in which samples are left out. That w_i are
noisy themselves matters in second order only. The expectation is a sum over a few points (Gauss and Hermite's rule);
without noise the answer is the fit itself. The derivative of the left side with regard to t takes the place of the
matrix of normal equations when the covariance of t is asked.

Noise on the acceleration makes the inertia too small in the same way. Where there is an instrument for it, which has
hardly any noise (`calibration.data.signals.Motion`), that stands in J in its place, and f in the sum is what was
measured: the method of instrumental variables (Soederstroem and Stoica 1989, section 8; for robots Janot et al. 2014).
Where the motion was commanded (`calibration.friction.commanded`), J is that of the commanded motion z_i throughout, and
only what noise makes of the law itself is left to undo:

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
    """The fit without the bias of velocity noise.

    Attributes
    ----------
    place : array, (r,)
        Parameters searched (`Problem`).
    matrix : array, (r, r)
        Derivative of the estimating equations with respect to all parameters.
    settled : bool
        Whether the search converged; otherwise the uncorrected parameters are returned.
    commanded : array, (k, r), optional
        Factors of the residuals of the samples kept, where the motion was commanded.
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
    """Return the parameters that would have led to a fit.

    Parameters
    ----------
    problem : Problem
    samples : Samples
    place : array, (r,)
        What the fit found.
    free : array of bool, (r,)
        Which of it may change; the others lie at a bound.
    noise : float
        Standard deviation of the error of the velocity.
    band : float
        Speed up to which samples were left out of the fit.
    kept : array of bool, (n,)
        Which samples were fitted.
    residual : array, (n,)
        What the fit left of each sample, weighted; 0 of those left out.
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
    """Return the parameters whose residuals have nothing to do with the motion that was commanded."""
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
    """Return the parameters whose law has the products `seen` (r,) with instruments (n, r), starting from `place`.

    Parameters that are not `free` stay.
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
    """Return the mean derivative of each sample (n, r), and the sum of its products with the law (r,)."""
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
