"""The gains that the owner of the emulated drive has given it."""

from __future__ import annotations

import math

from devices.arm.body import ArmBody
from devices.arm.motors.settings import DriveGains

POSITION_BANDWIDTH, SPEED_BANDWIDTH = 40.0, 300.0
"""Of the drive's loops [rad/s]: as fast as its estimate of the speed allows."""


def gains_for(body: ArmBody) -> DriveGains:
    """Return gains that suit what the motors of an arm have to turn."""
    speed = SPEED_BANDWIDTH * math.tau * (body.rotor_inertia + _share(body))
    return DriveGains(POSITION_BANDWIDTH, speed, 0.5 * POSITION_BANDWIDTH * speed)


def _share(body: ArmBody) -> float:
    """Return what the links add to the inertia of a motor in the middle of the workspace [kg m^2]: the mean of both."""
    inertia = body.links.terms(body.angles(0.0, 0.0))["inertia"][0]
    return float(0.5 * inertia.trace()) / body.reduction**2
