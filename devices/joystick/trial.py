"""Test push at start-up for a stick whose firmware differs from the calibrated one.

New firmware may reverse or scale the force. The handle, which must be free, is pushed towards the middle, along no axis
and no diagonal, so that mirrored and exchanged axes are both detected. The push is repeated with more force if the
handle did not move. The motion is compared with the prediction from its mass and friction.
"""

from __future__ import annotations

import math
import time

import numpy as np
from numpy.typing import NDArray

from devices.joystick.parameters import StickParameters
from devices.joystick.streaming import Streaming
from haptics.clock import raise_if_cancelled
from haptics.errors import DeviceOpenError

RAMP, HOLD, AFTER = 0.06, 0.06, 0.1
"""Durations of rise and fall, of the plateau, and of the observation after the push [s]."""

ENOUGH, COUNTS = 2e-3, 10.0
"""Minimum displacement that counts as motion, in m and in counts."""

FIRST, STRONGEST = 0.02, 0.16
"""Forces of the first and of the strongest push, as fractions of the maximum force."""

ASTRAY = math.radians(22.5)
"""Maximum error of the direction [rad]; a mirrored or exchanged axis turns it by 45 degrees or more."""

_FACTOR = 3.0  # allowed factor between measured and predicted displacement, because dry friction is unknown

_STEP = 1e-3

Vector = NDArray[np.float64]


def require_force(streaming: Streaming, known: StickParameters, firmware: int) -> None:
    """Push the handle and validate that direction and distance agree with the parameters.

    Parameters
    ----------
    streaming : Streaming
        Streams to the stick, which gets no other commands.
    known : StickParameters
        Parameters that were measured with the previous firmware.
    firmware : int
        Present bcdDevice.

    Raises
    ------
    DeviceOpenError
        If it moves in another direction, too far or not at all.
    """
    x, y = _position(streaming, known)
    off = ASTRAY if len(known.axes.usages) > 1 else 0.0  # towards the middle, off the x axis
    way, part = np.array((-math.copysign(math.cos(off), x), -math.copysign(math.sin(off), y))), FIRST
    while True:
        force = part * known.force.max_force_n
        moved = _push(streaming, known, force * way)
        distance = float(np.hypot(*moved))
        if distance >= max(ENOUGH, COUNTS * known.axes.resolution) or part >= STRONGEST:
            break
        part *= 2.0
    due: float | None = None
    mass, damping = known.handle.moving_mass_kg, known.handle.damping_ns_per_m or 0.0
    if mass is not None:  # predict the displacement from rest
        speed = due = 0.0
        for k in range(round((2.0 * RAMP + HOLD + AFTER) / _STEP)):
            speed += _STEP * (force * _shape(k * _STEP) - damping * speed) / mass
            due += _STEP * speed
    wrong = ""
    if distance < max(ENOUGH, COUNTS * known.axes.resolution):
        wrong = f"did not move its handle ({1e3 * distance:.1f} mm)"
    elif (angle := math.acos(min(max(float(moved @ way) / distance, -1.0), 1.0))) > ASTRAY:
        wrong = f"moved its handle {math.degrees(angle):.0f} degrees off the direction of the force"
    elif due is not None and not due / _FACTOR < distance < due * _FACTOR:
        wrong = f"moved its handle {1e3 * distance:.1f} mm, not about {1e3 * due:.1f} mm"
    if wrong:
        raise DeviceOpenError(
            f"{known.device} has other firmware than when it was calibrated (bcdDevice {known.device.bcd_device:#06x} "
            f"then, {firmware:#06x} now), and a push of {force:.2g} N {wrong}. Leave the handle alone while it is "
            "opened and start again, or calibrate it anew: haptics calibrate joystick."
        )


def _position(streaming: Streaming, known: StickParameters) -> Vector:
    sample = streaming.sample
    assert sample is not None
    position: Vector = known.axes.counts_to_m @ (np.array((sample.x, sample.y)) - known.axes.centre_counts)
    return position


def _push(streaming: Streaming, known: StickParameters, peak: Vector) -> Vector:
    """Push with forces of up to `peak` [N] and return the displacement of the handle, (2,) [m]."""
    begin, first = time.perf_counter(), _position(streaming, known)
    while (elapsed := time.perf_counter() - begin) < 2.0 * RAMP + HOLD + AFTER:
        level = known.force.newton_to_level @ (_shape(elapsed) * peak)
        streaming.levels.publish(*level, time.perf_counter())
        streaming.wake.call()
        time.sleep(_STEP)
        raise_if_cancelled()
    return _position(streaming, known) - first


def _shape(elapsed: float) -> float:
    """Return the force of a push as a fraction of its peak at the time `elapsed` [s]."""
    return max(0.0, min(1.0, elapsed / RAMP, (2.0 * RAMP + HOLD - elapsed) / RAMP))
