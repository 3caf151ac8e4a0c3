r"""Friction laws and their exact implicit counterparts, in any number of dimensions.

A law :math:`\Phi` gives the friction force of a sliding contact, in the direction of the velocity; at rest the force
may be anything up to the break-away level. Its *implicit counterpart* :math:`\Phi_Z` solves
:math:`f = \Phi(x - Z f)` for ``f`` (Kikuuwe et al. 2006, Theorem 1 and (16), (52)): what an element of mobility ``Z``
[m/(N s)] needs at every tick. All laws are solved exactly; only `ClosedForm` uses the paper's approximation instead.

====================  ==================================================  ===================================
class                 level g(s) at sliding speed s                       solved by
====================  ==================================================  ===================================
`Coulomb`             F                                                   (23), (53)
`CoulombViscous`      F + D s                                             (25), (55)
`Stribeck`            Fc + (Fs - Fc) exp(-s/vs) + D s                     Halley's iteration
`GaussianStribeck`    Fc + (Fs - Fc) exp(-(s/vs)^2) + D s                 bracketed search to the last digits
`DeadZoneViscous`     F + D max(s - w, 0)                                 closed form, piece by piece
`Elliptic`            depends on the direction: an ellipse                nearest point of the ellipse
`Asymmetric`          depends on the direction: quarters of ellipses      nearest point of the ellipse
`CustomLaw`           a person's own function, `friction_law`             bracketed search to the last digits
`ClosedForm`          that of another law                                 approximation (46), (57), (59)
====================  ==================================================  ===================================
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
    """A law that falls from a static to a kinetic level; its kinds differ in the shape of the fall."""

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
        """Where the level falls fastest, and where it falls no more [N s/m]."""
        fall = self.steepness * (self.static_force - self.kinetic_force) / self.stribeck_velocity
        return self.viscosity - fall, self.viscosity


@documented
@dataclass(frozen=True)
class Stribeck(_Peaked):
    r"""Friction that falls from a static to a kinetic level: :math:`F_c + (F_s - F_c) e^{-s/v_s} + D s`.

    Solved to the last digits by Halley's iteration. The law falls at ``(F_s - F_c)/v_s - D`` at zero speed; where that
    is positive, condition (15) bounds the mobility of the element in front of it.
    """

    kind: ClassVar[int] = STRIBECK
    name: ClassVar[str] = "stribeck"
    steepness: ClassVar[float] = 1.0


@documented
@dataclass(frozen=True)
class GaussianStribeck(_Peaked):
    r"""Friction that falls from a static to a kinetic level as a bell: :math:`F_c + (F_s - F_c) e^{-(s/v_s)^2} + D s`.

    The parameters are those of `Stribeck`. The level starts flat, unlike that one, and falls fastest at
    ``v_s / sqrt(2)``; there is no closed form.
    """

    kind: ClassVar[int] = GAUSSIAN
    name: ClassVar[str] = "gaussian-stribeck"
    steepness: ClassVar[float] = math.sqrt(2.0 / math.e)


@documented
@dataclass(frozen=True)
class DeadZoneViscous(Law):
    """Dry friction with a viscosity that sets in above a speed: F + D max(s - w, 0)."""

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
