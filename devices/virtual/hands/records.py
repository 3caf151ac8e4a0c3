"""Kernel records of the hands, and the position in a phase of a tour."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from haptics.records import fields

WAVES = 5
"""Number of waves of a tremor."""

EDGE = np.dtype([("time", "<f8"), ("buttons", "<i8")])
"""Buttons that are pressed from a time [s] on, as bits."""

TREMOR_FIELDS: list[tuple[Any, ...]] = [("trembles", "<i8"), ("waves", "<f8", (WAVES, 4))]
"""Tremor fields of the record of a hand.

``trembles`` enables the tremor. Each row of ``waves`` contains the angular frequency [rad/s], the phase [rad] and the
force (x, y) [N] of a wave.
"""

HAND_FIELDS: list[tuple[Any, ...]] = [
    *fields("<f8", "handle target force", 2),
    ("grip", "<f8"),
    *fields("<i8", "buttons edges edge_count"),
]
"""First fields of the record of a hand.

They are the last measured position of the handle [m], the fields of a `HandSample`, and the address and number of rows
of the table of button presses (`EDGE`).
"""

HAND = np.dtype(HAND_FIELDS)

PIECE = np.dtype([("begin", "<f8"), ("end", "<f8"), ("cubic", "<f8", (2, 4))])
"""Piece of the path: start and end [s], and ascending coefficients of x and y [m]."""

ROW = np.dtype([("time", "<f8"), ("force", "<f8", (2,))])
"""Row of a script of forces: beginning [s] and force [N]."""

PHASE = np.dtype(
    [
        *fields("<f8", "start duration"),
        *fields("<f8", "origin goal centre", 2),
        *fields("<i8", "curved rest"),
        ("relaxing", "<f8"),
    ]
)
"""Phase of a tour; ``relaxing`` is the time in which the hand relaxes during a rest [s]."""


def place_in(phase: Any, elapsed: float) -> Any:
    """Return the position (x, y) [m] of a hand `elapsed` [s] after the start of a phase.

    `phase` is a `devices.virtual.hands.minimum_jerk.Phase` or a row of dtype `PHASE`.
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
