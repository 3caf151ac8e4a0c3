"""Kernels shared by drivers and virtual devices: quantisation, time, velocity, friction compensation, exchange."""

from __future__ import annotations

import math
from typing import Any

from devices.common.compensation import COMPENSATION, add_friction
from devices.common.latch import copy_latest, publish_to
from devices.common.log import log_command
from devices.common.velocity import VELOCITY, update_velocity
from haptics.device import PORT_FIELDS
from haptics.jit import float_at, inlined_kernel, merged_kernel
from haptics.records import fields

NOT_FINITE, LOST = 1, 2
"""Values of ``fault``: a command was not finite; no further samples will arrive.

Drivers define more values. All but the first remain until the device is opened again.
"""

DRIVER_FIELDS: list[tuple[Any, ...]] = [*PORT_FIELDS, ("log", "<i8"), *fields("<f8", "now origin instant")]
"""Fields of the record of every driver.

``log`` is the address of the command log, or 0. ``now`` is the nominal time of the tick, ``origin`` the time of the run
clock's zero, and ``instant`` the start of the tick [s, perf_counter].
"""

FORCE_DRIVER_FIELDS: list[tuple[Any, ...]] = [*DRIVER_FIELDS, ("compensation", COMPENSATION), ("estimator", VELOCITY)]
"""Fields of the record of a driver with force commands and position measurements."""


@merged_kernel
def record_time(s: Any, now: float, elapsed: float) -> None:
    """Set the nominal time `now` and the time `elapsed` since the zero of the clock for a new sample [s]."""
    s.now, s.instant = now, s.origin + elapsed
    if s.fault == NOT_FINITE:
        s.fault = 0


@merged_kernel
def record_command(s: Any, x: float, y: float) -> None:
    """Record a command (x, y) [N] or [m], also in the log if there is one."""
    s.command[0], s.command[1] = x, y
    if s.log != 0:
        log_command(s.log, s.now, x, y)


@merged_kernel
def estimate_velocity(s: Any) -> None:
    """Estimate the velocity from the position. Reset the estimator when the clock is reset."""
    if s.now < s.estimator.time:
        s.estimator.samples = 0
    update_velocity(s.estimator, s.now, s.position[0], s.position[1])
    s.velocity[0], s.velocity[1] = s.estimator.velocity[0], s.estimator.velocity[1]


@merged_kernel
def accept(s: Any, x: float, y: float) -> bool:
    """Record a force (x, y) [N] and add friction compensation to it, in ``compensation.total``.

    Return False if the force is not finite.
    """
    if not math.hypot(x, y) < math.inf:
        s.fault = NOT_FINITE
        return False
    record_command(s, x, y)
    add_friction(s.compensation, s.assistance, x, y, s.velocity[0], s.velocity[1])
    return True


@inlined_kernel
def quantise(x: float, resolution: float) -> float:
    """Round to the nearest multiple of `resolution`; 0 leaves `x` unchanged."""
    return math.floor(x / resolution + 0.5) * resolution if resolution > 0.0 else x


# --- exchange ---------------------------------------------------------------------------------------------------------


def exchange_fields(sample_size: int, command_size: int) -> list[tuple[Any, ...]]:
    """Return the first fields of the record of a driver with an exchange (`devices.common.exchange`).

    ``samples``, ``commanded`` and ``lost`` are addresses of the memory that the thread shares with the tick. ``sample``
    is the latest sample with its time in front, ``given`` the latest command, with its time at the end.
    """
    return [
        *FORCE_DRIVER_FIELDS,
        *fields("<i8", "samples commanded lost"),
        ("sample", "<f8", (1 + sample_size,)),
        ("given", "<f8", (command_size + 1,)),
    ]


@merged_kernel
def begin_sample(s: Any, now: float, elapsed: float) -> bool:
    """Set the time of a sample (`record_time`); return False after a fault."""
    record_time(s, now, elapsed)
    if float_at(s.lost) != 0.0:
        s.fault = LOST
    return bool(s.fault == 0)


@merged_kernel
def copy_sample(s: Any) -> bool:
    """Copy the newest sample to ``s.sample`` and its time to ``s.time``; return False if there is none."""
    if not copy_latest(s.samples, s.sample):
        return False
    s.time = s.sample[0] - s.origin
    return True


@merged_kernel
def send_command(s: Any) -> None:
    """Publish the command ``s.given`` with the present time."""
    s.given[len(s.given) - 1] = s.instant
    publish_to(s.commanded, s.given)
    if float_at(s.lost) != 0.0:
        s.fault = LOST
