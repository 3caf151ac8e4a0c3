"""The motion that was commanded, as instrumental variables.

A controller makes forces out of the noise of the positions that it sees. Velocity and acceleration have that noise too,
so least squares finds a wrong delay, a wrong viscosity and too small a mass. The reference of the controller has no
noise: what is left of the forces must have nothing to do with it (Soederstroem and Stoica 1989, section 8; for robots
Janot et al. 2014). Nor with its jerk, as an error of the delay leaves part of the rate of the force: the instruments
are made orthogonal to that rate, so that what they find is the same for all small errors of the delay, and its interval
counts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.data.signals import smooth

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Commanded:
    """A commanded motion, as smooth as what was measured.

    Attributes
    ----------
    velocity, acceleration, jerk : array, (n,)
        Of the reference.
    force_rate : array, (n,)
        Of what opposes the motion: the derivative of the measured force, with its sign changed.
    """

    velocity: Array
    acceleration: Array
    jerk: Array
    force_rate: Array

    @classmethod
    def of_reference(cls, time: Array, reference: Array, effort: Array, cutoff: float) -> Commanded:
        """Return the motion of a reference, with what was measured of the force along with it."""
        velocity, acceleration = (smooth(time, reference, cutoff, order) for order in (1, 2))
        return cls(velocity, acceleration, smooth(time, acceleration, cutoff, 1), -smooth(time, effort, cutoff, 1))

    def of(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> Commanded:
        """Return it at some of the samples."""
        return Commanded(*(column[chosen] for column in self.columns))

    @property
    def columns(self) -> tuple[Array, Array, Array, Array]:
        """All of it, column by column."""
        return self.velocity, self.acceleration, self.jerk, self.force_rate

    @staticmethod
    def joined(parts: Sequence[Commanded]) -> Commanded:
        """Return the motions of several recordings as one."""
        return Commanded(*(np.concatenate(columns) for columns in zip(*(one.columns for one in parts), strict=True)))

    def without_delay(self, instruments: Array, weights: Array) -> Array:
        """Return instruments (n, r) that an error of the delay has no part in."""
        weighted = self.force_rate * weights
        power = float(weighted @ self.jerk)
        return instruments if power == 0.0 else instruments - np.outer(self.jerk, weighted @ instruments / power)
