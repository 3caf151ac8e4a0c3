"""Kernels from a force sensor's measurement to the hand's force; see `devices.arm.sensors.mounting`."""

from __future__ import annotations

from typing import Any

import numpy as np

from haptics.jit import kernel

MOUNTING = np.dtype(
    [("on_flange", "<f8", (3, 3)), ("gravity", "<f8", (3,)), ("handle", "<f8", (6, 3)), ("offset", "<f8", (6,))]
)
"""Mounting of a sensor: ``on_flange`` rotates sensor axes into flange axes; ``gravity`` in world axes [m/s^2];
``handle`` maps gravity in sensor axes to the wrench of the handle's weight; ``offset`` is the measurement without load.
"""


@kernel
def turn_to_world(m: Any, orientation: Any, to_world: Any) -> None:
    """Compute `to_world`, (3, 3), the rotation from sensor to world axes; `orientation` is the flange's."""
    for i in range(3):
        for j in range(3):
            to_world[i, j] = 0.0
            for k in range(3):
                to_world[i, j] += orientation[i, k] * m.on_flange[k, j]


@kernel
def gravity_in_sensor(m: Any, to_world: Any, gravity: Any) -> None:
    """Compute `gravity`, (3,), in sensor axes [m/s^2]."""
    for i in range(3):
        gravity[i] = to_world[0, i] * m.gravity[0] + to_world[1, i] * m.gravity[1] + to_world[2, i] * m.gravity[2]


@kernel
def wrench_of_hand(m: Any, to_world: Any, gravity: Any, measured: Any, wrench: Any) -> None:
    """Compute the hand's `wrench`, (6,), in world axes; `gravity` and `measured` are in sensor axes."""
    for first in (0, 3):
        for i in range(3):
            wrench[first + i] = 0.0
        for j in range(3):
            row = first + j
            weight = m.handle[row, 0] * gravity[0] + m.handle[row, 1] * gravity[1] + m.handle[row, 2] * gravity[2]
            own = measured[row] - m.offset[row] - weight
            for i in range(3):
                wrench[first + i] += to_world[i, j] * own


@kernel
def hand_wrench(mountings: Any, orientation: Any, measured: Any, to_world: Any, gravity: Any, wrench: Any) -> None:
    """Compute `to_world`, `gravity` and `wrench`, for the (1,) array `mountings`."""
    m = mountings[0]
    turn_to_world(m, orientation, to_world)
    gravity_in_sensor(m, to_world, gravity)
    wrench_of_hand(m, to_world, gravity, measured, wrench)
