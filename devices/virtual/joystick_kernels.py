"""Kernels of the virtual joystick: its substeps, and the parts of its port."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from devices.common.compensation import COMPENSATION, add_friction
from devices.common.driver_kernels import quantise
from devices.common.friction import AXIS_LAWS, axis_friction
from devices.virtual.plant import PLANT_FIELDS, accept, estimate_velocity, pull_handle, taking
from haptics.jit import kernel, merged_kernel
from haptics.rendering.envelope import limit_norm

STOP_STIFFNESS = 1e6
"""Stiffness of the end-stops [N/m]; 100 N push the handle 0.1 mm into them."""

DELAY_LINE = 256

JOYSTICK = np.dtype(
    [
        *PLANT_FIELDS,
        ("damping", "<f8"),
        ("max_force", "<f8"),
        ("delay_steps", "<i8"),
        ("watchdog_steps", "<i8"),
        ("delay_line", "<f8", (DELAY_LINE, 2)),
        ("stop_damping", "<f8"),
        ("workspace_min", "<f8", (2,)),
        ("workspace_max", "<f8", (2,)),
        AXIS_LAWS,
        ("compensation", COMPENSATION),
    ]
)
"""Record of the joystick; ``acting`` is the motor force including friction compensation [N]."""


@merged_kernel
def stop_force(s: Any, i: int) -> Any:
    """Return the force of the end-stops on coordinate `i` [N]; it is never attractive."""
    beyond = max(s.handle[i] - s.workspace_max[i], 0.0) + min(s.handle[i] - s.workspace_min[i], 0.0)
    force = -STOP_STIFFNESS * beyond - s.stop_damping * s.handle_velocity[i]
    if beyond > 0.0:
        return min(force, 0.0)
    if beyond < 0.0:
        return max(force, 0.0)
    return 0.0


@functools.cache
def _friction(kinds: tuple[int, ...]) -> Callable[..., Any]:
    """Return the kernel that applies dry friction of these kinds, or none, to a velocity [m/s]."""
    if not kinds:

        @merged_kernel
        def slide(s: Any, i: int, velocity: float) -> Any:
            return velocity

        return slide
    friction = axis_friction(kinds)

    @merged_kernel
    def rub(s: Any, i: int, velocity: float) -> Any:
        law = s.axis_laws[i, 0 if velocity >= 0.0 else 1]
        return friction(law, velocity, s.substep / s.mass)[1]

    return rub


@functools.cache
def _substep(kinds: tuple[int, ...]) -> Callable[..., None]:
    """Return the kernel of a substep for a joystick with dry friction of these kinds, or none."""
    left = _friction(kinds)

    @merged_kernel
    def substep(s: Any, force_x: float, force_y: float) -> None:
        """Integrate one substep under the command (force_x, force_y) [N] given at its beginning."""
        now, then = s.steps % DELAY_LINE, (s.steps - s.delay_steps) % DELAY_LINE
        s.delay_line[now, 0], s.delay_line[now, 1] = force_x, force_y
        for i in range(2):
            force = s.delay_line[then, i] + s.hand_force[i] + stop_force(s, i) - s.damping * s.handle_velocity[i]
            # Dry friction comes last and is implicit, so that a sticking handle does not creep.
            s.handle_velocity[i] = left(s, i, s.handle_velocity[i] + s.substep * force / s.mass)
        for i in range(2):
            s.handle[i] += s.substep * s.handle_velocity[i]
        s.steps += 1

    return substep


@functools.cache
def take_joystick(kinds: tuple[int, ...]) -> Callable[..., None]:
    """Return the part that reads a sample (`devices.virtual.plant.taking`)."""
    substep = _substep(kinds)

    @merged_kernel
    def advance(s: Any, steps: int) -> None:
        force_x, force_y, _ = limit_norm(s.acting[0], s.acting[1], s.max_force)
        count = steps - s.steps
        for k in range(count):
            pull_handle(s, k / count, 1.0 / (count * s.substep))
            if s.steps - s.commanded >= s.watchdog_steps:
                force_x, force_y = 0.0, 0.0
            substep(s, force_x, force_y)
        for i in range(2):
            s.position[i] = quantise(s.handle[i], s.resolution)
        estimate_velocity(s)

    return taking(advance)


@kernel
def give_joystick(s: Any, x: float, y: float) -> None:
    """Process a force command [N] and add friction compensation, if enabled."""
    if not accept(s, x, y):
        return
    add_friction(s.compensation, s.assistance, x, y, s.velocity[0], s.velocity[1])
    s.acting[0], s.acting[1] = s.compensation.total[0], s.compensation.total[1]
