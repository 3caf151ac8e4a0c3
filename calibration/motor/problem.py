"""The least squares problem of a motor: its drive, its friction and the torque that came out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.regression import times
from calibration.motor.estimate import Estimated, estimated, multiple_correlation

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MotorProblem:
    """What a motor is found from.

    Attributes
    ----------
    drive, velocity, branch : (n,) float array
        What the motor was told, the velocity, and the way of the motion (1 or -1).
    gross : (n,) float array
        Torque that came out, inertia included [N m] or [N].
    friction : (n,) float array or None
        Friction of the file; None where it is taken for a hysteresis of constant width.
    spread, change : tuple of (n,) float array
        As for `calibration.motor.estimate.estimated`.
    """

    drive: Array
    velocity: Array
    branch: Array
    gross: Array
    friction: Array | None
    spread: tuple[Array, ...] = ()
    change: tuple[Array, ...] = ()

    def of(self, part: NDArray[np.bool_]) -> MotorProblem:
        """Return the problem of some samples."""
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
        """What the columns stand for."""
        return ("gain", "offset", "hysteresis") if self.friction is None else ("gain", "offset")

    @property
    def columns(self) -> Array:
        """The columns of gain and offset, and of the hysteresis where the friction is not known."""
        own = [self.drive, np.ones_like(self.drive)]
        return np.column_stack([*own, -self.branch] if self.friction is None else own)

    @property
    def target(self) -> Array:
        """What the columns shall add up to: torque that came out, with the friction of the file added."""
        return self.gross if self.friction is None else self.gross + self.friction

    @property
    def correlation(self) -> float:
        """Multiple correlation of motion and friction with the drive, 0 to 1."""
        others = (self.branch, self.velocity) if self.friction is None else (self.friction, *self.change)
        return multiple_correlation(self.drive, np.column_stack(others))

    def solved(self) -> Estimated:
        """Return the coefficients of the columns."""
        return estimated(self.columns, self.target, self.spread, self.change)

    def net(self, found: Estimated) -> Array:
        """Return the torque of the motor itself, with the friction as it was found to have changed."""
        return self.target - times(np.column_stack(self.change), found.changes) if self.change else self.target
