"""Fit of a friction model to a recording of a joint.

The least squares fit is followed by bias correction, intervals, diagnostics and doubts.

Samples at a limit of the sensor are excluded from fits (`without_saturated`). A clipped torque is too small, and fits
that ignore it underestimate friction. If only the clipped samples were excluded, samples with small noise would be
favoured. Therefore all samples are excluded at which the limit is expected within the noise, by a fit to the others.
This criterion does not depend on the noise of the sample itself.

Errors in variables: correction of a fit for velocity noise.

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
commanded motion (`calibration.friction.samples`), J is evaluated at the commanded motion z_i throughout, and only the
effect of noise on the law itself remains to be corrected:

    sum_i  J(z_i; f) (F(w_i; t) - E[F(w_i + n; f)] + F(w_i; f) - measured_i) = 0
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
from calibration.fitting.regression import (
    SeparableFit,
    least_squares,
    loss_slope,
    norm,
    products,
    robust_least_squares,
    separable_least_squares,
    spread,
    stacked,
    times,
)
from calibration.friction.model import (
    DISTANCE,
    HARMONICS,
    INERTIA,
    PRESLIDING,
    SCALE,
    FrictionModel,
    Motion,
    named_model,
    select,
)
from calibration.friction.result import (
    FitSettings,
    FrictionFit,
    FrictionLaw,
    changes,
    diagnose,
    doubts_about,
    make_doubt,
)
from calibration.friction.samples import LEAST, Commanded, Samples
from haptics.errors import ConfigurationError

Array = NDArray[np.float64]
Interval = tuple[float, float]

_DIFFERENCE = 1e-5


@dataclass(frozen=True)
class Problem:
    """Parametrization with the searched parameters in one array `place`.

    They are the free linear parameters of the model (`FrictionModel.reduction`), the deviations of the offsets of all
    recordings but the last from their mean, the inertia, and the nonlinear parameters.

    Attributes
    ----------
    model : FrictionModel
    bounded : bool
        Whether levels and viscosities are at least 0, static levels at least the Coulomb levels, and Coulomb levels at
        least the presliding part.
    motion : Motion
        Motion of the samples. Methods evaluate it at other velocities.
    acceleration : array, (n,), optional
        Acceleration of the samples, if the inertia is estimated.
    instrument : array, (n,), optional
        Replaces the acceleration in the estimating equations (`calibration.friction.fit`).
    commanded : Commanded, optional
        Replaces velocity and acceleration in the estimating equations.
    deviations : int
        Number of offsets that deviate freely from their mean: one less than the number of recordings, or 0.
    """

    model: FrictionModel
    bounded: bool
    motion: Motion
    acceleration: Array | None = None
    instrument: Array | None = None
    commanded: Commanded | None = None
    deviations: int = 0

    def of(self, chosen: NDArray[np.bool_]) -> Problem:
        """Return the problem for selected samples."""
        names = ("motion", "acceleration", "instrument", "commanded")
        return replace(self, **{name: select(getattr(self, name), chosen) for name in names})

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters of the model and the inertia, for the report of results."""
        inertia = () if self.acceleration is None else (INERTIA,)
        return (*self.model.linear_names, *inertia, *self.model.nonlinear_names)

    @property
    def lower(self) -> Array | None:
        """Lower bounds of the searched linear parameters, 0 or minus infinity; None without bounds."""
        if not self.bounded:
            return None
        names = [name for name in self.model.linear_names if not (self.model.plateau and name == "static_forward")]
        least = [-np.inf if name in ("offset", *HARMONICS) else 0.0 for name in names]
        return np.array(least + [-np.inf] * self.deviations + [0.0] * (self.acceleration is not None))

    def columns(self, velocity: Array, nonlinear: Array) -> Array:
        """Return the columns (n, r) of the searched linear parameters, at given velocities of the motion."""
        scale, distance = self._scale_and_distance(nonlinear)
        columns = self.model.columns(replace(self.motion, velocity=velocity), scale, distance)
        if self.model.plateau or self.bounded:
            columns = np.einsum("ij,jk->ik", columns, self.model.reduction(scale, self.bounded))
        more = []
        if self.deviations:
            recording = np.zeros(len(velocity), int) if self.motion.recording is None else self.motion.recording
            last = (recording == self.deviations).astype(float)
            more += [(recording == number) - last for number in range(self.deviations)]
        if self.acceleration is not None:
            more.append(self.acceleration)
        return stacked((*columns.T, *more)) if more else columns

    def evaluate(self, velocity: Array, place: Array) -> Array:
        """Return the force (n,) that the model predicts at given velocities of the motion."""
        linear, nonlinear = self.split(place)
        return times(self.columns(velocity, nonlinear), linear)

    def expanded(self, velocity: Array, place: Array) -> tuple[Array, Array]:
        """Return `evaluate` (n,) and its derivatives (n, r) together."""
        linear, nonlinear = self.split(place)
        columns = self.columns(velocity, nonlinear)
        values = times(columns, linear)
        if not len(nonlinear):
            return values, columns
        model, derivatives = self.model, []
        scale, distance = self._scale_and_distance(nonlinear)
        if model.scaled:
            matrix = model.reduction(scale, self.bounded)
            searched = linear[: matrix.shape[1]]
            derivative = model.scale_derivative(matrix @ searched, velocity, scale)
            if model.plateau:  # the static level changes in proportion to the Stribeck velocity
                change = model.reduction(2.0 * scale, self.bounded) - matrix
                derivative = derivative + times(model.columns(velocity, scale), change @ searched) / scale
            derivatives.append(derivative)
        if model.presliding:
            step = _DIFFERENCE * distance
            states = [self.motion.presliding(distance + side * step) for side in (1.0, -1.0)]
            part = linear[model.linear_names.index(PRESLIDING)]
            derivatives.append(part * (states[0] - states[1]) / (2.0 * step))
        return values, stacked((*columns.T, *derivatives))

    @property
    def inertial(self) -> int:
        """Index of the inertia in `place`."""
        return -1 - len(self.model.nonlinear_names)

    def split(self, place: Array) -> tuple[Array, Array]:
        """Return the linear and the nonlinear parameters."""
        count = len(place) - len(self.model.nonlinear_names)
        return place[:count], place[count:]

    def _scale_and_distance(self, nonlinear: Array) -> tuple[float, float]:
        scale = float(nonlinear[0]) if self.model.scaled else 1.0
        return scale, float(nonlinear[-1]) if self.model.presliding else 1.0

    def natural(self, place: Array) -> Array:
        """Return the parameters in the order of `names`."""
        linear, nonlinear = self.split(place)
        matrix = self.model.reduction(self._scale_and_distance(nonlinear)[0], self.bounded)
        inertia = linear[len(linear) - (self.acceleration is not None) :]
        return np.concatenate((matrix @ linear[: matrix.shape[1]], inertia, nonlinear))

    def named(self, place: Array) -> dict[str, float]:
        """Return the parameters by name."""
        return dict(zip(self.names, map(float, self.natural(place)), strict=True))

    def natural_jacobian(self, place: Array) -> Array:
        """Return the derivatives of `natural` with respect to `place`."""
        steps = _DIFFERENCE * np.maximum(np.abs(place), _DIFFERENCE)
        sides = [(self.natural(place + step), self.natural(place - step)) for step in np.diag(steps)]
        return np.column_stack(
            [(plus - minus) / (2.0 * step) for (plus, minus), step in zip(sides, steps, strict=True)]
        )

    def offset_deviations(self, place: Array) -> Array:
        """Return the deviation of the offset of each recording from their mean."""
        if not self.deviations:
            return np.zeros(1)
        first = self.model.reduction(1.0, self.bounded).shape[1]
        others = place[first : first + self.deviations]
        return np.append(others, -others.sum())


# --- velocity noise ---------------------------------------------------------------------------------------------------

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


def _corrected(search: _Search, place: Array, free: NDArray[np.bool_], noise: float, residual: Array) -> Corrected:
    """Correct the parameters of a fit for velocity noise.

    Parameters
    ----------
    search : _Search
        The fit.
    place : array, (r,)
        Its parameters.
    free : array of bool, (r,)
        Parameters that may change; the others are at a bound.
    noise : float
        Standard deviation of the velocity error.
    residual : array, (n,)
        Weighted residuals of the fit; 0 for excluded samples.
    """
    commanded = search.problem.commanded is not None
    equations = (_equations_by_command if commanded else _equations)(search, place, noise, residual)
    problem, velocity, instruments, seen = equations
    # search for the law that has the products `seen` (r,) with the instruments (n, r)
    found, smallest = place, _SETTLED * norm(search.samples.friction)
    by_command = instruments if commanded else None
    for _ in range(_STEPS):
        law, jacobian = problem.expanded(velocity, found)
        matrix = products(instruments, jacobian)
        step = np.zeros_like(place)
        part, right = matrix[np.ix_(free, free)], (seen - times(instruments.T, law))[free]
        scale = np.maximum(np.abs(part).max(axis=0), 1e-300)
        step[free] = np.linalg.lstsq(part / scale, right, rcond=None)[0] / scale
        found = found + step
        start, now = problem.split(place)[1], problem.split(found)[1]
        if not bool(np.all((0.2 * start < now) & (now < 5.0 * start))):
            break
        if np.all(np.abs(step[free]) * np.sqrt(np.abs(np.diag(matrix)))[free] <= smallest):
            if problem.lower is not None:
                count = len(problem.lower)
                found = np.concatenate((np.maximum(found[:count], problem.lower), found[count:]))
            return Corrected(found, matrix, True, by_command)
    return Corrected(place, products(instruments, problem.expanded(velocity, place)[1]), False, by_command)


_Equations = tuple[Problem, Array, Array, Array]
"""Problem and velocity of the used samples, instruments (n, r), and their products with the law (r,)."""


def _equations(search: _Search, place: Array, noise: float, residual: Array) -> _Equations:
    """Return the estimating equations for the law as seen through the noise."""
    samples = search.samples
    left_out = ~search.kept & (np.abs(samples.velocity) > search.band)  # for other reasons than their speed
    usable = samples.inner & ~left_out
    problem, measured = search.problem.of(usable), samples.velocity[usable]
    # the expected derivative of each sample (n, r), and the sum of its products with the law (r,)
    instruments, seen = np.zeros((len(place), len(measured))).T, np.zeros(len(place))
    for node, weight in zip(_NODES if noise else (0.0,), _WEIGHTS if noise else (1.0,), strict=True):
        velocity = measured + node * noise
        counted = weight * (np.abs(velocity) > search.band)
        law, jacobian = problem.expanded(velocity, place)
        if problem.acceleration is not None and problem.instrument is not None:
            jacobian = jacobian.copy(order="K")
            jacobian[:, problem.inertial] = problem.instrument
        part = jacobian * counted[:, None]
        instruments += part
        seen += times(part.T, law)
    if problem.instrument is not None:
        seen[problem.inertial] += float(np.einsum("i,i->", problem.instrument, residual[usable]))
    return problem, measured, instruments, seen


def _equations_by_command(search: _Search, place: Array, noise: float, residual: Array) -> _Equations:
    """Return the equations for residuals that are uncorrelated with the commanded motion."""
    problem, velocity = search.problem.of(search.kept), search.samples.velocity[search.kept]
    assert problem.commanded is not None
    # the derivatives at the commanded motion, made insensitive to an error of the delay
    acceleration = None if problem.acceleration is None else problem.commanded.acceleration
    derivatives = replace(problem, acceleration=acceleration).expanded(problem.commanded.velocity, place)[1]
    jerk, rate = problem.commanded.jerk, problem.commanded.force_rate
    power = float(rate @ jerk)
    instruments = derivatives if power == 0.0 else derivatives - np.outer(jerk, rate @ derivatives / power)
    mean = np.zeros(len(velocity))
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        mean += weight * problem.evaluate(velocity + node * noise, place)
    return problem, velocity, instruments, times(instruments.T, mean) + times(instruments.T, residual[search.kept])


# --- fit --------------------------------------------------------------------------------------------------------------

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
    """Least squares fit with its problem and data: samples `kept`, which are faster than `band`.

    `tried` has the start values of each nonlinear parameter, increasing.
    """

    problem: Problem
    samples: Samples
    settings: FitSettings
    band: float
    kept: NDArray[np.bool_]
    tried: list[Array]
    found: SeparableFit


def fit_friction(samples: Samples, model: FrictionModel | str, settings: FitSettings = _DEFAULTS) -> FrictionFit:
    """Fit the parameters of a friction model to a recording.

    Nonlinear parameters such as the Stribeck velocity are found by variable projection, all others are linear (Guedelha
    et al. 2018, (20) to (22), (29)). Then the bias due to velocity noise is corrected (`calibration.friction.fit`).
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
    deviations = int(samples.recording.max()) if apart and samples.recording is not None else 0
    problem = Problem(model, not settings.unbounded, samples.motion, *moved, samples.commanded, deviations)
    tried, count = [], _FEWER if model.scaled and model.presliding else _STARTS
    if model.scaled:
        top = float(np.abs(samples.velocity[kept]).max())
        tried.append(top * np.geomspace(_SLOWEST, settings.slowest_fall, count))
    if model.presliding and samples.travel is not None:
        tried.append(samples.travel.range * np.geomspace(_SHORTEST, _LONGEST, count))
    found = _solved(problem, samples, settings, kept, tried)
    if found.linear.rank < len(found.linear.coefficients):
        raise ConfigurationError(f"the motion cannot tell {', '.join(problem.names)} apart: move at more speeds")
    if problem.lower is not None and not found.linear.coefficients.any():
        raise ConfigurationError("every level is 0: the torque or force does not oppose the motion; check its sign")
    return _Search(problem, samples, settings, float(band), kept, tried, found)


def _solved(
    problem: Problem, samples: Samples, settings: FitSettings, kept: NDArray[np.bool_], tried: list[Array]
) -> SeparableFit:
    """Return the least squares fit to the kept samples."""
    part = problem.of(kept)
    velocity, target = samples.velocity[kept], samples.friction[kept]
    if not tried:
        matrix = part.columns(velocity, np.empty(0))
        linear = robust_least_squares(matrix, target, loss=settings.loss, lower=problem.lower)
        return SeparableFit(np.empty(0), linear, matrix, True)
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
        loss=settings.loss,
        lower=problem.lower,
        limits=limits,
    )


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
    for number, tried in enumerate(search.tried, len(linear.coefficients)):
        free[number] = tried[0] * _AT_LIMIT < first[number] < tried[-1] / _AT_LIMIT
    noise = 0.0
    if search.settings.correct_bias:
        # Limit the noise by the size of the residuals: fast motion looks like noise, but leaves no residuals.
        room = _ROOM * norm(linear.residual)
        steepness = norm(problem.model.slope(problem.named(first), samples.velocity[kept]))
        noise = samples.noise if samples.noise * steepness <= room else room / steepness
    left = np.zeros(len(kept))
    left[kept] = linear.weights * linear.residual
    return first, free, _corrected(search, first, free, noise, left)


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
    covariance, reach = gradients @ searched @ gradients.T, quantile(settings.confidence, degrees)
    values = problem.named(better.place)
    tried = zip(model.nonlinear_names, search.tried, strict=True)
    limits = {name: (float(one[0]), float(one[-1])) for name, one in tried}
    nowhere = np.zeros(len(kept), bool)
    saturated = samples.inner & (nowhere if samples.saturated is None else samples.saturated)
    gaps = samples.inner & ~saturated & (nowhere if samples.gaps is None else samples.gaps)
    moving = samples.faster_than(band)
    masks = {
        "near zero velocity": samples.inner & ~saturated & ~gaps & ~moving,
        "edges": ~samples.inner,
        "turning back": moving & ~kept,
        "saturated": saturated,
        "gaps": gaps,
    }
    always = {"near zero velocity", "edges"}
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
        intervals=_intervals(problem, better.place, gradients, searched, reach, limits),
        offset_deviations=tuple(map(float, problem.offset_deviations(better.place))),
        covariance=covariance,
        condition=least_squares(found.jacobian, found.linear.residual, weights=found.linear.weights).condition,
        dead_band=band,
        velocity_noise=samples.noise,
        kept=kept,
        excluded={reason: int(one.sum()) for reason, one in masks.items() if one.any() or reason in always},
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
    doubt = make_doubt("two-minima", words=words, found=found)
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
    problem: Problem, place: Array, gradients: Array, covariance: Array, reach: Array, limits: dict[str, Interval]
) -> dict[str, Interval]:
    """Return the interval of each parameter: symmetric, unless one of them reaches below a bound."""
    errors, values = np.sqrt(np.diag(gradients @ covariance @ gradients.T)), problem.named(place)
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
