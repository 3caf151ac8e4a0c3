r"""Friction laws and their exact implicit counterparts, in any number of dimensions.

A law :math:`\Phi` gives the friction force of a sliding contact, in the direction of the velocity. At rest the force
may have any value up to the break-away level. Its *implicit counterpart* :math:`\Phi_Z` solves
:math:`f = \Phi(x - Z f)` for ``f`` (Kikuuwe et al. 2006, Theorem 1 and (16), (52)). An element of mobility ``Z`` [m/(N
s)] evaluates it at every tick. All laws are solved exactly, except `ClosedForm`, which uses the approximation of the
paper.

====================  ==================================================  ===================================
class                 level g(s) at sliding speed s                       solution
====================  ==================================================  ===================================
`Coulomb`             F                                                   (23), (53)
`CoulombViscous`      F + D s                                             (25), (55)
`Stribeck`            Fc + (Fs - Fc) exp(-s/vs) + D s                     Halley's iteration
`GaussianStribeck`    Fc + (Fs - Fc) exp(-(s/vs)^2) + D s                 bracketed search
`DeadZoneViscous`     F + D max(s - w, 0)                                 closed form, piecewise
`Elliptic`            anisotropic: an ellipse                             nearest point of the ellipse
`Asymmetric`          anisotropic: quarters of ellipses                   nearest point of the ellipse
`CustomLaw`           a user-defined function, `friction_law`             bracketed search
`ClosedForm`          the level of another law                            approximation (46), (57), (59)
====================  ==================================================  ===================================

Iterations and searches converge to machine precision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from haptics.errors import ConfigurationError
from haptics.friction.law import Law
from haptics.friction.sliding_kernels import DEAD_ZONE, GAUSSIAN, STRIBECK, VISCOUS
from haptics.settings import bounded, documented


@documented
@dataclass(frozen=True)
class Coulomb(Law):
    """Dry friction of constant level: F v/|v| (Kikuuwe et al. 2006, (2); counterpart (23), (53))."""

    kind: ClassVar[int] = VISCOUS
    name: ClassVar[str] = "coulomb"
    force: float = bounded(minimum=0.0, unit="N", usual=(6.0, 4.0), slider=(0.0, 8.0), doc="friction force F")

    @property
    def numbers(self) -> tuple[float, ...]:  # noqa: D102 (inherited)
        return self.force, 0.0

    @property
    def breakaway_force(self) -> float:  # noqa: D102 (inherited)
        return self.force


@documented
@dataclass(frozen=True)
class CoulombViscous(Law):
    """Dry and viscous friction: F v/|v| + D v (Kikuuwe et al. 2006, (24), (54); counterpart (25), (55))."""

    kind: ClassVar[int] = VISCOUS
    name: ClassVar[str] = "coulomb-viscous"
    force: float = bounded(
        minimum=0.0, unit="N", usual=(6.0, 4.0), slider=(0.0, 8.0), doc="friction force F at vanishing speed"
    )
    viscosity: float = bounded(minimum=0.0, unit="N s/m", usual=5.0, slider=(0.0, 50.0), doc="viscosity D")

    @property
    def numbers(self) -> tuple[float, ...]:  # noqa: D102 (inherited)
        return self.force, self.viscosity

    @property
    def slopes(self) -> tuple[float, float]:  # noqa: D102 (inherited)
        return self.viscosity, self.viscosity

    @property
    def breakaway_force(self) -> float:  # noqa: D102 (inherited)
        return self.force


@dataclass(frozen=True)
class _Peaked(Law):
    """Law that falls from a static to a kinetic level; subclasses define the shape of the fall."""

    steepness: ClassVar[float]
    """Steepest fall of the shape, in units of (F_s - F_c)/v_s."""
    kinetic_force: float = bounded(
        minimum=0.0, unit="N", usual=(5.0, 3.0), slider=(0.0, 8.0), doc="friction force F_c towards high speed"
    )
    static_force: float = bounded(
        minimum=0.0, unit="N", usual=(6.0, 4.0), slider=(0.0, 8.0), doc="break-away force F_s, at least kinetic_force"
    )
    stribeck_velocity: float = bounded(
        above=0.0, unit="m/s", usual=0.15, slider=(1e-3, 1.0), doc="speed v_s over which the friction falls"
    )
    viscosity: float = bounded(0.0, minimum=0.0, unit="N s/m", slider=(0.0, 50.0), doc="viscosity D")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.static_force < self.kinetic_force:
            raise ConfigurationError(
                f"law.static_force = {self.static_force!r}: must be at least law.kinetic_force = "
                f"{self.kinetic_force!r} N."
            )

    @property
    def numbers(self) -> tuple[float, ...]:
        return self.static_force, self.kinetic_force, self.stribeck_velocity, self.viscosity

    @property
    def breakaway_force(self) -> float:
        return self.static_force

    @property
    def slopes(self) -> tuple[float, float]:
        """Smallest and largest slope of the level [N s/m]: at its steepest fall, and at high speed."""
        fall = self.steepness * (self.static_force - self.kinetic_force) / self.stribeck_velocity
        return self.viscosity - fall, self.viscosity


@documented
@dataclass(frozen=True)
class Stribeck(_Peaked):
    """Friction that falls from a static to a kinetic level: :math:`F_c + (F_s - F_c) e^{-s/v_s} + D s`.

    The law is solved to machine precision by Halley's iteration. It falls at ``(F_s - F_c)/v_s - D`` at zero speed.
    Where this is positive, condition (15) bounds the mobility of the element.
    """

    kind: ClassVar[int] = STRIBECK
    name: ClassVar[str] = "stribeck"
    steepness: ClassVar[float] = 1.0


@documented
@dataclass(frozen=True)
class GaussianStribeck(_Peaked):
    """Friction with a Gaussian fall to the kinetic level: :math:`F_c + (F_s - F_c) e^{-(s/v_s)^2} + D s`.

    The parameters are the same as for `Stribeck`. Unlike that law, the level starts with zero slope and falls fastest
    at ``v_s / sqrt(2)``. The solution has no closed form.
    """

    kind: ClassVar[int] = GAUSSIAN
    name: ClassVar[str] = "gaussian-stribeck"
    steepness: ClassVar[float] = math.sqrt(2.0 / math.e)


@documented
@dataclass(frozen=True)
class DeadZoneViscous(Law):
    """Dry friction with a viscosity that starts above a speed w: F + D max(s - w, 0)."""

    kind: ClassVar[int] = DEAD_ZONE
    name: ClassVar[str] = "dead-zone-viscous"
    force: float = bounded(
        minimum=0.0, unit="N", usual=(6.0, 4.0), slider=(0.0, 8.0), doc="friction force F below the speed w"
    )
    viscosity: float = bounded(
        minimum=0.0, unit="N s/m", usual=10.0, slider=(0.0, 50.0), doc="viscosity D above the speed w"
    )
    dead_zone: float = bounded(
        minimum=0.0, unit="m/s", usual=0.1, slider=(0.0, 1.0), doc="speed w at which the viscosity sets in"
    )

    @property
    def numbers(self) -> tuple[float, ...]:  # noqa: D102 (inherited)
        return self.force, self.viscosity, self.dead_zone

    @property
    def slopes(self) -> tuple[float, float]:  # noqa: D102 (inherited)
        return 0.0, self.viscosity

    @property
    def breakaway_force(self) -> float:  # noqa: D102 (inherited)
        return self.force
