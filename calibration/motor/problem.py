"""Least squares problem of a motor: drive, friction and output torque."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.regression import times
from calibration.motor.estimate import Estimated, estimated, multiple_correlation

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MotorProblem:
    """Data of a motor identification.

    Attributes
    ----------
    drive, velocity, branch : (n,) float array
        Drive signal, velocity, and direction of the motion (1 or -1).
    gross : (n,) float array
        Output torque including inertia [N m] or [N].
    friction : (n,) float array or None
        Friction from the file; None if it is modelled as a hysteresis of constant width.
    spread, change : tuple of (n,) float array
        As in `calibration.motor.estimate.estimated`.
    """

    drive: Array
    velocity: Array
    branch: Array
    gross: Array
    friction: Array | None
    spread: tuple[Array, ...] = ()
    change: tuple[Array, ...] = ()

    def of(self, part: NDArray[np.bool_]) -> MotorProblem:
        """Return the problem for selected samples."""
        return MotorProblem(
            self.drive[part],
            self.velocity[part],
            self.branch[part],
            self.gross[part],
            None if self.friction is None else self.friction[part],
            tuple(one[part] for one in self.spread),
            tuple(one[part] for one in self.change),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return ("gain", "offset", "hysteresis") if self.friction is None else ("gain", "offset")

    @property
    def columns(self) -> Array:
        """Columns of gain and offset, and of the hysteresis if the friction is unknown."""
        own = [self.drive, np.ones_like(self.drive)]
        return np.column_stack([*own, -self.branch] if self.friction is None else own)

    @property
    def target(self) -> Array:
        """Dependent variable: output torque plus the friction from the file."""
        return self.gross if self.friction is None else self.gross + self.friction

    @property
    def correlation(self) -> float:
        """Multiple correlation of the drive with motion and friction, 0 to 1."""
        others = (self.branch, self.velocity) if self.friction is None else (self.friction, *self.change)
        return multiple_correlation(self.drive, np.column_stack(others))

    def solved(self) -> Estimated:
        """Return the coefficients of the columns."""
        return estimated(self.columns, self.target, self.spread, self.change)

    def net(self, found: Estimated) -> Array:
        """Return the torque of the motor, with the friction corrected for its estimated change."""
        return self.target - times(np.column_stack(self.change), found.changes) if self.change else self.target
