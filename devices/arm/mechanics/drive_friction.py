"""Kind of a drive and its friction kernels, which are specialized for the friction laws of the drive."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from haptics.friction.kernels import implicit_law
from haptics.jit import inlined_kernel, kernel

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


@functools.cache
def sides(kind: DriveKind) -> Callable[..., Any]:
    """Return the kernel ``(s, f, x, Z, xm, Zm)`` of friction and sticking of the joint and of the rotor.

    f is the torque of the coupling.
    """
    of_joint, of_rotor = friction_of_joint(kind.joint), friction_of_rotor(kind.rotor)

    @kernel
    def both(s: Any, f: float, x: float, Z: float, xm: float, Zm: float) -> tuple[float, bool, float, bool]:
        own, _, sticking = of_joint(s, x + Z * f, Z)
        rotor, _, rotor_sticking = of_rotor(s, xm - Zm * f, Zm)
        return own, sticking, rotor, rotor_sticking

    return both
