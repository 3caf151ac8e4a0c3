"""Per-tick computation of the Inverse3: projection to the plane, and control of the held axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from devices.common.kernels import accept, begin_sample, copy_sample, estimate_velocity, exchange_fields, send_command
from devices.common.velocity import VELOCITY, update_velocity
from devices.inverse3.exchange import ServiceExchange
from haptics.jit import kernel, merged_kernel
from haptics.records import fields

APPROACH = 0.05
"""Speed at which the held axis is moved from its initial position to the plane [m/s]."""

INVERSE3 = np.dtype(
    [
        *exchange_fields(ServiceExchange.sample_size, ServiceExchange.command_size),
        ("axes", "<i8", (3,)),
        ("middle", "<f8", (3,)),
        *fields("<f8", "period hold_stiffness hold_damping hold_limit height held_at hold_force"),
        ("lift", VELOCITY),
    ]
)
"""State of the device in one record.

``height`` is the distance of the cursor from the plane [m], ``held_at`` the set-point of the spring, ``lift`` the
velocity estimator of that axis.
"""

CHANNELS = (("height", "m", 1), ("hold_force", "N", 1), ("service_force", "N", 2), ("taken_force", "N", 2))
"""Recorded channels.

Distance of the cursor from the plane; force that holds it there; force in the plane that the service reports for the
motors; and the commanded force of the answered message minus the reported force.
"""


@merged_kernel
def update_hold(s: Any, share: float) -> None:
    """Compute ``hold_force`` [N]: a bounded spring and damper along the third axis, times `share`.

    `share` is between 0 and 1. While it is 0, the set-point follows the cursor; afterwards it moves slowly to the
    plane.
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
    """Read the newest sample at the nominal time `now`, `elapsed` after the clock's zero [s]."""
    if not begin_sample(s, now, elapsed):
        return
    if copy_sample(s):
        for i in range(2):
            s.position[i] = s.sample[1 + s.axes[i]] - s.middle[s.axes[i]]
        s.height = s.sample[1 + s.axes[2]] - s.middle[s.axes[2]]
    if s.now < s.estimator.time:
        s.lift.samples = 0
    estimate_velocity(s)
    update_velocity(s.lift, s.now, s.height, 0.0)
    s.channels[0], s.channels[1] = s.height, s.hold_force
    for i in range(2):
        reported, commanded = s.sample[4 + s.axes[i]], s.sample[7 + s.axes[i]]
        s.channels[2 + i], s.channels[4 + i] = reported, commanded - reported


@kernel
def give_inverse3(s: Any, x: float, y: float) -> None:
    """Publish the force [N]: the force in the plane, and the force that holds the third axis.

    Like friction compensation, the driver and not the servo computes the holding force; it is zero during safe output.
    """
    if not accept(s, x, y):
        return
    update_hold(s, min(max(s.assistance, 0.0), 1.0))
    s.given[s.axes[0]], s.given[s.axes[1]] = s.compensation.total[0], s.compensation.total[1]
    s.given[s.axes[2]] = s.hold_force
    send_command(s)
