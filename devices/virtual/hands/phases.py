"""The parts of a hand's tour: strokes, curves and stops, and where a hand is in them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from devices.common.workspace import Point

_RELAXING = 0.25
"""Time the hand takes to relax, and to take hold again [s]."""

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
"""A `Phase` as kernels read it; ``relaxing`` is in what time the hand relaxes during a rest [s]."""


@dataclass(frozen=True)
class Phase:
    """One part of the tour: a stroke, a curve or a stop.

    Attributes
    ----------
    label : str
        The letters it connects (``a-b``), or the letter it stops at.
    start, duration : float
        When it begins within the tour and how long it takes [s].
    origin, goal : (x, y)
        Where it begins and ends [m].
    centre : (x, y) or None
        Centre of the half circle, for a curve; it is run through anticlockwise.
    rest : bool
        Whether the hand relaxes and its force fluctuates.
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
        """Whether it is a half circle."""
        return self.centre is not None

    def at(self, elapsed: float) -> Point:
        """Return where the hand is, `elapsed` [s] after the phase began [m]."""
        x, y = place_in(self, elapsed)
        return x, y

    @property
    def row(self) -> tuple[Any, ...]:
        """The phase as a row of dtype `PHASE`."""
        relaxing = min(_RELAXING, 0.5 * self.duration)
        centre = self.centre or self.origin
        return self.start, self.duration, self.origin, self.goal, centre, self.curved, self.rest, relaxing


def place_in(phase: Any, elapsed: float) -> Any:
    """Return where a hand is, (x, y) [m], `elapsed` [s] after a `phase` began: a `Phase`, or a row of dtype `PHASE`."""
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
