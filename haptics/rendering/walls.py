"""Walls in the tick of a rendering: what they add to the element's force, and to a trace row."""

from __future__ import annotations

import math
from typing import Any

from haptics.jit import kernel
from haptics.parts import call_part
from haptics.rendering.scene_kernels import step_on_scene

NO_WALL = math.nan
"""What the column ``normal_force`` holds without walls."""


@kernel
def add_walls(s: Any, x: float, y: float) -> tuple[float, float]:
    """Return a force (x, y) [N] with that of walls: on the hand, or on the mass, which is given (x, y) by the hand."""
    if s.scene.walls == 0:
        return x, y
    call_part(s.scene.wall_part, s, x, y)
    return x + s.wall_force[0], y + s.wall_force[1]


@kernel
def step_against_walls(s: Any, heard: float) -> None:
    """Advance an admittance, walls and all, by one period; so much of the hand's force is `heard`."""
    s.wall_share = heard
    hx, hy = add_walls(s, heard * s.force[0], heard * s.force[1])
    step_on_scene(s, hx, hy)


@kernel
def report_walls(s: Any, row: Any) -> None:
    """Complete a trace `row` that has its proxy: that is moved to the surface of walls, and the normal force known."""
    if s.scene.walls != 0:
        call_part(s.scene.wall_emerge, s, row.proxy[0], row.proxy[1])
        row.proxy[0], row.proxy[1] = s.wall_proxy[0], s.wall_proxy[1]
        row.normal_force = s.normal_force if s.bad_ticks == 0 else 0.0
    else:
        row.normal_force = NO_WALL
