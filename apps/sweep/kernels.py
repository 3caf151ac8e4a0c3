"""Accumulated sums over the ticks of a session, in one pass without keeping rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from haptics.jit import inlined_kernel, kernel
from haptics.rendering.envelope import UNUSABLE
from haptics.servo.offline import REDUCTION_FIELDS, Reduction, row_of

LOWEST_BUZZ = 10.0
"""Lower cut-off frequency of the buzz measure [Hz]."""

SUMS = np.dtype(
    [
        *REDUCTION_FIELDS,
        *((name, "<i8") for name in ("seen", "ticks", "sticking", "sliding", "unusable", "flags", "known", "rested")),
        *((name, "<f8") for name in ("decay", "settle")),
        *((name, "<f8", (2,)) for name in ("last_command", "high", "last_position", "last_proxy", "crept")),
        *((name, "<f8") for name in ("buzz", "rest_buzz", "slide", "slide_square", "friction_max", "command_max")),
        *((name, "<f8") for name in ("felt", "path", "speed_max", "energy_max", "aside")),
        *((name, "<f8") for name in ("t", "t_square")),
        *((name, "<f8", (2,)) for name in ("x", "x_t")),
    ]
)
"""Sums of a session.

``decay`` is the coefficient of the high-pass filter per tick. Ticks before ``settle`` [s] are not counted. ``crept`` is
the displacement of the proxy while the contact stuck [m], ``aside`` the sum of the angles between friction and sliding
[rad].
"""


def reduction(period: float, settle: float) -> Reduction:
    """Return the reduction of a session with a period of `period` [s], excluding the first `settle` [s]."""
    start = np.zeros(1, SUMS)
    start["decay"] = 1.0 / (1.0 + 2.0 * math.pi * LOWEST_BUZZ * period)
    start["settle"] = settle
    return Reduction(_add_rows, start)


@inlined_kernel
def _creep(s: Any, row: Any) -> None:
    """Add the displacement of the proxy since the last tick if the contact sticks in both ticks."""
    for i in range(2):
        if row.sticking != 0 and s.rested != 0:
            s.crept[i] += row.proxy[i] - s.last_proxy[i]
        s.last_proxy[i] = row.proxy[i]
    s.rested = 1 if row.sticking != 0 else 0


@inlined_kernel
def _add(s: Any, row: Any) -> None:
    """Add a usable row."""
    friction = math.hypot(row.friction_force[0], row.friction_force[1])
    square = s.high[0] ** 2 + s.high[1] ** 2
    s.buzz += square
    s.friction_max = max(s.friction_max, friction)
    s.command_max = max(s.command_max, math.hypot(row.command[0], row.command[1]))
    s.speed_max = max(s.speed_max, math.hypot(row.velocity[0], row.velocity[1]))
    s.energy_max = max(s.energy_max, row.injected_energy)
    if s.ticks > 0:
        s.path += math.hypot(row.position[0] - s.last_position[0], row.position[1] - s.last_position[1])
    for i in range(2):
        s.last_position[i] = row.position[i]
        s.x[i] += row.position[i]
        s.x_t[i] += row.position[i] * row.time
    s.t += row.time
    s.t_square += row.time**2
    s.ticks += 1
    _creep(s, row)
    if row.sticking != 0:
        s.sticking += 1
        s.rest_buzz += square
        return
    s.sliding += 1
    s.slide += friction
    s.slide_square += friction * friction
    vx, vy, fx, fy = row.sliding_velocity[0], row.sliding_velocity[1], row.friction_force[0], row.friction_force[1]
    s.aside += math.atan2(abs(vx * fy - vy * fx), vx * fx + vy * fy)
    v = math.hypot(vx, vy)
    if v > 0.0 and not math.isnan(row.hand_force[0]):
        along = row.hand_force[0] * vx + row.hand_force[1] * vy
        s.known += 1
        s.felt += along / v


@kernel
def _add_rows(s: Any, first: float, following: float) -> None:
    """Add the rows of a session from index `first` up to but not including `following`."""
    for number in range(int(first), int(following)):
        row = row_of(s, number)
        usable = row.status & UNUSABLE == 0
        for i in range(2):
            command = row.command[i] if usable else s.last_command[i]
            s.high[i] = s.decay * (s.high[i] + command - s.last_command[i]) if s.seen > 0 else 0.0
            s.last_command[i] = command
        s.seen += 1
        if row.time < s.settle:
            continue
        s.flags |= row.status
        if not usable:
            s.unusable += 1
            continue
        _add(s, row)
