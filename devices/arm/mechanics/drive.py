r"""Drive of a joint: rotor, reduction, coupling of rotor and link, friction on both, and encoder.

All quantities are seen at the joint: angles of the rotor are divided by the reduction, its torques multiplied by it,
its inertia by its square. Rotor and joint are connected by one of three couplings:

==========  ===========================================================================================
`RIGID`     the rotor turns with the joint
`IMPACT`    backlash: within the gap both are free, at its ends they collide (Machado et al. 2002, (11))
`ELASTIC`   a spring and a damper, beyond a dead zone if there is backlash (12); or the law of a gearbox with
            lost motion (`devices.arm.flatness.laws`)
==========  ===========================================================================================

Friction is set-valued: a joint at rest sticks exactly, up to the break-away torque. It obeys the laws of
`haptics.friction.laws`, with N m for N and rad/s for m/s, and may have another law for each direction.

The torque f of the coupling determines the speeds of rotor and joint exactly, each by its own friction law:
:math:`v_m = x_m - Z_m (f + f_m)` and :math:`v = x + Z (f - f_j)`, where Z are the mobilities of the two sides over one
step. The relative speed :math:`v_m - v` decreases with f, and the torque demanded by the coupling increases with the
relative speed, so that the solution f is unique. Without friction it has a closed form for linear springs and for gaps
(`elastic_torque`, `impact_torque`); otherwise it is computed by a bracketing search (`chain`, and `gear_chain` where
the coupling is the stiffness law of a gearbox). Every solver is compiled for one `DriveKind`, with only the couplings
and laws that the drive has. `devices.arm.mechanics.plant` contains the step that couples both joints.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from devices.arm.flatness.laws import KNEE, SMOOTH, TORQUES, TWISTS, Stiffness
from devices.common.kernels import quantise
from haptics import Coulomb, Law
from haptics.errors import ConfigurationError
from haptics.friction.kernels import LAW, implicit_law
from haptics.jit import address_of_part, inlined_kernel, kernel, merged_kernel
from haptics.records import fields
from haptics.settings import bounded, check, choice, documented

RIGID, IMPACT, ELASTIC = 0, 1, 2

CLOSED = 1e-12
"""Gaps narrower than this count as closed, because angles are rounded [rad]."""

DRIVE = np.dtype(
    [
        *fields("<i8", "solve coupling"),
        *fields("<f8", "ratio inertia half_gap restitution stiffness damping"),
        ("geared", "<i8"),
        ("gear", SMOOTH),
        ("rubs", "<i8"),
        ("forwards", LAW),
        ("backwards", LAW),
        ("rotor_rubs", "<i8"),
        ("rotor_forwards", LAW),
        ("rotor_backwards", LAW),
        ("encoder_at_rotor", "<i8"),
        *fields("<f8", "resolution period mobility rotor_mobility ahead ahead_speed load friction"),
        *fields("<f8", "rotor_friction"),
        *fields("<i8", "sticking rotor_sticking"),
    ]
)
"""Kernel record of the drive of one joint; ``inertia`` of the rotor is seen at the joint. The fields from
``period`` on are arguments and results of the function at the address ``solve`` (`drive_address`): the step [s], the
mobilities of joint and rotor over it, the angle and speed of the rotor relative to the joint before it; then the
torques [N m].
"""


@kernel
def elastic_torque(s: Any, e: float, x: float, Z: float, T: float) -> Any:
    """Return the torque of the linear ELASTIC coupling.

    It is K (e + T w -+ h/2) + B w with w = x - Z f, and zero where that would pull. `e` is the angle of the rotor minus
    the angle of the joint [rad]. Within the gap no torque is transmitted.
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
    """Return the torque of the IMPACT coupling over one step, which an end of the gap must exert.

    `w` is the relative speed of the rotor [rad/s] before the step. Where the gap is closed, the rotor separates at
    least at the restitution times its approach speed (Newton).
    """
    if e >= s.half_gap - CLOSED:
        return max(x - min(-s.restitution * w, 0.0), 0.0) / Z
    if e <= -s.half_gap + CLOSED:
        return min(x - max(-s.restitution * w, 0.0), 0.0) / Z
    return 0.0


@kernel
def collide(J: float, Jm: float, restitution: float, w: float, wm: float) -> tuple[float, float]:
    """Return the speeds (joint, rotor) [rad/s] after an impact between two inertias [kg m^2]; (11).

    The right-hand side of (11) contains the speeds before the impact, with J_ii where the paper prints J_i. Then the
    momentum J w + Jm wm is conserved, and the relative speed is reversed and multiplied by the restitution.
    """
    total = J + Jm
    after = (w * (J - restitution * Jm) + wm * Jm * (1.0 + restitution)) / total
    rotor = (w * J * (1.0 + restitution) + wm * (Jm - restitution * J)) / total
    return after, rotor


@kernel
def encoder_angle(s: Any, joint: float, rotor: float) -> Any:
    """Return the joint angle that the encoder measures [rad]; both angles are seen at the joint."""
    if s.encoder_at_rotor:
        return quantise(rotor * s.ratio, s.resolution) / s.ratio
    return quantise(joint, s.resolution)


COUPLINGS = {"rigid": RIGID, "impact": IMPACT, "elastic": ELASTIC}
"""Couplings between rotor and joint by the name used in settings."""


@documented
@dataclass(frozen=True)
class Motor:
    """Motor that is commanded a torque.

    Attributes
    ----------
    friction, backward_friction : Law, optional
        Friction on the shaft: N m over rad/s of the rotor. The second is for negative speeds, by default as the first.
    """

    inertia: float = bounded(1.0, above=0.0, maximum=1e6, unit="kg m^2", doc="inertia of the rotor")
    friction: Law | None = None
    backward_friction: Law | None = None

    def __post_init__(self) -> None:
        check(self, "motor")


@documented
@dataclass(frozen=True)
class Drive:
    """Drive of one joint.

    Attributes
    ----------
    motor : Motor
        The motor.
    gear : Stiffness, optional
        Stiffness law of the gearbox, which a feed-forward inverts; replaces `stiffness` and `backlash`.
    friction, backward_friction : Law, optional
        Friction of the joint: N m over rad/s. The second is for negative speeds, by default as the first.

    Raises
    ------
    ConfigurationError
        If a value is invalid, or does not apply to the coupling.
    """

    motor: Motor = field(default_factory=Motor)
    ratio: float = bounded(1.0, above=0.0, maximum=1e4, doc="reduction: turns of the rotor per turn of the joint")
    coupling: str = choice("rigid", COUPLINGS, doc="coupling of rotor and joint")
    backlash: float = bounded(
        0.0, minimum=0.0, maximum=1.0, unit="rad", doc="width of the gap, at the joint; for impact and elastic"
    )
    restitution: float = bounded(
        0.0, minimum=0.0, maximum=1.0, doc="restitution of an impact: 0 for inelastic collisions, 1 for elastic ones"
    )
    stiffness: float = bounded(
        0.0, minimum=0.0, maximum=1e12, unit="N m/rad", doc="stiffness of the elastic coupling, seen at the joint"
    )
    damping: float = bounded(
        0.0, minimum=0.0, maximum=1e12, unit="N m s/rad", doc="damping of the elastic coupling, seen at the joint"
    )
    gear: Stiffness | None = None
    friction: Law | None = None
    backward_friction: Law | None = None
    encoder: str = choice("joint", ("joint", "motor"), doc="what the encoder is mounted on")
    resolution: float = bounded(
        0.0, minimum=0.0, maximum=1.0, unit="rad", doc="step of the encoder where it is mounted; 0 for none"
    )

    def __post_init__(self) -> None:
        check(self, "drive")
        if self.gear is not None and (self.coupling != "elastic" or self.stiffness > 0.0 or self.backlash > 0.0):
            raise ConfigurationError("drive.gear: is for an elastic coupling, instead of a stiffness and a backlash.")
        if (self.coupling == "elastic" and self.gear is None) != (self.stiffness > 0.0):
            raise ConfigurationError(
                f"drive.stiffness = {self.stiffness!r}: must be greater than 0 N m/rad for an elastic coupling without "
                f"a gear and 0 for any other; drive.coupling is {self.coupling!r}."
            )
        if self.coupling == "rigid" and self.backlash > 0.0:
            raise ConfigurationError(
                f"drive.backlash = {self.backlash!r}: a rigid coupling has none; choose impact or elastic."
            )

    @property
    def rubs(self) -> bool:
        """Whether joint or rotor has friction."""
        laws = self.friction, self.backward_friction, self.motor.friction, self.motor.backward_friction
        return any(law is not None for law in laws)

    def twist(self, torque: float) -> float:
        """Return the twist of the coupling under `torque` [N m], seen at the joint [rad]."""
        if self.gear is not None:
            return float(self.gear.twist(torque))
        end = math.copysign(0.5 * self.backlash, torque) if torque else 0.0
        return end + (torque / self.stiffness if self.stiffness > 0.0 else 0.0)

    def fill(self, row: Any) -> None:
        """Write the drive into `row`, a record of dtype `DRIVE`."""
        motor, ratio = self.motor, self.ratio
        row["coupling"] = COUPLINGS[self.coupling]
        row["ratio"], row["inertia"] = ratio, motor.inertia * ratio**2
        row["half_gap"], row["restitution"] = 0.5 * self.backlash, self.restitution
        row["stiffness"], row["damping"] = self.stiffness, self.damping
        row["geared"] = self.gear is not None
        if self.gear is not None:
            row["gear"] = self.gear.record[0]
        for which, rubbing in (("", self), ("rotor_", motor)):
            forward, backward = rubbing.friction, rubbing.backward_friction
            row[f"{which}rubs"] = forward is not None or backward is not None
            row[f"{which}forwards"] = (forward or Coulomb(0.0)).record[0]
            row[f"{which}backwards"] = (backward or forward or Coulomb(0.0)).record[0]
        row["encoder_at_rotor"], row["resolution"] = self.encoder == "motor", self.resolution


# --- solvers ----------------------------------------------------------------------------------------------------------

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
    twist_at, torque_at = TWISTS[law], TORQUES[law]

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
