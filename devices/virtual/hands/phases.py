"""Phases of the tour of a hand: strokes, curves and stops."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from devices.common.settings import Point

_RELAXING = 0.25
"""Time in which the hand relaxes its grip, and tightens it again [s]."""

PHASE = np.dtype(
    [
        ("start", "<f8"),
        ("duration", "<f8"),
        ("origin", "<f8", (2,)),
        ("goal", "<f8", (2,)),
        ("centre", "<f8", (2,)),
        ("curved", "<i8"),
        ("rest", "<i8"),
        ("relaxing", "<f8"),
    ]
)
"""Kernel record of a `Phase`; ``relaxing`` is the time in which the hand relaxes during a rest [s]."""


@dataclass(frozen=True)
class Phase:
    """Phase of the tour: a stroke, a curve or a stop.

    Attributes
    ----------
    label : str
        Letters that it connects (``a-b``), or letter of the stop.
    start, duration : float
        Start within the tour and duration [s].
    origin, goal : (x, y)
        First and last point [m].
    centre : (x, y) or None
        Centre of the half circle of a curve, which is anticlockwise.
    rest : bool
        True if the hand relaxes and its force fluctuates.
    """

    label: str
    start: float
    duration: float
    origin: Point
    goal: Point
    centre: Point | None = None
    rest: bool = False

    @property
    def curved(self) -> bool:
        """True for a half circle."""
        return self.centre is not None

    def at(self, elapsed: float) -> Point:
        """Return the position of the hand `elapsed` [s] after the start of the phase [m]."""
        x, y = place_in(self, elapsed)
        return x, y

    @property
    def row(self) -> tuple[Any, ...]:
        """The phase as a row of dtype `PHASE`."""
        relaxing = min(_RELAXING, 0.5 * self.duration)
        centre = self.centre or self.origin
        return self.start, self.duration, self.origin, self.goal, centre, self.curved, self.rest, relaxing


def place_in(phase: Any, elapsed: float) -> Any:
    """Return the position (x, y) [m] of a hand `elapsed` [s] after the start of a phase.

    `phase` is a `Phase` or a row of dtype `PHASE`.
    """
    x, y = phase.origin[0], phase.origin[1]
    goal_x, goal_y = phase.goal[0], phase.goal[1]
    if x == goal_x and y == goal_y:
        return x, y
    u = min(elapsed / phase.duration, 1.0)
    s = u * u * u * (10.0 + u * (6.0 * u - 15.0))
    if not phase.curved:
        return x + s * (goal_x - x), y + s * (goal_y - y)
    centre_x, centre_y = phase.centre[0], phase.centre[1]
    dx, dy = x - centre_x, y - centre_y
    cos, sin = math.cos(math.pi * s), math.sin(math.pi * s)
    return centre_x + cos * dx - sin * dy, centre_y + sin * dx + cos * dy
