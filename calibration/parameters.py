"""Identified parameters of joints and handle; `calibration.parameter_files` stores them as TOML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.coupled import Coupling
from calibration.friction.model import MODELS
from calibration.handle import Handle
from devices.common.parameter_keys import key
from haptics.errors import ConfigurationError
from haptics.friction.laws import CoulombViscous, GaussianStribeck, Law, Stribeck
from haptics.settings import unknown_name

Array = NDArray[np.float64]
Interval = tuple[float, float]


@dataclass(frozen=True)
class Found:
    """Parameters from one identification, with their quality.

    Attributes
    ----------
    model : str
        Name of the friction model in `calibration.friction.MODELS`, or unit of the motor's drive signal.
    values : mapping
        Parameters by name, SI units.
    intervals : mapping
        95 % intervals of the parameters that have one.
    facts : mapping
        Properties of the fit: samples, exclusions, condition number, residuals.
    warnings : tuple of str
        Reasons to doubt the parameters.
    """

    model: str
    values: Mapping[str, float]
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class JointParameters:
    """Parameters of a joint.

    Attributes
    ----------
    name : str
        Name of the joint.
    rotary : bool
        Whether the joint is rotary (rad, N m) or prismatic (m, N).
    friction, motor : Found or None
        Identified parameters.
    """

    name: str
    rotary: bool
    friction: Found | None = None
    motor: Found | None = None

    def friction_at(self, velocity: Array) -> Array:
        """Return the friction F at velocities of the joint, with their sign, including the identified offset.

        Parameters
        ----------
        velocity : (n,) float array
            Velocity [rad/s] or [m/s].

        Returns
        -------
        (n,) float array
            Friction [N m] or [N].

        Raises
        ------
        ConfigurationError
            If the friction of the joint is unknown.
        """
        found = self.known_friction()
        return np.asarray(MODELS[found.model].evaluate(found.values, velocity))

    @property
    def dead_band(self) -> float | None:
        """Dead band of the friction identification [rad/s] or [m/s], None if unknown."""
        facts = self.known_friction().facts
        return facts.get(key("dead_band", "velocity", self.rotary))

    def law(self, lever_arm: float = 1.0) -> Law:
        """Return the friction as a law that an element can render.

        Such laws have the same levels in both directions: the mean of both, without the offset. `friction_at`
        distinguishes the directions.

        Parameters
        ----------
        lever_arm : float
            For a rotary joint: distance from its axis at which the friction is felt [m].

        Raises
        ------
        ConfigurationError
            If the friction is unknown, the lever arm is not greater than 0, or no supported law permits the levels.
        """
        found, arm = self.known_friction(), lever_arm if self.rotary else 1.0
        if not 0.0 < arm < 1e6:
            raise ConfigurationError(f"lever_arm = {arm!r}: must be a length greater than 0 m.")

        def mean(name: str) -> float:
            names = {name, f"{name}_forward", f"{name}_backward"}
            sides = [value for each, value in found.values.items() if each in names]
            return sum(sides) / len(sides) if sides else 0.0  # a viscous joint has no level

        coulomb, viscosity = mean("coulomb") / arm, mean("viscosity") / arm**2
        kind = MODELS[found.model].stribeck
        if kind == "none":
            return CoulombViscous(coulomb, viscosity)
        shape = {"exponential": Stribeck, "gaussian": GaussianStribeck}[kind]
        return shape(coulomb, mean("static") / arm, found.values["stribeck_velocity"] * arm, viscosity)

    def known_friction(self) -> Found:
        """Return the friction.

        Raises
        ------
        ConfigurationError
            If it is unknown.
        """
        if self.friction is None:
            raise ConfigurationError(
                f"joint {self.name}: its friction is not known; haptics calibrate friction finds it."
            )
        return self.friction


@dataclass(frozen=True)
class Provenance:
    """Origin of the numbers.

    Attributes
    ----------
    date, method, device : str
        Date, method, and device.
    data_files, data_sha256 : tuple of str
        Input files and their hashes.
    versions : mapping
        Versions of the software.
    """

    date: str = ""
    method: str = ""
    device: str = ""
    data_files: tuple[str, ...] = ()
    data_sha256: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ParameterFile:
    """Content of a parameter file.

    Attributes
    ----------
    provenance : Provenance
        Origin of the numbers.
    joints : tuple of JointParameters
        Parameters of the joints, or of the motors of a coupling.
    coupling : Coupling or None
        Coupling of the joints and motors, if any.
    handle : Handle or None
        Handle on the force sensor, and bias of the sensor.
    """

    provenance: Provenance
    joints: tuple[JointParameters, ...]
    coupling: Coupling | None = None
    handle: Handle | None = None

    def joint(self, name: str) -> JointParameters:
        """Return the joint with this name.

        Raises
        ------
        ConfigurationError
            If there is no such joint.
        """
        for joint in self.joints:
            if joint.name == name:
                return joint
        raise unknown_name("joint", name, [joint.name for joint in self.joints])


# --- uncertainty ------------------------------------------------------------------------------------------------------

NORMAL_95 = 1.959963984540054
"""Half width of the central 95 % interval of the normal distribution, in standard deviations."""

CHANGE = 0.2
"""Relative change of a friction parameter since its identification (standard deviation)."""


def friction_spread(joint: JointParameters, velocity: Array) -> tuple[Array, ...]:
    """Return the change of the friction for one standard deviation of each parameter.

    The result is an argument of `identify_motor`.

    Parameters
    ----------
    joint : JointParameters
        Joint with a friction and its intervals.
    velocity : (n,) float array
        Velocity [rad/s] or [m/s].
    """
    intervals = joint.known_friction().intervals
    sizes = {name: (interval[1] - interval[0]) / (2.0 * NORMAL_95) for name, interval in intervals.items()}
    return _moved(joint, velocity, sizes)


def friction_change(joint: JointParameters, velocity: Array) -> tuple[Array, ...]:
    """Return the possible change of the friction since its identification, for `identify_motor`.

    Each level, viscosity and Stribeck velocity may have changed by 20 % (one standard deviation), as in a warm gear.

    Parameters
    ----------
    joint : JointParameters
        Joint with a friction.
    velocity : (n,) float array
        Velocity [rad/s] or [m/s].
    """
    values = joint.known_friction().values
    return _moved(joint, velocity, {name: CHANGE * abs(value) for name, value in values.items() if name != "offset"})


def _moved(joint: JointParameters, velocity: Array, sizes: Mapping[str, float]) -> tuple[Array, ...]:
    """Return the change of the friction for a step of each of its parameters."""
    found, here = joint.known_friction(), joint.friction_at(velocity)
    moved = [
        Found(found.model, {**found.values, name: found.values[name] + size})
        for name, size in sizes.items()
        if name in found.values and name != "inertia" and size > 0.0
    ]
    return tuple(replace(joint, friction=one).friction_at(velocity) - here for one in moved)
