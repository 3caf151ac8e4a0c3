"""What drivers with a port compute in every tick, whatever the device: time, velocity, friction compensation."""

from __future__ import annotations

import math
from typing import Any

from devices.common.compensation import COMPENSATION, add_friction
from devices.common.log import log_command
from devices.common.velocity import VELOCITY, update_velocity
from haptics.jit import merged_kernel
from haptics.ports import PORT_FIELDS

NOT_FINITE, LOST = 1, 2
"""What ``fault`` says: a command was not finite; there will be no more samples. Drivers add more; all but the first
stay until the device is opened again."""

DRIVER_FIELDS: list[tuple[Any, ...]] = [
    *PORT_FIELDS,
    ("log", "<i8"),
    ("now", "<f8"),
    ("origin", "<f8"),
    ("instant", "<f8"),
]
"""Fields of every driver's record. ``log`` is where the log of commands lies, or 0; ``now`` is the nominal time of the
tick, ``origin`` when the run's clock was at zero, and ``instant`` when the tick began [s, perf_counter]."""

FORCE_DRIVER_FIELDS: list[tuple[Any, ...]] = [*DRIVER_FIELDS, ("compensation", COMPENSATION), ("estimator", VELOCITY)]
"""Fields of the record of a driver that takes forces, and tells positions only: those, friction compensation, and how
velocities are made of positions."""


@merged_kernel
def note_time(s: Any, now: float, elapsed: float) -> None:
    """Begin a sample at the nominal time `now`, `elapsed` after the clock's zero [s]."""
    s.now, s.instant = now, s.origin + elapsed
    if s.fault == NOT_FINITE:
        s.fault = 0


@merged_kernel
def note_command(s: Any, x: float, y: float) -> None:
    """Take note of a command (x, y) [N] or [m], in the log too if there is one."""
    s.command[0], s.command[1] = x, y
    if s.log != 0:
        log_command(s.log, s.now, x, y)


@merged_kernel
def estimate_velocity(s: Any) -> None:
    """Estimate the velocity from the position; a clock that begins anew begins it anew."""
    if s.now < s.estimator.time:
        s.estimator.samples = 0
    update_velocity(s.estimator, s.now, s.position[0], s.position[1])
    s.velocity[0], s.velocity[1] = s.estimator.velocity[0], s.estimator.velocity[1]


@merged_kernel
def accept(s: Any, x: float, y: float) -> bool:
    """Take note of a force (x, y) [N] and add friction to it: ``compensation.total``; tell whether it is finite."""
    if not math.hypot(x, y) < math.inf:
        s.fault = NOT_FINITE
        return False
    note_command(s, x, y)
    add_friction(s.compensation, s.assistance, x, y, s.velocity[0], s.velocity[1])
    return True
