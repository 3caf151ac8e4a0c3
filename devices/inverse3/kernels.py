"""Per-tick computation of the Inverse3; `devices.common.plane` projects to the plane and holds the third axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from devices.common.kernels import accept, begin_sample, copy_sample, send_command
from devices.common.plane import component, estimate_in_plane, place_in_plane, plane_fields, spread_force
from devices.inverse3.exchange import ServiceExchange
from haptics.device import Channel
from haptics.jit import kernel

INVERSE3 = np.dtype(plane_fields(ServiceExchange.sample_size, ServiceExchange.command_size))
"""State of the device in one record."""

CHANNELS: tuple[Channel, ...] = (("service_force", "N", 2), ("taken_force", "N", 2))
"""Recorded channels after those of every device in a plane.

Force in the plane that the service reports for the motors; and the commanded force of the answered message minus the
reported force.
"""


@kernel
def take_inverse3(s: Any, now: float, elapsed: float) -> None:
    """Read the newest sample at the nominal time `now`, `elapsed` after the clock's zero [s]."""
    if not begin_sample(s, now, elapsed):
        return
    if copy_sample(s):
        place_in_plane(s, 1)
    estimate_in_plane(s)
    for i in range(2):
        reported = component(s, i, 4)
        s.channels[2 + i], s.channels[4 + i] = reported, component(s, i, 7) - reported


@kernel
def give_inverse3(s: Any, x: float, y: float) -> None:
    """Publish the force [N]: the force in the plane, and the force that holds the third axis."""
    if accept(s, x, y):
        spread_force(s)
        send_command(s)
