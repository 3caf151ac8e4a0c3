r"""Rigid dynamics of a five-bar linkage as kernels: H, C and G.

The kinetic energy of a rod is a quadratic form in the velocities of its ends a and b. With its mass m, its centre of
mass at the fraction c of its length, and k = I/l^2 of its moment of inertia,

.. math::
    2 T = \bigl(m (1 - c)^2 + k\bigr) |\dot a|^2 + (m c^2 + k) |\dot b|^2
        + 2 \bigl(m c (1 - c) - k\bigr) \dot a \cdot \dot b .

The energy of the linkage is therefore a constant quadratic form in the velocities of the two elbows and of the end
effector, without the angles of the outer links. With r_i the derivatives of these points with respect to the joint
angles, :math:`H_{ij} = \sum m_{ab} \, r_{a,i} \cdot r_{b,j}`, and the matrix of the Christoffel symbols is
:math:`C_{ij} = \sum m_{ab} \, r_{a,i} \cdot \dot r_{b,j}`.
"""

from __future__ import annotations

import math
from typing import Any

from devices.arm.mechanics.linkage_kernels import jacobian_of_bars, jacobian_rate_of_bars
from haptics.jit import inlined_kernel, kernel


@inlined_kernel
def _elbows(s: Any, q1: float, q2: float) -> tuple[Any, Any, Any, Any]:
    """Return the positions of both elbows, each relative to its motor [m]."""
    p1, p2 = q1 + s.offsets[0], q2 + s.offsets[1]
    left, right = s.lengths[0], s.lengths[3]
    return left * math.cos(p1), left * math.sin(p1), right * math.cos(p2), right * math.sin(p2)


@kernel
def inertia_of_bars(s: Any, q1: float, q2: float) -> tuple[float, float, float]:
    """Return (H_11, H_12, H_22) [kg m^2]."""
    lx, ly, rx, ry = _elbows(s.linkage, q1, q2)
    xx, xy, yx, yy = jacobian_of_bars(s.linkage, q1, q2)
    m, left, right = s.end_mass, s.shared_masses[0], s.shared_masses[1]
    h11 = m * (xx * xx + yx * yx) + 2.0 * left * (lx * yx - ly * xx)
    h12 = m * (xx * xy + yx * yy) + left * (lx * yy - ly * xy) + right * (rx * yx - ry * xx)
    h22 = m * (xy * xy + yy * yy) + 2.0 * right * (rx * yy - ry * xy)
    return h11 + s.inertias[0] + s.joint_inertias[0], h12, h22 + s.inertias[1] + s.joint_inertias[1]


@kernel
def coriolis_of_bars(s: Any, q1: float, q2: float, w1: float, w2: float) -> tuple[float, float, float, float]:
    """Return (C_11, C_12, C_21, C_22) [N m s] at the joint speeds w [rad/s]."""
    lx, ly, rx, ry = _elbows(s.linkage, q1, q2)
    xx, xy, yx, yy = jacobian_of_bars(s.linkage, q1, q2)
    a, b, c, d = jacobian_rate_of_bars(s.linkage, q1, q2, w1, w2)
    m, left, right = s.end_mass, s.shared_masses[0], s.shared_masses[1]
    c11 = m * (xx * a + yx * c) + left * (lx * c - ly * a - (lx * xx + ly * yx) * w1)
    c12 = m * (xx * b + yx * d) + left * (lx * d - ly * b) - right * (rx * xx + ry * yx) * w2
    c21 = m * (xy * a + yy * c) + right * (rx * c - ry * a) - left * (lx * xy + ly * yy) * w1
    c22 = m * (xy * b + yy * d) + right * (rx * d - ry * b - (rx * xy + ry * yy) * w2)
    return c11, c12, c21, c22


@kernel
def gravity_of_bars(s: Any, q1: float, q2: float) -> tuple[float, float]:
    """Return the gravity torques G [N m], which hold the linkage (gravity compensation)."""
    _, _, yx, yy = jacobian_of_bars(s.linkage, q1, q2)
    left = s.moments[0] * math.cos(q1 + s.linkage.offsets[0]) + s.end_weight * yx
    return left, s.moments[1] * math.cos(q2 + s.linkage.offsets[1]) + s.end_weight * yy
