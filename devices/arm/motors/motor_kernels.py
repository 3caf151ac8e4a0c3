"""Kernels of two motors behind gears: conversion of samples and commands between motors and joints.

Latches connect a tick with the thread that communicates with the drive (`devices.arm.motors.streaming`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from devices.common.latch import copy_latest, publish_to
from haptics.jit import kernel

SAMPLE, COMMAND = 5, 7
"""Number of values in a latched sample (`devices.arm.motors.streaming.Sample`) and in a latched command: positions
[turn], speeds [turn/s] and torques [N m] of both motors, and its time [s, perf_counter].
"""

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
"""Kernel record of two motors. ``samples`` and ``commands`` are the addresses of the latches, ``lost`` is the address
of a float that becomes 1 when the samples have ended. ``offsets`` is the arm's zero in the drive's counting
[turn], ``per_radian`` the motor turns per radian of the joint, ``ratios`` the gear ratios. ``sampled`` is the time at
which the latest sample was requested [s, perf_counter], ``angles`` and ``speeds`` are the joint angles and speeds at
that time [rad], [rad/s]; ``told`` is the latest command.
"""

_FARTHEST = 1e5
"""Bound of positions [turn] and speeds [turn/s]: beyond it the drive's floats have no precision for fractions."""


@kernel
def take_motors(m: Any) -> None:
    """Update angles and speeds of the joints from the latest sample."""
    if not copy_latest(m.samples, m.sample):
        return
    m.sampled = m.sample[0]
    for i in range(2):
        m.angles[i] = (m.sample[1 + i] - m.offsets[i]) / m.per_radian[i]
        m.speeds[i] = m.sample[3 + i] / m.per_radian[i]


@kernel
def give_motors(m: Any, instant: float) -> bool:
    """Convert the command ``told`` and pass it to the drive's thread; return True if it is within range.

    On entry ``told`` is in terms of the joints: angles [rad], speeds [rad/s], torques [N m]. It is converted in place
    to the motors, with the time `instant` [s, perf_counter].
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
    publish_to(m.commands, m.told)
    return True


@kernel
def read_motors(motors: Any) -> None:
    """Update angles and speeds from the latest sample, for the (1,) array `motors`."""
    take_motors(motors[0])


@kernel
def command_motors(motors: Any, instant: float) -> bool:
    """Convert and pass on the command ``told`` of `motors[0]`; return True if it is within range."""
    return bool(give_motors(motors[0], instant))
