"""Kernels of a force sensor for the tick: the newest wrench, its age, and whether it is valid."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from devices.arm.sensors.mounting_kernels import MOUNTING, gravity_in_sensor, turn_to_world, wrench_of_hand
from devices.common.latch import copy_latest
from haptics.jit import kernel
from haptics.parts import record_at

READING = 8
"""Number of values in a latched measurement: time of the last valid measurement [s, perf_counter], 1 if the newest one
is invalid, and its wrench in sensor axes.
"""

SENSOR = np.dtype(
    [
        ("readings", "<i8"),
        ("lost", "<i8"),
        ("mounting", "<i8"),
        ("patience", "<f8"),
        ("latest", "<f8", (READING,)),
        ("usable", "<f8"),
        ("age", "<f8"),
        ("to_world", "<f8", (3, 3)),
        ("gravity", "<f8", (3,)),
        ("raw", "<f8", (6,)),
        ("wrench", "<f8", (6,)),
    ]
)
"""Kernel record of a force sensor. ``readings``, ``lost`` and ``mounting`` are the addresses of the latch, of the float
that becomes 1 when the sensor has failed, and of the mounting record. ``usable`` is the time of the last valid
measurement [s, perf_counter], ``age`` its age, ``patience`` its maximum age [s]. ``raw`` and ``gravity`` are in sensor
axes, ``wrench`` is the wrench of the hand in world axes.
"""


@kernel
def take_reading(q: Any, instant: float, orientation: Any) -> bool:
    """Read the newest measurement at `instant` [s, perf_counter]; return True if a recent one is valid.

    For an invalid measurement ``raw`` is nan and ``wrench`` zero. `orientation`, (3, 3), is the orientation of the
    flange.
    """
    m = record_at(q.mounting, MOUNTING)
    turn_to_world(m, orientation, q.to_world)
    gravity_in_sensor(m, q.to_world, q.gravity)
    if copy_latest(q.readings, q.latest):
        q.usable = q.latest[0]
        if q.latest[1] == 0.0:
            q.raw[:] = q.latest[2:]
            wrench_of_hand(m, q.to_world, q.gravity, q.raw, q.wrench)
        else:
            q.raw[:], q.wrench[:] = math.nan, 0.0
    q.age = instant - q.usable
    return bool(q.age <= q.patience)
