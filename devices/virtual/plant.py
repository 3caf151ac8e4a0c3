"""Kernels shared by the plants: time, grip of the hand, encoder, stability criterion.

A plant moves in the plane and is integrated by the semi-implicit Euler method in small steps of equal length. One
record contains its parameters, its state and the newest measurement, and is also its port (`haptics.ports`).
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
"""Fraction of the full grip above which the hand presses the dead-man's button in the handle."""

_OTHER_BUTTONS = 0xFFFFFFFF & ~DEAD_MAN_BUTTON
"""All bits of a recording except the dead-man's button."""

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
"""Fields of the record of every plant.

``hand`` is the address of the part of the hand, 0 for a hand in Python. ``hand_record`` is the address of its record,
which begins like `devices.virtual.hands.hand.HAND`. ``log`` is the address of the command log, or 0. ``origin`` is the
time of substep 0, and ``last_time`` the newest time of a sample. ``steps`` counts completed substeps, ``sampled`` is
their number at the last sample (-1 before the first), and ``commanded`` their number at the present command. ``handle``
is the true position, ``position`` the measured one. ``acting`` is the effective command of the device. ``pressed``
contains the buttons that the hand presses except the dead-man's button.
"""


@merged_kernel
def expect_hand(s: Any, x: float, y: float, push_x: float, push_y: float, grip: float) -> None:
    """Set the state of the hand at the end of the next integration interval."""
    s.next_target[0], s.next_target[1] = x, y
    s.next_push[0], s.next_push[1] = push_x, push_y
    s.next_grip = grip


@merged_kernel
def _ask_hand(s: Any, steps: int) -> None:
    """Sample the hand at substep number `steps`; a hand in Python has been sampled before."""
    hand = record_at(s.hand_record, HAND)
    if s.hand != 0:
        hand.handle[0], hand.handle[1] = s.position[0], s.position[1]
        call_part(s.hand, s.hand_record, steps * s.substep, 0.0)
    expect_hand(s, hand.target[0], hand.target[1], hand.force[0], hand.force[1], hand.grip)
    s.pressed = hand.buttons & _OTHER_BUTTONS


@merged_kernel
def pull_handle(s: Any, part: float, rate: float) -> None:
    """Compute ``s.hand_force`` [N] at the fraction `part` of the interval; `rate` is its inverse length."""
    grip = s.grip + part * (s.next_grip - s.grip)
    for i in range(2):
        way = s.next_target[i] - s.target[i]
        stretch = s.target[i] + part * way - s.handle[i]
        spring = s.grip_stiffness * stretch + s.grip_damping * (rate * way - s.handle_velocity[i])
        s.hand_force[i] = grip * spring + s.push[i] + part * (s.next_push[i] - s.push[i])


@merged_kernel
def settle_hand(s: Any) -> None:
    """Set the state of the hand to the end of the interval."""
    for i in range(2):
        s.target[i] = s.next_target[i]
        s.push[i] = s.next_push[i]
    s.grip = s.next_grip


@merged_kernel
def estimate_velocity(s: Any) -> None:
    """Estimate the velocity from the measured position."""
    update_velocity(s.estimator, s.steps * s.substep, s.position[0], s.position[1])
    s.velocity[0], s.velocity[1] = s.estimator.velocity[0], s.estimator.velocity[1]


# --- port -----------------------------------------------------------------------------------------------------------


@merged_kernel
def steps_until(s: Any, now: float) -> Any:
    """Return the number of substeps of the plant until the time `now` [s] of the clock."""
    if now < s.last_time:  # the clock was restarted: the plant continues from its present state
        s.origin = now - s.steps * s.substep
    s.last_time = now
    return round((now - s.origin) / s.substep)


@functools.cache
def taking(advance: Callable[..., None]) -> Callable[..., None]:
    """Return the part that reads the sample of a plant.

    Parameters
    ----------
    advance : callable
        Kernel ``(record, steps)`` that integrates up to substep number `steps`, with the hand sampled at that time, and
        measures the sample.
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
    """Record a command; return False if it is not finite."""
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
    """Return the number of substeps of the plant in the (1,) array `record` at the time `now` [s].

    It is -1 if the plant has already reached this number.
    """
    s = record[0]
    steps = steps_until(s, now)
    return steps if steps > s.sampled else -1


def require_stable(mass: float, stiffness: float, damping: float, substep: float) -> None:
    """Raise `ConfigurationError` if the integration of a plant would be unstable.

    A mass m on a spring K and a damper B, integrated semi-implicitly in steps of T, is stable if
    ``T^2 K/m + 2 T B/m < 4`` (Kikuuwe et al. 2006, (63)). The limit here is half of that, which also avoids ringing.

    Parameters
    ----------
    mass, stiffness, damping, substep : float
        m [kg], the sums of all simultaneous K [N/m] and B [N s/m], and T [s].

    Raises
    ------
    ConfigurationError
        With the remedy.
    """
    measure = (substep**2 * stiffness + 2.0 * substep * damping) / mass
    if not measure < 2.0:
        raise ConfigurationError(
            f"device.mass = {mass:g} kg is too light to be computed in steps of device.substep = {substep:g} s with a "
            f"stiffness of {stiffness:.4g} N/m and a damping of {damping:.4g} N s/m on it: choose a larger mass, a "
            "softer hand (hand.stiffness, hand.damping) or a smaller substep."
        )
