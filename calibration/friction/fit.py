"""Fit of a friction model to a recording of a joint."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.regression import robust_least_squares
from calibration.fitting.separable import SeparableFit, separable_least_squares
from calibration.friction.evaluation import evaluate_fit, named, starts, without_bias
from calibration.friction.model import FrictionModel, named_model
from calibration.friction.problem import Problem
from calibration.friction.result import FrictionFit, FrictionLaw
from calibration.friction.samples import LEAST, Samples
from calibration.friction.settings import FitSettings
from haptics.errors import ConfigurationError

_BAND, _NOISE_BAND = 0.01, 4.0
"""Speed of excluded samples: fraction of the top speed, and standard deviations of the noise."""
_THINNED = 10_000
"""Maximum number of samples for the search of a grid of start values."""
_DEFAULTS = FitSettings()
_Search = tuple[Problem, Samples, FitSettings, float, NDArray[np.bool_], SeparableFit]


def fit_friction(samples: Samples, model: FrictionModel | str, settings: FitSettings = _DEFAULTS) -> FrictionFit:
    """Fit the parameters of a friction model to a recording.

    Nonlinear parameters such as the Stribeck velocity are found by variable projection, all others are linear (Guedelha
    et al. 2018, (20) to (22), (29)). Then the bias due to velocity noise is corrected (`calibration.friction.noise`).
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
    return evaluate_fit(*_searched(samples, named_model(model), settings))


def fit_law(samples: Samples, model: FrictionModel | str, settings: FitSettings = _DEFAULTS) -> FrictionLaw:
    """Fit a friction model as `fit_friction`, without its uncertainty."""
    search = _searched(samples, named_model(model), settings)
    _, _, better = without_bias(*search)
    return FrictionLaw(search[0].model, named(search[0], better.place))


def _searched(samples: Samples, model: FrictionModel, settings: FitSettings) -> _Search:
    """Return the least squares fit with its problem and data."""
    samples.require_law()
    if settings.fit_inertia and samples.acceleration is None:
        raise ConfigurationError("fit_inertia needs the acceleration of every sample")
    band = _dead_band(samples, settings)
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
    return problem, samples, settings, band, kept, found


def _dead_band(samples: Samples, settings: FitSettings) -> float:
    if settings.dead_band is not None:
        return float(settings.dead_band)
    return max(_BAND * float(np.abs(samples.velocity).max()), _NOISE_BAND * samples.noise)


def _solved(problem: Problem, samples: Samples, settings: FitSettings, kept: NDArray[np.bool_]) -> SeparableFit:
    """Return the least squares fit to the kept samples."""
    part = problem.of(kept)
    velocity, target = samples.velocity[kept], samples.friction[kept]
    weights = None if samples.weights is None else samples.weights[kept]
    if not problem.model.nonlinear_names:
        matrix = part.columns(velocity, np.empty(0))
        linear = robust_least_squares(matrix, target, weights=weights, loss=settings.loss, lower=problem.lower)
        return SeparableFit(np.empty(0), linear, matrix, True)
    tried = starts(problem, samples, settings, kept)
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
