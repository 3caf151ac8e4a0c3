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

These are scalar relations between torques and speeds, which are solved exactly
(`devices.arm.mechanics.drive_solvers`); `devices.arm.mechanics.plant` contains the step that couples both joints.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from devices.arm.flatness.laws import SMOOTH, Stiffness
from devices.common.kernels import quantise
from haptics import Coulomb, Law
from haptics.errors import ConfigurationError
from haptics.friction.kernels import LAW
from haptics.jit import kernel
from haptics.settings import bounded, check, choice, documented

RIGID, IMPACT, ELASTIC = 0, 1, 2

CLOSED = 1e-12
"""Gaps narrower than this count as closed, because angles are rounded [rad]."""

DRIVE = np.dtype(
    [
        ("solve", "<i8"),
        ("coupling", "<i8"),
        ("ratio", "<f8"),
        ("inertia", "<f8"),
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
        ("period", "<f8"),
        ("mobility", "<f8"),
        ("rotor_mobility", "<f8"),
        ("ahead", "<f8"),
        ("ahead_speed", "<f8"),
        ("load", "<f8"),
        ("friction", "<f8"),
        ("rotor_friction", "<f8"),
        ("sticking", "<i8"),
        ("rotor_sticking", "<i8"),
    ]
)
"""Kernel record of the drive of one joint; ``inertia`` of the rotor is seen at the joint. The fields from
``period`` on are arguments and results of the function at the address ``solve``
(`devices.arm.mechanics.drive_solvers`): the step [s], the mobilities of joint and rotor over it, the angle and speed
of the rotor relative to the joint before it; then the torques [N m].
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
        _fill_friction(row, "", self.friction, self.backward_friction)
        _fill_friction(row, "rotor_", motor.friction, motor.backward_friction)
        row["encoder_at_rotor"], row["resolution"] = self.encoder == "motor", self.resolution


def _fill_friction(row: Any, which: str, forward: Law | None, backward: Law | None) -> None:
    """Write both laws of the friction `which` ("" or "rotor_"); see `Drive`."""
    row[f"{which}rubs"] = forward is not None or backward is not None
    row[f"{which}forwards"] = (forward or Coulomb(0.0)).record[0]
    row[f"{which}backwards"] = (backward or forward or Coulomb(0.0)).record[0]
