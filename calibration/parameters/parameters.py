"""Identified parameters of joints and handle; `calibration.parameters.files` stores them as TOML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibration.coupled import Coupling
from calibration.handle import Handle
from devices.common.parameter_keys import key
from haptics.errors import ConfigurationError
from haptics.settings import unknown_name

if TYPE_CHECKING:
    from haptics.friction.laws import Law

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

    def friction_at(self, velocity: NDArray[np.float64]) -> NDArray[np.float64]:
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
        from calibration.friction import MODELS

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
            If the friction is unknown, or no supported law describes it.
        """
        from calibration.parameters.laws import law_of

        return law_of(self.known_friction(), lever_arm if self.rotary else 1.0)

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

    def with_joint(self, joint: JointParameters) -> ParameterFile:
        """Return the file with one of its joints replaced."""
        return replace(self, joints=tuple(joint if one.name == joint.name else one for one in self.joints))
