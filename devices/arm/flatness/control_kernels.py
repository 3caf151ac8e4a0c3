"""Kernels of the servo laws of an elastic joint: feed-forward with feedback, and exact linearisation.

A control record holds the controller's model of the joint, its gains and workspace for intermediate results. A row of
dtype `FLAT` holds the reference of the joint.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from devices.arm.flatness.joint_kernels import FLAT, JOINT, feed_elastic, feed_rigid
from devices.arm.flatness.law_kernels import smooth_friction
from devices.arm.flatness.stiffness_kernels import gear_torque
from haptics.jit import inlined_kernel

NONE, ELASTIC, RIGID = 0, 1, 2
"""Model of the joint in the feed-forward or in the exact linearisation: none, elastic or rigid."""

CONVENTIONAL, MODEL_BASED, LINEARISING = 1, 2, 3
"""Feedback of the motor's velocity towards u q' or towards (25), or feedback through the inverse model; or `NONE`."""

CONTROL = np.dtype(
    [
        ("joint", JOINT),
        ("feed", "<i8"),
        ("feedback", "<i8"),
        ("position_gain", "<f8"),
        ("velocity_gain", "<f8"),
        ("bandwidth", "<f8"),
        ("inverse", FLAT),
    ]
)
"""Kernel record of a servo law of one joint; `inverse` is workspace for the exact linearisation."""


@inlined_kernel
def _linearise_rigid(c: Any, r: Any, q: Any, w: Any) -> Any:
    """Return the motor torque [N m] of (14): the rigid inverse with q'' = q''_R + 2 b e' + b^2 e."""
    m, b = c.inverse, c.bandwidth
    m.position, m.velocity = q, w
    m.acceleration = r.acceleration + b * (2.0 * (r.velocity - w) + b * (r.position - q))
    m.inertia, m.load = r.inertia, r.load
    feed_rigid(c.joint, m)
    return m.motor_torque


@inlined_kernel
def linearise_elastic(c: Any, r: Any, q: Any, w: Any, theta: Any, omega: Any) -> Any:
    """Return the motor torque [N m] of (15): the elastic inverse at the measured state, four poles at -b.

    The state determines acceleration and jerk of the link, by (2) and its derivative; the snap is the free input.
    """
    j, m, b = c.joint, c.inverse, c.bandwidth
    E, E1, _E2 = gear_torque(j.stiffness, theta / j.gear_ratio - q)
    F, F1, _F2 = smooth_friction(j.friction, w)
    a = (E - r.load - F) / r.inertia
    jerk = (E1 * (omega / j.gear_ratio - w) - r.load_rate - F1 * a) / r.inertia
    error = b * (4.0 * (r.velocity - w) + b * (r.position - q))
    error = b * (6.0 * (r.acceleration - a) + error)
    m.position, m.velocity, m.acceleration, m.jerk = q, w, a, jerk
    m.snap = r.snap + b * (4.0 * (r.jerk - jerk) + error)
    m.inertia, m.load = r.inertia, r.load
    m.load_rate, m.load_acceleration = r.load_rate, r.load_acceleration
    feed_elastic(j, m)
    return m.motor_torque


@inlined_kernel
def prepare(c: Any, r: Any) -> None:
    """Compute the motor's part of row `r` with the model of the servo law."""
    if c.feed == ELASTIC or c.feedback == MODEL_BASED:
        feed_elastic(c.joint, r)
    else:
        feed_rigid(c.joint, r)


@inlined_kernel
def track(c: Any, r: Any, q: Any, omega: Any) -> Any:
    """Return the motor torque [N m] with feedback of the motor's velocity or without feedback; (16)-(18).

    (16) is printed without the gear ratio, which makes the position loop u times too weak.
    """
    tau = 0.0 if c.feed == NONE else r.motor_torque
    if c.feedback == NONE:
        return tau
    u = c.joint.gear_ratio
    wanted = r.motor_velocity if c.feedback == MODEL_BASED else u * r.velocity
    return tau + c.velocity_gain * (u * c.position_gain * (r.position - q) + wanted - omega)


@inlined_kernel
def servo_torque(c: Any, r: Any, q: Any, w: Any, theta: Any, omega: Any) -> Any:
    """Return the motor torque [N m] for the prepared row `r` at link (q, w) and motor (theta, omega)."""
    if c.feedback == LINEARISING:
        return _linearise_rigid(c, r, q, w) if c.feed == RIGID else linearise_elastic(c, r, q, w, theta, omega)
    return track(c, r, q, omega)
