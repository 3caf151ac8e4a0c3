"""A tick of the Inverse3, as the parts of its port: from space to the plane and back, and the axis that is held."""

from __future__ import annotations

from typing import Any

import numpy as np

from devices.common.driver_kernels import FORCE_DRIVER_FIELDS, LOST, accept, estimate_velocity, note_time
from devices.common.latch import copy_latest, leave
from devices.common.velocity import VELOCITY, update_velocity
from devices.inverse3.exchange import Exchange
from haptics.jit import kernel, merged_kernel
from haptics.parts import float_at
from haptics.records import Rows

APPROACH = 0.05
"""How fast the held axis is brought to the plane from where it was [m/s]."""

INVERSE3 = np.dtype(
    [
        *FORCE_DRIVER_FIELDS,
        ("samples", "<i8"),
        ("wanted", "<i8"),
        ("lost", "<i8"),
        ("axes", "<i8", (3,)),
        ("middle", "<f8", (3,)),
        ("period", "<f8"),
        ("hold_stiffness", "<f8"),
        ("hold_damping", "<f8"),
        ("hold_limit", "<f8"),
        ("height", "<f8"),
        ("held_at", "<f8"),
        ("hold_force", "<f8"),
        ("lift", VELOCITY),
        ("sample", "<f8", (10,)),
        ("given", "<f8", (4,)),
    ]
)
"""The whole device in one record: what `devices.inverse3.exchange` shares with the tick lies at ``samples``, ``wanted``
and ``lost``. ``height`` is how far the cursor is out of the plane [m], ``held_at`` where the spring wants it, ``lift``
how fast it moves there; ``sample`` is the latest one, ``given`` what was left last."""

CHANNELS = (("height", "m", 1), ("hold_force", "N", 1), ("service_force", "N", 2), ("taken_force", "N", 2))
"""How far the cursor is out of the plane; the force that holds it there; what force in the plane the service says it
makes the motors do; and how much less that is than what it was told, in the message that it answers."""


def connect(record: Rows, exchange: Exchange) -> None:
    """Fill in where the exchange is, which must live as long as the record is used."""
    record["samples"], record["wanted"] = exchange.samples.place, exchange.forces.place
    record["lost"] = exchange.lost.ctypes.data


@merged_kernel
def fill_channels(s: Any) -> None:
    """Fill in the channels from the latest sample."""
    s.channels[0], s.channels[1] = s.height, s.hold_force
    for i in range(2):
        reported, told = s.sample[4 + s.axes[i]], s.sample[7 + s.axes[i]]
        s.channels[2 + i], s.channels[4 + i] = reported, told - reported


@merged_kernel
def update_hold(s: Any, share: float) -> None:
    """Compute ``hold_force`` [N], a spring and a damper along the third axis, bounded; `share` of it, 0 to 1.

    While there is none of it, the spring stays relaxed where the cursor is; then it draws it to the plane, slowly.
    """
    if share == 0.0:
        s.held_at, s.hold_force = s.height, 0.0
        return
    step = APPROACH * s.period
    s.held_at -= min(max(s.held_at, -step), step)
    force = s.hold_stiffness * (s.held_at - s.height) - s.hold_damping * s.lift.velocity[0]
    s.hold_force = share * min(max(force, -s.hold_limit), s.hold_limit)


@kernel
def take_inverse3(s: Any, now: float, elapsed: float) -> None:
    """Take the newest sample at the nominal time `now`, `elapsed` after the clock's zero [s]."""
    note_time(s, now, elapsed)
    if float_at(s.lost) != 0.0:
        s.fault = LOST
    if s.fault != 0:
        return
    if copy_latest(s.samples, s.sample):
        for i in range(2):
            s.position[i] = s.sample[1 + s.axes[i]] - s.middle[s.axes[i]]
        s.height = s.sample[1 + s.axes[2]] - s.middle[s.axes[2]]
        s.time = s.sample[0] - s.origin
    if s.now < s.estimator.time:
        s.lift.samples = 0
    estimate_velocity(s)
    update_velocity(s.lift, s.now, s.height, 0.0)
    fill_channels(s)


@kernel
def give_inverse3(s: Any, x: float, y: float) -> None:
    """Leave the force [N] for the service: the one in the plane, and the one that holds the third axis.

    That one, like friction compensation, is ours and not the servo's: there is none of it in the safe output.
    """
    if not accept(s, x, y):
        return
    update_hold(s, min(max(s.assistance, 0.0), 1.0))
    s.given[s.axes[0]], s.given[s.axes[1]] = s.compensation.total[0], s.compensation.total[1]
    s.given[s.axes[2]], s.given[3] = s.hold_force, s.instant
    leave(s.wanted, s.given)
    if float_at(s.lost) != 0.0:
        s.fault = LOST
