r"""The feed-forward of one elastic joint as a kernel, and its records.

With the load :math:`L = M \ddot q + \tau_A + \tau_{CC} + g`, which is the torque on the link without its friction, the
torque in the gearbox is :math:`\tau = L + F(\dot q)` (Weigand et al. 2020, (2)). Twist :math:`D(\tau)` and link angle
give the motor angle, and the chain rule gives the rest:

.. math::
    \dot\tau &= \dot L + F' \ddot q, &
    \ddot\tau &= \ddot L + F'' \ddot q^2 + F' \dddot q, \\
    \theta &= u (q + D), \qquad \dot\theta = u (\dot q + D' \dot\tau), &
    \ddot\theta &= u (\ddot q + D'' \dot\tau^2 + D' \ddot\tau), \\
    \tau_{FF} &= J \ddot\theta + \tau/u &&

which are (25), its derivatives and (20). The paper treats everything in L except the link's own motion as constant:
:math:`\dot L = M \dddot q`, :math:`\ddot L = M q^{(4)}`. Rates of the remaining load can be added by the caller.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from devices.arm.flatness.law_kernels import SMOOTH, smooth_friction
from devices.arm.flatness.stiffness_kernels import gear_twist
from haptics.jit import inlined_kernel, kernel
from haptics.records import Rows

JOINT = np.dtype([("friction", SMOOTH), ("stiffness", SMOOTH), ("gear_ratio", "<f8"), ("motor_inertia", "<f8")])
"""Kernel record of an elastic joint."""

MOTION_FIELDS: list[tuple[str, str]] = [
    ("position", "<f8"),
    ("velocity", "<f8"),
    ("acceleration", "<f8"),
    ("jerk", "<f8"),
    ("snap", "<f8"),
    ("inertia", "<f8"),
    ("load", "<f8"),
    ("load_rate", "<f8"),
    ("load_acceleration", "<f8"),
]
"""Reference of a joint: link angle with four derivatives [rad ... rad/s^4], inertia M [kg m^2], load in addition to M
q'' [N m], and the two derivatives of M q'' plus that load, less M q''' and M q'''' [N m/s], [N m/s^2].
"""

MOTOR_FIELDS: list[tuple[str, str]] = [
    ("motor_angle", "<f8"),
    ("motor_velocity", "<f8"),
    ("motor_acceleration", "<f8"),
    ("motor_torque", "<f8"),
    ("gear_torque", "<f8"),
]
"""Resulting reference of the motor: [rad], [rad/s], [rad/s^2], [N m]; torque in the gearbox at the link's side [N m].
"""

FLAT = np.dtype(MOTION_FIELDS + MOTOR_FIELDS)


@inlined_kernel
def feed_elastic(c: Any, r: Any) -> None:
    """Compute the motor reference in row `r`, of dtype `FLAT`, for joint `c`; (20), (25)."""
    q1, q2, q3, u = r.velocity, r.acceleration, r.jerk, c.gear_ratio
    F, F1, F2 = smooth_friction(c.friction, q1)
    tau = r.inertia * q2 + r.load + F
    tau1 = r.inertia * q3 + r.load_rate + F1 * q2
    tau2 = r.inertia * r.snap + r.load_acceleration + F2 * q2 * q2 + F1 * q3
    D, D1, D2 = gear_twist(c.stiffness, tau)
    r.motor_angle = u * (r.position + D)
    r.motor_velocity = u * (q1 + D1 * tau1)
    r.motor_acceleration = u * (q2 + D2 * tau1 * tau1 + D1 * tau2)
    r.motor_torque = c.motor_inertia * r.motor_acceleration + tau / u
    r.gear_torque = tau


@inlined_kernel
def feed_rigid(c: Any, r: Any) -> None:
    """Compute the motor reference in row `r` for a rigid gearbox; (27)."""
    u = c.gear_ratio
    F, _F1, _F2 = smooth_friction(c.friction, r.velocity)
    r.gear_torque = r.inertia * r.acceleration + r.load + F
    r.motor_angle = u * r.position
    r.motor_velocity = u * r.velocity
    r.motor_acceleration = u * r.acceleration
    r.motor_torque = c.motor_inertia * r.motor_acceleration + r.gear_torque / u


@kernel
def feed_rows(joints: Rows, rows: Rows, rigid: bool) -> None:
    """Compute the motor reference in every row of `rows`, (n,) of dtype `FLAT`, for the joint `joints[0]`."""
    for k in range(len(rows)):
        if rigid:
            feed_rigid(joints[0], rows[k])
        else:
            feed_elastic(joints[0], rows[k])
