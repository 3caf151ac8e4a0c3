"""Kernel of the step of an element on a scene, with law parameters that depend on the proxy position.

Before the step, the scene is looked up at the position of the proxy at the end of the last tick: the reference for
models A and D, the end effector minus the displacement for B and C. The lookup is a part (`haptics.scenes.kernels`);
its address is 0 without a scene.
"""

from __future__ import annotations

from typing import Any

from haptics.elements.kernels import step_element
from haptics.jit import inlined_kernel, kernel
from haptics.parts import call_part

NOWHERE = -1
"""Value of the column ``region`` without a scene."""

PLACE_FIELDS: list[tuple[Any, ...]] = [("region", "<i8")]
"""Fields for the position of the proxy in the scene."""


@kernel
def _look_up(s: Any) -> None:
    """Set the parameters of the law to the values of the scene at the proxy position after the last tick.

    If that position is unknown, after the start or an unusable sample, use the present end effector position minus the
    displacement.
    """
    if s.admittance != 0:
        x, y = s.reference[0], s.reference[1]
    elif s.observed != 0:
        x, y = s.observed_position[0] - s.displacement[0], s.observed_position[1] - s.displacement[1]
    else:
        x, y = s.position[0] - s.displacement[0], s.position[1] - s.displacement[1]
    call_part(s.scene.look_up, s, x, y)


@inlined_kernel
def step_on_scene(s: Any, x: float, y: float) -> None:
    """Advance the program in record `s` by one period under the input (x, y), on its scene if it has one."""
    if s.scene.look_up != 0:
        _look_up(s)
    step_element(s, x, y)
