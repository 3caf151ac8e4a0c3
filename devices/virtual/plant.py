"""What the plants share, as kernels: the hand's grip on the handle, the encoder, the criterion of stability.

A plant moves in the plane and is integrated in small steps of equal length by the semi-implicit Euler method. All of it
is one record: parameters, state, and the latest measurement.
"""

from __future__ import annotations

import math
from typing import Any

from devices.velocity import VELOCITY_FIELDS, update_velocity
from haptics._jit import kernel
from haptics.errors import ConfigurationError

PLANT_FIELDS: list[tuple[Any, ...]] = [
    ("substep", "<f8"),
    ("mass", "<f8"),
    ("grip_stiffness", "<f8"),
    ("grip_damping", "<f8"),
    ("resolution", "<f8"),
    ("steps", "<i8"),
    ("handle", "<f8", (2,)),
    ("handle_velocity", "<f8", (2,)),
    ("command", "<f8", (2,)),
    ("commanded", "<i8"),
    ("hand_force", "<f8", (2,)),
    ("target", "<f8", (2,)),
    ("push", "<f8", (2,)),
    ("grip", "<f8"),
    ("next_target", "<f8", (2,)),
    ("next_push", "<f8", (2,)),
    ("next_grip", "<f8"),
    ("position", "<f8", (2,)),
    ("force", "<f8", (2,)),
    *VELOCITY_FIELDS,
]
"""Fields of every plant's record. ``steps`` counts substeps done, ``commanded`` is how many were done when the present
command came; ``handle`` is the truth, ``position`` measured."""


@kernel
def expect_hand(s: Any, x: float, y: float, push_x: float, push_y: float, grip: float) -> None:
    """Take what the hand will do at the end of the interval that is about to be integrated."""
    s.next_target[0], s.next_target[1] = x, y
    s.next_push[0], s.next_push[1] = push_x, push_y
    s.next_grip = grip


@kernel
def pull_handle(s: Any, part: float, rate: float) -> None:
    """Compute ``s.hand_force`` [N] when `part` (0 to 1) of the interval has gone by; `rate` is its inverse length."""
    grip = s.grip + part * (s.next_grip - s.grip)
    for i in range(2):
        way = s.next_target[i] - s.target[i]
        stretch = s.target[i] + part * way - s.handle[i]
        spring = s.grip_stiffness * stretch + s.grip_damping * (rate * way - s.handle_velocity[i])
        s.hand_force[i] = grip * spring + s.push[i] + part * (s.next_push[i] - s.push[i])


@kernel
def settle_hand(s: Any) -> None:
    """End the interval: what was expected of the hand has come to pass."""
    for i in range(2):
        s.target[i] = s.next_target[i]
        s.push[i] = s.next_push[i]
    s.grip = s.next_grip


@kernel
def quantise(x: float, resolution: float) -> float:
    """Round to the nearest multiple of `resolution`; 0 leaves `x` as it is."""
    return math.floor(x / resolution + 0.5) * resolution if resolution > 0.0 else x


@kernel
def encode(s: Any) -> None:
    """Measure position and velocity of the handle."""
    s.position[0] = quantise(s.handle[0], s.resolution)
    s.position[1] = quantise(s.handle[1], s.resolution)
    update_velocity(s, s.steps * s.substep, s.position[0], s.position[1])


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
