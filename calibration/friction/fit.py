"""Fit of a friction model to a recording of a joint.

The least squares fit is followed by bias correction, intervals, diagnostics and doubts.

Samples at a limit of the sensor are excluded from fits (`without_saturated`). A clipped torque is too small, and fits
that ignore it underestimate friction. If only the clipped samples were excluded, samples with small noise would be
favoured. Therefore all samples are excluded at which the limit is expected within the noise, by a fit to the others.
This criterion does not depend on the noise of the sample itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibration.data.joint_recording import Saturation
from calibration.fitting.intervals import (
    covariance_of_sum,
    degrees_of_freedom,
    folded,
    interval_with_bounds,
    memory_of,
    quantile,
)
from calibration.fitting.regression import least_squares, loss_slope, norm, robust_least_squares, spread
from calibration.fitting.separable import SeparableFit, separable_least_squares
from calibration.friction.diagnostics import changes, diagnose, doubts_about
from calibration.friction.model import DISTANCE, SCALE, FrictionModel, named_model
from calibration.friction.problem import Corrected, Problem, corrected
from calibration.friction.result import Doubt, FitSettings, FrictionFit, FrictionLaw
from calibration.friction.samples import LEAST, Samples
from haptics.errors import ConfigurationError

Array = NDArray[np.float64]

_BAND, _NOISE_BAND = 0.01, 4.0
"""Speed of excluded samples: fraction of the top speed, and standard deviations of the noise."""
_THINNED = 10_000
"""Maximum number of samples for the search of a grid of start values."""
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
_ROUNDS, _NOISE = 4, 3.0
"""For saturated samples: maximum number of fits; half width of the excluded interval in standard deviations."""
_MODEL = "stribeck-asymmetric"
_DEFAULTS = FitSettings()


@dataclass(frozen=True)
class _Search:
    """Least squares fit with its problem and data: samples `kept`, which are faster than `band`."""

    problem: Problem
    samples: Samples
    settings: FitSettings
    band: float
    kept: NDArray[np.bool_]
    found: SeparableFit


def fit_friction(samples: Samples, model: FrictionModel | str, settings: FitSettings = _DEFAULTS) -> FrictionFit:
    """Fit the parameters of a friction model to a recording.

    Nonlinear parameters such as the Stribeck velocity are found by variable projection, all others are linear (Guedelha
    et al. 2018, (20) to (22), (29)). Then the bias due to velocity noise is corrected (`calibration.friction.problem`).
    Intervals account for correlated errors (`calibration.fitting.intervals`).

    Parameters
    ----------
    samples : Samples
        Samples of the recording.
    model : FrictionModel or str
        Name in `MODELS`, or a custom model.
    settings : FitSettings, optional

    Raises
    ------
    ConfigurationError
        If the motion is constant, in one direction only or at one speed, too few samples remain, or accelerations are
        missing.
    """
    return _evaluated(_searched(samples, named_model(model), settings))


def fit_law(samples: Samples, model: FrictionModel | str, settings: FitSettings = _DEFAULTS) -> FrictionLaw:
    """Fit a friction model as `fit_friction`, without its uncertainty."""
    search = _searched(samples, named_model(model), settings)
    _, _, better = _without_bias(search)
    return FrictionLaw(search.problem.model, search.problem.named(better.place))


def _searched(samples: Samples, model: FrictionModel, settings: FitSettings) -> _Search:
    samples.require_law()
    if settings.fit_inertia and samples.acceleration is None:
        raise ConfigurationError("fit_inertia needs the acceleration of every sample")
    band = settings.dead_band
    if band is None:
        band = max(_BAND * float(np.abs(samples.velocity).max()), _NOISE_BAND * samples.noise)
    kept = samples.faster_than(band)
    if settings.fit_inertia and samples.turning is not None:
        kept &= samples.turning == 0.0
    if int(kept.sum()) < LEAST:
        raise ConfigurationError(
            f"{int(kept.sum())} samples are faster than the dead band of {band:g} and not near a turn: at least "
            f"{LEAST} are needed"
        )
    moved = (samples.acceleration, samples.instrument) if settings.fit_inertia else (None, None)
    if model.presliding and samples.travel is None:
        raise ConfigurationError("presliding needs positions, or velocities that can be integrated")
    if model.harmonics and samples.angle is None:
        raise ConfigurationError("harmonics need the position of a joint that turns")
    apart = (model.offset or model.asymmetric_coulomb) and not settings.common_offset
    deviations = samples.recordings - 1 if apart else 0
    problem = Problem(model, not settings.unbounded, samples.motion, *moved, samples.commanded, deviations)
    found = _solved(problem, samples, settings, kept)
    if found.linear.rank < len(found.linear.coefficients):
        raise ConfigurationError(f"the motion cannot tell {', '.join(problem.names)} apart: move at more speeds")
    if problem.lower is not None and not found.linear.coefficients.any():
        raise ConfigurationError("every level is 0: the torque or force does not oppose the motion; check its sign")
    return _Search(problem, samples, settings, float(band), kept, found)


def _solved(problem: Problem, samples: Samples, settings: FitSettings, kept: NDArray[np.bool_]) -> SeparableFit:
    """Return the least squares fit to the kept samples."""
    part = problem.of(kept)
    velocity, target = samples.velocity[kept], samples.friction[kept]
    weights = None if samples.weights is None else samples.weights[kept]
    if not problem.model.nonlinear_names:
        matrix = part.columns(velocity, np.empty(0))
        linear = robust_least_squares(matrix, target, weights=weights, loss=settings.loss, lower=problem.lower)
        return SeparableFit(np.empty(0), linear, matrix, True)
    tried = _starts(problem, samples, settings, kept)
    grid = np.stack(np.meshgrid(*tried, indexing="ij"), axis=-1).reshape(-1, len(tried))
    limits = grid[0], grid[-1]
    every = -(-len(target) // _THINNED)
    if len(tried) > 1 and every > 1:  # search the grid of two unknowns on a subset of many samples
        thin = np.zeros(len(target), bool)
        thin[::every] = True
        few = part.of(thin)
        first = separable_least_squares(
            lambda nonlinear: few.columns(velocity[thin], nonlinear), target[thin], grid, lower=problem.lower
        )
        grid = np.array([one.nonlinear for one in (first, *first.others)])
    return separable_least_squares(
        lambda nonlinear: part.columns(velocity, nonlinear),
        target,
        grid,
        weights=weights,
        loss=settings.loss,
        lower=problem.lower,
        limits=limits,
    )


def _starts(problem: Problem, samples: Samples, settings: FitSettings, kept: NDArray[np.bool_]) -> list[Array]:
    """Return the start values of each nonlinear parameter, increasing."""
    found, count = [], _STARTS if len(problem.model.nonlinear_names) == 1 else _FEWER
    if problem.model.scaled:
        top = float(np.abs(samples.velocity[kept]).max())
        found.append(top * np.geomspace(_SLOWEST, settings.slowest_fall, count))
    if problem.model.presliding and samples.travel is not None:
        found.append(samples.travel.range * np.geomspace(_SHORTEST, _LONGEST, count))
    return found


def _without_bias(search: _Search) -> tuple[Array, NDArray[np.bool_], Corrected]:
    """Correct a fit for velocity noise.

    Returns the parameters found, a mask of the parameters that are at no bound, and the corrected parameters.
    """
    problem, samples, kept, found = search.problem, search.samples, search.kept, search.found
    linear = found.linear
    first = np.concatenate((linear.coefficients, found.nonlinear))
    free = np.ones(len(first), bool)
    if problem.lower is not None:
        free[: len(problem.lower)] = linear.coefficients > problem.lower
    for number, tried in enumerate(_starts(problem, samples, search.settings, kept)):
        within = tried[0] * _AT_LIMIT < found.nonlinear[number] < tried[-1] / _AT_LIMIT
        free[len(linear.coefficients) + number] = within
    noise = 0.0
    if search.settings.correct_bias:
        # Limit the noise by the size of the residuals: fast motion looks like noise, but leaves no residuals.
        room = _ROOM * norm(linear.residual)
        steepness = norm(problem.model.slope(problem.named(first), samples.velocity[kept]))
        noise = samples.noise if samples.noise * steepness <= room else room / steepness
    left = np.zeros(len(kept))
    left[kept] = linear.weights * linear.residual
    return first, free, corrected(problem, samples, first, free, noise, search.band, kept, left)


# --- evaluation -------------------------------------------------------------------------------------------------------


def _evaluated(search: _Search) -> FrictionFit:
    """Return the result of a fit with its uncertainty; its intervals cover other minima of about the same quality."""
    problem, samples, settings = search.problem, search.samples, search.settings
    band, kept, found, model = search.band, search.kept, search.found, search.problem.model
    first, free, better = _without_bias(search)
    velocity = samples.velocity[kept]
    residual = samples.friction[kept] - problem.of(kept).evaluate(velocity, better.place)
    gradients = problem.natural_jacobian(better.place)
    searched, degrees = _uncertainty(search, free, better, residual, gradients)
    covariance = gradients @ searched @ gradients.T
    values = problem.named(better.place)
    tried = _starts(problem, samples, settings, kept)
    limits = {name: (float(one[0]), float(one[-1])) for name, one in zip(model.nonlinear_names, tried, strict=True)}
    saturated = samples.inner & (np.zeros(len(kept), bool) if samples.saturated is None else samples.saturated)
    moving = samples.faster_than(band)
    excluded = {
        "near zero velocity": int((samples.inner & ~saturated & ~moving).sum()),
        "edges": int((~samples.inner).sum()),
        "turning back": int((moving & ~kept).sum()),
        "saturated": int(saturated.sum()),
    }
    slow = float(np.mean(np.abs(velocity) < values[SCALE])) if model.scaled else float("nan")
    slope, stated = model.slope(values, velocity), not samples.noise_is_guessed
    fit = FrictionFit(
        model=model,
        samples=samples,
        settings=settings,
        names=problem.names,
        values=values,
        uncorrected=problem.named(first),
        standard_errors=dict(zip(problem.names, map(float, np.sqrt(np.diag(covariance))), strict=True)),
        intervals=_intervals(
            problem, better.place, gradients, searched, values, quantile(settings.confidence, degrees), limits
        ),
        offset_deviations=tuple(map(float, problem.offset_deviations(better.place))),
        covariance=covariance,
        condition=least_squares(found.jacobian, found.linear.residual, weights=found.linear.weights).condition,
        dead_band=band,
        velocity_noise=samples.noise,
        kept=kept,
        excluded={
            reason: count for reason, count in excluded.items() if count or reason in {"near zero velocity", "edges"}
        },
        residual=residual,
        diagnostics=diagnose(residual, velocity, samples.friction[kept], slope, slow, stated),
        doubts=(),
    )
    seen = doubts_about(fit, found.converged and better.settled, limits)
    fit = replace(fit, doubts=(*seen, *changes(fit, found.jacobian, found.linear.weights)))
    # Another minimum fits about as well as the best by a likelihood ratio.
    count, rivals = fit.diagnostics.effective_samples, []
    for other in found.others:
        excess = other.linear.cost / max(found.linear.cost, 1e-300) - 1.0
        if excess * count <= float(quantile(settings.confidence, np.array([count]))[0]) ** 2:
            rivals.append(_evaluated(replace(search, found=replace(other, others=()))))
    return _spanning(fit, rivals) if rivals else fit


def _spanning(fit: FrictionFit, rivals: Sequence[FrictionFit]) -> FrictionFit:
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


def _uncertainty(
    search: _Search, free: NDArray[np.bool_], better: Corrected, left: Array, gradients: Array
) -> tuple[Array, Array]:
    """Return the covariance (r, r) of the searched parameters, and the degrees of freedom (p,) of each named one.

    `left` (k,) are the residuals after the bias correction, `gradients` (p, r) the derivatives of the named parameters.
    """
    problem, kept, found = search.problem, search.kept, search.found
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
        matrix / np.outer(size, size) * loss_slope(residual, search.settings.loss)
    ) / np.outer(size, size)
    weighted = jacobian * found.linear.weights[:, None]
    influence = np.zeros((len(kept), len(better.place)))
    influence[kept] = np.einsum("ij,kj->ik", weighted, inverse)
    error = np.zeros(len(kept))
    error[kept] = residual
    memory, rounds = memory_of(residual), search.samples.rounds
    by_name = np.einsum("ij,kj->ik", influence, gradients)
    return (
        covariance_of_sum(folded(influence * error[:, None], rounds), memory),
        degrees_of_freedom(np.sqrt(folded(by_name**2, rounds)), memory),
    )


def _intervals(
    problem: Problem,
    place: Array,
    gradients: Array,
    covariance: Array,
    values: dict[str, float],
    reach: Array,
    limits: dict[str, tuple[float, float]],
) -> dict[str, tuple[float, float]]:
    """Return the interval of each parameter: symmetric, unless one of them reaches below a bound."""
    errors = np.sqrt(np.diag(gradients @ covariance @ gradients.T))
    found = {
        name: (values[name] - float(half * error), values[name] + float(half * error))
        for name, half, error in zip(problem.names, reach, errors, strict=True)
    }
    if problem.lower is not None:
        lower = np.full(len(place), -np.inf)
        lower[: len(problem.lower)] = problem.lower
        if bool(np.any(place - float(reach.max()) * np.sqrt(np.diag(covariance)) < lower)):
            for name, gradient, half in zip(problem.names, gradients, reach, strict=True):
                found[name] = interval_with_bounds(place, covariance, lower, gradient, float(half))
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


# --- saturated samples ------------------------------------------------------------------------------------------------


def without_saturated(samples: Samples, effort: Array, limits: Saturation, settings: FitSettings) -> Samples:
    """Mark samples at a limit of the sensor, or expected there, as saturated.

    Parameters
    ----------
    samples : Samples
        Samples of one recording.
    effort : (n,) float array
        Measured torque or force.
    limits : Saturation
        Limits of `effort`.
    settings : FitSettings

    Raises
    ------
    ConfigurationError
        If too few samples remain in either direction.
    """
    at_limit = (effort <= limits.low) | (effort >= limits.high)
    other = samples.friction + effort  # inertia and load, subtracted with their sign
    message = (
        f"the torque or force is clipped at {limits.values} in {100.0 * limits.share:.0f} % of the samples, and beyond "
        "the noise around that limit too few are left in one direction: use a sensor of a larger range, or move more "
        "slowly"
    )
    found = replace(samples, saturated=at_limit)
    for _ in range(_ROUNDS):
        try:
            law = fit_law(found, _MODEL, replace(settings, fit_inertia=False, loss="huber"))
        except ConfigurationError as reason:
            raise ConfigurationError(message) from reason
        error = law.error(samples)
        noise = _NOISE * spread(error[found.faster_than(0.0)])
        expected = other - (samples.friction - error)
        near = at_limit | (expected <= limits.low + noise) | (expected >= limits.high - noise)
        found, last = replace(samples, saturated=near), found
        if not found.shows_law or int((found.inner & ~near).sum()) < LEAST:
            raise ConfigurationError(message)
        if last.saturated is not None and np.array_equal(near, last.saturated):
            break
    return found
