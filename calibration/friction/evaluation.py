"""Post-processing of a least squares fit: bias correction, intervals, diagnostics, doubts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.intervals import (
    covariance_of_sum,
    degrees_of_freedom,
    folded,
    interval_with_bounds,
    memory_of,
    quantile,
)
from calibration.fitting.normal_equations import norm
from calibration.fitting.regression import least_squares, loss_slope
from calibration.fitting.separable import SeparableFit
from calibration.friction.changes import changes
from calibration.friction.diagnostics import Diagnostics, Doubt, diagnose
from calibration.friction.doubts import doubts_about
from calibration.friction.model import DISTANCE, SCALE
from calibration.friction.noise import Corrected, corrected
from calibration.friction.problem import Problem
from calibration.friction.result import FrictionFit
from calibration.friction.samples import Samples
from calibration.friction.settings import FitSettings

Array = NDArray[np.float64]

_SLOWEST = 3e-3
"""Minimum Stribeck velocity of the search, as a fraction of the top speed."""
_STARTS, _FEWER = 12, 8
"""Number of start values of a single nonlinear parameter, and of each of two."""
_SHORTEST, _LONGEST = 3e-4, 0.1
"""Search range of the presliding distance, as fractions of the range of the motion."""
_AT_LIMIT = 1.001
"""Factor from the limit of a range within which a parameter counts as being at the limit."""
_ROOM = 2.0
"""Maximum velocity noise relative to the residuals; above 1, because a fit absorbs part of the noise."""


def starts(problem: Problem, samples: Samples, settings: FitSettings, kept: NDArray[np.bool_]) -> list[Array]:
    """Return the start values of each nonlinear parameter, increasing."""
    found, count = [], _STARTS if len(problem.model.nonlinear_names) == 1 else _FEWER
    if problem.model.scaled:
        top = float(np.abs(samples.velocity[kept]).max())
        found.append(top * np.geomspace(_SLOWEST, settings.slowest_fall, count))
    if problem.model.presliding and samples.travel is not None:
        found.append(samples.travel.range * np.geomspace(_SHORTEST, _LONGEST, count))
    return found


def evaluate_fit(
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
    uncertainty = _uncertainty(problem, settings, kept, found, free, better, residual, samples.rounds)
    gradients = problem.natural_jacobian(better.place)
    covariance = gradients @ uncertainty.covariance @ gradients.T
    values = named(problem, better.place)
    errors = np.sqrt(np.diag(covariance))
    reach = quantile(settings.confidence, uncertainty.degrees)
    deviations = problem.offset_deviations(better.place)
    tried = starts(problem, samples, settings, kept)
    limits = {
        name: (float(one[0]), float(one[-1])) for name, one in zip(problem.model.nonlinear_names, tried, strict=True)
    }
    fit = FrictionFit(
        model=problem.model,
        samples=samples,
        settings=settings,
        names=problem.names,
        values=values,
        uncorrected=named(problem, first),
        standard_errors=dict(zip(problem.names, map(float, errors), strict=True)),
        intervals=_intervals(problem, better.place, gradients, uncertainty, values, reach, limits),
        offset_deviations=tuple(map(float, deviations)),
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
    seen = doubts_about(fit, found.converged and better.settled, limits)
    fit = replace(fit, doubts=(*seen, *changes(fit, found.jacobian, found.linear.weights)))
    rivals = [
        evaluate_fit(problem, samples, settings, band, kept, replace(other, others=()))
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
    """Correct a fit to the samples `kept` for velocity noise.

    Returns the parameters found, a mask of the parameters that are at no bound, and the corrected parameters.
    """
    first = np.concatenate((found.linear.coefficients, found.nonlinear))
    free = np.ones(len(first), bool)
    if problem.lower is not None:
        free[: len(problem.lower)] = found.linear.coefficients > problem.lower
    for number, tried in enumerate(starts(problem, samples, settings, kept)):
        within = tried[0] * _AT_LIMIT < found.nonlinear[number] < tried[-1] / _AT_LIMIT
        free[len(found.linear.coefficients) + number] = within
    noise = _harmful_noise(problem, samples, kept, first, found) if settings.correct_bias else 0.0
    left = np.zeros(len(kept))
    left[kept] = found.linear.weights * found.linear.residual
    return first, free, corrected(problem, samples, first, free, noise, band, kept, left)


def _as_good(other: SeparableFit, best: SeparableFit, fit: FrictionFit) -> bool:
    """Return True if another minimum fits about as well as the best, by a likelihood ratio."""
    excess = other.linear.cost / max(best.linear.cost, 1e-300) - 1.0
    reach = float(quantile(fit.settings.confidence, np.array([fit.diagnostics.effective_samples]))[0])
    return excess * fit.diagnostics.effective_samples <= reach**2


def spanning(fit: FrictionFit, rivals: Sequence[FrictionFit]) -> FrictionFit:
    """Return a fit whose intervals also cover the intervals of other fits of about the same quality."""
    every = (fit, *rivals)
    intervals = {
        name: (min(one.intervals[name][0] for one in every), max(one.intervals[name][1] for one in every))
        for name in fit.names
    }
    ratios = {
        name: max(one.values[name] for one in every) / min(one.values[name] for one in every)
        for name in fit.model.nonlinear_names
    }
    apart = max(ratios, key=ratios.__getitem__)
    words = {SCALE: "Stribeck velocities", DISTANCE: "Presliding distances"}[apart]
    found = " and ".join(f"{one.values[apart]:.3g}" for one in sorted(every, key=lambda one: one.values[apart]))
    doubt = Doubt(
        "two-minima",
        f"{words} of {found} fit the recording equally well, and the intervals cover them all: record more slow "
        "motion.",
    )
    return replace(fit, intervals=intervals, doubts=(*fit.doubts, doubt))


def _harmful_noise(
    problem: Problem, samples: Samples, kept: NDArray[np.bool_], place: Array, found: SeparableFit
) -> float:
    """Return the noise to correct for, limited by the size of the residuals.

    Fast motion looks like noise to `white_noise`, but unlike noise it leaves no residuals.
    """
    slope = problem.model.slope(named(problem, place), samples.velocity[kept])
    room = _ROOM * norm(found.linear.residual)
    steepness = norm(slope)
    return samples.noise if samples.noise * steepness <= room else room / steepness


def named(problem: Problem, place: Array) -> dict[str, float]:
    """Return the searched parameters by name."""
    return dict(zip(problem.names, map(float, problem.natural(place)), strict=True))


def _excluded(samples: Samples, band: float, kept: NDArray[np.bool_]) -> dict[str, int]:
    saturated = samples.inner & (np.zeros(len(kept), bool) if samples.saturated is None else samples.saturated)
    moving = samples.faster_than(band)
    counts = {
        "near zero velocity": int((samples.inner & ~saturated & ~moving).sum()),
        "edges": int((~samples.inner).sum()),
        "turning back": int((moving & ~kept).sum()),
        "saturated": int(saturated.sum()),
    }
    return {reason: count for reason, count in counts.items() if count or reason in {"near zero velocity", "edges"}}


@dataclass(frozen=True)
class _Uncertainty:
    """Uncertainty of the searched parameters.

    Attributes
    ----------
    covariance : array, (r, r)
        Covariance of the searched parameters.
    degrees : array, (p,)
        Degrees of freedom of the variance of each parameter by name.
    """

    covariance: Array
    degrees: Array


def _uncertainty(
    problem: Problem,
    settings: FitSettings,
    kept: NDArray[np.bool_],
    found: SeparableFit,
    free: NDArray[np.bool_],
    better: Corrected,
    left: Array,
    rounds: tuple[int, ...],
) -> _Uncertainty:
    """Return the uncertainty of the parameters; `left` (k,) are the residuals after the bias correction."""
    jacobian, residual = found.jacobian, found.linear.residual
    if problem.instrument is not None or better.commanded is not None:
        jacobian, residual = jacobian.copy(), left
    if better.commanded is not None:
        jacobian[:] = better.commanded
    elif problem.instrument is not None:
        jacobian[:, problem.inertial] = problem.instrument[kept]
    # Linear parameters at a bound may move away from it; nonlinear parameters at a limit are fixed.
    varied = free.copy()
    varied[: len(found.linear.coefficients)] = True
    matrix = better.matrix[np.ix_(varied, varied)]
    size = np.sqrt(np.maximum(np.abs(np.diag(matrix)), 1e-300))
    inverse = np.zeros_like(better.matrix)
    inverse[np.ix_(varied, varied)] = np.linalg.pinv(
        matrix / np.outer(size, size) * loss_slope(residual, settings.loss)
    ) / np.outer(size, size)
    weighted = jacobian * found.linear.weights[:, None]
    influence = np.zeros((len(kept), len(better.place)))
    influence[kept] = np.einsum("ij,kj->ik", weighted, inverse)
    error = np.zeros(len(kept))
    error[kept] = residual
    memory = memory_of(residual)
    gradients = problem.natural_jacobian(better.place)
    by_name = np.einsum("ij,kj->ik", influence, gradients)
    return _Uncertainty(
        covariance_of_sum(folded(influence * error[:, None], rounds), memory),
        degrees_of_freedom(np.sqrt(folded(by_name**2, rounds)), memory),
    )


def _intervals(
    problem: Problem,
    place: Array,
    gradients: Array,
    uncertainty: _Uncertainty,
    values: dict[str, float],
    reach: Array,
    limits: dict[str, tuple[float, float]],
) -> dict[str, tuple[float, float]]:
    """Return the interval of each parameter: symmetric, unless one of them reaches below a bound."""
    errors = np.sqrt(np.diag(gradients @ uncertainty.covariance @ gradients.T))
    found = {
        name: (values[name] - float(half * error), values[name] + float(half * error))
        for name, half, error in zip(problem.names, reach, errors, strict=True)
    }
    if problem.lower is not None:
        lower = np.full(len(place), -np.inf)
        lower[: len(problem.lower)] = problem.lower
        spread = float(reach.max()) * np.sqrt(np.diag(uncertainty.covariance))
        if bool(np.any(place - spread < lower)):
            for name, gradient, half in zip(problem.names, gradients, reach, strict=True):
                found[name] = interval_with_bounds(place, uncertainty.covariance, lower, gradient, float(half))
    for name, error in zip(problem.names, errors, strict=True):
        if name in limits and error == 0.0:
            low, high = limits[name]
            if values[name] >= high / _AT_LIMIT:
                found[name] = values[name], np.inf
            elif values[name] <= low * _AT_LIMIT:
                found[name] = 0.0, values[name]
            else:  # the force does not depend on it, such as on the Stribeck velocity without a fall
                found[name] = low, high
    return found


def _diagnosed(
    problem: Problem, samples: Samples, kept: NDArray[np.bool_], values: dict[str, float], residual: Array
) -> Diagnostics:
    velocity = samples.velocity[kept]
    stated = not samples.noise_is_guessed
    slow = float(np.mean(np.abs(velocity) < values[SCALE])) if problem.model.scaled else float("nan")
    return diagnose(residual, velocity, samples.friction[kept], problem.model.slope(values, velocity), slow, stated)
