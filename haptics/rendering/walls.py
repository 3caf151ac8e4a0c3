"""Walls in the tick of a rendering: what they add to the element's force, and to a trace row."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from haptics.jit import kernel
from haptics.parts import address_of_part, call_part
from haptics.rendering.scene_kernels import step_on_scene
from haptics.rendering.wall_contacts import emerge, push
from haptics.rendering.wall_masses import hold_off
from haptics.scenes.walls import PackedWalls


@kernel
def add_walls(s: Any, x: float, y: float) -> tuple[float, float]:
    """Return a force (x, y) [N] with that of walls: on the hand, or on the mass, which is given (x, y) by the hand."""
    if s.walls == 0:
        return x, y
    call_part(s.wall_part, s, x, y)
    return x + s.wall_force[0], y + s.wall_force[1]


@kernel
def step_against_walls(s: Any, heard: float) -> None:
    """Advance an admittance, walls and all, by one period; so much of the hand's force is `heard`."""
    s.wall_share = heard
    hx, hy = add_walls(s, heard * s.force[0], heard * s.force[1])
    step_on_scene(s, hx, hy)


@kernel
def report_walls(s: Any, row: Any) -> None:
    """Complete a trace `row` that has its proxy, where there are walls."""
    if s.walls != 0:
        call_part(s.wall_emerge, s, row.proxy[0], row.proxy[1])
        row.proxy[0], row.proxy[1] = s.wall_proxy[0], s.wall_proxy[1]
        row.normal_force = s.normal_force


def prepare_walls(core: NDArray[Any], walls: PackedWalls) -> None:
    """Give a rendering's (1,) record its walls, untouched; they must live as long as the record is used."""
    walls.rest()
    if not walls.count:
        return
    core["walls"], core["wall_count"] = walls.address, walls.count
    core["wall_part"] = address_of_part(hold_off if core["admittance"][0] else push, core.dtype)
    core["wall_emerge"] = address_of_part(emerge, core.dtype)
