r"""Smooth friction laws of a joint, with exact derivatives.

The feed-forward needs the friction torque and its first two derivatives with respect to the velocity. A smooth law
never sticks: at rest it creeps under any torque. The exact set-valued laws are in `haptics.friction.laws`.

====================  ===============================================================
`SmoothCoulomb`       Weigand et al. 2020, (4): dry and viscous friction
`AsymmetricFriction`  two dry parts of different steepness, and a constant offset
`SmoothStribeck`      a level that falls from static to kinetic friction
====================  ===============================================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from devices.arm.flatness.law_kernels import FALLING, SATURATING, SMOOTH, friction_values
from devices.arm.flatness.values import Values, finite
from haptics.settings import bounded, check, documented


@dataclass(frozen=True)
class SmoothFriction(ABC):
    """A friction torque that is twice continuously differentiable over the velocity."""

    kind: ClassVar[int]

    def __post_init__(self) -> None:
        check(self, "friction")

    @property
    @abstractmethod
    def numbers(self) -> tuple[float, ...]:
        """Parameters of the law in the order in which the kernels read them."""

    @property
    def record(self) -> NDArray[Any]:
        """Kernel record of the law, (1,) of dtype `devices.arm.flatness.law_kernels.SMOOTH`."""
        record = np.zeros(1, SMOOTH)
        record["kind"] = self.kind
        record["numbers"][0][: len(self.numbers)] = self.numbers
        return record

    def derivatives(self, velocity: ArrayLike) -> Values:
        """Return torque [N m], slope [N m s/rad] and curvature [N m s^2/rad^2], (..., 3).

        Parameters
        ----------
        velocity : array
            Joint velocity [rad/s].

        Raises
        ------
        ConfigurationError
            If a velocity is not finite.
        """
        array = finite(velocity, "velocity")
        results = np.empty((array.size, 3))
        friction_values(self.record, array.ravel(), results)
        return results.reshape(*array.shape, 3)

    def __call__(self, velocity: ArrayLike) -> Values:
        """Return the friction torque [N m] at `velocity` [rad/s], in the direction of the velocity."""
        return np.asarray(self.derivatives(velocity)[..., 0])[()]


@documented
@dataclass(frozen=True)
class SmoothCoulomb(SmoothFriction):
    """Dry and viscous friction, smoothed (Weigand et al. 2020, (4)).

    The law is f_v w + 2 f_c/(1 + exp(-s_F w)) - f_c.
    """

    kind: ClassVar[int] = SATURATING
    coulomb: float = bounded(minimum=0.0, unit="N m", doc="dry friction f_c")
    viscosity: float = bounded(minimum=0.0, unit="N m s/rad", doc="viscosity f_v")
    smoothness: float = bounded(
        above=0.0, unit="s/rad", doc="steepness s_F at rest; the larger, the closer to dry friction"
    )

    @property
    def numbers(self) -> tuple[float, ...]:  # noqa: D102 (inherited)
        return 0.0, self.viscosity, self.coulomb, 0.5 * self.smoothness


@documented
@dataclass(frozen=True)
class AsymmetricFriction(SmoothFriction):
    """Viscous friction, two dry parts and an offset: o + D w + a tanh(b w) + a_2 tanh(b_2 w)."""

    kind: ClassVar[int] = SATURATING
    coulomb: float = bounded(unit="N m", doc="first dry part a")
    viscosity: float = bounded(minimum=0.0, unit="N m s/rad", doc="viscosity D")
    steepness: float = bounded(minimum=0.0, unit="s/rad", doc="steepness b of the first dry part")
    offset: float = bounded(0.0, unit="N m", doc="torque o at any velocity: the friction is larger in one direction")
    second_coulomb: float = bounded(0.0, unit="N m", doc="second dry part, as a rule much steeper")
    second_steepness: float = bounded(0.0, minimum=0.0, unit="s/rad", doc="steepness of the second dry part")

    @property
    def numbers(self) -> tuple[float, ...]:  # noqa: D102 (inherited)
        first = (self.offset, self.viscosity, self.coulomb, self.steepness)
        return *first, self.second_coulomb, self.second_steepness


@documented
@dataclass(frozen=True)
class SmoothStribeck(SmoothFriction):
    """Friction that falls from a static to a kinetic level.

    The law is (F_c + (F_s - F_c) exp(-(w/w_s)^2)) tanh(b w) + D w.
    """

    kind: ClassVar[int] = FALLING
    kinetic: float = bounded(minimum=0.0, unit="N m", doc="level F_c towards high speed, without viscosity")
    static: float = bounded(minimum=0.0, unit="N m", doc="level F_s near rest")
    stribeck_velocity: float = bounded(above=0.0, unit="rad/s", doc="speed w_s over which the level falls")
    steepness: float = bounded(
        above=0.0, unit="s/rad", doc="steepness b at rest, much more than 1/w_s, or the static level is never reached"
    )
    viscosity: float = bounded(0.0, minimum=0.0, unit="N m s/rad", doc="viscosity D")

    @property
    def numbers(self) -> tuple[float, ...]:  # noqa: D102 (inherited)
        return self.static, self.kinetic, self.stribeck_velocity, self.viscosity, self.steepness
