"""One tick of a motion as a kernel: reference, position controller and limit of the following error; see `motion`.

A motion is a part like the step of an element (`haptics.parts`), but of the whole record of a tick: it follows a
position, so it must know where the device is. The record brings what a motion is (`MOTION`, only settings change it)
and how far it has come (`FOLLOWER`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from haptics.jit import kernel
from haptics.parts import float_at
from haptics.rendering.envelope import limit_norm

MOVING = 100
"""The kind of a program that is a motion; below are the elements."""

WIDTH = 6
"""Numbers in a row of a reference: position [m], velocity [m/s] and force [N], two of each."""

PATIENCE = 0.02
"""An end effector that is too fast for so long [s] runs away; a single late sample looks like one, too."""

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
"""How far a motion has come. ``astray`` is not 0 once the end effector did not follow, ``tripped`` once a motion that
has gains to rest with took these; they stay so."""


@kernel
def _number(table: int, index: int) -> float:
    """Return number `index` of the reference at `table`."""
    return float(float_at(table + 8 * index))


@kernel
def _advance(s: Any) -> bool:
    """Go on to the next row, if there is one; tell whether the reference moved.

    It waits while the output is not let through whole: nothing that is let go of, or not yet held, is left behind.
    Where deadlines were missed, a handle has moved on under the last force, and so has its reference; an arm stood.
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
    """Watch the following error: take note of an end effector too far from the reference, or too fast for too long."""
    f, m, e, v = s.follower, s.motion, s.displacement, s.velocity
    f.racing = f.racing + 1 if math.hypot(v[0], v[1]) > m.max_speed else 0
    if math.hypot(e[0], e[1]) > m.max_error or f.racing * s.period > PATIENCE:
        f.astray = 1


@kernel
def _measure(s: Any, first: bool, x: float, y: float) -> None:
    """Leave in ``s.displacement`` how far the end effector is from the reference, which is at the place (x, y).

    A motion that acts as a sticking contact does what an element does then: it adds up the velocity that it is told.
    """
    if s.motion.contact == 0:
        s.displacement[0], s.displacement[1] = s.position[0] - x, s.position[1] - y
        return
    for i in range(2):
        before = 0.0 if first else s.displacement[i]
        s.displacement[i] = before + s.period * (s.velocity[i] - s.sliding_velocity[i])


@kernel
def _rest(s: Any) -> None:
    """Take the gains to rest with where the last rows begin, which they do at once where it is off by too much."""
    f, m, e = s.follower, s.motion, s.displacement
    if m.trip > 0.0 and math.hypot(e[0], e[1]) > m.trip:
        f.row = max(f.row, m.rows - 1 - m.resting)
        f.tripped = 1
    elif m.resting > 0 and f.row + m.resting >= m.rows:
        f.tripped = 1


@kernel
def _pull(s: Any, first: bool, force_x: float, force_y: float) -> None:
    """Leave in ``s.output`` what draws an impedance device to the reference, with the sign of an element's force."""
    K, B, f, e, v = s.stiffness, s.damping, s.follower, s.displacement, s.sliding_velocity
    if f.tripped != 0:
        K, B, force_x, force_y = s.motion.rest_stiffness, s.motion.rest_damping, 0.0, 0.0
    x = force_x - K * e[0] + B * (v[0] - s.velocity[0])
    y = force_y - K * e[1] + B * (v[1] - s.velocity[1])
    rate, bound = s.motion.integration, s.motion.bound
    if first:
        f.load[0], f.load[1] = s.last[0] - x, s.last[1] - y
        if rate == 0.0 or math.hypot(f.load[0], f.load[1]) > bound:  # else go on from the force that is there
            f.load[0] = f.load[1] = 0.0
    x, y = x + f.load[0], y + f.load[1]
    x, y, cut = limit_norm(x, y, bound)
    if cut == 0 and s.gain * s.gate == 1.0:  # what is cut, or not let through, does not add up
        f.load[0] -= rate * s.period * e[0]
        f.load[1] -= rate * s.period * e[1]
    s.output[0], s.output[1] = -x, -y


@kernel
def _lead(s: Any, x: float, y: float) -> None:
    """Leave in ``s.output`` the velocity that takes an admittance device's reference to the place (x, y)."""
    vx, vy = (x - s.reference[0]) / s.period, (y - s.reference[1]) / s.period
    s.output[0], s.output[1], _ = limit_norm(vx, vy, s.motion.bound)


@kernel
def move(s: Any, _x: float, _y: float) -> None:
    """Advance a motion by one period; what an element is given is in the record, too.

    The columns of an element say the same of a motion: its proxy is the reference, which the sliding velocity is that
    of, the displacement is how far the end effector is off it, and it sticks where it has come to its end.
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
