"""Gains of the emulated drive."""

from __future__ import annotations

import math

from devices.arm.body import ArmBody
from devices.arm.motors.settings import DriveGains

POSITION_BANDWIDTH, SPEED_BANDWIDTH = 40.0, 300.0
"""Bandwidths of the drive's loops [rad/s], limited by its estimate of the speed."""


def gains_for(body: ArmBody) -> DriveGains:
    """Return gains for the inertia that the motors of an arm turn."""
    speed = SPEED_BANDWIDTH * math.tau * (body.rotor_inertia + _share(body))
    return DriveGains(POSITION_BANDWIDTH, speed, 0.5 * POSITION_BANDWIDTH * speed)


def _share(body: ArmBody) -> float:
    """Return the inertia of the links at a motor in the middle of the workspace, averaged [kg m^2]."""
    inertia = body.links.terms(body.angles(0.0, 0.0))["inertia"][0]
    return float(0.5 * inertia.trace()) / body.reduction**2
