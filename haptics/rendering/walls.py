"""Walls in a tick of a rendering: contribution to the element's force and to the trace row."""

from __future__ import annotations

import math
from typing import Any

from haptics.jit import kernel
from haptics.parts import call_part
from haptics.rendering.scene_kernels import step_on_scene

NO_WALL = math.nan
"""Value of the column ``normal_force`` without walls."""


@kernel
def add_walls(s: Any, x: float, y: float) -> tuple[float, float]:
    """Add the wall forces [N] to the force (x, y) on the hand (impedance) or the mass (admittance)."""
    if s.scene.walls == 0:
        return x, y
    call_part(s.scene.wall_part, s, x, y)
    return x + s.wall_force[0], y + s.wall_force[1]


@kernel
def step_against_walls(s: Any, heard: float) -> None:
    """Advance an admittance with its walls by one period; `heard` is the share of the hand's force."""
    s.wall_share = heard
    hx, hy = add_walls(s, heard * s.force[0], heard * s.force[1])
    step_on_scene(s, hx, hy)


@kernel
def report_walls(s: Any, row: Any) -> None:
    """Add the normal force to a trace `row`, and move its proxy to the surface of the walls."""
    if s.scene.walls != 0:
        call_part(s.scene.wall_emerge, s, row.proxy[0], row.proxy[1])
        row.proxy[0], row.proxy[1] = s.wall_proxy[0], s.wall_proxy[1]
        row.normal_force = s.normal_force if s.bad_ticks == 0 else 0.0
    else:
        row.normal_force = NO_WALL
