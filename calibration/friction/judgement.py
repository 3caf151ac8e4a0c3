"""What is made of a least squares fit: correction for velocity noise, intervals, diagnostics, doubts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from calibration.friction.diagnostics import Diagnostics, diagnose
from calibration.friction.doubts import doubts_about
from calibration.friction.model import SCALE
from calibration.friction.noise import Corrected, corrected
from calibration.friction.problem import Problem
from calibration.friction.result import FrictionFit
from calibration.friction.samples import Samples
from calibration.friction.settings import FitSettings
from calibration.intervals import covariance_of_sum, degrees_of_freedom, quantile
from calibration.regression import least_squares, loss_slope
from calibration.separable import SeparableFit

Array = NDArray[np.float64]

_SLOWEST, _STARTS = 3e-3, 12
"""Stribeck velocities tried first: from this part of the top speed to all of it, and how many."""
_ROOM = 2.0
"""Share of the residuals that velocity noise may be the cause of; above 1, as a fit takes up some of it."""


def scales(velocity: Array) -> Array:
    """Return the Stribeck velocities to try: from a small part of the top speed to all of it."""
    return np.asarray(float(np.abs(velocity).max()) * np.geomspace(_SLOWEST, 1.0, _STARTS))


def judged(problem: Problem, samples: Samples, settings: FitSettings, band: float, found: SeparableFit) -> FrictionFit:
    """Return the result of a fit to the samples faster than `band`."""
    kept = samples.faster_than(band)
    first = np.concatenate((found.linear.coefficients, found.nonlinear))
    free = np.ones(len(first), bool)
    if problem.lower is not None:
        free[: len(problem.lower)] = found.linear.coefficients > problem.lower
    noise = _harmful_noise(problem, samples, kept, first, found) if settings.correct_bias else 0.0
    better = corrected(problem, samples, first, free, noise, band)
    covariance, degrees = _covariance(problem, settings, kept, found, free, better)
    values = _named(problem, better.place)
    errors = np.sqrt(np.diag(covariance))
    reach = quantile(settings.confidence, degrees) * errors
    residual = samples.friction[kept] - problem.of(kept).evaluate(samples.velocity[kept], better.place)
    fit = FrictionFit(
        model=problem.model,
        samples=samples,
        settings=settings,
        names=problem.names,
        values=values,
        uncorrected=_named(problem, first),
        standard_errors=dict(zip(problem.names, map(float, errors), strict=True)),
        intervals={
            name: (values[name] - float(half), values[name] + float(half))
            for name, half in zip(problem.names, reach, strict=True)
        },
        covariance=covariance,
        condition=least_squares(found.jacobian, found.linear.residual, weights=found.linear.weights).condition,
        dead_band=band,
        velocity_noise=samples.noise,
        kept=kept,
        excluded=_excluded(samples, band),
        residual=residual,
        diagnostics=_diagnosed(problem, samples, kept, values, residual),
        doubts=(),
    )
    tried = scales(samples.velocity[kept])
    settled = found.converged and better.settled
    return replace(fit, doubts=doubts_about(fit, settled, bool(free.all()), (float(tried[0]), float(tried[-1]))))


def _harmful_noise(
    problem: Problem, samples: Samples, kept: NDArray[np.bool_], place: Array, found: SeparableFit
) -> float:
    """Return the noise to correct for: not more than the residuals have room for.

    Fast motion looks like noise to `white_noise`; but noise leaves residuals, which motion does not.
    """
    slope = problem.model.slope(_named(problem, place), samples.velocity[kept])
    room = _ROOM * float(np.linalg.norm(found.linear.residual))
    steepness = float(np.linalg.norm(slope))
    return samples.noise if samples.noise * steepness <= room else room / steepness


def _named(problem: Problem, place: Array) -> dict[str, float]:
    return dict(zip(problem.names, map(float, problem.natural(place)), strict=True))


def _excluded(samples: Samples, band: float) -> dict[str, int]:
    slow = samples.inner & (np.abs(samples.velocity) <= band)
    return {"near zero velocity": int(slow.sum()), "edges": int((~samples.inner).sum())}


def _covariance(
    problem: Problem,
    settings: FitSettings,
    kept: NDArray[np.bool_],
    found: SeparableFit,
    free: NDArray[np.bool_],
    better: Corrected,
) -> tuple[Array, Array]:
    """Return the covariance of the parameters by name, and the degrees of freedom of each."""
    residual = found.linear.residual
    size = np.sqrt(np.maximum(np.abs(np.diag(better.matrix)), 1e-300))
    inverse = np.linalg.pinv(better.matrix / np.outer(size, size) * loss_slope(residual, settings.loss))
    derivative = problem.natural_jacobian(better.place)[:, free] @ (inverse / np.outer(size, size))
    influence = np.zeros((len(kept), len(derivative)))
    weighted = found.jacobian[:, free] * found.linear.weights[:, None]
    influence[kept] = np.einsum("ij,kj->ik", weighted, derivative)
    error = np.zeros(len(kept))
    error[kept] = residual
    return covariance_of_sum(influence * error[:, None]), degrees_of_freedom(influence)


def _diagnosed(
    problem: Problem, samples: Samples, kept: NDArray[np.bool_], values: dict[str, float], residual: Array
) -> Diagnostics:
    velocity = samples.velocity[kept]
    slow = float(np.mean(np.abs(velocity) < values[SCALE])) if problem.model.scaled else float("nan")
    return diagnose(residual, velocity, samples.friction[kept], problem.model.slope(values, velocity), slow)
