"""Kernel record of a joint's drive, and the scalar relations of its spring and its gap.

The solvers for a step, with friction on both sides, are in `devices.arm.mechanics.drive_kernels`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from devices.arm.flatness.law_kernels import SMOOTH
from devices.common.driver_kernels import quantise
from haptics.friction.kernels import LAW
from haptics.jit import kernel

RIGID, IMPACT, ELASTIC = 0, 1, 2

CLOSED = 1e-12
"""Gaps narrower than this count as closed, because angles are rounded [rad]."""

DRIVE = np.dtype(
    [
        ("solve", "<i8"),
        ("coupling", "<i8"),
        ("ratio", "<f8"),
        ("inertia", "<f8"),
        ("gain", "<f8"),
        ("drag", "<f8"),
        ("half_gap", "<f8"),
        ("restitution", "<f8"),
        ("stiffness", "<f8"),
        ("damping", "<f8"),
        ("geared", "<i8"),
        ("gear", SMOOTH),
        ("rubs", "<i8"),
        ("forwards", LAW),
        ("backwards", LAW),
        ("rotor_rubs", "<i8"),
        ("rotor_forwards", LAW),
        ("rotor_backwards", LAW),
        ("encoder_at_rotor", "<i8"),
        ("resolution", "<f8"),
        ("period", "<f8"),
        ("mobility", "<f8"),
        ("rotor_mobility", "<f8"),
        ("ahead", "<f8"),
        ("ahead_speed", "<f8"),
        ("load", "<f8"),
        ("friction", "<f8"),
        ("rotor_friction", "<f8"),
        ("sticking", "<i8"),
        ("rotor_sticking", "<i8"),
    ]
)
"""Kernel record of the drive of one joint: ``inertia``, ``gain`` and ``drag`` seen at the joint. The fields from
``period`` on are arguments and results of the function at the address ``solve``
(`devices.arm.mechanics.drive_kernels`): the step [s], the mobilities of joint and rotor over it, the angle and speed
of the rotor relative to the joint before it; then the torques [N m].
"""


@kernel
def elastic_torque(s: Any, e: float, x: float, Z: float, T: float) -> Any:
    """Return the torque of the linear ELASTIC coupling.

    It is K (e + T w -+ h/2) + B w with w = x - Z f, and zero where that would pull. `e` is the angle of the rotor minus
    the angle of the joint [rad]. Within the gap no torque is transmitted.
    """
    K, B, h = s.stiffness, s.damping, s.half_gap
    grip = K * T + B
    f = (K * (e - h) + grip * x) / (1.0 + Z * grip)
    if f > 0.0:
        return f
    f = (K * (e + h) + grip * x) / (1.0 + Z * grip)
    return min(f, 0.0)


@kernel
def impact_torque(s: Any, e: float, w: float, x: float, Z: float) -> Any:
    """Return the torque of the IMPACT coupling over one step, which an end of the gap must exert.

    `w` is the relative speed of the rotor [rad/s] before the step. Where the gap is closed, the rotor separates at
    least at the restitution times its approach speed (Newton).
    """
    if e >= s.half_gap - CLOSED:
        return max(x - min(-s.restitution * w, 0.0), 0.0) / Z
    if e <= -s.half_gap + CLOSED:
        return min(x - max(-s.restitution * w, 0.0), 0.0) / Z
    return 0.0


@kernel
def collide(J: float, Jm: float, restitution: float, w: float, wm: float) -> tuple[float, float]:
    """Return the speeds (joint, rotor) [rad/s] after an impact between two inertias [kg m^2]; (11).

    The right-hand side of (11) contains the speeds before the impact, with J_ii where the paper prints J_i. Then the
    momentum J w + Jm wm is conserved, and the relative speed is reversed and multiplied by the restitution.
    """
    total = J + Jm
    after = (w * (J - restitution * Jm) + wm * Jm * (1.0 + restitution)) / total
    rotor = (w * J * (1.0 + restitution) + wm * (Jm - restitution * J)) / total
    return after, rotor


@kernel
def encoder_angle(s: Any, joint: float, rotor: float) -> Any:
    """Return the joint angle that the encoder measures [rad]; both angles are seen at the joint."""
    if s.encoder_at_rotor:
        return quantise(rotor * s.ratio, s.resolution) / s.ratio
    return quantise(joint, s.resolution)
