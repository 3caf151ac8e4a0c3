"""Identified parameters of joints and handle; `calibration.parameters.files` keeps them in TOML."""

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
from haptics.settings import unknown

if TYPE_CHECKING:
    from haptics.friction.law import Law

Interval = tuple[float, float]


@dataclass(frozen=True)
class Found:
    """Parameters that were found together, and how well.

    Attributes
    ----------
    model : str
        Of a friction: its name in `calibration.friction.MODELS`. Of a motor: the unit of what drives it.
    values : mapping
        The parameters by their names, SI units.
    intervals : mapping
        95 % intervals of those that have one.
    facts : mapping
        What there is to say about the fit: samples, what was excluded, condition number, what is left over.
    warnings : tuple of str
        What makes them doubtful.
    """

    model: str
    values: Mapping[str, float]
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class JointParameters:
    """What is known of a joint.

    Attributes
    ----------
    name : str
        Its name.
    rotary : bool
        Whether it turns (rad, N m) or slides (m, N).
    friction, motor : Found or None
        What was found.
    """

    name: str
    rotary: bool
    friction: Found | None = None
    motor: Found | None = None

    def friction_at(self, velocity: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the friction F at velocities of the joint, in their direction, and the constant that came with it.

        Parameters
        ----------
        velocity : (n,) float array
            [rad/s] or [m/s].

        Returns
        -------
        (n,) float array
            [N m] or [N].

        Raises
        ------
        ConfigurationError
            If the friction of the joint is not known.
        """
        from calibration.friction import MODELS

        found = self.known_friction()
        return np.asarray(MODELS[found.model].evaluate(found.values, velocity))

    @property
    def dead_band(self) -> float | None:
        """Speed below which samples counted as rest when the friction was found [rad/s] or [m/s], if that is known."""
        facts = self.known_friction().facts
        return facts.get(key("dead_band", "velocity", self.rotary))

    def law(self, lever_arm: float = 1.0) -> Law:
        """Return the friction as a law that an element can render.

        Such laws have the same levels in both directions: it is the mean of both, without the constant that may have
        come with them. `friction_at` keeps both apart.

        Parameters
        ----------
        lever_arm : float
            For a joint that turns: the distance from its axis at which the friction is felt [m].

        Raises
        ------
        ConfigurationError
            If the friction is not known, or is none that a law of ours describes.
        """
        from calibration.parameters.laws import law_of

        return law_of(self.known_friction(), lever_arm if self.rotary else 1.0)

    def known_friction(self) -> Found:
        """Return the friction.

        Raises
        ------
        ConfigurationError
            If it is not known.
        """
        if self.friction is None:
            raise ConfigurationError(
                f"joint {self.name}: its friction is not known; haptics calibrate friction finds it."
            )
        return self.friction


@dataclass(frozen=True)
class Provenance:
    """Where the numbers come from.

    Attributes
    ----------
    date, method, device : str
        When, how, and of what.
    data_files, data_sha256 : tuple of str
        What was read, and what it hashes to.
    versions : mapping
        Of the software.
    """

    date: str = ""
    method: str = ""
    device: str = ""
    data_files: tuple[str, ...] = ()
    data_sha256: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ParameterFile:
    """The whole file.

    Attributes
    ----------
    provenance : Provenance
        Where it comes from.
    joints : tuple of JointParameters
        What was found of them; of the motors, where there is a coupling.
    coupling : Coupling or None
        How the joints are driven, where they are coupled.
    handle : Handle or None
        What the force sensor carries, and what it shows without load.
    """

    provenance: Provenance
    joints: tuple[JointParameters, ...]
    coupling: Coupling | None = None
    handle: Handle | None = None

    def joint(self, name: str) -> JointParameters:
        """Return the joint of that name.

        Raises
        ------
        ConfigurationError
            If there is none.
        """
        for joint in self.joints:
            if joint.name == name:
                return joint
        raise unknown("joint", name, [joint.name for joint in self.joints])

    def with_joint(self, joint: JointParameters) -> ParameterFile:
        """Return the file with one of its joints replaced."""
        return replace(self, joints=tuple(joint if one.name == joint.name else one for one in self.joints))
