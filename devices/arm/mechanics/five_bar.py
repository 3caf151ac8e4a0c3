"""Inertial parameters of a five-bar linkage.

Its dynamics are exact and do not use the angles of the outer links (`devices.arm.mechanics.five_bar_kernels`). Where
the links cannot be closed, all results are nan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.arm.mechanics.dynamics import Links
from devices.common.linkage import FiveBar
from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, documented, unrestricted

Four = tuple[float, float, float, float]

_LARGEST = 1e6


@documented
@dataclass(frozen=True)
class FiveBarLinks(Links):
    """Dimensions and masses of a five-bar linkage.

    All groups of four are in the order left inner, left outer, right outer, right inner link.

    Attributes
    ----------
    bars : FiveBar
        Kinematics of the links.

    Raises
    ------
    ConfigurationError
        If a value is invalid, or an inner link has no inertia about its motor.
    """

    bars: FiveBar
    masses: Four = unrestricted((0.0, 0.0, 0.0, 0.0), "four masses [kg]", doc="masses of the links")
    centres: Four = unrestricted(
        (0.5, 0.5, 0.5, 0.5),
        "four numbers",
        doc="centre of mass of each link, as a part of its length: from the motor of an inner link, from the "
        "elbow of an outer one",
    )
    inertias: Four = unrestricted(
        (0.0, 0.0, 0.0, 0.0), "four moments of inertia [kg m^2]", doc="of each link about its centre of mass"
    )
    tip_mass: float = bounded(0.0, minimum=0.0, maximum=_LARGEST, unit="kg", doc="mass at the end effector")
    joint_inertia_1: float = bounded(
        0.0,
        minimum=0.0,
        maximum=_LARGEST,
        unit="kg m^2",
        doc="inertia of what turns with the left inner link, such as gears; rotors are part of the drive",
    )
    joint_inertia_2: float = bounded(
        0.0, minimum=0.0, maximum=_LARGEST, unit="kg m^2", doc="likewise, of the right inner link"
    )
    gravity: float = bounded(
        9.81, minimum=0.0, maximum=100.0, unit="m/s^2", doc="gravity along -y; 0 for a linkage in a horizontal plane"
    )

    def __post_init__(self) -> None:
        check(self, "links")
        _require_four("masses", self.masses, 0.0)
        _require_four("centres", self.centres, -10.0)
        _require_four("inertias", self.inertias, 0.0)
        inner = self._about_the_motors
        if not (inner[0] + self.joint_inertia_1 > 0.0 and inner[1] + self.joint_inertia_2 > 0.0):
            raise ConfigurationError(
                "links: an inner link has no inertia about its motor; give it a mass, an inertia or a joint_inertia "
                "above 0."
            )

    @property
    def linkage(self) -> FiveBar:  # noqa: D102 (inherited)
        return self.bars

    @property
    def _about_the_motors(self) -> tuple[float, float]:
        """Moments of inertia of the inner links about their motors [kg m^2]."""
        m, c, i, bars = self.masses, self.centres, self.inertias, self.bars
        left = m[0] * (c[0] * bars.left_inner) ** 2 + i[0]
        return left, m[3] * (c[3] * bars.right_inner) ** 2 + i[3]

    def fill_masses(self, record: NDArray[Any]) -> None:  # noqa: D102 (inherited)
        m, c, g, bars = self.masses, self.centres, self.gravity, self.bars
        left, right = (self._shares(1, bars.left_outer), self._shares(2, bars.right_outer))
        inner = self._about_the_motors
        record["inertias"] = inner[0] + left[0] * bars.left_inner**2, inner[1] + right[0] * bars.right_inner**2
        record["end_mass"] = left[1] + right[1] + self.tip_mass
        record["shared_masses"] = left[2], right[2]
        record["moments"] = (
            g * bars.left_inner * (m[0] * c[0] + m[1] * (1.0 - c[1])),
            g * bars.right_inner * (m[3] * c[3] + m[2] * (1.0 - c[2])),
        )
        record["end_weight"] = g * (m[1] * c[1] + m[2] * c[2] + self.tip_mass)
        record["joint_inertias"] = self.joint_inertia_1, self.joint_inertia_2

    def _shares(self, i: int, length: float) -> tuple[float, float, float]:
        """Return the mass of link i attributed to its elbow, to the end effector and to their product [kg]."""
        m, c, k = self.masses[i], self.centres[i], self.inertias[i] / length**2
        return m * (1.0 - c) ** 2 + k, m * c * c + k, m * c * (1.0 - c) - k


def _require_four(name: str, values: Four, minimum: float) -> None:
    try:
        good = len(values) == 4 and all(np.isfinite(value) and minimum <= value <= _LARGEST for value in values)
    except TypeError:
        good = False
    if not good:
        raise ConfigurationError(f"links.{name} = {values!r}: must be four numbers from {minimum:g} to {_LARGEST:g}.")
