"""Parametrization of a friction fit: searched parameters, columns, derivatives and bounds.

Errors in variables: correction of a fit for velocity noise (`corrected`).

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

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.regression import norm, products, stacked, times
from calibration.friction.model import HARMONICS, INERTIA, PRESLIDING, FrictionModel, Motion
from calibration.friction.samples import Commanded, Samples

Array = NDArray[np.float64]

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
        Replaces the acceleration in the estimating equations (`calibration.friction.problem`).
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
        return replace(
            self,
            motion=self.motion.part(chosen),
            acceleration=None if self.acceleration is None else self.acceleration[chosen],
            instrument=None if self.instrument is None else self.instrument[chosen],
            commanded=None if self.commanded is None else self.commanded.of(chosen),
        )

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
    problem, residual, measured = problem.of(usable), residual[usable], samples.velocity[usable]
    weights = np.ones(len(measured)) if samples.weights is None else samples.weights[usable]
    # the expected derivative of each sample (n, r), and the sum of its products with the law (r,)
    instruments, seen = np.zeros((len(place), len(measured))).T, np.zeros(len(place))
    for node, weight in zip(_NODES if noise else (0.0,), _WEIGHTS if noise else (1.0,), strict=True):
        velocity = measured + node * noise
        counted = weight * weights * (np.abs(velocity) > band)
        law, jacobian = problem.expanded(velocity, place)
        if problem.acceleration is not None and problem.instrument is not None:
            jacobian = jacobian.copy(order="K")
            jacobian[:, problem.inertial] = problem.instrument
        part = jacobian * counted[:, None]
        instruments += part
        seen += times(part.T, law)
    if problem.instrument is not None:
        seen[problem.inertial] += float(np.einsum("i,i->", problem.instrument, residual))
    return _searched(problem, measured, place, free, instruments, seen, _SETTLED * norm(samples.friction))


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
    # the derivatives at the commanded motion, made insensitive to an error of the delay
    acceleration = None if problem.acceleration is None else problem.commanded.acceleration
    derivatives = replace(problem, acceleration=acceleration).expanded(problem.commanded.velocity, place)[1]
    weighted = problem.commanded.force_rate * weights
    jerk, power = problem.commanded.jerk, float(weighted @ problem.commanded.jerk)
    instruments = derivatives if power == 0.0 else derivatives - np.outer(jerk, weighted @ derivatives / power)
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
            return Corrected(found, matrix, True)
    return Corrected(place, products(instruments, problem.expanded(velocity, place)[1]), False)
