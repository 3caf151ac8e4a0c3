"""Record of a Touch, its sample and its force command."""

from __future__ import annotations

from typing import Any

import numpy as np

from devices.common.kernels import accept, begin_sample, copy_sample, send_command
from devices.common.plane import estimate_in_plane, place_in_plane, plane_fields, spread_force
from devices.touch.callback import COMMAND_SIZE, SAMPLE_SIZE
from haptics.device import Channel
from haptics.jit import kernel

TOUCH = np.dtype([*plane_fields(SAMPLE_SIZE, COMMAND_SIZE), ("frame_timeout", "<f8")])
"""State of the device in one record."""

STALLED = 3
"""Value of ``fault``: no frame for ``frame_timeout``."""

CHANNELS: tuple[Channel, ...] = (("motor_temperature", "1", 1),)
"""Recorded channel, after the common ones of devices in a plane.

The manufacturer's prediction for the warmest motor, from 0 (cold) to 1.
"""


@kernel
def take_touch(s: Any, now: float, elapsed: float) -> None:
    """Read the newest sample at the nominal time `now`, `elapsed` after the clock's zero [s]."""
    if not begin_sample(s, now, elapsed):
        return
    if copy_sample(s):
        place_in_plane(s, 1)
        s.buttons = int(s.sample[4])
        if s.instant - s.sample[0] > s.frame_timeout:
            s.fault = STALLED
            return
    estimate_in_plane(s)
    s.channels[2] = s.sample[5]


@kernel
def give_touch(s: Any, x: float, y: float) -> None:
    """Publish the force [N]: the force in the plane, and the force that holds the third axis."""
    if accept(s, x, y):
        spread_force(s)
        send_command(s)
