"""Simulated arm: links, drives and the surface it presses on, advanced in small steps.

A step computes the speeds at its end. Inertia, the surface (3) and all linear terms are implicit. Friction, gap or
spring of each drive are then solved for the speeds that result from the other drive, alternately until convergence
(Gauss-Seidel). All relations are satisfied simultaneously, so that a joint at rest is exactly at rest. Angles follow
from the new speeds (semi-implicit Euler, first order).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.arm.mechanics.drive import DRIVE, RIGID, Drive, drive_address
from devices.arm.mechanics.dynamics import LINKS, Links, centrifugal, frame_jacobian, gravity, inertia, into_frame
from devices.arm.mechanics.linkage import PlacedLinkage, jacobian, position, turning_acceleration
from haptics.jit import call_part, kernel, merged_kernel
from haptics.records import Rows, fields
from haptics.settings import bounded, check, documented


@documented
@dataclass(frozen=True)
class Surface:
    """Plane that is compliant in its normal direction and smooth tangentially.

    The end effector never leaves it.

    Its force is (3) of Machado et al. 2002.
    """

    mass: float = bounded(
        0.0, minimum=0.0, maximum=1e6, unit="kg", doc="M of F = M x'' + B x' + K x; all 0: no surface"
    )
    damping: float = bounded(0.0, minimum=0.0, maximum=1e9, unit="N s/m", doc="damping B of the surface")
    stiffness: float = bounded(0.0, minimum=0.0, maximum=1e12, unit="N/m", doc="stiffness K of the surface")
    angle: float = bounded(
        0.0, minimum=-7.0, maximum=7.0, unit="rad", doc="angle against the x axis; with pi/2 the arm presses along x"
    )

    def __post_init__(self) -> None:
        check(self, "surface")


@kernel
def frame_position(s: Any, q1: float, q2: float) -> tuple[float, float]:
    """Return the position of the end effector normal to and along the plane [m] at the joint angles q."""
    x, y = position(s.links.linkage, q1, q2)
    return into_frame(s.plane, x, y)


@kernel
def contact_motion(s: Any) -> tuple[float, float, float]:
    """Return normal depth [m], speed [m/s] and the acceleration due to the speeds [m/s^2]."""
    q1, q2, w1, w2 = s.angle[0], s.angle[1], s.speed[0], s.speed[1]
    a, b, _, _ = frame_jacobian(s.links, s.plane, q1, q2)
    x, y = turning_acceleration(s.links.linkage, q1, q2, w1, w2)
    depth = frame_position(s, q1, q2)[0] - s.rest
    return depth, a * w1 + b * w2, into_frame(s.plane, x, y)[0]


PLANT_FIELDS: list[tuple[Any, ...]] = [
    ("links", LINKS),
    *fields("<f8", "step plane rest contact_mass contact_damping contact_stiffness"),
    *fields("<f8", "hand_force angle speed rotor rotor_speed friction rotor_friction load", 2),
    *fields("<i8", "sticking rotor_sticking", 2),
    ("contact_force", "<f8"),
]
"""Fields of a moving arm. Joint and rotor (seen at the joint) are in `angle` [rad] and `speed`; ``load`` is the torque
that the coupling transmits to the joint [N m], 0 for a rigid coupling, ``contact_force`` the force on the surface [N].
``hand_force`` is the force of the hand on the end effector, in the axes of the device [N]; it is held for a whole step.
"""

PLANT = np.dtype(PLANT_FIELDS)

_ROUNDS = 200
_ROUNDING = 1e-15


@kernel
def mobility(s: Any, drives: Rows, T: float) -> tuple[float, float, float]:
    """Return the inverse of H with everything that moves with the joints, implicit over T [s].

    The result is the elements 11, 12 and 22 of a symmetric matrix.
    """
    h11, h12, h22 = inertia(s.links, s.angle[0], s.angle[1])
    m = s.contact_mass + T * s.contact_damping + T * T * s.contact_stiffness
    a, b = 0.0, 0.0
    if m > 0.0:
        a, b, _, _ = frame_jacobian(s.links, s.plane, s.angle[0], s.angle[1])
    first, second = 0.0, 0.0
    if drives[0].coupling == RIGID:
        first = drives[0].inertia
    if drives[1].coupling == RIGID:
        second = drives[1].inertia
    h11, h12, h22 = h11 + m * a * a + first, h12 + m * a * b, h22 + m * b * b + second
    determinant = h11 * h22 - h12 * h12
    return h22 / determinant, -h12 / determinant, h11 / determinant


@kernel
def mobilities(records: Rows, drives: Rows) -> tuple[float, float]:
    """Return the speed change per torque on each joint over a step [rad/(N m s)], for `records[0]`."""
    s = records[0]
    first, _, second = mobility(s, drives, s.step)
    return s.step * first, s.step * second


@kernel
def _free_speeds(s: Any, drives: Rows, inverse: Any, u: Any, w: Any) -> Any:
    """Compute the speeds w, (4,), of joints and rotors without friction and couplings.

    Returns the part of the contact force that does not depend on them [N].
    """
    T, q1, q2, w1, w2 = s.step, s.angle[0], s.angle[1], s.speed[0], s.speed[1]
    h11, h12, h22 = inertia(s.links, q1, q2)
    c1, c2 = centrifugal(s.links, q1, q2, w1, w2)
    g1, g2 = gravity(s.links, q1, q2)
    xx, xy, yx, yy = jacobian(s.links.linkage, q1, q2)
    a, b, F = 0.0, 0.0, 0.0
    if s.contact_mass > 0.0 or s.contact_damping > 0.0 or s.contact_stiffness > 0.0:
        a, b = into_frame(s.plane, xx, yx)[0], into_frame(s.plane, xy, yy)[0]
        x, vx, ax = contact_motion(s)
        F = s.contact_stiffness * x + s.contact_mass * (ax - vx / T)
    hand1, hand2 = xx * s.hand_force[0] + yx * s.hand_force[1], xy * s.hand_force[0] + yy * s.hand_force[1]
    p1 = h11 * w1 + h12 * w2 - T * (c1 + g1 + a * F - hand1)
    p2 = h12 * w1 + h22 * w2 - T * (c2 + g2 + b * F - hand2)
    if drives[0].coupling == RIGID:
        p1 += drives[0].inertia * w1 + T * drives[0].ratio * u[0]
    if drives[1].coupling == RIGID:
        p2 += drives[1].inertia * w2 + T * drives[1].ratio * u[1]
    w[0], w[1] = inverse[0] * p1 + inverse[1] * p2, inverse[1] * p1 + inverse[2] * p2
    for i in range(2):
        d = drives[i]
        if d.coupling == RIGID:
            w[2 + i] = w[i]
        else:
            w[2 + i] = (d.inertia * s.rotor_speed[i] + T * d.ratio * u[i]) / d.inertia
    return F


@kernel
def _push_joint(inverse: Any, w: Any, i: int, impulse: float) -> None:
    """Add the effect of an angular impulse [N m s] on joint i to the speeds w."""
    if i == 0:
        w[0] += inverse[0] * impulse
        w[1] += inverse[1] * impulse
    else:
        w[0] += inverse[1] * impulse
        w[1] += inverse[2] * impulse


@kernel
def _change(before: float, after: float, Z: float) -> float:
    """Return the speed change [rad/s] from a torque change at mobility Z; rounding errors count as 0."""
    change = abs(after - before)
    return Z * change if change > _ROUNDING * abs(after) else 0.0


@merged_kernel
def _relax(s: Any, d: Any, inverse: Any, w: Any, i: int) -> float:
    """Solve friction and coupling of the drive `d` of joint i, all else fixed; return its speed change."""
    T, f, own_friction, rotor_friction = s.step, s.load[i], s.friction[i], s.rotor_friction[i]
    mobility = inverse[0] if i == 0 else inverse[2]
    own, rotor = T * mobility, T / d.inertia
    d.period, d.load, d.friction, d.rotor_friction = T, f, own_friction, rotor_friction
    if d.coupling == RIGID:
        d.mobility = mobility
        call_part(d.solve, d, w[i], own)
    else:
        x, xm = w[i] + own * (own_friction - f), w[2 + i] + rotor * (rotor_friction + f)
        d.mobility, d.rotor_mobility = own, rotor
        d.ahead, d.ahead_speed = s.rotor[i] - s.angle[i], s.rotor_speed[i] - s.speed[i]
        call_part(d.solve, d, x, xm)
        w[2 + i] = xm - rotor * (d.rotor_friction + d.load)
    s.load[i], s.friction[i], s.rotor_friction[i] = d.load, d.friction, d.rotor_friction
    s.sticking[i], s.rotor_sticking[i] = d.sticking, d.rotor_sticking
    change = _change(own_friction, d.friction, own)
    if d.coupling == RIGID:
        _push_joint(inverse, w, i, T * (own_friction - d.friction))
        _push_joint(inverse, w, i, T * (rotor_friction - d.rotor_friction))
        return max(change, _change(rotor_friction, d.rotor_friction, own))
    _push_joint(inverse, w, i, T * (d.load - f - (d.friction - own_friction)))
    change = max(change, _change(f, d.load, own + rotor))
    return max(change, _change(rotor_friction, d.rotor_friction, rotor))


@kernel
def step_plant(s: Any, drives: Rows, u: Any, w: Any) -> None:
    """Advance the arm in record `s` by one step under the motor torques u, (2,) [N m].

    w, (4,), is workspace.
    """
    T = s.step
    inverse = mobility(s, drives, T)
    F = _free_speeds(s, drives, inverse, u, w)
    for i in range(2):  # begin with the torques of the last step
        torque = -s.friction[i]
        if drives[i].coupling == RIGID:
            torque -= s.rotor_friction[i]
        else:
            torque += s.load[i]
            w[2 + i] -= T / drives[i].inertia * (s.rotor_friction[i] + s.load[i])
        _push_joint(inverse, w, i, T * torque)
    for _ in range(_ROUNDS):
        change = 0.0
        for i in range(2):  # unrolled with the constants 0 and 1, it would be compiled once for each
            change = max(change, _relax(s, drives[i], inverse, w, i))
        if not change > _ROUNDING * (abs(w[0]) + abs(w[1]) + abs(w[2]) + abs(w[3])):
            break
    if s.contact_mass > 0.0 or s.contact_damping > 0.0 or s.contact_stiffness > 0.0:
        a, b, _, _ = frame_jacobian(s.links, s.plane, s.angle[0], s.angle[1])
        m = s.contact_mass / T + s.contact_damping + T * s.contact_stiffness
        s.contact_force = F + m * (a * w[0] + b * w[1])
    for i in range(2):
        rigid = drives[i].coupling == RIGID
        # A sticking joint has a speed of exactly 0; the sums above leave a rounding error.
        s.speed[i] = 0.0 if s.sticking[i] or (rigid and s.rotor_sticking[i]) else w[i]
        s.angle[i] += T * s.speed[i]
        if rigid:
            s.rotor_speed[i], s.rotor[i] = s.speed[i], s.angle[i]
        else:
            s.rotor_speed[i] = 0.0 if s.rotor_sticking[i] else w[2 + i]
            s.rotor[i] += T * s.rotor_speed[i]


@kernel
def _touch(records: Rows) -> tuple[float, float]:
    """Move the surface of the arm `records[0]` to the end effector; return its gravity compensation torques [N m]."""
    s = records[0]
    s.rest = frame_position(s, s.angle[0], s.angle[1])[0]
    return gravity(s.links, s.angle[0], s.angle[1])


def new_plant(
    record: NDArray[Any],
    links: Links,
    drives: Sequence[Drive],
    surface: Surface,
    start: tuple[float, float],
    held: bool = True,
    placed: PlacedLinkage | None = None,
) -> NDArray[Any]:
    """Initialize `record`, (1,) with `PLANT_FIELDS`, with an arm at rest; return its drives, (2,).

    `placed` is the placement of the links, by default with the base in the origin. The end effector touches the surface
    without force. If the arm is `held` against its weight, the couplings start at their static deflection: springs are
    twisted, and gaps are closed at the end that carries the load.
    """
    rows = np.zeros(2, DRIVE)
    for row, drive in zip(rows, drives, strict=True):
        drive.fill(row)
        row["solve"] = drive_address(row)
    links.fill(record["links"], placed)
    record["plane"] = surface.angle
    record["contact_mass"], record["contact_damping"] = surface.mass, surface.damping
    record["contact_stiffness"] = surface.stiffness
    record["angle"] = record["rotor"] = start
    for i, (drive, torque) in enumerate(zip(drives, _touch(record), strict=True)):
        if held and drive.coupling != "rigid":
            record["rotor"][0, i] += drive.twist(torque)
            record["load"][0, i] = torque
    return rows
