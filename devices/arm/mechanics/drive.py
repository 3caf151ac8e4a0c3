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
(`elastic_torque`); otherwise it is computed by a bracketing search. Every solver is compiled for one `DriveKind`, with
only the couplings and laws that the drive has. `devices.arm.mechanics.plant` contains the step that couples both
joints.
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
from haptics.jit import address_of_part, inlined_kernel, kernel
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
        ("rotor_law", LAW),
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


_RATE: dict[str, Any] = {"minimum": 0.0, "maximum": 1e12}
_UPTO_1: dict[str, Any] = {"minimum": 0.0, "maximum": 1.0}


@documented
@dataclass(frozen=True)
class Motor:
    """Motor that is commanded a torque.

    Attributes
    ----------
    friction : Law, optional
        Friction on the shaft: N m over rad/s of the rotor.
    """

    inertia: float = bounded(1.0, above=0.0, maximum=1e6, unit="kg m^2", doc="inertia of the rotor")
    friction: Law | None = None

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
    backlash: float = bounded(0.0, **_UPTO_1, unit="rad", doc="width of the gap, at the joint; for impact and elastic")
    restitution: float = bounded(
        0.0, **_UPTO_1, doc="restitution of an impact: 0 for inelastic, 1 for elastic collisions"
    )
    stiffness: float = bounded(0.0, **_RATE, unit="N m/rad", doc="stiffness of the elastic coupling, at the joint")
    damping: float = bounded(0.0, **_RATE, unit="N m s/rad", doc="damping of the elastic coupling, at the joint")
    gear: Stiffness | None = None
    friction: Law | None = None
    backward_friction: Law | None = None
    encoder: str = choice("joint", ("joint", "motor"), doc="what the encoder is mounted on")
    resolution: float = bounded(0.0, **_UPTO_1, unit="rad", doc="step of the encoder where it is mounted; 0 for none")

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
        forward, backward, free = self.friction, self.backward_friction, Coulomb(0.0)
        row["rubs"], row["rotor_rubs"] = forward is not None or backward is not None, motor.friction is not None
        row["forwards"], row["backwards"] = (forward or free).record[0], (backward or forward or free).record[0]
        row["rotor_law"] = (motor.friction or free).record[0]
        row["encoder_at_rotor"], row["resolution"] = self.encoder == "motor", self.resolution


# --- solvers ----------------------------------------------------------------------------------------------------------

Kinds = tuple[int, ...]
"""Kinds of the friction laws (`haptics.friction.kernels`): forwards and backwards, or one for both; empty for none."""


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


def drive_address(row: Any) -> int:
    """Return the address of the function ``(drive, x, y)`` that solves the drive in `row`, a record of dtype `DRIVE`.

    The function is compiled on first use.

    For a rigid drive, x is the speed of the joint and y the speed change per torque on it. For other drives, x and y
    are the speeds of joint and rotor without any of the drive's torques [rad/s].
    """
    joint = (int(row["forwards"]["kind"]), int(row["backwards"]["kind"])) if row["rubs"] else ()
    rotor = (int(row["rotor_law"]["kind"]),) if row["rotor_rubs"] else ()
    gear = int(row["gear"]["kind"]) if row["geared"] else None
    return address_of_part(_solver(DriveKind(int(row["coupling"]), gear, joint, rotor)), DRIVE)


@functools.cache
def _friction(kinds: Kinds, at_rotor: bool) -> Callable[..., Any]:
    """Return the kernel ``(d, x, Z)`` of friction, speed x - Z f and sticking of the joint or of the rotor.

    The sign of x is the sign of the speed. Both are seen at the joint; the law of the rotor is in torque and speed of
    its shaft.
    """

    @inlined_kernel
    def free(d: Any, x: float, Z: float) -> tuple[float, float, bool]:
        return 0.0, x, False

    if not kinds:
        return free
    forwards, backwards = implicit_law(kinds[0]), implicit_law(kinds[-1])

    @inlined_kernel
    def friction(d: Any, x: float, Z: float) -> tuple[float, float, bool]:
        n = d.ratio if at_rotor else 1.0
        if n * x >= 0.0:
            f, _, _, _, sticking = forwards(d.rotor_law if at_rotor else d.forwards, n * x, 0.0, n * n * Z)
        else:
            f, _, _, _, sticking = backwards(d.rotor_law if at_rotor else d.backwards, n * x, 0.0, n * n * Z)
        return n * f, 0.0 if sticking else x - Z * n * f, sticking

    return friction


_EPSILON = 2.2e-16


@functools.cache
def _gear_torque(kind: DriveKind) -> Callable[..., Any]:
    """Return the kernel ``(d, x, xm)`` of the torque of a gearbox; the arguments are the same as of `_gap_torque`.

    It searches the f at which the difference between f and the torque of the gearbox is zero; the difference increases
    with f and is a twist or a torque, depending on the direction in which the law of the gearbox has a closed form. The
    search starts at the result of the last step. It uses Newton's method for the first step and secants afterwards,
    within the bracket of all previous steps.
    """
    of_joint, of_rotor = _friction(kind.joint, False), _friction(kind.rotor, True)
    by_twist = kind.gear == KNEE
    law = TWISTS[KNEE] if by_twist or kind.gear is None else TORQUES[kind.gear]

    @kernel
    def excess(d: Any, f: float, x: float, xm: float) -> Any:
        """Return the difference, its approximate derivative with respect to f, and its rounding error."""
        e, Z, Zm, T = d.ahead, d.mobility, d.rotor_mobility, d.period
        _, v, sticking = of_joint(d, x + Z * f, Z)
        _, vm, rotor_sticking = of_rotor(d, xm - Zm * f, Zm)
        w, fall = vm - v, (0.0 if sticking else Z) + (0.0 if rotor_sticking else Zm)
        if by_twist:
            twist, slope, _ = law(d.gear, f - d.damping * w)
            rounding = _EPSILON * (abs(twist) + abs(e) + abs(T * w))
            return twist - (e + T * w), slope * (1.0 + d.damping * fall) + T * fall, rounding
        torque, slope, _ = law(d.gear, e + T * w)
        rounding = _EPSILON * (abs(torque) + abs(f) + slope * abs(e))
        return f - d.damping * w - torque, 1.0 + (d.damping + T * slope) * fall, rounding

    @kernel
    def search(d: Any, x: float, xm: float) -> Any:
        low, high, f = -math.inf, math.inf, d.load
        value, slope, rounding = excess(d, f, x, xm)
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
            value, tangent, rounding = excess(d, after, x, xm)
            secant = (value - last) / (after - f)
            slope = secant if secant > 0.0 else tangent
            f = after
        return f

    return search


@functools.cache
def _gap_torque(kind: DriveKind) -> Callable[..., Any]:
    """Return the kernel ``(d, x, xm)`` of the torque of an IMPACT or linear ELASTIC coupling with friction.

    x and xm are the speeds of joint and rotor without any of the drive's torques. The torque lies between zero and
    `far`, the torque that the coupling needs without friction, or more. It is searched by false position, with every
    third step a bisection.
    """
    of_joint, of_rotor = _friction(kind.joint, False), _friction(kind.rotor, True)
    impact = kind.coupling == IMPACT

    @inlined_kernel
    def relative_speed(d: Any, f: float, x: float, xm: float) -> Any:
        _, v, _ = of_joint(d, x + d.mobility * f, d.mobility)
        _, vm, _ = of_rotor(d, xm - d.rotor_mobility * f, d.rotor_mobility)
        return vm - v

    @kernel
    def excess(d: Any, f: float, limit: float, x: float, xm: float) -> Any:
        """Return the difference between f and the torque of the coupling; it increases with f."""
        w = relative_speed(d, f, x, xm)
        return limit - w if impact else f - elastic_torque(d, d.ahead, w, 0.0, d.period)

    @kernel
    def search(d: Any, x: float, xm: float) -> Any:
        e, w, limit = d.ahead, relative_speed(d, 0.0, x, xm), 0.0
        if impact:  # `limit` is the required relative speed
            right, left = min(-d.restitution * d.ahead_speed, 0.0), max(-d.restitution * d.ahead_speed, 0.0)
            forwards = e >= d.half_gap - CLOSED and w > right
            if not forwards and not (e <= -d.half_gap + CLOSED and w < left):
                return 0.0
            sign, limit = (1.0, right) if forwards else (-1.0, left)
            far = (w - limit) / (d.mobility + d.rotor_mobility)
            for _ in range(100):  # friction takes a part of the torque: more may be needed than without it
                if sign * excess(d, far, limit, x, xm) >= 0.0:
                    break
                far *= 2.0
        else:
            far = elastic_torque(d, e, w, 0.0, d.period)  # an upper bound: the torque reduces the relative speed
            if far == 0.0:
                return 0.0
        a, b = min(far, 0.0), max(far, 0.0)
        fa, fb = excess(d, a, limit, x, xm), excess(d, b, limit, x, xm)
        for k in range(300):
            f = 0.5 * (a + b) if k % 3 == 2 or not fb > fa else a - fa * (b - a) / (fb - fa)
            f = min(max(f, a), b)
            value = excess(d, f, limit, x, xm)
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
def _solver(kind: DriveKind) -> Callable[..., None]:
    """Return the solver of a drive of this kind; see `drive_address`."""
    of_joint, of_rotor = _friction(kind.joint, False), _friction(kind.rotor, True)

    @kernel
    def rigid(d: Any, speed: float, Z: float) -> None:
        """Solve the friction of the joint, then the friction of the rotor."""
        f, _, sticking = of_joint(d, speed + Z * d.friction, Z)
        speed += d.mobility * (d.period * (d.friction - f))
        d.friction, d.sticking = f, 1 if sticking else 0
        f, _, sticking = of_rotor(d, speed + Z * d.rotor_friction, Z)
        d.rotor_friction, d.rotor_sticking = f, 1 if sticking else 0

    @kernel
    def sprung(d: Any, x: float, xm: float) -> None:
        d.load = elastic_torque(d, d.ahead, xm - x, d.mobility + d.rotor_mobility, d.period)

    @kernel
    def loose(d: Any, x: float, xm: float) -> None:
        """Compute the torque that an end of the gap must exert over the step.

        Where the gap is closed, the rotor separates at least at the restitution times its approach speed (Newton).
        """
        Z, bounce = d.mobility + d.rotor_mobility, -d.restitution * d.ahead_speed
        d.load = 0.0
        if d.ahead >= d.half_gap - CLOSED:
            d.load = max(xm - x - min(bounce, 0.0), 0.0) / Z
        elif d.ahead <= -d.half_gap + CLOSED:
            d.load = min(xm - x - max(bounce, 0.0), 0.0) / Z

    if kind.coupling == RIGID:
        return rigid
    if kind.gear is None and not (kind.joint or kind.rotor):
        return sprung if kind.coupling == ELASTIC else loose
    torque = _gap_torque(kind) if kind.gear is None else _gear_torque(kind)

    @kernel
    def coupled(d: Any, x: float, xm: float) -> None:
        """Solve coupling and friction at once."""
        d.load = f = torque(d, x, xm)
        d.friction, _, held = of_joint(d, x + d.mobility * f, d.mobility)
        d.rotor_friction, _, rotor_held = of_rotor(d, xm - d.rotor_mobility * f, d.rotor_mobility)
        d.sticking, d.rotor_sticking = 1 if held else 0, 1 if rotor_held else 0

    return coupled
