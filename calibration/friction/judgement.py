"""From a least squares fit to a result: correction for velocity noise, intervals, diagnostics, doubts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.intervals import covariance_of_sum, degrees_of_freedom, folded, memory_of, quantile
from calibration.fitting.normal_equations import norm
from calibration.fitting.regression import least_squares, loss_slope
from calibration.fitting.separable import SeparableFit
from calibration.friction.changes import changes
from calibration.friction.diagnostics import Diagnostics, Doubt, diagnose
from calibration.friction.doubts import doubts_about
from calibration.friction.model import SCALE
from calibration.friction.noise import Corrected, corrected
from calibration.friction.problem import Problem
from calibration.friction.result import FrictionFit
from calibration.friction.samples import Samples
from calibration.friction.settings import FitSettings

Array = NDArray[np.float64]

_SLOWEST, _STARTS = 3e-3, 12
"""Stribeck velocities tried first: from this part of the top speed to all of it, and how many."""
_ROOM = 2.0
"""Share of the residuals that velocity noise may be the cause of; above 1, as a fit takes up some of it."""


def scales(velocity: Array) -> Array:
    """Return the Stribeck velocities to try: from a small part of the top speed to all of it."""
    return np.asarray(float(np.abs(velocity).max()) * np.geomspace(_SLOWEST, 1.0, _STARTS))


def judged(
    problem: Problem,
    samples: Samples,
    settings: FitSettings,
    band: float,
    kept: NDArray[np.bool_],
    found: SeparableFit,
) -> FrictionFit:
    """Return the result of a fit to the samples `kept`, which are faster than `band`."""
    first, free, better = without_bias(problem, samples, settings, band, kept, found)
    residual = samples.friction[kept] - problem.of(kept).evaluate(samples.velocity[kept], better.place)
    covariance, degrees = _covariance(problem, settings, kept, found, free, better, residual, samples.rounds)
    values = named(problem, better.place)
    errors = np.sqrt(np.diag(covariance))
    reach = quantile(settings.confidence, degrees) * errors
    fit = FrictionFit(
        model=problem.model,
        samples=samples,
        settings=settings,
        names=problem.names,
        values=values,
        uncorrected=named(problem, first),
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
        excluded=_excluded(samples, band, kept),
        residual=residual,
        diagnostics=_diagnosed(problem, samples, kept, values, residual),
        doubts=(),
    )
    tried = scales(samples.velocity[kept])
    settled = found.converged and better.settled
    seen = doubts_about(fit, settled, bool(free.all()), (float(tried[0]), float(tried[-1])))
    fit = replace(fit, doubts=(*seen, *changes(fit, found.jacobian, found.linear.weights)))
    rivals = [
        judged(problem, samples, settings, band, kept, replace(other, others=()))
        for other in found.others
        if _as_good(other, found, fit)
    ]
    return spanning(fit, rivals) if rivals else fit


def without_bias(
    problem: Problem,
    samples: Samples,
    settings: FitSettings,
    band: float,
    kept: NDArray[np.bool_],
    found: SeparableFit,
) -> tuple[Array, NDArray[np.bool_], Corrected]:
    """Return what a fit to the samples `kept` found, what of it is at no bound, and it without the bias of noise."""
    first = np.concatenate((found.linear.coefficients, found.nonlinear))
    free = np.ones(len(first), bool)
    if problem.lower is not None:
        free[: len(problem.lower)] = found.linear.coefficients > problem.lower
    noise = _harmful_noise(problem, samples, kept, first, found) if settings.correct_bias else 0.0
    left = np.zeros(len(kept))
    left[kept] = found.linear.weights * found.linear.residual
    return first, free, corrected(problem, samples, first, free, noise, band, kept, left)


def _as_good(other: SeparableFit, best: SeparableFit, fit: FrictionFit) -> bool:
    """Tell whether another minimum explains the samples so well that chance may have chosen (a likelihood ratio)."""
    excess = other.linear.cost / max(best.linear.cost, 1e-300) - 1.0
    reach = float(quantile(fit.settings.confidence, np.array([fit.diagnostics.effective_samples]))[0])
    return excess * fit.diagnostics.effective_samples <= reach**2


def spanning(fit: FrictionFit, rivals: Sequence[FrictionFit]) -> FrictionFit:
    """Return a fit whose intervals reach over those of others that explain the samples about as well."""
    every = (fit, *rivals)
    intervals = {
        name: (min(one.intervals[name][0] for one in every), max(one.intervals[name][1] for one in every))
        for name in fit.names
    }
    found = " and ".join(f"{one.values[SCALE]:.3g}" for one in sorted(every, key=lambda one: one.values[SCALE]))
    doubt = Doubt(
        "two-minima",
        f"Stribeck velocities of {found} fit the recording equally well, and the intervals cover them all: record more "
        "slow motion.",
    )
    return replace(fit, intervals=intervals, doubts=(*fit.doubts, doubt))


def _harmful_noise(
    problem: Problem, samples: Samples, kept: NDArray[np.bool_], place: Array, found: SeparableFit
) -> float:
    """Return the noise to correct for: not more than the residuals have room for.

    Fast motion looks like noise to `white_noise`; but noise leaves residuals, which motion does not.
    """
    slope = problem.model.slope(named(problem, place), samples.velocity[kept])
    room = _ROOM * norm(found.linear.residual)
    steepness = norm(slope)
    return samples.noise if samples.noise * steepness <= room else room / steepness


def named(problem: Problem, place: Array) -> dict[str, float]:
    """Return parameters that were searched by their names."""
    return dict(zip(problem.names, map(float, problem.natural(place)), strict=True))


def _excluded(samples: Samples, band: float, kept: NDArray[np.bool_]) -> dict[str, int]:
    moving = samples.faster_than(band)
    counts = {
        "near zero velocity": int((samples.inner & ~moving).sum()),
        "edges": int((~samples.inner).sum()),
        "turning back": int((moving & ~kept).sum()),
    }
    return {reason: count for reason, count in counts.items() if count or reason != "turning back"}


def _covariance(
    problem: Problem,
    settings: FitSettings,
    kept: NDArray[np.bool_],
    found: SeparableFit,
    free: NDArray[np.bool_],
    better: Corrected,
    left: Array,
    rounds: tuple[int, ...],
) -> tuple[Array, Array]:
    """Return the covariance of the parameters by name, and the degrees of freedom of each; `left` is after all."""
    jacobian, residual = found.jacobian, found.linear.residual
    if problem.instrument is not None or better.commanded is not None:
        jacobian, residual = jacobian.copy(), left
    if better.commanded is not None:
        jacobian[:, free] = better.commanded
    elif problem.instrument is not None:
        jacobian[:, problem.inertial] = problem.instrument[kept]
    size = np.sqrt(np.maximum(np.abs(np.diag(better.matrix)), 1e-300))
    inverse = np.linalg.pinv(better.matrix / np.outer(size, size) * loss_slope(residual, settings.loss))
    derivative = problem.natural_jacobian(better.place)[:, free] @ (inverse / np.outer(size, size))
    influence = np.zeros((len(kept), len(derivative)))
    weighted = jacobian[:, free] * found.linear.weights[:, None]
    influence[kept] = np.einsum("ij,kj->ik", weighted, derivative)
    error = np.zeros(len(kept))
    error[kept] = residual
    memory = memory_of(residual)
    return (
        covariance_of_sum(folded(influence * error[:, None], rounds), memory),
        degrees_of_freedom(np.sqrt(folded(influence**2, rounds)), memory),
    )


def _diagnosed(
    problem: Problem, samples: Samples, kept: NDArray[np.bool_], values: dict[str, float], residual: Array
) -> Diagnostics:
    velocity = samples.velocity[kept]
    stated = not samples.noise_is_guessed
    slow = float(np.mean(np.abs(velocity) < values[SCALE])) if problem.model.scaled else float("nan")
    return diagnose(residual, velocity, samples.friction[kept], problem.model.slope(values, velocity), slow, stated)
