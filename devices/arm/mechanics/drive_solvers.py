"""Solvers for a drive in one step: rotor, coupling and joint in a chain, with friction on both sides.

The torque f of the coupling determines the speeds of rotor and joint exactly, each by its own friction law:
:math:`v_m = x_m - Z_m (f + f_m)` and :math:`v = x + Z (f - f_j)`, where Z are the mobilities of the two sides over one
step. The relative speed :math:`v_m - v` decreases with f, and the torque demanded by the coupling increases with the
relative speed, so that the solution f is unique. Without friction it has a closed form for linear springs and for gaps
(`elastic_torque`, `impact_torque`); otherwise it is computed by a bracketing search (`chain`, and `gear_chain` where
the coupling is the stiffness law of a gearbox).

Every kernel is compiled for one `DriveKind`, with only the couplings and laws that the drive has.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from devices.arm.flatness.laws import KNEE, torque_of, twist_of
from devices.arm.mechanics.drive import CLOSED, DRIVE, ELASTIC, IMPACT, RIGID, elastic_torque, impact_torque
from haptics.friction.kernels import implicit_law
from haptics.jit import address_of_part, inlined_kernel, kernel, merged_kernel

Kinds = tuple[int, ...]
"""Kinds of the friction laws forwards and backwards (`haptics.friction.kernels`), sorted; empty without
friction.
"""


class DriveKind(NamedTuple):
    """Properties that select the equations of a drive.

    Attributes
    ----------
    coupling : int
        `RIGID`, `IMPACT` or `ELASTIC`.
    gear : int or None
        Kind of the stiffness law of its gearbox, if it has one.
    joint, rotor : tuple of int
        Kinds of the friction laws of joint and rotor.
    """

    coupling: int
    gear: int | None
    joint: Kinds
    rotor: Kinds


def kind_of(row: Any) -> DriveKind:
    """Return the kind of the drive in `row`, a record of dtype `DRIVE`."""

    def kinds(which: str) -> Kinds:
        laws = (row[f"{which}forwards"], row[f"{which}backwards"]) if row[f"{which}rubs"] else ()
        return tuple(sorted({int(law["kind"]) for law in laws}))

    gear = int(row["gear"]["kind"]) if row["geared"] else None
    return DriveKind(int(row["coupling"]), gear, kinds(""), kinds("rotor_"))


@functools.cache
def _implicit(kinds: Kinds) -> Callable[..., Any]:
    """Return the kernel that solves friction laws of these kinds only."""
    first, others = implicit_law(kinds[0]), kinds[1:]
    if not others:
        return first
    kind, rest = kinds[0], _implicit(others)

    @kernel
    def implicit(law: Any, x: float, y: float, Z: float) -> Any:
        return first(law, x, y, Z) if law.kind == kind else rest(law, x, y, Z)

    return implicit


@functools.cache
def friction_torque(kinds: Kinds) -> Callable[..., Any]:
    """Return the kernel ``(forwards, backwards, x, Z)`` of (f, sticking), friction at the speed x - Z f.

    The sign of x is the sign of the speed.
    """
    implicit = _implicit(kinds)

    @kernel
    def friction(forwards: Any, backwards: Any, x: float, Z: float) -> tuple[float, bool]:
        if x >= 0.0:
            f, _, _, _, sticking = implicit(forwards, x, 0.0, Z)
        else:
            f, _, _, _, sticking = implicit(backwards, x, 0.0, Z)
        return f, sticking

    return friction


@inlined_kernel
def _free(s: Any, x: float, Z: float) -> tuple[float, float, bool]:
    """Return (0, x, False): no friction, unchanged speed, not sticking."""
    return 0.0, x, False


@functools.cache
def friction_of_joint(kinds: Kinds) -> Callable[..., Any]:
    """Return the kernel ``(s, x, Z)`` of friction, speed and sticking of the joint."""
    if not kinds:
        return _free
    friction = friction_torque(kinds)

    @inlined_kernel
    def of_joint(s: Any, x: float, Z: float) -> tuple[float, float, bool]:
        f, sticking = friction(s.forwards, s.backwards, x, Z)
        return f, 0.0 if sticking else x - Z * f, sticking

    return of_joint


@functools.cache
def friction_of_rotor(kinds: Kinds) -> Callable[..., Any]:
    """Return the kernel of the rotor, seen at the joint; its law is in torque and speed of the shaft."""
    if not kinds:
        return _free
    friction = friction_torque(kinds)

    @inlined_kernel
    def of_rotor(s: Any, x: float, Z: float) -> tuple[float, float, bool]:
        n = s.ratio
        f, sticking = friction(s.rotor_forwards, s.rotor_backwards, n * x, n * n * Z)
        return n * f, 0.0 if sticking else x - Z * n * f, sticking

    return of_rotor


_EPSILON = 2.2e-16


# --- torque of the coupling -------------------------------------------------------------------------------------------


@functools.cache
def gear_chain(kind: DriveKind) -> Callable[..., Any]:
    """Return the kernel ``(s, guess, e, x, Z, xm, Zm, T)`` of the torque of a gearbox.

    It searches the f at which the difference between f and the torque of the gearbox is zero; the difference increases
    with f and is a twist or a torque, depending on the direction in which the law of the gearbox has a closed form. The
    search starts at `guess`, the result of the last step. It uses Newton's method for the first step and secants
    afterwards, within the bracket of all previous steps. The other arguments are the same as in `chain`.
    """
    of_joint, of_rotor = friction_of_joint(kind.joint), friction_of_rotor(kind.rotor)
    law = kind.gear if kind.gear is not None else KNEE
    twist_at, torque_at = twist_of(law), torque_of(law)

    @inlined_kernel
    def by_twist(s: Any, f: float, e: float, w: float, fall: float, T: float) -> tuple[float, float, float]:
        twist, twist_slope, _ = twist_at(s.gear, f - s.damping * w)
        rounding = _EPSILON * (abs(twist) + abs(e) + abs(T * w))
        return twist - (e + T * w), twist_slope * (1.0 + s.damping * fall) + T * fall, rounding

    @inlined_kernel
    def by_torque(s: Any, f: float, e: float, w: float, fall: float, T: float) -> tuple[float, float, float]:
        torque, torque_slope, _ = torque_at(s.gear, e + T * w)
        rounding = _EPSILON * (abs(torque) + abs(f) + torque_slope * abs(e))
        return f - s.damping * w - torque, 1.0 + (s.damping + T * torque_slope) * fall, rounding

    compared = by_twist if law == KNEE else by_torque

    @kernel
    def excess(s: Any, f: float, e: float, x: float, Z: float, xm: float, Zm: float, T: float) -> Any:
        """Return the difference, its approximate derivative with respect to f, and its rounding error."""
        _, v, sticking = of_joint(s, x + Z * f, Z)
        _, vm, rotor_sticking = of_rotor(s, xm - Zm * f, Zm)
        fall = (0.0 if sticking else Z) + (0.0 if rotor_sticking else Zm)
        return compared(s, f, e, vm - v, fall, T)

    @kernel
    def search(s: Any, guess: float, e: float, x: float, Z: float, xm: float, Zm: float, T: float) -> Any:
        low, high, f = -math.inf, math.inf, guess
        value, slope, rounding = excess(s, f, e, x, Z, xm, Zm, T)
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
            if not low < after < high:  # no floating-point number left inside the bracket
                break
            last = value
            value, tangent, rounding = excess(s, after, e, x, Z, xm, Zm, T)
            secant = (value - last) / (after - f)
            slope = secant if secant > 0.0 else tangent
            f = after
        return f

    return search


@functools.cache
def _search(kind: DriveKind) -> Callable[..., Any]:
    """Return the kernel that searches the torque of a coupling between `low` and `high`.

    The method is false position, with every third step a bisection. `limit` is the relative speed required by an
    `IMPACT`.
    """
    of_joint, of_rotor = friction_of_joint(kind.joint), friction_of_rotor(kind.rotor)

    @inlined_kernel
    def of_speed(s: Any, f: float, e: float, w: float, limit: float, T: float) -> Any:
        return limit - w

    @inlined_kernel
    def of_torque(s: Any, f: float, e: float, w: float, limit: float, T: float) -> Any:
        return f - elastic_torque(s, e, w, 0.0, T)

    compared = of_speed if kind.coupling == IMPACT else of_torque

    @kernel
    def excess(s: Any, f: float, e: float, limit: float, x: float, Z: float, xm: float, Zm: float, T: float) -> Any:
        """Return the difference between f and the torque of the coupling; it increases with f."""
        _, v, _ = of_joint(s, x + Z * f, Z)
        _, vm, _ = of_rotor(s, xm - Zm * f, Zm)
        return compared(s, f, e, vm - v, limit, T)

    @merged_kernel
    def search(
        s: Any, low: float, high: float, e: float, limit: float, x: float, Z: float, xm: float, Zm: float, T: float
    ) -> Any:
        a, b = low, high
        fa = excess(s, a, e, limit, x, Z, xm, Zm, T)
        fb = excess(s, b, e, limit, x, Z, xm, Zm, T)
        for k in range(300):
            f = 0.5 * (a + b) if k % 3 == 2 or not fb > fa else a - fa * (b - a) / (fb - fa)
            f = min(max(f, a), b)
            value = excess(s, f, e, limit, x, Z, xm, Zm, T)
            if value == 0.0:
                return f
            if value < 0.0:
                a, fa = f, value
            else:
                b, fb = f, value
            if b - a <= 4e-16 * max(abs(a), abs(b)):
                break
        return a if -fa < fb else b

    return search


@functools.cache
def chain(kind: DriveKind) -> Callable[..., Any]:
    """Return the kernel ``(s, e, x, Z, xm, Zm, T)`` of the torque of an IMPACT or linear ELASTIC coupling.

    x and xm are the speeds of joint and rotor without any of its torques; e is the angle of the rotor minus the angle
    of the joint [rad]. `far` is the torque that the coupling needs without friction, or more.
    """
    of_joint, of_rotor = friction_of_joint(kind.joint), friction_of_rotor(kind.rotor)
    search = _search(kind)

    @kernel
    def impact(s: Any, e: float, x: float, Z: float, xm: float, Zm: float, T: float) -> Any:
        _, v, _ = of_joint(s, x, Z)
        _, vm, _ = of_rotor(s, xm, Zm)
        w, before = vm - v, s.ahead_speed
        right, left = min(-s.restitution * before, 0.0), max(-s.restitution * before, 0.0)
        if e >= s.half_gap - CLOSED and w > right:
            sign, limit = 1.0, right
        elif e <= -s.half_gap + CLOSED and w < left:
            sign, limit = -1.0, left
        else:
            return 0.0
        far = (w - limit) / (Z + Zm)
        for _ in range(100):  # friction takes a part of the torque: more may be needed than without it
            _, v, _ = of_joint(s, x + Z * far, Z)
            _, vm, _ = of_rotor(s, xm - Zm * far, Zm)
            if sign * (limit - (vm - v)) >= 0.0:
                break
            far *= 2.0
        return search(s, min(far, 0.0), max(far, 0.0), e, limit, x, Z, xm, Zm, T)

    @kernel
    def spring(s: Any, e: float, x: float, Z: float, xm: float, Zm: float, T: float) -> Any:
        _, v, _ = of_joint(s, x, Z)
        _, vm, _ = of_rotor(s, xm, Zm)
        far = elastic_torque(s, e, vm - v, 0.0, T)  # an upper bound: the torque reduces the relative speed
        if far == 0.0:
            return 0.0
        return search(s, min(far, 0.0), max(far, 0.0), e, 0.0, x, Z, xm, Zm, T)

    return impact if kind.coupling == IMPACT else spring


# --- solvers by kind --------------------------------------------------------------------------------------------------


def drive_address(row: Any) -> int:
    """Return the address of the function ``(drive, x, y)`` that solves the drive in `row`.

    The function is compiled on first use.

    For a rigid drive, x is the speed of the joint and y the speed change per torque on it. For other drives, x and y
    are the speeds of joint and rotor without any of the drive's torques [rad/s].
    """
    kind = kind_of(row)
    return address_of_part(_rigid(kind) if kind.coupling == RIGID else _coupled(kind), DRIVE)


@functools.cache
def _rigid(kind: DriveKind) -> Callable[..., None]:
    """Return the solver of a rigid drive: friction of the joint, then friction of the rotor."""
    of_joint, of_rotor = friction_of_joint(kind.joint), friction_of_rotor(kind.rotor)

    @kernel
    def solve(d: Any, speed: float, Z: float) -> None:
        f, _, sticking = of_joint(d, speed + Z * d.friction, Z)
        speed += d.mobility * (d.period * (d.friction - f))
        d.friction, d.sticking = f, 1 if sticking else 0
        f, _, sticking = of_rotor(d, speed + Z * d.rotor_friction, Z)
        d.rotor_friction, d.rotor_sticking = f, 1 if sticking else 0

    return solve


@functools.cache
def _coupled(kind: DriveKind) -> Callable[..., None]:
    """Return the solver of a drive with a gap or spring: coupling and friction at once."""
    of_joint, of_rotor = friction_of_joint(kind.joint), friction_of_rotor(kind.rotor)

    @merged_kernel
    def rub(d: Any, f: float, x: float, Z: float, xm: float, Zm: float) -> None:
        d.load = f
        d.friction, _, held = of_joint(d, x + Z * f, Z)
        d.rotor_friction, _, rotor_held = of_rotor(d, xm - Zm * f, Zm)
        d.sticking, d.rotor_sticking = 1 if held else 0, 1 if rotor_held else 0

    if kind.gear is not None:
        of_gear = gear_chain(kind)

        @kernel
        def geared(d: Any, x: float, xm: float) -> None:
            Z, Zm = d.mobility, d.rotor_mobility
            rub(d, of_gear(d, d.load, d.ahead, x, Z, xm, Zm, d.period), x, Z, xm, Zm)

        return geared
    if kind.joint or kind.rotor:
        of_chain = chain(kind)

        @kernel
        def rubbing(d: Any, x: float, xm: float) -> None:
            Z, Zm = d.mobility, d.rotor_mobility
            rub(d, of_chain(d, d.ahead, x, Z, xm, Zm, d.period), x, Z, xm, Zm)

        return rubbing

    @kernel
    def sprung(d: Any, x: float, xm: float) -> None:
        d.load = elastic_torque(d, d.ahead, xm - x, d.mobility + d.rotor_mobility, d.period)

    @kernel
    def loose(d: Any, x: float, xm: float) -> None:
        d.load = impact_torque(d, d.ahead, d.ahead_speed, xm - x, d.mobility + d.rotor_mobility)

    return sprung if kind.coupling == ELASTIC else loose
