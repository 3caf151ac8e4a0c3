r"""Drive of a joint: rotor, reduction, coupling of rotor and link, friction on both, and encoder.

All quantities are seen at the joint: angles of the rotor are divided by the reduction, its torques multiplied by it,
its inertia by its square. Rotor and joint are connected by one of three couplings:

==========  ===========================================================================================
`RIGID`     the rotor turns with the joint
`IMPACT`    backlash: within the gap both are free, at its ends they collide (Machado et al. 2002, (11))
`ELASTIC`   a spring and a damper, beyond a dead zone if there is backlash (12); or the law of a gearbox with
            lost motion (`devices.arm.flatness.stiffness`)
==========  ===========================================================================================

Friction is set-valued: a joint at rest sticks exactly, up to the break-away torque. It obeys the laws of
`haptics.friction.laws`, with N m for N and rad/s for m/s, and may have another law for each direction.
`smooth_friction` is a law that is smooth through zero and never sticks.

These are scalar relations between torques and speeds, which are solved exactly
(`devices.arm.mechanics.joint_kernels`); `devices.arm.mechanics.plant` contains the step that couples both joints.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from devices.arm.flatness.stiffness import Stiffness
from devices.arm.mechanics.joint_kernels import ELASTIC, IMPACT, RIGID
from haptics import Coulomb, Law
from haptics.errors import ConfigurationError
from haptics.friction.custom_law import CustomLaw
from haptics.settings import bounded, check, choice, documented

COUPLINGS = {"rigid": RIGID, "impact": IMPACT, "elastic": ELASTIC}
"""Couplings between rotor and joint by the name used in settings."""

_SMOOTH = """
def smooth(speed, level=1.0, viscosity=0.0, steepness=100.0):
    return viscosity * speed + level * math.tanh(0.5 * steepness * speed)
"""


def smooth_friction(level: float, viscosity: float, steepness: float) -> Law:
    """Return friction that is smooth through zero (Weigand et al. 2020, (4)).

    The law is f_v w + 2 f_c/(1 + exp(-s_F w)) - f_c. It never sticks: under a load below `level` the joint creeps.

    Parameters
    ----------
    level, viscosity, steepness : float
        f_c [N m], f_v [N m s] and s_F [s].
    """
    return CustomLaw.from_table(_SMOOTH, {"level": level, "viscosity": viscosity, "steepness": steepness})


@documented
@dataclass(frozen=True)
class Motor:
    """Motor that is commanded a torque, or, with a `resistance`, a DC motor that is commanded a voltage.

    Attributes
    ----------
    friction, backward_friction : Law, optional
        Friction on the shaft: N m over rad/s of the rotor. The second is for negative speeds, by default as the first.
    """

    inertia: float = bounded(1.0, above=0.0, maximum=1e6, unit="kg m^2", doc="inertia of the rotor")
    torque_constant: float = bounded(
        1.0, above=0.0, maximum=1e3, unit="N m/A", doc="torque per current; used with a resistance only"
    )
    back_emf_constant: float = bounded(
        1.0, minimum=0.0, maximum=1e3, unit="V s", doc="voltage per speed; used with a resistance only"
    )
    resistance: float = bounded(
        0.0,
        minimum=0.0,
        maximum=1e6,
        unit="ohm",
        doc="resistance R of the winding: at V volts the shaft has the torque k_t (V - k_e w)/R; 0 for a motor "
        "that has a current control of its own and is given torques",
    )
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
        if motor.resistance > 0.0:
            row["gain"] = ratio * motor.torque_constant / motor.resistance
            row["drag"] = ratio**2 * motor.torque_constant * motor.back_emf_constant / motor.resistance
        else:
            row["gain"], row["drag"] = ratio, 0.0
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
