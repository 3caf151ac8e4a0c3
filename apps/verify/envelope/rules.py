"""Rules for the command, vectorized over ticks, with the flags that they set and the uncertain flags.

A flag is uncertain where the deciding value is within rounding of its limit. There it may be set or not. The vector
after a rule is continuous at the limit unless stated otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apps.verify.contact.inclusion import length, units
from apps.verify.facts import ENERGY, EPS, LIMITED, SLEW, SPEED, SPEED_MARGIN, WORKSPACE

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass
class Limited:
    """Force or velocity vectors while the rules are applied.

    Attributes
    ----------
    vector : (n, 2) array
        Vector after the rules already applied.
    error : (n,) array
        Bound on its rounding error.
    flags, doubtful : (n,) int array
        Flags that the rules set, and uncertain flags.
    """

    vector: Floats
    error: Floats
    flags: NDArray[np.int64]
    doubtful: NDArray[np.int64]

    @classmethod
    def begin(cls, vector: Floats, error: Floats) -> Limited:
        """Return the state before any rule."""
        return cls(vector, error, np.zeros(len(vector), np.int64), np.zeros(len(vector), np.int64))

    def mark(self, flag: int, where: Mask, doubtful: Mask) -> None:
        """Set a flag, and mark where it is uncertain."""
        self.flags |= np.where(where, flag, 0)
        self.doubtful |= np.where(doubtful, flag, 0)

    def norm(self, limit: float) -> None:
        """Apply rule 7: limit the norm to `limit` and keep the direction."""
        size = length(self.vector)
        over = size > limit
        self.mark(LIMITED, over, np.abs(size - limit) <= self.error)
        self.vector = np.where(over[:, None], self.vector * (limit / np.maximum(size, 1e-300))[:, None], self.vector)

    def slew(self, last: Floats, step: float) -> None:
        """Apply rule 8: limit the change from the last value to `step`."""
        change = self.vector - last
        size = length(change)
        over = size > step
        self.mark(SLEW, over, np.abs(size - step) <= self.error)
        shortened = last + change * (step / np.maximum(size, 1e-300))[:, None]
        self.vector = np.where(over[:, None], shortened, self.vector)

    def _takes(self, direction: Floats, share: Floats, where: Mask, doubtful: Mask, flag: int) -> None:
        """Remove a share of the component along a direction, if that component is positive."""
        along = units(direction)
        part = (self.vector * along).sum(axis=1)
        near = np.abs(part) <= self.error
        acts = where & (part > 0.0)
        self.mark(flag, acts, (doubtful & (part > -self.error)) | (near & (where | doubtful)))
        self.vector = self.vector - np.where(acts, share * part, 0.0)[:, None] * along

    def driving(self, velocity: Floats, limit: float) -> None:
        """Apply rule 9: reduce a driving force near the speed `limit`, to zero at the limit."""
        margin = SPEED_MARGIN * limit
        excess = length(velocity) - (limit - margin)
        share = np.clip(excess / margin, 0.0, 1.0)
        self._takes(velocity, share, excess > 0.0, np.abs(excess) <= 16.0 * EPS * limit, SPEED)

    def energy(self, direction: Floats, spent: Mask) -> None:
        """Apply rule 10: where the energy is `spent`, remove the component along a direction."""
        self._takes(direction, np.ones(len(spent)), spent, np.zeros(len(spent), bool), ENERGY)

    def inside(self, position: Floats, low: Floats, high: Floats, *, marks: bool = True) -> None:
        """Apply rule 11 to a force: outside the workspace, remove outward components."""
        for i in range(2):
            force = self.vector[:, i]
            beyond, before = position[:, i] > high[i], position[:, i] < low[i]
            stops = (beyond & (force > 0.0)) | (before & (force < 0.0))
            if marks:
                near = (beyond | before) & (np.abs(force) <= self.error)
                self.mark(WORKSPACE, stops, near)
            self.vector[:, i] = np.where(stops, 0.0, force)
