"""Velocity from the times at which the encoder counts.

For each coordinate, a change of the position means that the handle has just crossed an edge, half a count before the
new position. Between two edges the velocity is their distance divided by the time. Until the next edge, the velocity is
bounded by the value at which the edge would be reached now, and decays as ``q / t``. A count back and forth crosses the
same edge twice, and the velocity is then zero without any threshold. Positions need not be on a grid. A step of less
than half a count is not a crossing.
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
"""Per coordinate: position at the last change, edge crossed then, its time, resulting velocity."""


@merged_kernel
def begin_crossing(s: Any, x: float, y: float) -> None:
    """Initialise at (x, y) [m], in the middle of a count."""
    s.counted[0], s.counted[1] = s.edge[0], s.edge[1] = x, y
    s.edge_time[0] = s.edge_time[1] = s.time
    s.edge_velocity[0] = s.edge_velocity[1] = 0.0


@merged_kernel
def crossing(s: Any, x: float, y: float) -> None:
    """Update ``s.velocity`` with the position (x, y) [m]."""
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
