"""Classic friction models without a bristle: explicit Coulomb, viscous ramp, Karnopp, Quinn.

See `haptics.elements.classic.models`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from haptics.device import Causality
from haptics.elements.classic.base import ClassicElement, damping, period, stiffness
from haptics.elements.classic.kernels import (
    EXPLICIT_ADMITTANCE,
    EXPLICIT_IMPEDANCE,
    KARNOPP_ADMITTANCE,
    KARNOPP_IMPEDANCE,
    QUINN_ADMITTANCE,
    QUINN_IMPEDANCE,
    RAMP_ADMITTANCE,
    RAMP_IMPEDANCE,
)
from haptics.elements.models import MASSES
from haptics.friction.law import Law
from haptics.settings import bounded, documented

_RAMP = "speed at which the ramp reaches the law"
_ZERO = "speed below which the velocity counts as zero"
_CHANGE = "speed over which the force changes"


def _mass(default: float) -> Any:
    return bounded(default, above=0.0, unit="kg", slider=MASSES, doc="mass M that slides on the surface")


def _threshold(default: float, doc: str) -> Any:
    return bounded(default, above=0.0, unit="m/s", slider=(1e-3, 0.5), doc=doc)


def _residual() -> Any:
    doc = "share of its velocity that a mass below the threshold moves on with"
    return bounded(0.0, minimum=0.0, maximum=1.0, doc=doc)


class _Explicit(ClassicElement):
    model: ClassVar[str] = "explicit-coulomb"

    def _check_law(self) -> None:
        """Accept any law, because the step evaluates its force directly."""


@documented
@dataclass(frozen=True, eq=False)
class ExplicitCoulombAdmittance(_Explicit):
    """A mass under the friction of its last velocity, f = Phi(v); it chatters at rest.

    See Kikuuwe et al. 2006, (6). The contact sticks only if the velocity was exactly zero.

    Attributes
    ----------
    law : Law
        Any friction law.
    """

    kind: ClassVar[int] = EXPLICIT_ADMITTANCE
    causality: ClassVar[Causality] = Causality.ADMITTANCE
    law: Law
    mass: float = _mass(2.0)
    period: float = period()


@documented
@dataclass(frozen=True, eq=False)
class ExplicitCoulombImpedance(_Explicit):
    """The friction law without modification, f = Phi(u) (Kikuuwe et al. 2006, (6)).

    The force jumps with the sign of the velocity. The contact sticks, without any force, only if the velocity is
    exactly zero.

    Attributes
    ----------
    law : Law
        Any friction law.
    """

    kind: ClassVar[int] = EXPLICIT_IMPEDANCE
    causality: ClassVar[Causality] = Causality.IMPEDANCE
    law: Law
    period: float = period()


class _Threshold(ClassicElement):
    threshold: float

    @property
    def numbers(self) -> tuple[float, ...]:
        return (self.threshold,)


@documented
@dataclass(frozen=True, eq=False)
class ViscousRampAdmittance(_Threshold):
    """A mass with very high viscosity in place of static friction.

    See Kikuuwe et al. 2006, (5); Martins and Oden 1983. Under a constant force h below the friction F the mass creeps
    at ``threshold h/F``. The contact counts as sticking up to the threshold. The explicit step is stable while
    ``T F < 2 M threshold``.

    Attributes
    ----------
    law : Law
        Isotropic friction law.
    """

    model: ClassVar[str] = "viscous-ramp"
    kind: ClassVar[int] = RAMP_ADMITTANCE
    causality: ClassVar[Causality] = Causality.ADMITTANCE
    law: Law
    mass: float = _mass(2.0)
    threshold: float = _threshold(0.005, _RAMP)
    period: float = period()


@documented
@dataclass(frozen=True, eq=False)
class ViscousRampImpedance(_Threshold):
    """A very high viscosity in place of static friction.

    See Kikuuwe et al. 2006, (5); Martins and Oden 1983. The model has no state. The contact counts as sticking up to
    the threshold.

    Attributes
    ----------
    law : Law
        Isotropic friction law.
    """

    model: ClassVar[str] = "viscous-ramp"
    kind: ClassVar[int] = RAMP_IMPEDANCE
    causality: ClassVar[Causality] = Causality.IMPEDANCE
    law: Law
    threshold: float = _threshold(0.02, _RAMP)
    period: float = period()


class _Karnopp(_Threshold):
    model: ClassVar[str] = "karnopp"
    residual: float

    @property
    def numbers(self) -> tuple[float, ...]:
        return self.threshold, self.residual


@documented
@dataclass(frozen=True, eq=False)
class KarnoppAdmittance(_Karnopp):
    """A mass whose velocity counts as zero below a threshold, where friction balances the force.

    See Karnopp 1985. The friction force is (3) of Kikuuwe et al. 2006. Below the threshold the mass keeps its momentum
    but does not move. If the force exceeds the break-away force, the momentum grows until the velocity passes the
    threshold and the mass starts to slide abruptly. With `residual` = 1 the mass continues at its velocity, which is
    (3) unmodified, and drifts. With a threshold below ``T F/(2 M)`` one step can skip the threshold, and the contact
    chatters.

    Attributes
    ----------
    law : Law
        Isotropic friction law.
    """

    kind: ClassVar[int] = KARNOPP_ADMITTANCE
    causality: ClassVar[Causality] = Causality.ADMITTANCE
    law: Law
    mass: float = _mass(2.0)
    threshold: float = _threshold(0.005, _ZERO)
    residual: float = _residual()
    period: float = period()


@documented
@dataclass(frozen=True, eq=False)
class KarnoppImpedance(_Karnopp):
    """`KarnoppAdmittance` pulled through a spring and damper.

    The coupling is that shown in Kikuuwe et al. 2006, Fig. 12(a). The force of the spring on the mass uses the velocity
    of the mass after the last step. This limits stiffness and damping to ``T^2 K + 2 T B < 4 M`` while the mass slides.
    A pull slower than the threshold results in jerky motion.

    Attributes
    ----------
    law : Law
        Isotropic friction law.
    """

    kind: ClassVar[int] = KARNOPP_IMPEDANCE
    causality: ClassVar[Causality] = Causality.IMPEDANCE
    law: Law
    mass: float = _mass(0.3)
    stiffness: float = stiffness("stiffness K of the virtual coupling")
    damping: float = damping("damping B of the virtual coupling")
    threshold: float = _threshold(0.02, _ZERO)
    residual: float = _residual()
    period: float = period()


@documented
@dataclass(frozen=True, eq=False)
class QuinnAdmittance(_Threshold):
    """A mass under a force that is continuous in velocity and applied force.

    See Quinn 2004; Kikuuwe et al. 2006, (4). The level of the law at the present speed replaces the constant F of the
    original model. The contact sticks where the friction force is below that level. The explicit step is stable while
    ``T F < 2 M threshold``.

    Attributes
    ----------
    law : Law
        Isotropic friction law.
    """

    model: ClassVar[str] = "quinn"
    kind: ClassVar[int] = QUINN_ADMITTANCE
    causality: ClassVar[Causality] = Causality.ADMITTANCE
    law: Law
    mass: float = _mass(2.0)
    threshold: float = _threshold(0.005, _CHANGE)
    period: float = period()


@documented
@dataclass(frozen=True, eq=False)
class QuinnImpedance(_Threshold):
    """`QuinnAdmittance` pulled through a spring and damper.

    The coupling is that shown in Kikuuwe et al. 2006, Fig. 12(a). Stiffness and damping are limited as in
    `KarnoppImpedance`.

    Attributes
    ----------
    law : Law
        Isotropic friction law.
    """

    model: ClassVar[str] = "quinn"
    kind: ClassVar[int] = QUINN_IMPEDANCE
    causality: ClassVar[Causality] = Causality.IMPEDANCE
    law: Law
    mass: float = _mass(0.3)
    stiffness: float = stiffness("stiffness K of the virtual coupling")
    damping: float = damping("damping B of the virtual coupling")
    threshold: float = _threshold(0.02, _CHANGE)
    period: float = period()
