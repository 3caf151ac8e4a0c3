"""From what a force sensor measures to the force of the hand, as kernels; see `devices.arm.sensors.mounting`."""

from __future__ import annotations

from typing import Any

import numpy as np

from haptics.jit import kernel

MOUNTING = np.dtype(
    [("on_flange", "<f8", (3, 3)), ("gravity", "<f8", (3,)), ("handle", "<f8", (6, 3)), ("offset", "<f8", (6,))]
)
"""How a sensor sits: ``on_flange`` turns its axes into those of the flange; ``gravity`` in the axes of the world
[m/s^2]; ``handle`` makes the wrench of its weight of gravity in the axes of the sensor; ``offset`` is what the sensor
shows without any load."""


@kernel
def turn_to_world(m: Any, orientation: Any, to_world: Any) -> None:
    """Fill `to_world`, (3, 3): it turns the axes of the sensor into those of the world, `orientation` the flange's."""
    for i in range(3):
        for j in range(3):
            to_world[i, j] = 0.0
            for k in range(3):
                to_world[i, j] += orientation[i, k] * m.on_flange[k, j]


@kernel
def gravity_in_sensor(m: Any, to_world: Any, gravity: Any) -> None:
    """Fill `gravity`, (3,), in the axes of the sensor [m/s^2]."""
    for i in range(3):
        gravity[i] = to_world[0, i] * m.gravity[0] + to_world[1, i] * m.gravity[1] + to_world[2, i] * m.gravity[2]


@kernel
def wrench_of_hand(m: Any, to_world: Any, gravity: Any, measured: Any, wrench: Any) -> None:
    """Fill `wrench`, (6,), of the hand in the axes of the world; `gravity` and `measured` are in the sensor's."""
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
    """Do all of it, for the (1,) array `mountings`."""
    m = mountings[0]
    turn_to_world(m, orientation, to_world)
    gravity_in_sensor(m, to_world, gravity)
    wrench_of_hand(m, to_world, gravity, measured, wrench)
