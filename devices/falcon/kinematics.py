"""Kinematics of the Falcon: a delta robot with three legs, each a crank and a parallelogram.

In the frame of a leg, u points outwards, v along the axis of the crank, and w along the device's z. With the position
of the handle moved to the joint of the leg, ``(u, v, w)``, a leg at the crank angle theta satisfies

    ``(u - a cos theta)^2 + (w - a sin theta)^2 = (d + e + sqrt(b^2 - v^2))^2``

(`A`, `B`, `D_E`). The device's x points right, its y up and its z out of the base towards the person, all in metres.

The inverse solution is closed: a circle cuts another circle. The forward solution is Newton's method for the three
differences of lengths, from the middle of the workspace. The differences are almost linear, and steps are halved until
the error decreases, so that the method converges from there for all angles of the workspace.

Source of the geometry: libnifalcon (BSD), ``FalconGeometry.h``, after R. E. Stamper, Ph.D. thesis, University of
Maryland, 1997.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.jit import merged_kernel

A, B = 0.060, 0.1025
"""Lengths of the crank and of the parallelogram [m]."""

D_E = 2 * 0.01125
"""Length of both links between the parallelogram and its neighbours, along the direction of the leg [m]."""

OUTWARDS, SIDEWAYS = 0.01443 - 0.0400, -0.0250 + 0.02309
"""Offsets of a joint at the handle from the axis of the crank, along u and v, for a handle at the origin [m]."""

ANGLES = tuple(math.radians(angle) for angle in (105.0, -15.0, -135.0))
"""Directions of the three legs about the z axis [rad]."""

MIDDLE = (0.0, 0.0, 0.1225)
"""Middle of the workspace [m]."""

HALF = (0.045, 0.045, 0.0325)
"""Half the sides of the workspace, a box within the reach of all legs [m]."""

REACH = (0.075, 0.075, 0.07)
"""Largest distances of the handle from the middle [m]; solutions beyond them are not the handle's."""

COUNTS_PER_TURN = 4 * 320
"""Counts per turn of a motor: quadrature of 320 slots."""

REDUCTION = 110.0 / 14.25
"""Turns of a motor per turn of its crank: diameters of drum and shaft."""

ZERO = math.radians(35.0)
"""Crank angle at encoder count zero [rad]."""

RADIANS = 2.0 * math.pi / (COUNTS_PER_TURN * REDUCTION)
"""Crank angle of an encoder count [rad]."""

_ITERATIONS = 30
_HALVINGS = 20
_TOLERANCE = 1e-12  # largest remaining difference of lengths [m]
_NARROW = 1e-6  # smallest square that a distance is taken of [m^2]

_COSINES = np.array([math.cos(angle) for angle in ANGLES])
_SINES = np.array([math.sin(angle) for angle in ANGLES])
_START, _REACH = np.array(MIDDLE), np.array(REACH)


@merged_kernel
def leg_angle(leg: int, x: float, y: float, z: float) -> float:
    """Return the crank angle of a leg for a handle at (x, y, z) [rad]; nan out of its reach."""
    u = _COSINES[leg] * x + _SINES[leg] * y + OUTWARDS
    v = _COSINES[leg] * y - _SINES[leg] * x + SIDEWAYS
    if abs(v) >= B:
        return math.nan
    length, distance = D_E + math.sqrt(B * B - v * v), math.hypot(u, z)
    cosine = (distance * distance + A * A - length * length) / (2.0 * A * distance)
    if not abs(cosine) <= 1.0:
        return math.nan
    return math.atan2(z, u) - math.acos(cosine)


@merged_kernel
def _linearise(theta: Any, p: Any, rows: Any, errors: Any) -> float:
    """Fill the differences of lengths [m] and their derivatives; return the largest difference, infinite if none.

    Row i of `rows` has the derivatives by x, y, z and by the angle of leg i.
    """
    largest = 0.0
    for i in range(3):
        u = _COSINES[i] * p[0] + _SINES[i] * p[1] + OUTWARDS
        v = _COSINES[i] * p[1] - _SINES[i] * p[0] + SIDEWAYS
        cosine, sine = math.cos(theta[i]), math.sin(theta[i])
        across, along = u - A * cosine, p[2] - A * sine
        distance = math.hypot(across, along)
        square = B * B - v * v
        if not (square > _NARROW and distance * distance > _NARROW):
            return math.inf
        root = math.sqrt(square)
        errors[i] = distance - D_E - root
        across, along, slope = across / distance, along / distance, v / root
        rows[i, 0] = across * _COSINES[i] - slope * _SINES[i]
        rows[i, 1] = across * _SINES[i] + slope * _COSINES[i]
        rows[i, 2] = along
        rows[i, 3] = A * (across * sine - along * cosine)
        largest = max(largest, abs(errors[i]))
    return largest


@merged_kernel
def _solve(m: Any, b: Any, x: Any, transposed: bool) -> bool:
    """Solve the 3 x 3 system ``m x = b``, or with the transpose, by cofactors; return False if it is singular."""
    c00, c01 = m[1, 1] * m[2, 2] - m[1, 2] * m[2, 1], m[1, 2] * m[2, 0] - m[1, 0] * m[2, 2]
    c02 = m[1, 0] * m[2, 1] - m[1, 1] * m[2, 0]
    c10, c11 = m[0, 2] * m[2, 1] - m[0, 1] * m[2, 2], m[0, 0] * m[2, 2] - m[0, 2] * m[2, 0]
    c12 = m[0, 1] * m[2, 0] - m[0, 0] * m[2, 1]
    c20, c21 = m[0, 1] * m[1, 2] - m[0, 2] * m[1, 1], m[0, 2] * m[1, 0] - m[0, 0] * m[1, 2]
    c22 = m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0]
    determinant = m[0, 0] * c00 + m[0, 1] * c01 + m[0, 2] * c02
    if not abs(determinant) > 1e-9:
        return False
    if transposed:
        x[0] = (c00 * b[0] + c01 * b[1] + c02 * b[2]) / determinant
        x[1] = (c10 * b[0] + c11 * b[1] + c12 * b[2]) / determinant
        x[2] = (c20 * b[0] + c21 * b[1] + c22 * b[2]) / determinant
    else:
        x[0] = (c00 * b[0] + c10 * b[1] + c20 * b[2]) / determinant
        x[1] = (c01 * b[0] + c11 * b[1] + c21 * b[2]) / determinant
        x[2] = (c02 * b[0] + c12 * b[1] + c22 * b[2]) / determinant
    return True


@merged_kernel
def find_position(theta: Any, p: Any) -> bool:
    """Compute the position `p` (3,) [m] of the handle for crank angles `theta` (3,) [rad].

    Return False, with `p` unchanged, if no solution is near the workspace: the angles belong to no delta robot of this
    geometry.
    """
    rows, errors = np.empty((3, 4)), np.empty(3)
    here, step, there = _START.copy(), np.empty(3), np.empty(3)
    error = _linearise(theta, here, rows, errors)
    for _ in range(_ITERATIONS):
        if error <= _TOLERANCE:
            near = True
            for k in range(3):
                near = near and abs(here[k] - _START[k]) <= _REACH[k]
            for k in range(3):
                p[k] = here[k] if near else p[k]
            return near
        if not error < math.inf or not _solve(rows, errors, step, False):
            return False
        share, before = 1.0, error
        for _ in range(_HALVINGS):
            for k in range(3):
                there[k] = here[k] - share * step[k]
            error = _linearise(theta, there, rows, errors)
            if error < before or error <= _TOLERANCE:
                break
            share *= 0.5
        for k in range(3):
            here[k] = there[k]
    return False


@merged_kernel
def find_torques(theta: Any, p: Any, force: Any, torques: Any) -> bool:
    """Compute the torques of the cranks [N m] for a `force` (3,) [N] on the hand, by the transposed Jacobian.

    `theta` and `p` belong together (`find_position`). Return False in a singular position.
    """
    rows, errors, pull = np.empty((3, 4)), np.empty(3), np.empty(3)
    if not _linearise(theta, p, rows, errors) < math.inf or not _solve(rows, force, pull, True):
        return False
    for i in range(3):
        torques[i] = -rows[i, 3] * pull[i]
    return True


def inverse(position: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the crank angles (3,) [rad] of a position (3,) [m]; nan for a leg that does not reach it."""
    x, y, z = map(float, position)
    return np.array([leg_angle(leg, x, y, z) for leg in range(3)])


def forward(theta: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the position (3,) [m] for crank angles (3,) [rad], or None."""
    position = np.empty(3)
    return position if find_position(theta, position) else None
