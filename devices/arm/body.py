"""Model of an arm: linkage (kinematics), masses, drives, and the model that its control uses.

The settings `ArmBody` define the simulated arm, the arm behind the emulated drive, and the model in the driver of a
real arm. From them follow the links (`devices.arm.mechanics.dynamics`), `devices.arm.mechanics.linkage`, the drives
(`devices.arm.mechanics.drive`), and the smooth joints of `devices.arm.flatness` that the feed-forward uses.

The defaults describe an arm like the one of Kikuuwe et al. 2006, Fig. 15: a parallel link in a horizontal plane,
two motors on the base with harmonic drives, encoders on the motors, and about 10 N m of friction in both joints.
Values that the paper does not give (lengths, masses, reduction, elasticity) are typical of arms and gears of that size.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.arm.flatness.joint import ElasticJoint
from devices.arm.flatness.laws import AsymmetricFriction, SmoothBacklash
from devices.arm.mechanics.drive import Drive, Motor
from devices.arm.mechanics.dynamics import FiveBarLinks, TwoLinks
from devices.arm.mechanics.linkage import PlacedLinkage
from devices.arm.mechanics.plant import Surface, new_plant
from devices.arm.sensors.force_sensor import STANDARD_GRAVITY
from devices.common.friction import read_joint_friction
from devices.common.linkage import FiveBar
from haptics import Law, Stribeck
from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, choice, documented, string, unrestricted

KINDS = ("parallel-link", "serial", "five-bar")
"""Linkages: two links with both motors on the base, two links with a motor in each joint, five-bar linkage."""

COUPLINGS = ("gear", "spring", "impact", "rigid")
"""Couplings between motor and joint, see `ArmBody`."""

ENCODERS = ("motor", "joint", "both")
"""Mounting places of the encoders."""

# Stiffness [N m/rad] that represents a rigid coupling in a feed-forward whose model has a spring.
_RIGID_STIFFNESS = 1e9

_KNEE = 4.0

_STRIBECK = 0.8  # ratio of the decay rates at which a hyperbolic tangent best approximates an exponential


PLACE: dict[str, Any] = {"minimum": -10.0, "maximum": 10.0, "unit": "m"}
"""Bounds of a coordinate in a setting."""

_MASS: dict[str, Any] = {"above": 0.0, "maximum": 1000.0, "unit": "kg"}
_RATIO: dict[str, Any] = {"minimum": 0.1, "maximum": 10.0}


@documented
@dataclass(frozen=True)
class ArmBody:
    """Parameters of an arm, with stiffness, friction and lost motion seen at the joints."""

    kind: str = choice("parallel-link", KINDS, doc="kind of linkage")
    inner_length: float = bounded(0.4, above=0.0, maximum=5.0, unit="m", doc="length of the links at the base")
    outer_length: float = bounded(0.4, above=0.0, maximum=5.0, unit="m", doc="length of the links at the end effector")
    base: float = bounded(0.2, minimum=0.0, maximum=5.0, unit="m", doc="distance of the motors of a five-bar linkage")
    elbow: int = unrestricted(-1, "1 (left) or -1 (right)", doc="side of the elbow of two links, seen from the base")
    centre_x: float = bounded(0.0, **PLACE, doc="x of the origin from the base (axis or middle of the motors)")
    centre_y: float = bounded(0.5, **PLACE, doc="y of the origin from the base")
    rotation: float = bounded(0.0, minimum=-360.0, maximum=360.0, unit="degree", doc="angle of the base, anticlockwise")
    inner_mass: float = bounded(2.0, **_MASS, doc="mass of each link at the base, a uniform rod")
    outer_mass: float = bounded(1.0, **_MASS, doc="mass of each link at the end effector, a uniform rod")
    handle_mass: float = bounded(0.3, minimum=0.0, maximum=50.0, unit="kg", doc="mass that the force sensor carries")
    gravity: float = bounded(
        0.0, minimum=0.0, maximum=STANDARD_GRAVITY, unit="m/s^2", doc="gravity along -y; 0 in a horizontal plane"
    )
    reduction: float = bounded(100.0, above=0.0, maximum=1e4, doc="turns of the motor for one of the joint")
    rotor_inertia: float = bounded(
        6e-5, above=0.0, maximum=10.0, unit="kg m^2", doc="inertia of rotor and gear at the motor's shaft"
    )
    torque_limit: float = bounded(1.9, above=0.0, maximum=1e4, unit="N m", doc="largest torque at the motor's shaft")
    kinetic_friction: float = bounded(10.0, minimum=0.0, maximum=1e4, unit="N m", doc="dry friction at high speed")
    static_friction: float = bounded(11.0, minimum=0.0, maximum=1e4, unit="N m", doc="friction of a joint at rest")
    stribeck_speed: float = bounded(0.03, above=0.0, maximum=10.0, unit="rad/s", doc="speed over which friction falls")
    viscosity: float = bounded(3.0, minimum=0.0, maximum=1e4, unit="N m s/rad", doc="viscous friction of a joint")
    asymmetry: float = bounded(
        0.05, minimum=-0.9, maximum=0.9, doc="fraction by which friction is higher forwards and lower backwards"
    )
    coupling: str = choice(
        "gear",
        COUPLINGS,
        doc="motor to joint: spring with a soft knee, spring behind a gap, gap between hard stops, or rigid",
    )
    stiffness: float = bounded(3e4, above=0.0, maximum=1e9, unit="N m/rad", doc="coupling stiffness seen at the joint")
    damping: float = bounded(10.0, minimum=0.0, maximum=1e6, unit="N m s/rad", doc="coupling damping seen at the joint")
    lost_motion: float = bounded(2e-4, minimum=0.0, maximum=0.1, unit="rad", doc="knee or gap width seen at the joint")
    knee: float = bounded(2.0, above=0.0, maximum=1e4, unit="N m", doc="torque that takes up the lost motion of a gear")
    encoder: str = choice("motor", ENCODERS, doc="place of the encoders; one on the joint measures the end effector")
    encoder_counts: int = bounded(8192, minimum=1, maximum=2**31, doc="encoder steps per turn of the motor")
    joint_counts: int = bounded(2**20, minimum=1, maximum=2**31, doc="encoder steps per turn of the joint")
    model_inertia: float = bounded(1.0, **_RATIO, doc="inertia in the model of the control, relative to the true one")
    model_friction: float = bounded(1.0, minimum=0.0, maximum=10.0, doc="friction in that model over the true one")
    model_stiffness: float = bounded(1.0, **_RATIO, doc="stiffness in that model, relative to the true one")
    friction_smoothness: float = bounded(
        300.0, above=0.0, maximum=1e6, unit="s/rad", doc="steepness at rest of the smooth friction in that model"
    )
    friction_parameters: str = string(
        "", allowed="a file", doc="friction of both joints in that model, from haptics calibrate friction --device"
    )

    def __post_init__(self) -> None:
        check(self, "device.arm")
        if self.elbow not in (-1, 1):
            raise ConfigurationError(f"device.arm.elbow = {self.elbow!r}: must be 1 (left) or -1 (right).")
        if not self.static_friction >= self.kinetic_friction:
            raise ConfigurationError(
                f"device.arm.static_friction = {self.static_friction!r}: must be at least "
                f"device.arm.kinetic_friction = {self.kinetic_friction:g} N m."
            )

    # --- mechanics ----------------------------------------------------------------------------------------------------

    @property
    def links(self) -> TwoLinks | FiveBarLinks:
        """Moving links, including the handle."""
        return self._links(1.0)

    @functools.cached_property
    def linkage(self) -> PlacedLinkage:
        """Kinematics from joint angles to device coordinates."""
        middle = 0.5 * self.base if self.kind == "five-bar" else 0.0
        elbows = (1, -1) if self.kind == "five-bar" else (self.elbow, self.elbow)
        centre = self.centre_x + middle, self.centre_y
        return PlacedLinkage(self.links.linkage, centre, math.radians(self.rotation), elbows)

    @property
    def drives(self) -> tuple[Drive, Drive]:
        """Drives of both joints."""
        rubs = self.static_friction > 0.0 or self.viscosity > 0.0
        coupling: dict[str, Any] = {"coupling": self.coupling}
        if self.coupling == "gear":
            gear = SmoothBacklash(self.stiffness, 0.5 * self.lost_motion, _KNEE / self.knee)
            coupling = {"coupling": "elastic", "gear": gear, "damping": self.damping}
        elif self.coupling == "spring":
            spring = {"stiffness": self.stiffness, "damping": self.damping, "backlash": self.lost_motion}
            coupling = {"coupling": "elastic", **spring}
        elif self.coupling == "impact":
            coupling["backlash"] = self.lost_motion
        drive = Drive(
            Motor(inertia=self.rotor_inertia),
            ratio=self.reduction,
            friction=self._friction(1.0 + self.asymmetry) if rubs else None,
            backward_friction=self._friction(1.0 - self.asymmetry) if rubs else None,
            encoder="motor" if self.encoder == "motor" else "joint",
            resolution=math.tau / (self.encoder_counts if self.encoder == "motor" else self.joint_counts),
            **coupling,
        )
        return drive, drive

    @property
    def resolutions(self) -> tuple[float, float]:
        """Encoder steps of a motor and of a joint, both seen at the joint [rad]."""
        return math.tau / (self.encoder_counts * self.reduction), math.tau / self.joint_counts

    @property
    def resolution(self) -> float:
        """Step of the encoder that measures the end effector's position, seen at the joint [rad]."""
        return self.resolutions[0 if self.encoder == "motor" else 1]

    def angles(self, x: float, y: float) -> tuple[float, float]:
        """Return the joint angles [rad] for the end effector at (x, y) [m]; nan if out of reach."""
        first, second = self.linkage.joints(np.array([[x, y]]))[0].tolist()
        return first, second

    def mass_at(self, x: float, y: float, rotors: bool = True) -> NDArray[np.float64]:
        """Return the apparent mass (2, 2) [kg] at (x, y) [m], optionally including `rotors`."""
        joints = self.angles(x, y)
        inertia = np.array(self.links.terms(joints)["inertia"][0])
        if rotors:
            inertia += np.eye(2) * self.rotor_inertia * self.reduction**2
        back = np.linalg.inv(self.linkage.jacobians([joints])[0])
        return np.asarray(back.T @ inertia @ back)

    def new_plant(self, record: NDArray[Any], position: tuple[float, float], step: float) -> NDArray[Any]:
        """Initialize `record` with the arm at rest and return its drives, (2,).

        Parameters
        ----------
        record : (1,) structured array
            With `devices.arm.mechanics.plant.PLANT_FIELDS`.
        position : (float, float)
            Position of the end effector [m].
        step : float
            Time step of the simulation [s].
        """
        start = self.angles(*position)
        drives = new_plant(record, self.links, self.drives, Surface(), start, placed=self.linkage)
        record["step"] = step
        return drives

    # --- model used by the control ------------------------------------------------------------------------------------

    @property
    def model_links(self) -> TwoLinks | FiveBarLinks:
        """Links in the model of the control."""
        return self._links(self.model_inertia)

    @functools.cached_property
    def model_joints(self) -> tuple[ElasticJoint, ElasticJoint]:
        """Smooth elastic joints in the model of the control."""
        own = self._friction(1.0 + self.asymmetry), self._friction(1.0 - self.asymmetry)
        laws = own, own
        if self.friction_parameters:
            laws = read_joint_friction(self.friction_parameters, "virtual-arm")
        straight = self.coupling in ("rigid", "impact")
        stiffness = _RIGID_STIFFNESS if straight else self.model_stiffness * self.stiffness
        lost = 0.0 if self.coupling == "rigid" else 0.5 * self.lost_motion
        spring = SmoothBacklash(stiffness, lost, _KNEE / self.knee)
        inertia = self.model_inertia * self.rotor_inertia
        smooth = (_approximate(*pair, self.model_friction, self.friction_smoothness) for pair in laws)
        first, second = (ElasticJoint(friction, spring, self.reduction, inertia) for friction in smooth)
        return first, second

    # --- private ------------------------------------------------------------------------------------------------------

    def _friction(self, part: float) -> Law:
        levels = part * self.kinetic_friction, part * self.static_friction
        return Stribeck(*levels, self.stribeck_speed, self.viscosity)

    def _links(self, part: float) -> TwoLinks | FiveBarLinks:
        """Return the links with their masses multiplied by `part`."""
        inner, outer, handle = part * self.inner_mass, part * self.outer_mass, part * self.handle_mass
        first, second = self.inner_length, self.outer_length
        if self.kind == "five-bar":
            linkage = FiveBar(first, second, second, first, self.base)
            masses, rods = (inner, outer, outer, inner), (inner * first**2 / 12.0, outer * second**2 / 12.0)
            inertias = (rods[0], rods[1], rods[1], rods[0])
            return FiveBarLinks(linkage, masses, inertias=inertias, tip_mass=handle, gravity=self.gravity)
        mass = outer + handle  # a uniform rod with a tip mass
        centre = (0.5 * outer + handle) / mass
        inertia = second**2 * (outer / 12.0 + outer * (centre - 0.5) ** 2 + handle * (1.0 - centre) ** 2)
        return TwoLinks(
            length_1=first,
            length_2=second,
            mass_1=inner,
            mass_2=mass,
            centre_1=0.5,
            centre_2=centre,
            inertia_1=inner * first**2 / 12.0,
            inertia_2=inertia,
            joint_inertia_1=0.0,
            joint_inertia_2=0.0,
            gravity=self.gravity,
            absolute=self.kind == "parallel-link",
        )


def _approximate(forward: Law, backward: Law, part: float, smoothness: float) -> AsymmetricFriction:
    """Return a smooth friction law that approximates the laws of both directions away from rest.

    Parameters
    ----------
    forward, backward : Law
        Torques [N m] at speeds [rad/s]: `Stribeck` or another law, falling with speed or not.
    part : float
        Factor on the friction of the model.
    smoothness : float
        Steepness at rest [s/rad].
    """
    laws, half = (forward, backward), 0.5 * part
    static = sum(law.breakaway_force for law in laws)
    kinetic, back = (float(getattr(law, "kinetic_force", law.breakaway_force)) for law in laws)
    falls = next((law for law in laws if hasattr(law, "stribeck_velocity")), None)
    return AsymmetricFriction(
        coulomb=half * static,
        viscosity=half * sum(law.slopes[1] for law in laws),
        steepness=smoothness,
        offset=half * (kinetic - back),
        second_coulomb=half * (kinetic + back - static),
        second_steepness=0.0 if falls is None else _STRIBECK / falls.stribeck_velocity,
    )
