"""Parametrization of a friction fit: searched parameters, columns, derivatives and bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.normal_equations import stacked
from calibration.fitting.regression import times
from calibration.friction.commanded import Commanded
from calibration.friction.model import HARMONICS, INERTIA, FrictionModel
from calibration.friction.motion import Motion

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
        Replaces the acceleration in the estimating equations (`calibration.friction.noise`).
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
        columns = self.model.columns(self.motion.at_velocity(velocity), scale, distance)
        if self.model.plateau or self.bounded:
            columns = np.einsum("ij,jk->ik", columns, self.model.reduction(scale, self.bounded))
        more = [*self._deviation_columns(len(velocity)), *([] if self.acceleration is None else [self.acceleration])]
        return stacked((*columns.T, *more)) if more else columns

    def _deviation_columns(self, samples: int) -> list[Array]:
        if not self.deviations:
            return []
        recording = np.zeros(samples, int) if self.motion.recording is None else self.motion.recording
        last = (recording == self.deviations).astype(float)
        return [(recording == number) - last for number in range(self.deviations)]

    def evaluate(self, velocity: Array, place: Array) -> Array:
        """Return the force (n,) that the model predicts at given velocities of the motion."""
        linear, nonlinear = self.split(place)
        return times(self.columns(velocity, nonlinear), linear)

    def jacobian(self, velocity: Array, place: Array) -> Array:
        """Return the derivatives of `evaluate` with respect to `place`."""
        return self.expanded(velocity, place)[1]

    def expanded(self, velocity: Array, place: Array) -> tuple[Array, Array]:
        """Return `evaluate` (n,) and its derivatives (n, r) together."""
        linear, nonlinear = self.split(place)
        columns = self.columns(velocity, nonlinear)
        values = times(columns, linear)
        if not len(nonlinear):
            return values, columns
        return values, stacked((*columns.T, *self._nonlinear_derivatives(velocity, linear, nonlinear)))

    def _nonlinear_derivatives(self, velocity: Array, linear: Array, nonlinear: Array) -> list[Array]:
        model, found = self.model, []
        scale, distance = self._scale_and_distance(nonlinear)
        if model.scaled:
            matrix = model.reduction(scale, self.bounded)
            searched = linear[: matrix.shape[1]]
            derivative = model.scale_derivative(matrix @ searched, velocity, scale)
            if model.plateau:  # the static level changes in proportion to the Stribeck velocity
                change = model.reduction(2.0 * scale, self.bounded) - matrix
                derivative = derivative + times(model.columns(velocity, scale), change @ searched) / scale
            found.append(derivative)
        if model.presliding:
            step = _DIFFERENCE * distance
            states = [self.motion.presliding(distance + side * step) for side in (1.0, -1.0)]
            part = linear[self.model.linear_names.index("presliding")]
            found.append(part * (states[0] - states[1]) / (2.0 * step))
        return found

    def instrumental(self, jacobian: Array) -> Array:
        """Return the derivatives with the instrument in place of the acceleration."""
        if self.acceleration is not None and self.instrument is not None:
            jacobian = jacobian.copy(order="K")
            jacobian[:, self.inertial] = self.instrument
        return jacobian

    def commanded_instruments(self, commanded: Commanded, place: Array, weights: Array) -> Array:
        """Return the derivatives (n, r) at the commanded motion, made insensitive to an error of the delay."""
        acceleration = None if self.acceleration is None else commanded.acceleration
        derivatives = replace(self, acceleration=acceleration).jacobian(commanded.velocity, place)
        return commanded.without_delay(derivatives, weights)

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

    def within_bounds(self, place: Array) -> Array:
        """Return the parameters clipped to their bounds."""
        if self.lower is None:
            return place
        return np.concatenate((np.maximum(place[: len(self.lower)], self.lower), place[len(self.lower) :]))

    def natural(self, place: Array) -> Array:
        """Return the parameters in the order of `names`."""
        linear, nonlinear = self.split(place)
        matrix = self.model.reduction(self._scale_and_distance(nonlinear)[0], self.bounded)
        inertia = linear[len(linear) - (self.acceleration is not None) :]
        return np.concatenate((matrix @ linear[: matrix.shape[1]], inertia, nonlinear))

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
