"""A friction model as a fit sees it: columns, derivatives and names in one place."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.normal_equations import stacked
from calibration.fitting.regression import times
from calibration.friction.commanded import Commanded
from calibration.friction.model import INERTIA, SCALE, FrictionModel

Array = NDArray[np.float64]

_DIFFERENCE = 1e-5


@dataclass(frozen=True)
class Problem:
    """What a fit searches: the linear parameters that are free, then the Stribeck velocity (`place`, all in one array).

    Attributes
    ----------
    model : FrictionModel
    physical : bool
        Whether levels must not be negative nor static levels below Coulomb's.
    acceleration : array, (n,), optional
        Of the samples, where their inertia is to be found too.
    instrument : array, (n,), optional
        What takes the place of the acceleration in the estimating equations (`calibration.friction.noise`).
    commanded : Commanded, optional
        What takes the place of velocity and acceleration there.
    """

    model: FrictionModel
    physical: bool
    acceleration: Array | None = None
    instrument: Array | None = None
    commanded: Commanded | None = None

    def of(self, chosen: NDArray[np.bool_]) -> Problem:
        """Return the same for some of the samples."""
        acceleration = None if self.acceleration is None else self.acceleration[chosen]
        slow = None if self.instrument is None else self.instrument[chosen]
        commanded = None if self.commanded is None else self.commanded.of(chosen)
        return replace(self, acceleration=acceleration, instrument=slow, commanded=commanded)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters a person wants, with those that follow from others."""
        inertia = () if self.acceleration is None else (INERTIA,)
        return (*self.model.linear_names, *inertia, *((SCALE,) if self.model.scaled else ()))

    @property
    def lower(self) -> Array | None:
        """The least of each linear parameter searched, if there is one."""
        if not self.physical:
            return None
        names = [name for name in self.model.linear_names if not (self.model.plateau and name == "static_forward")]
        least = [-np.inf if name == "offset" else 0.0 for name in names]
        return np.array(least + [0.0] * (self.acceleration is not None))

    def columns(self, velocity: Array, scale: float) -> Array:
        """Return the columns (n, r) at velocities, one per sample."""
        columns = self.model.columns(velocity, scale)
        if self.model.plateau or self.physical:
            columns = np.einsum("ij,jk->ik", columns, self.model.reduction(scale, self.physical))
        return columns if self.acceleration is None else stacked((*columns.T, self.acceleration))

    def evaluate(self, velocity: Array, place: Array) -> Array:
        """Return what the samples would be at these velocities."""
        linear, scale = self.split(place)
        return times(self.columns(velocity, scale), linear)

    def jacobian(self, velocity: Array, place: Array) -> Array:
        """Return the derivatives of `evaluate` with regard to `place`."""
        return self.expanded(velocity, place)[1]

    def expanded(self, velocity: Array, place: Array) -> tuple[Array, Array]:
        """Return `evaluate` (n,) and its derivatives (n, r) together."""
        linear, scale = self.split(place)
        columns = self.columns(velocity, scale)
        values = times(columns, linear)
        if not self.model.scaled:
            return values, columns
        return values, stacked((*columns.T, self.scale_derivative(velocity, linear, scale)))

    def scale_derivative(self, velocity: Array, linear: Array, scale: float) -> Array:
        """Return the derivative (n,) of `evaluate` with regard to the Stribeck velocity."""
        matrix = self.model.reduction(scale, self.physical)
        searched = linear[: matrix.shape[1]]
        derivative = self.model.scale_derivative(matrix @ searched, velocity, scale)
        if not self.model.plateau:
            return derivative
        # the static levels change with it too, in proportion
        change = self.model.reduction(2.0 * scale, self.physical) - matrix
        return derivative + times(self.model.columns(velocity, scale), change @ searched) / scale

    def instrumental(self, jacobian: Array) -> Array:
        """Return what the residuals are multiplied with: the derivatives, but the instrument for the acceleration."""
        if self.acceleration is not None and self.instrument is not None:
            jacobian = jacobian.copy(order="K")
            jacobian[:, self.inertial] = self.instrument
        return jacobian

    def commanded_instruments(self, commanded: Commanded, place: Array, weights: Array) -> Array:
        """Return the derivatives (n, r) at the motion that was commanded, without what an error of the delay has."""
        acceleration = None if self.acceleration is None else commanded.acceleration
        derivatives = replace(self, acceleration=acceleration).jacobian(commanded.velocity, place)
        return commanded.without_delay(derivatives, weights)

    @property
    def inertial(self) -> int:
        """Place of the inertia among what is searched."""
        return -2 if self.model.scaled else -1

    def split(self, place: Array) -> tuple[Array, float]:
        """Return the linear parameters and the Stribeck velocity, 1 where there is none."""
        return (place[:-1], float(place[-1])) if self.model.scaled else (place, 1.0)

    def within_bounds(self, place: Array) -> Array:
        """Return parameters with those that lie beyond their bounds put there."""
        if self.lower is None:
            return place
        return np.concatenate((np.maximum(place[: len(self.lower)], self.lower), place[len(self.lower) :]))

    def natural(self, place: Array) -> Array:
        """Return the parameters by `names`."""
        linear, scale = self.split(place)
        matrix = self.model.reduction(scale, self.physical)
        rest = linear[matrix.shape[1] :]
        return np.concatenate((matrix @ linear[: matrix.shape[1]], rest, [scale] if self.model.scaled else []))

    def natural_jacobian(self, place: Array) -> Array:
        """Return the derivatives of `natural` with regard to `place`."""
        steps = _DIFFERENCE * np.maximum(np.abs(place), _DIFFERENCE)
        sides = [(self.natural(place + step), self.natural(place - step)) for step in np.diag(steps)]
        return np.column_stack(
            [(plus - minus) / (2.0 * step) for (plus, minus), step in zip(sides, steps, strict=True)]
        )
