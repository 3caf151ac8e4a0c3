"""Shared parts of the reproductions of Weigand et al. 2020: joint 1, its motion and its runs.

The paper prints the joint's parameters (Table 2), but neither the inertia of its link nor the motion of its Fig. 6.
Here the link has 2500 kg m^2, and turns by 20 degrees and back in 2 s each way. This choice was made after seeing
results: 10 to 30 degrees give errors of 0.07 to 0.09 degrees and oscillations of 1000 to 1650 N m with the rigid
feed-forward; a link of 1000 kg m^2 gives 0.15 degrees and 680 N m, one of 3000 kg m^2 0.08 degrees and 2000 N m.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace

import numpy as np

from apps.reproduce.planar import Array
from devices.arm.flatness.control import FeedForwardServo
from devices.arm.flatness.joint import ElasticJoint
from devices.arm.flatness.laws import RampBacklash, SmoothBacklash, SmoothCoulomb
from devices.arm.flatness.simulation import Circumstances, JointRun, point_to_point, simulate_joint

BACKLASH, LOST_MOTION = 0.15e-3, 0.15e-3
"""Half the backlash phi_B* and the lost motion phi_LM beyond it [rad]."""

EFFECTIVE = BACKLASH + LOST_MOTION
"""Effective half backlash phi_B [rad]."""

STIFFNESS, SMOOTHNESS = 8.4225e6, 0.02
COULOMB, VISCOSITY, STEEPNESS = 200.0, 800.0, 500.0

JOINT = ElasticJoint(
    SmoothCoulomb(COULOMB, VISCOSITY, STEEPNESS), SmoothBacklash(STIFFNESS, EFFECTIVE, SMOOTHNESS), 1798 / 7, 0.0138
)
"""Joint 1 with the inverse stiffness (11)."""

RAMP = RampBacklash(STIFFNESS, EFFECTIVE)
"""The stiffness (9) of joint 1."""

SLACK = RampBacklash(STIFFNESS, EFFECTIVE, 3e5)
"""(9) with the stiffness of (11) inside its backlash, so that a motor can follow it."""

DRY = replace(JOINT, friction=SmoothCoulomb(COULOMB, VISCOSITY, 1e9))
"""Joint 1 with practically the discontinuous friction (3)."""

INERTIA, TURN, DURATION = 2500.0, 20.0, 2.0
PERIOD = 4e-5
HELD = Circumstances(hold=round(0.8e-3 / PERIOD))
"""The motor torque changes every 0.8 ms, as on the robot."""

FLAT = FeedForwardServo("elastic", "none")
RIGID = FeedForwardServo("rigid", "none")


@functools.cache
def motion() -> Array:
    """Return the reference at every half period, (n, 5)."""
    time = np.arange(0.0, DURATION + PERIOD / 4, PERIOD / 2)
    end = math.radians(TURN)
    back = point_to_point(time, end, 0.0, DURATION)
    return np.vstack((point_to_point(time, 0.0, end, DURATION), back[1:]))


@functools.cache
def run(
    law: FeedForwardServo,
    joint: ElasticJoint = JOINT,
    model: ElasticJoint | None = None,
    circumstances: Circumstances | None = None,
    inertia: float = INERTIA,
) -> JointRun:
    """Simulate the motion."""
    return simulate_joint(joint, law, motion(), inertia, PERIOD, model=model, circumstances=circumstances)


def worst(result: JointRun) -> float:
    """Return the maximum error of the link [deg]."""
    return math.degrees(float(np.abs(result.error).max()))


def mean(result: JointRun) -> float:
    """Return the mean absolute error of the link [deg]."""
    return math.degrees(float(np.abs(result.error).mean()))


def oscillation(result: JointRun) -> float:
    """Return the maximum gear torque beyond the torque of the reference motion [N m]."""
    return float(np.abs(result.gear_torque - result.reference_gear_torque).max())
