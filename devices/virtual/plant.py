"""What the plants share, as kernels: time, the hand's grip on the handle, the encoder, the criterion of stability.

A plant moves in the plane and is integrated in small steps of equal length by the semi-implicit Euler method. All of it
is one record: parameters, state, and the latest measurement, which is also its port (`haptics.ports`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from devices.common.log import log_command
from devices.common.velocity import VELOCITY, update_velocity
from devices.virtual.hands.hand import HAND
from haptics.device import DEAD_MAN_BUTTON
from haptics.errors import ConfigurationError
from haptics.jit import kernel, merged_kernel
from haptics.parts import call_part, record_at
from haptics.ports import PORT_FIELDS

HELD = 0.5
"""A hand that grips firmer than this part of its strength presses the button in the handle, the dead-man's."""

_OTHER_BUTTONS = 0xFFFFFFFF & ~DEAD_MAN_BUTTON
"""As many bits as a recording has room for."""

PLANT_FIELDS: list[tuple[Any, ...]] = [
    *PORT_FIELDS,
    ("hand", "<i8"),
    ("hand_record", "<i8"),
    ("log", "<i8"),
    ("substep", "<f8"),
    ("mass", "<f8"),
    ("grip_stiffness", "<f8"),
    ("grip_damping", "<f8"),
    ("resolution", "<f8"),
    ("origin", "<f8"),
    ("last_time", "<f8"),
    ("sampled", "<i8"),
    ("steps", "<i8"),
    ("commanded", "<i8"),
    ("handle", "<f8", (2,)),
    ("handle_velocity", "<f8", (2,)),
    ("acting", "<f8", (2,)),
    ("target", "<f8", (2,)),
    ("push", "<f8", (2,)),
    ("grip", "<f8"),
    ("pressed", "<i8"),
    ("next_target", "<f8", (2,)),
    ("next_push", "<f8", (2,)),
    ("next_grip", "<f8"),
    ("estimator", VELOCITY),
]
"""Fields of every plant's record.

``hand`` is where the hand's part lies, 0 for a hand in Python, and ``hand_record`` its record, which begins as
`devices.virtual.hands.hand.HAND`; ``log`` is where its log of commands lies, or 0; ``origin`` is the time at substep 0,
``last_time`` the latest it has told. ``steps`` counts substeps done, ``sampled`` is how many were done when the sample
was taken (-1: no sample yet), ``commanded`` when the present command came; ``handle`` is the truth, ``position``
measured. ``acting`` is what the device makes of the command; ``pressed`` are the buttons that the hand holds
besides the dead-man's."""


@merged_kernel
def expect_hand(s: Any, x: float, y: float, push_x: float, push_y: float, grip: float) -> None:
    """Take what the hand will do at the end of the interval that is about to be integrated."""
    s.next_target[0], s.next_target[1] = x, y
    s.next_push[0], s.next_push[1] = push_x, push_y
    s.next_grip = grip


@merged_kernel
def _ask_hand(s: Any, steps: int) -> None:
    """Ask the hand what it will do at substep number `steps`; one in Python has been asked already."""
    hand = record_at(s.hand_record, HAND)
    if s.hand != 0:
        hand.handle[0], hand.handle[1] = s.position[0], s.position[1]
        call_part(s.hand, s.hand_record, steps * s.substep, 0.0)
    expect_hand(s, hand.target[0], hand.target[1], hand.force[0], hand.force[1], hand.grip)
    s.pressed = hand.buttons & _OTHER_BUTTONS


@merged_kernel
def pull_handle(s: Any, part: float, rate: float) -> None:
    """Compute ``s.hand_force`` [N] when `part` (0 to 1) of the interval has gone by; `rate` is its inverse length."""
    grip = s.grip + part * (s.next_grip - s.grip)
    for i in range(2):
        way = s.next_target[i] - s.target[i]
        stretch = s.target[i] + part * way - s.handle[i]
        spring = s.grip_stiffness * stretch + s.grip_damping * (rate * way - s.handle_velocity[i])
        s.hand_force[i] = grip * spring + s.push[i] + part * (s.next_push[i] - s.push[i])


@merged_kernel
def settle_hand(s: Any) -> None:
    """End the interval: what was expected of the hand has come to pass."""
    for i in range(2):
        s.target[i] = s.next_target[i]
        s.push[i] = s.next_push[i]
    s.grip = s.next_grip


@merged_kernel
def estimate_velocity(s: Any) -> None:
    """Estimate the velocity from the position that was just measured."""
    update_velocity(s.estimator, s.steps * s.substep, s.position[0], s.position[1])
    s.velocity[0], s.velocity[1] = s.estimator.velocity[0], s.estimator.velocity[1]


# --- the port ---------------------------------------------------------------------------------------------------------


@merged_kernel
def steps_until(s: Any, now: float) -> Any:
    """Return how many substeps the plant has done by the time `now` [s] of the clock."""
    if now < s.last_time:  # the clock was started afresh: the plant goes on from where it is
        s.origin = now - s.steps * s.substep
    s.last_time = now
    return round((now - s.origin) / s.substep)


@functools.cache
def taking(advance: Callable[..., None]) -> Callable[..., None]:
    """Return the part that takes the sample of a plant.

    Parameters
    ----------
    advance : callable
        Kernel ``(record, steps)``: integrate up to substep number `steps`, the hand being there then, and measure.
    """

    @kernel
    def take(s: Any, now: float, _: float) -> None:
        steps = steps_until(s, now)
        if steps > s.sampled:
            _ask_hand(s, steps)
            advance(s, steps)
            settle_hand(s)
            s.sampled = steps
        s.time = now
        s.buttons = s.pressed | (DEAD_MAN_BUTTON if s.grip > HELD else 0)

    return take


@merged_kernel
def accept(s: Any, x: float, y: float) -> bool:
    """Take note of a command; return whether it is finite, which is all that can be wrong with it."""
    if not abs(x) + abs(y) < math.inf:
        s.fault = 1
        return False
    s.command[0], s.command[1] = x, y
    s.commanded = s.steps
    s.commands += 1
    if s.log != 0:
        log_command(s.log, s.time, x, y)
    return True


@kernel
def steps_due(record: Any, now: float) -> int:
    """Return how many substeps the plant in the (1,) array `record` will have done at the time `now` [s].

    It is -1 if it has come that far already.
    """
    s = record[0]
    steps = steps_until(s, now)
    return steps if steps > s.sampled else -1


def require_stable(mass: float, stiffness: float, damping: float, substep: float) -> None:
    """Refuse a plant that the integration cannot follow.

    A mass m on a spring K and a damper B, integrated semi-implicitly in steps of T, is stable if
    ``T^2 K/m + 2 T B/m < 4`` (Kikuuwe et al. 2006, (63)). Half of that is asked for: then it does not ring either.

    Parameters
    ----------
    mass, stiffness, damping, substep : float
        m [kg], the sum of all that can act on it at once, K [N/m] and B [N s/m], and T [s].

    Raises
    ------
    ConfigurationError
        Saying what to change.
    """
    measure = (substep**2 * stiffness + 2.0 * substep * damping) / mass
    if not measure < 2.0:
        raise ConfigurationError(
            f"device.mass = {mass:g} kg is too light to be computed in steps of device.substep = {substep:g} s with a "
            f"stiffness of {stiffness:.4g} N/m and a damping of {damping:.4g} N s/m on it: choose a larger mass, a "
            "softer hand (hand.stiffness, hand.damping) or a smaller substep."
        )
