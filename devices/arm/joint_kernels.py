r"""The scalar relations of a joint's drive as kernels: friction, spring, gap, and the three of them in one line.

Rotor, coupling and joint are a chain. With the torque f of the coupling the speeds of rotor and joint follow, each by
its own friction law, exactly: :math:`v_m = x_m - Z_m (f + f_m)` and :math:`v = x + Z (f - f_j)`, where Z are the
mobilities of the two sides over one step. The relative speed :math:`v_m - v` falls where f grows, and the coupling
asks for more f where it grows: there is one f at which both agree. Without friction it has a closed form for straight
springs and for gaps (`elastic_torque`, `impact_torque`); else it is searched for between brackets (`chain`, and
`gear_chain` where the coupling is the law of a gearbox).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from devices.arm.flatness.law_kernels import SMOOTH
from devices.arm.flatness.stiffness_kernels import KNEE, OWN_TWIST, gear_torque, gear_twist
from devices.virtual.plant import quantise
from haptics._jit import kernel, merged_kernel
from haptics.friction_kernels import implicit_force
from haptics.sliding_kernels import LAW

RIGID, IMPACT, ELASTIC = 0, 1, 2

CLOSED = 1e-12
"""A gap that is narrower than this is closed [rad]: angles are rounded."""

_EPSILON = 2.2e-16

DRIVE = np.dtype(
    [
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
    ]
)
"""The drive of one joint as kernels read it: ``inertia``, ``gain`` and ``drag`` seen at the joint."""


@kernel
def friction_torque(forwards: Any, backwards: Any, x: float, Z: float) -> tuple[float, bool]:
    """Return (f, sticking) with f in the law of the speed x - Z f; the sign of x is that of the speed."""
    if x >= 0.0:
        f, _, _, _, sticking = implicit_force(forwards, x, 0.0, Z)
    else:
        f, _, _, _, sticking = implicit_force(backwards, x, 0.0, Z)
    return f, sticking


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


@kernel
def _rotor_friction(s: Any, x: float, Z: float) -> tuple[float, float, bool]:
    """Return (f, v, sticking) of the rotor, seen at the joint; its law is in torque and speed of the shaft."""
    if not s.rotor_rubs:
        return 0.0, x, False
    n = s.ratio
    f, sticking = friction_torque(s.rotor_forwards, s.rotor_backwards, n * x, n * n * Z)
    return n * f, 0.0 if sticking else x - Z * n * f, sticking


@kernel
def _joint_friction(s: Any, x: float, Z: float) -> tuple[float, float, bool]:
    """Return (f, v, sticking) of the joint."""
    if not s.rubs:
        return 0.0, x, False
    f, sticking = friction_torque(s.forwards, s.backwards, x, Z)
    return f, 0.0 if sticking else x - Z * f, sticking


@kernel
def _excess(s: Any, f: float, e: float, limit: float, x: float, Z: float, xm: float, Zm: float, T: float) -> Any:
    """Return by how much f is more than the coupling asks for: torque if it is ELASTIC, else speed; grows with f."""
    _, v, _ = _joint_friction(s, x + Z * f, Z)
    _, vm, _ = _rotor_friction(s, xm - Zm * f, Zm)
    w = vm - v
    if s.coupling == IMPACT:
        return limit - w
    return f - elastic_torque(s, e, w, 0.0, T)


@merged_kernel
def _search(
    s: Any, low: float, high: float, e: float, limit: float, x: float, Z: float, xm: float, Zm: float, T: float
) -> float:
    """Return the torque from `low` to `high` at which `_excess` is zero: false position, every third step halved."""
    a, b = low, high
    fa = _excess(s, a, e, limit, x, Z, xm, Zm, T)
    fb = _excess(s, b, e, limit, x, Z, xm, Zm, T)
    for k in range(300):
        f = 0.5 * (a + b) if k % 3 == 2 or not fb > fa else a - fa * (b - a) / (fb - fa)
        f = min(max(f, a), b)
        value = _excess(s, f, e, limit, x, Z, xm, Zm, T)
        if value == 0.0:
            return f
        if value < 0.0:
            a, fa = f, value
        else:
            b, fb = f, value
        if b - a <= 4e-16 * max(abs(a), abs(b)):
            break
    return a if -fa < fb else b


@kernel
def _gear_excess(
    s: Any, f: float, e: float, x: float, Z: float, xm: float, Zm: float, T: float
) -> tuple[Any, Any, Any]:
    """Return by how much f is more than the gearbox asks for, about how fast that grows with f, and its rounding error.

    It is a twist or a torque: the law of the gearbox is asked in the direction in which it has a closed form.
    """
    _, v, sticking = _joint_friction(s, x + Z * f, Z)
    _, vm, rotor_sticking = _rotor_friction(s, xm - Zm * f, Zm)
    w, fall = vm - v, (0.0 if sticking else Z) + (0.0 if rotor_sticking else Zm)
    ahead, spring = e + T * w, f - s.damping * w
    if s.gear.kind in (KNEE, OWN_TWIST):
        twist, twist_slope, _ = gear_twist(s.gear, spring)
        rounding = _EPSILON * (abs(twist) + abs(e) + abs(T * w))
        return twist - ahead, twist_slope * (1.0 + s.damping * fall) + T * fall, rounding
    torque, torque_slope, _ = gear_torque(s.gear, ahead)
    rounding = _EPSILON * (abs(torque) + abs(f) + torque_slope * abs(e))
    return spring - torque, 1.0 + (s.damping + T * torque_slope) * fall, rounding


@merged_kernel
def gear_chain(s: Any, guess: float, e: float, x: float, Z: float, xm: float, Zm: float, T: float) -> Any:
    """Return the torque of a gearbox as `chain` does, searched for from `guess` on, which the last step had.

    Newton's first step, secants from there on, within the bracket that all steps so far make.
    """
    low, high, f = -math.inf, math.inf, guess
    value, slope, rounding = _gear_excess(s, f, e, x, Z, xm, Zm, T)
    for k in range(200):
        if abs(value) <= rounding:
            break
        if value < 0.0:
            low = f
        else:
            high = f
        after = f - value / slope
        if not low < after < high or (k % 4 == 3 and high - low < math.inf):
            after = 0.5 * (low + high)
        if not low < after < high:  # nothing left between them
            break
        last = value
        value, tangent, rounding = _gear_excess(s, after, e, x, Z, xm, Zm, T)
        secant = (value - last) / (after - f)
        slope = secant if secant > 0.0 else tangent
        f = after
    return f


@merged_kernel
def chain(s: Any, e: float, before: float, x: float, Z: float, xm: float, Zm: float, T: float) -> Any:
    """Return the torque of an IMPACT or straight ELASTIC coupling; `x`, `xm` are the speeds without any of its torques.

    `e` is how far the rotor is ahead [rad], `before` how fast it ran ahead before the step [rad/s].
    """
    _, v, _ = _joint_friction(s, x, Z)
    _, vm, _ = _rotor_friction(s, xm, Zm)
    w, limit = vm - v, 0.0
    if s.coupling == IMPACT:
        right, left = min(-s.restitution * before, 0.0), max(-s.restitution * before, 0.0)
        if e >= s.half_gap - CLOSED and w > right:
            sign, limit = 1.0, right
        elif e <= -s.half_gap + CLOSED and w < left:
            sign, limit = -1.0, left
        else:
            return 0.0
        far = (w - limit) / (Z + Zm)
        for _ in range(100):  # friction takes a part of the push: more may be needed than without it
            if sign * _excess(s, far, e, limit, x, Z, xm, Zm, T) >= 0.0:
                break
            far *= 2.0
    else:
        far = elastic_torque(s, e, w, 0.0, T)  # with more torque than at rest it would run ahead less
    if far == 0.0:
        return 0.0
    return _search(s, min(far, 0.0), max(far, 0.0), e, limit, x, Z, xm, Zm, T)


@merged_kernel
def sides(s: Any, f: float, x: float, Z: float, xm: float, Zm: float) -> tuple[float, bool, float, bool]:
    """Return friction and sticking of the joint and of the rotor if the coupling has the torque f."""
    own, _, sticking = _joint_friction(s, x + Z * f, Z)
    rotor, _, rotor_sticking = _rotor_friction(s, xm - Zm * f, Zm)
    return own, sticking, rotor, rotor_sticking
