"""The two masses of an elastic joint as a kernel (Weigand et al. 2020, (1), (2)), under a servo law."""

from __future__ import annotations

from typing import Any

import numpy as np

from devices.arm.flatness.control_kernels import prepare, servo_torque
from devices.arm.flatness.joint_kernels import JOINT
from devices.arm.flatness.law_kernels import smooth_friction
from devices.arm.flatness.stiffness_kernels import gear_torque
from haptics.jit import inlined_kernel, kernel
from haptics.records import Rows

PLANT = np.dtype([("joint", JOINT), ("inertia_ratio", "<f8"), ("disturbance", "<f8")])
"""Record of the real joint: its laws, the ratio of its link's inertia to the reference's, a torque on the link [N m].
"""

STATE = np.dtype(
    [
        ("position", "<f8"),
        ("velocity", "<f8"),
        ("motor_angle", "<f8"),
        ("motor_velocity", "<f8"),
        ("motor_torque", "<f8"),
        ("gear_torque", "<f8"),
    ]
)
"""State of a joint: link angle and velocity, motor angle and velocity, motor torque and torque in the gearbox."""


@inlined_kernel
def _accelerations(p: Any, r: Any, q: Any, w: Any, theta: Any, omega: Any, tau: Any) -> tuple[Any, Any]:
    """Return the accelerations of link and motor [rad/s^2]; (2), (1)."""
    j = p.joint
    E, _E1, _E2 = gear_torque(j.stiffness, theta / j.gear_ratio - q)
    F, _F1, _F2 = smooth_friction(j.friction, w)
    link = (E - r.load - F + p.disturbance) / (p.inertia_ratio * r.inertia)
    return link, (tau - E / j.gear_ratio) / j.motor_inertia


@inlined_kernel
def _record(p: Any, s: Any, x: Any, tau: Any) -> None:
    """Write the state x = (q, w, theta, omega) into row `s`."""
    s.position, s.velocity, s.motor_angle, s.motor_velocity = x
    s.motor_torque = tau
    s.gear_torque, _E1, _E2 = gear_torque(p.joint.stiffness, x[2] / p.joint.gear_ratio - x[0])


@kernel
def run_joint(plants: Rows, controls: Rows, rows: Rows, period: float, hold: int, states: Rows) -> None:
    """Simulate the joint `plants[0]` under the servo law in `controls`, and fill `states`, (n,).

    The method is the fourth-order Runge-Kutta method. `rows`, (2 n - 1,) of dtype `FLAT`, are the reference at every
    half `period` [s]. The torque is held for `hold` periods; with 0 it follows time and state without delay. The
    initial state is `states[0]`.
    """
    p, c, s = plants[0], controls[0], states[0]
    q, w, theta, omega = s.position, s.velocity, s.motor_angle, s.motor_velocity
    for i in range(len(rows)):
        prepare(c, rows[i])
    tau = servo_torque(c, rows[0], q, w, theta, omega)
    T, half = period, 0.5 * period
    for k in range(len(states)):
        r0 = rows[2 * k]
        if hold == 0 or k % hold == 0:
            tau = servo_torque(c, r0, q, w, theta, omega)
        _record(p, states[k], (q, w, theta, omega), tau)
        if k == len(states) - 1:
            break
        r1, r2 = rows[2 * k + 1], rows[2 * k + 2]
        a1, m1 = _accelerations(p, r0, q, w, theta, omega, tau)
        w2, o2 = w + half * a1, omega + half * m1
        q2, t2 = q + half * w, theta + half * omega
        if hold == 0:
            tau = servo_torque(c, r1, q2, w2, t2, o2)
        a2, m2 = _accelerations(p, r1, q2, w2, t2, o2, tau)
        w3, o3 = w + half * a2, omega + half * m2
        q3, t3 = q + half * w2, theta + half * o2
        if hold == 0:
            tau = servo_torque(c, r1, q3, w3, t3, o3)
        a3, m3 = _accelerations(p, r1, q3, w3, t3, o3, tau)
        w4, o4 = w + T * a3, omega + T * m3
        q4, t4 = q + T * w3, theta + T * o3
        if hold == 0:
            tau = servo_torque(c, r2, q4, w4, t4, o4)
        a4, m4 = _accelerations(p, r2, q4, w4, t4, o4, tau)
        q += T / 6.0 * (w + 2.0 * w2 + 2.0 * w3 + w4)
        theta += T / 6.0 * (omega + 2.0 * o2 + 2.0 * o3 + o4)
        w += T / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
        omega += T / 6.0 * (m1 + 2.0 * m2 + 2.0 * m3 + m4)
