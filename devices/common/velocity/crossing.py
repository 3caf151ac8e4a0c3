"""Velocity from the times at which the encoder counts.

Per coordinate, a change of the position means that the handle has just crossed an edge, half a count short of the new
position. From one edge to the next the velocity is their distance over the time between. While no edge comes, it can at
most be such that the next one would be reached just now: it decays as ``q / t``. A count that goes forth and back
crosses the same edge twice: the velocity is then zero, without any threshold. Nothing assumes that positions lie on a
grid; a step of less than half a count is not taken for a crossing.
"""

from __future__ import annotations

import math
from typing import Any

from haptics.jit import merged_kernel

CROSSING_FIELDS: list[tuple[Any, ...]] = [
    ("counted", "<f8", (2,)),
    ("edge", "<f8", (2,)),
    ("edge_time", "<f8", (2,)),
    ("edge_velocity", "<f8", (2,)),
]
"""Per coordinate: the position at the last change, the edge crossed then, when, and the velocity found."""


@merged_kernel
def begin_crossing(s: Any, x: float, y: float) -> None:
    """Begin at (x, y) [m], in the middle of a count."""
    s.counted[0], s.counted[1] = s.edge[0], s.edge[1] = x, y
    s.edge_time[0] = s.edge_time[1] = s.time
    s.edge_velocity[0] = s.edge_velocity[1] = 0.0


@merged_kernel
def crossing(s: Any, x: float, y: float) -> None:
    """Take the position (x, y) [m] and set ``s.velocity``."""
    q, time = s.resolution, s.time
    for i in range(2):
        step = (x if i == 0 else y) - s.counted[i]
        if abs(step) >= 0.5 * q:
            s.counted[i] += step
            edge = s.counted[i] - math.copysign(0.5 * q, step)
            s.edge_velocity[i] = (edge - s.edge[i]) / (time - s.edge_time[i])
            s.edge[i], s.edge_time[i] = edge, time
            s.velocity[i] = s.edge_velocity[i]
        else:
            fastest = q / (time - s.edge_time[i])
            s.velocity[i] = min(max(s.edge_velocity[i], -fastest), fastest)
