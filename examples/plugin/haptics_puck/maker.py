"""Stands for the library of a device's maker: connect, ask where the puck is, push it, disconnect.

So that the example runs without hardware there is a puck in here, on a table that rocks slowly to and fro.
"""

import math
import time

COUNT = 10e-6
"""Distance between two counts of the encoder [m]."""

MASS = 0.4
"""Of the puck [kg]."""

STRONGEST = 6.0
"""Force of the magnets at most [N]."""

_STEP = 1e-4
_TILT, _ROCKING = 5.0, 0.5
_STIFFNESS, _DAMPING = 80.0, 2.0


class Table:
    """A connection to the table; the puck is in its middle then."""

    def __init__(self):
        self._now = self._began = time.perf_counter()
        self._axes = [[0.0, 0.0], [0.0, 0.0]]
        self._force = 0.0, 0.0

    def counts(self):
        """Return the present counts of both encoders."""
        self._catch_up()
        return tuple(round(position / COUNT) for position, _ in self._axes)

    def push(self, x, y):
        """Set the force (x, y) [N] of the magnets, within their limits, until the next call."""
        self._catch_up()
        self._force = tuple(min(max(force, -STRONGEST), STRONGEST) for force in (x, y))

    def disconnect(self):
        """Switch the magnets off."""
        self._force = 0.0, 0.0

    def _catch_up(self):
        """Simulate the motion since the last call, at most one second."""
        now = time.perf_counter()
        self._now = max(self._now, now - 1.0)
        while self._now < now:
            tilt = _TILT * math.sin(2.0 * math.pi * _ROCKING * (self._now - self._began))
            for axis, push, weight in zip(self._axes, self._force, (tilt, 0.5 * tilt), strict=True):
                pull = push + weight - _STIFFNESS * axis[0] - _DAMPING * axis[1]
                axis[1] += _STEP * pull / MASS
                axis[0] += _STEP * axis[1]
            self._now += _STEP
