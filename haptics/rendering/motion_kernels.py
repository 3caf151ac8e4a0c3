"""Kernel of one tick of a motion: reference, position controller and following error limit.

A motion is a part like the step of an element (`haptics.parts`), but it takes the complete record of a tick, because it
needs the position of the device. See `motion` for the class. The record contains the parameters of the motion
(`MOTION`, changed by settings only) and its progress (`FOLLOWER`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from haptics.jit import kernel
from haptics.parts import float_at
from haptics.rendering.envelope import limit_norm

MOVING = 100
"""Model number of a motion; elements have lower numbers."""

WIDTH = 6
"""Numbers in a row of a reference: position [m], velocity [m/s] and force [N], two of each."""

PATIENCE = 0.02
"""Time for which the speed limit of a motion may be exceeded [s]; tolerates a single late sample."""

FOLLOWER = np.dtype(
    [
        ("begun", "<i8"),
        ("row", "<i8"),
        ("racing", "<i8"),
        ("astray", "<i8"),
        ("tripped", "<i8"),
        ("origin", "<f8", (2,)),
        ("load", "<f8", (2,)),
    ]
)
"""Progress of a motion.

``astray`` is nonzero once the end effector did not follow. ``tripped`` is nonzero once the gains for the rest phase are
in use. Both are kept until the motion is restarted.
"""


@kernel
def _number(table: int, index: int) -> float:
    """Return the element `index` of the reference at `table`."""
    return float(float_at(table + 8 * index))


@kernel
def _advance(s: Any) -> bool:
    """Advance to the next row, if any; return True if the reference moved.

    The reference waits while the output is not fully applied, so that it does not run ahead of the device. After missed
    deadlines it skips rows for an impedance device, whose handle moved on under the last force, but not for an
    admittance device, which held its position.
    """
    f = s.follower
    if f.begun == 0:
        f.begun = 1
        for i in range(2):
            f.origin[i] = 0.0
            if s.motion.relative != 0:
                f.origin[i] = s.reference[i] if s.admittance != 0 else s.position[i]
        return False
    if s.gain * s.gate < 1.0 or f.row + 1 >= s.motion.rows:
        return False
    f.row = f.row + 1 if s.admittance != 0 else min(f.row + s.periods, s.motion.rows - 1)
    return True


@kernel
def _watch(s: Any) -> None:
    """Set ``astray`` if the end effector is too far from the reference, or too fast for too long."""
    f, m, e, v = s.follower, s.motion, s.displacement, s.velocity
    f.racing = f.racing + 1 if math.hypot(v[0], v[1]) > m.max_speed else 0
    if math.hypot(e[0], e[1]) > m.max_error or f.racing * s.period > PATIENCE:
        f.astray = 1


@kernel
def _measure(s: Any, first: bool, x: float, y: float) -> None:
    """Write the following error with respect to the reference at (x, y) to ``s.displacement``.

    For a motion that acts as a sticking contact, it is the integral of the velocity error, as in an element.
    """
    if s.motion.contact == 0:
        s.displacement[0], s.displacement[1] = s.position[0] - x, s.position[1] - y
        return
    for i in range(2):
        before = 0.0 if first else s.displacement[i]
        s.displacement[i] = before + s.period * (s.velocity[i] - s.sliding_velocity[i])


@kernel
def _rest(s: Any) -> None:
    """Switch to the gains for the rest phase at its start, or when the following error exceeds `trip`."""
    f, m, e = s.follower, s.motion, s.displacement
    if m.trip > 0.0 and math.hypot(e[0], e[1]) > m.trip:
        f.row = max(f.row, m.rows - 1 - m.resting)
        f.tripped = 1
    elif m.resting > 0 and f.row + m.resting >= m.rows:
        f.tripped = 1


@kernel
def _pull(s: Any, first: bool, force_x: float, force_y: float) -> None:
    """Write the controller force to ``s.output`` (impedance), with the sign of an element's force."""
    K, B, f, e, v = s.stiffness, s.damping, s.follower, s.displacement, s.sliding_velocity
    if f.tripped != 0:
        K, B, force_x, force_y = s.motion.rest_stiffness, s.motion.rest_damping, 0.0, 0.0
    x = force_x - K * e[0] + B * (v[0] - s.velocity[0])
    y = force_y - K * e[1] + B * (v[1] - s.velocity[1])
    rate, bound = s.motion.integration, s.motion.bound
    if first:
        f.load[0], f.load[1] = s.last[0] - x, s.last[1] - y
        if rate == 0.0 or math.hypot(f.load[0], f.load[1]) > bound:  # else continue from the present force
            f.load[0] = f.load[1] = 0.0
    x, y = x + f.load[0], y + f.load[1]
    x, y, cut = limit_norm(x, y, bound)
    if cut == 0 and s.gain * s.gate == 1.0:  # anti-windup: do not integrate while the output is limited
        f.load[0] -= rate * s.period * e[0]
        f.load[1] -= rate * s.period * e[1]
    s.output[0], s.output[1] = -x, -y


@kernel
def _lead(s: Any, x: float, y: float) -> None:
    """Write the velocity that takes the reference to (x, y) to ``s.output`` (admittance)."""
    vx, vy = (x - s.reference[0]) / s.period, (y - s.reference[1]) / s.period
    s.output[0], s.output[1], _ = limit_norm(vx, vy, s.motion.bound)


@kernel
def move(s: Any, _x: float, _y: float) -> None:
    """Advance a motion by one period; its inputs are in the record.

    The columns of an element apply to a motion as follows: the proxy is the reference, the sliding velocity is its
    velocity, the displacement is the following error, and it sticks at the end of the reference.
    """
    f, m = s.follower, s.motion
    if f.astray != 0:
        return
    first = f.begun == 0
    moved = _advance(s)
    at = WIDTH * f.row
    x, y = f.origin[0] + _number(m.table, at), f.origin[1] + _number(m.table, at + 1)
    for i in range(2):
        s.sliding_velocity[i] = _number(m.table, at + 2 + i) if moved else 0.0
        s.friction_force[i] = 0.0
    _measure(s, first, x, y)
    if f.tripped == 0:
        _rest(s)
    s.sticking = 1 if f.row + 1 >= m.rows else 0
    _watch(s)
    if s.admittance != 0:
        _lead(s, x, y)
    else:
        _pull(s, first, _number(m.table, at + 4), _number(m.table, at + 5))
