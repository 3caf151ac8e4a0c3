"""The step of an element on a scene as a kernel: its law has the numbers of the place where the proxy is.

The scene is looked up before the step, where the proxy was at the end of the last tick: for models A and D the
reference, for B and C the end effector less the displacement. What is looked up is a part (`haptics.scenes.kernels`);
without a scene its address is 0, and that is all that is asked.
"""

from __future__ import annotations

from typing import Any

from haptics.elements.kernels import step_element
from haptics.jit import inlined_kernel, kernel
from haptics.parts import call_part

NOWHERE = -1
"""What the column ``region`` holds without a scene."""

PLACE_FIELDS: list[tuple[Any, ...]] = [("region", "<i8")]
"""What is known of the place of the proxy."""


@kernel
def _look_up(s: Any) -> None:
    """Give the law the numbers that the scene has where the proxy was after the last tick.

    Where nobody knows where that was, after the start or a sample that could not be used, it is where the end effector
    is now, less the displacement.
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
