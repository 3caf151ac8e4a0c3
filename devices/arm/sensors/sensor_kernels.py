"""What a force sensor is to a tick without Python: the newest wrench, how old it is, and whether it can be trusted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from devices.arm.sensors.mounting_kernels import MOUNTING, gravity_in_sensor, turn_to_world, wrench_of_hand
from devices.common.latch import copy_latest
from haptics.jit import kernel
from haptics.parts import record_at

READING = 8
"""How many numbers a latched measurement has: when the last one came that can be trusted [s, perf_counter], 1 if the
newest one cannot, and its wrench in the axes of the sensor."""

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
"""The latch, the float that is 1 once there will be no more measurements and the record of the mounting lie at
``readings``, ``lost`` and ``mounting``. ``usable`` is when the last measurement came that can be trusted
[s, perf_counter], ``age`` how old that is, ``patience`` how old it may be [s]. ``raw`` and ``gravity`` are in the axes
of the sensor, ``wrench`` of the hand in those of the world."""


@kernel
def take_reading(q: Any, instant: float, orientation: Any) -> bool:
    """Take the newest measurement at an `instant` [s, perf_counter]; tell whether a trusted one is young enough.

    One that cannot be trusted is no force: ``raw`` is nan, ``wrench`` zero. `orientation`, (3, 3), is the flange's.
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
