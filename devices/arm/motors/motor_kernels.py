"""Two motors behind gears as kernels: from what was heard of them to joints, and from commands at joints to turns.

What lies between a tick and the thread that talks to the drive (`devices.arm.motors.streaming`) are latches.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from devices.common.latch import copy_latest, leave
from haptics.jit import kernel

SAMPLE, COMMAND = 5, 7
"""How many numbers a latched sample has (`devices.arm.motors.streaming.Sample`), and a latched command: positions
[turn], speeds [turn/s] and torques [N m] of both motors, and when it was given [s, perf_counter]."""

MOTORS = np.dtype(
    [
        ("samples", "<i8"),
        ("commands", "<i8"),
        ("lost", "<i8"),
        ("offsets", "<f8", (2,)),
        ("per_radian", "<f8", (2,)),
        ("ratios", "<f8", (2,)),
        ("sample", "<f8", (SAMPLE,)),
        ("sampled", "<f8"),
        ("angles", "<f8", (2,)),
        ("speeds", "<f8", (2,)),
        ("told", "<f8", (COMMAND,)),
    ]
)
"""The latches and the float that is 1 once there will be no more samples lie at ``samples``, ``commands`` and ``lost``.
``offsets`` is where the arm's zero is, of what the drive counts [turn], ``per_radian`` how many turns a motor makes for
a radian of its joint, ``ratios`` of the gears. ``sampled`` is when the latest sample was asked for [s, perf_counter],
``angles`` and ``speeds`` are those of the joints then [rad], [rad/s]; ``told`` is the latest command."""

_FARTHEST = 1e5
"""The drive's numbers have no room for fractions of so many turns, or turns per second."""


@kernel
def take_motors(m: Any) -> None:
    """Fill in angles and speeds of the joints from the latest sample."""
    if not copy_latest(m.samples, m.sample):
        return
    m.sampled = m.sample[0]
    for i in range(2):
        m.angles[i] = (m.sample[1 + i] - m.offsets[i]) / m.per_radian[i]
        m.speeds[i] = m.sample[3 + i] / m.per_radian[i]


@kernel
def give_motors(m: Any, instant: float) -> bool:
    """Leave the command ``told`` for the drive's thread; tell whether it is finite, and not too far.

    So far it is what the joints are to do: angles [rad], speeds [rad/s], torques [N m]; it becomes what the motors are,
    given at an `instant` [s, perf_counter].
    """
    far = 0.0
    for i in range(2):
        m.told[i] = m.told[i] * m.per_radian[i] + m.offsets[i]
        m.told[2 + i] *= m.per_radian[i]
        m.told[4 + i] /= m.ratios[i]
        far += math.fabs(m.told[i]) + math.fabs(m.told[2 + i]) + math.fabs(m.told[4 + i])
    if not far < _FARTHEST:
        return False
    m.told[6] = instant
    leave(m.commands, m.told)
    return True


@kernel
def look_at(motors: Any) -> None:
    """Take the latest sample, for the (1,) array `motors`."""
    take_motors(motors[0])


@kernel
def tell(motors: Any, instant: float) -> bool:
    """Leave the command ``told``, for the (1,) array `motors`; tell whether it can be followed."""
    return bool(give_motors(motors[0], instant))
