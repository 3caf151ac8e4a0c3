"""The rules for the command, each over many ticks at once, with the flags that they set and those that are in doubt.

A flag is in doubt where the number that decides about it is as near to its limit as rounding leaves it: then it may be
set or not. What a rule makes of the vector is continuous there but where it says so.
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
    """A force or a velocity on its way through the rules.

    Attributes
    ----------
    vector : (n, 2) array
        What is left of it.
    error : (n,) array
        What rounding can have done to it so far.
    flags, doubtful : (n,) int array
        Flags that the rules set, and those that are in doubt.
    """

    vector: Floats
    error: Floats
    flags: NDArray[np.int64]
    doubtful: NDArray[np.int64]

    @classmethod
    def begin(cls, vector: Floats, error: Floats) -> Limited:
        """Return what no rule has touched yet."""
        return cls(vector, error, np.zeros(len(vector), np.int64), np.zeros(len(vector), np.int64))

    def mark(self, flag: int, where: Mask, doubtful: Mask) -> None:
        """Set a flag, and say where it is in doubt."""
        self.flags |= np.where(where, flag, 0)
        self.doubtful |= np.where(doubtful, flag, 0)

    def norm(self, limit: float) -> None:
        """Rule 7: at most `limit`; the direction is kept."""
        size = length(self.vector)
        over = size > limit
        self.mark(LIMITED, over, np.abs(size - limit) <= self.error)
        self.vector = np.where(over[:, None], self.vector * (limit / np.maximum(size, 1e-300))[:, None], self.vector)

    def slew(self, last: Floats, step: float) -> None:
        """Rule 8: from the last value towards this one by at most `step`."""
        change = self.vector - last
        size = length(change)
        over = size > step
        self.mark(SLEW, over, np.abs(size - step) <= self.error)
        shortened = last + change * (step / np.maximum(size, 1e-300))[:, None]
        self.vector = np.where(over[:, None], shortened, self.vector)

    def _takes(self, direction: Floats, share: Floats, where: Mask, doubtful: Mask, flag: int) -> None:
        """Take away a share of the part along a direction, if the two point the same way."""
        along = units(direction)
        part = (self.vector * along).sum(axis=1)
        near = np.abs(part) <= self.error
        acts = where & (part > 0.0)
        self.mark(flag, acts, (doubtful & (part > -self.error)) | (near & (where | doubtful)))
        self.vector = self.vector - np.where(acts, share * part, 0.0)[:, None] * along

    def driving(self, velocity: Floats, limit: float) -> None:
        """Rule 9: near the speed `limit` less and less of a force along the velocity, beyond it nothing."""
        margin = SPEED_MARGIN * limit
        excess = length(velocity) - (limit - margin)
        share = np.clip(excess / margin, 0.0, 1.0)
        self._takes(velocity, share, excess > 0.0, np.abs(excess) <= 16.0 * EPS * limit, SPEED)

    def energy(self, direction: Floats, spent: Mask) -> None:
        """Rule 10: where the energy is `spent`, nothing along a direction."""
        self._takes(direction, np.ones(len(spent)), spent, np.zeros(len(spent), bool), ENERGY)

    def inside(self, position: Floats, low: Floats, high: Floats, *, marks: bool = True) -> None:
        """Rule 11 for a force: outside, nothing that points further out."""
        for i in range(2):
            force = self.vector[:, i]
            beyond, before = position[:, i] > high[i], position[:, i] < low[i]
            stops = (beyond & (force > 0.0)) | (before & (force < 0.0))
            if marks:
                near = (beyond | before) & (np.abs(force) <= self.error)
                self.mark(WORKSPACE, stops, near)
            self.vector[:, i] = np.where(stops, 0.0, force)
