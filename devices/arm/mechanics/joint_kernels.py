"""A joint's drive as kernels read it, and the scalar relations of its spring and its gap.

What it does in a step, with friction on both sides, is in `devices.arm.mechanics.drive_kernels`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from devices.arm.flatness.law_kernels import SMOOTH
from devices.common.encoder import quantise
from haptics.friction.sliding_kernels import LAW
from haptics.jit import kernel

RIGID, IMPACT, ELASTIC = 0, 1, 2

CLOSED = 1e-12
"""A gap that is narrower than this is closed [rad]: angles are rounded."""

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
"""The drive of one joint as kernels read it: ``inertia``, ``gain`` and ``drag`` seen at the joint. From ``period`` on
it is what its part (`devices.arm.mechanics.drive_kernels`), which lies at ``solve``, is told and answers: the step [s],
what a torque on joint and rotor changes of their speeds in it, how far and how fast the rotor was ahead; then the
torques [N m]."""


@kernel
def elastic_torque(s: Any, e: float, x: float, Z: float, T: float) -> Any:
    """Return the torque of the linear ELASTIC coupling, K (e + T w -+ h/2) + B w with w = x - Z f, never pulling.

    `e` is how far the rotor is ahead [rad]. Within the gap nothing is transmitted.
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
    """Return the torque of the IMPACT coupling over one step: what an end of the gap must push.

    `w` is the speed [rad/s] at which the rotor runs ahead before the step. Where the gap is closed, the rotor leaves
    its end at least at the restitution times the speed at which it came (Newton).
    """
    if e >= s.half_gap - CLOSED:
        return max(x - min(-s.restitution * w, 0.0), 0.0) / Z
    if e <= -s.half_gap + CLOSED:
        return min(x - max(-s.restitution * w, 0.0), 0.0) / Z
    return 0.0


@kernel
def collide(J: float, Jm: float, restitution: float, w: float, wm: float) -> tuple[float, float]:
    """Return the speeds (joint, rotor) [rad/s] after an impact between two inertias [kg m^2]; (11).

    On the right are the speeds before it, and J_ii where the paper prints J_i: then the momentum J w + Jm wm stays, and
    the relative speed turns round, times the restitution.
    """
    total = J + Jm
    after = (w * (J - restitution * Jm) + wm * Jm * (1.0 + restitution)) / total
    rotor = (w * J * (1.0 + restitution) + wm * (Jm - restitution * J)) / total
    return after, rotor


@kernel
def encoder_angle(s: Any, joint: float, rotor: float) -> Any:
    """Return what the encoder shows of the joint's angle [rad]; both angles are seen at the joint."""
    if s.encoder_at_rotor:
        return quantise(rotor * s.ratio, s.resolution) / s.ratio
    return quantise(joint, s.resolution)
