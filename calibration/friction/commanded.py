"""Commanded motion as instrumental variables.

A controller converts the noise of its position measurement into forces. Velocity and acceleration contain the same
noise, so that least squares yields a biased delay and viscosity and underestimates the mass. The reference of the
controller is free of noise, and the residual forces must be uncorrelated with it (Soederstroem and Stoica 1989, section
8; for robots Janot et al. 2014). An error of the delay leaves a residual proportional to the rate of the force. The
instruments are therefore made orthogonal to that rate, so that the estimates are independent of small errors of the
delay, and its interval accounts for them.
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
    """Commanded motion, smoothed like the measurement.

    Attributes
    ----------
    velocity, acceleration, jerk : array, (n,)
        Derivatives of the reference.
    force_rate : array, (n,)
        Negative derivative of the measured force.
    """

    velocity: Array
    acceleration: Array
    jerk: Array
    force_rate: Array

    @classmethod
    def of_reference(cls, time: Array, reference: Array, effort: Array, cutoff: float) -> Commanded:
        """Compute the commanded motion from a reference and the measured force."""
        velocity, acceleration = (smooth(time, reference, cutoff, order) for order in (1, 2))
        return cls(velocity, acceleration, smooth(time, acceleration, cutoff, 1), -smooth(time, effort, cutoff, 1))

    def of(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> Commanded:
        """Return the motion at selected samples."""
        return Commanded(*(column[chosen] for column in self.columns))

    @property
    def columns(self) -> tuple[Array, Array, Array, Array]:
        """All signals."""
        return self.velocity, self.acceleration, self.jerk, self.force_rate

    @staticmethod
    def joined(parts: Sequence[Commanded]) -> Commanded:
        """Concatenate the motions of several recordings."""
        return Commanded(*(np.concatenate(columns) for columns in zip(*(one.columns for one in parts), strict=True)))

    def without_delay(self, instruments: Array, weights: Array) -> Array:
        """Return the instruments (n, r) made orthogonal to an error of the delay."""
        weighted = self.force_rate * weights
        power = float(weighted @ self.jerk)
        return instruments if power == 0.0 else instruments - np.outer(self.jerk, weighted @ instruments / power)
