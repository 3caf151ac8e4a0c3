"""Classic friction models with a bristle.

Models: Dahl, LuGre, elastoplastic, Hayward-Armstrong, reset integrator, Iwan; see `haptics.elements.classic.models`. In
all of them `displacement` is the deflection z of the bristle, and `velocity` is the remaining motion, the slip. The
bristle carries the level g of the law at the present speed up to the break-away force. The excess, for instance
viscosity, opposes the motion directly. Iwan's elements solve the law instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from haptics.device import Causality
from haptics.elements.classic.base import ClassicElement, damping, period, stiffness
from haptics.elements.classic.bristle_kernels import MOST_ELEMENTS
from haptics.elements.classic.kernels import BRISTLE, ELASTOPLASTIC, HAYWARD_ARMSTRONG, IWAN, RESET_INTEGRATOR
from haptics.elements.models import STEADIER, STIFFNESSES, Element
from haptics.friction.law import Law, warn_if_ambiguous
from haptics.settings import bounded, documented

_SPRING, _DAMPER = "stiffness K of the bristle", "damping B of the bristle"


@documented
@dataclass(frozen=True, eq=False)
class Dahl(ClassicElement):
    """A bristle that yields more the closer it is to its limit, dz/dt = u - K |u| z/g (Dahl 1968).

    The force is K z; along a straight path it is exponential. This is the member of Dahl's family with exponent 1, in
    two dimensions as in `LuGre`. The contact counts as sticking while the bristle absorbs at least half of the motion.
    The integration is exact for a velocity that is constant over the sample.

    Attributes
    ----------
    law : Law
        Isotropic friction law.
    """

    model: ClassVar[str] = "dahl"
    kind: ClassVar[int] = BRISTLE
    causality: ClassVar[Causality] = Causality.IMPEDANCE
    law: Law
    stiffness: float = stiffness(_SPRING)
    period: float = period()


@documented
@dataclass(frozen=True, eq=False)
class LuGre(ClassicElement):
    """Dahl's bristle with a damper and a level that depends on the speed (Canudas de Wit et al. 1995).

    In two dimensions dz/dt = u - K |u| z/g as in Velenis et al. 2002, and f = K z + B dz/dt, with the mean of dz/dt
    over the sample. The law provides the viscous term. The contact counts as sticking while the bristle absorbs at
    least half of the motion. It has no static friction and drifts under an oscillating force below the break-away
    force. The integration is exact for a velocity that is constant over the sample.

    Attributes
    ----------
    law : Law
        Isotropic friction law.
    """

    model: ClassVar[str] = "lugre"
    kind: ClassVar[int] = BRISTLE
    causality: ClassVar[Causality] = Causality.IMPEDANCE
    law: Law
    stiffness: float = stiffness(_SPRING)
    damping: float = damping(_DAMPER)
    period: float = period()


@documented
@dataclass(frozen=True, eq=False)
class Elastoplastic(ClassicElement):
    """A bristle that is elastic up to a fraction of its limit and yields beyond (Dupont et al. 2002).

    The original model is one-dimensional. Here the bristle slips along its own deflection n = z/|z| at the rate of
    loading: dz/dt = u - alpha(|z|) max(u.n, 0) K z/g, and f = K z + B dz/dt. The contact sticks where alpha is 0 or the
    bristle is not being loaded; the velocity is then exactly zero. The implicit Euler step is solved to machine
    precision.

    Attributes
    ----------
    law : Law
        Isotropic friction law.
    """

    model: ClassVar[str] = "elastoplastic"
    kind: ClassVar[int] = ELASTOPLASTIC
    causality: ClassVar[Causality] = Causality.IMPEDANCE
    law: Law
    stiffness: float = stiffness(_SPRING)
    damping: float = damping(_DAMPER)
    elastic_share: float = bounded(
        0.7, minimum=0.0, maximum=0.99, doc="share of its limit up to which the bristle is elastic, z_ba/z_max"
    )
    period: float = period()

    @property
    def numbers(self) -> tuple[float, ...]:  # noqa: D102 (inherited)
        return (self.elastic_share,)


@documented
@dataclass(frozen=True, eq=False)
class HaywardArmstrong(ClassicElement):
    """A spring whose end sticks, creeps or slides (Hayward and Armstrong 2000).

    The spring is never longer than g/K. Below this limit its end creeps by ``|du| alpha(z) z`` with
    ``alpha = K/g z^8/(z_s^8 + z^8)``, where z_s is `stick_share` of the limit. Without creep and with Coulomb's law it
    is model C without damping (Kikuuwe et al. 2006, section III-C). It sticks, creeping or not, below the limit. The
    implicit Euler step of the creep is solved to machine precision.

    Attributes
    ----------
    law : Law
        Isotropic friction law.
    """

    model: ClassVar[str] = "hayward-armstrong"
    kind: ClassVar[int] = HAYWARD_ARMSTRONG
    causality: ClassVar[Causality] = Causality.IMPEDANCE
    law: Law
    stiffness: float = stiffness("stiffness K of the spring")
    creep: float = bounded(
        1.0, minimum=0.0, maximum=1.0, doc="how much the spring's end creeps: 0 not at all, 1 as published"
    )
    stick_share: float = bounded(
        0.7, minimum=0.1, maximum=1.0, doc="share of the spring's limit around which creep sets in"
    )
    period: float = period()

    @property
    def numbers(self) -> tuple[float, ...]:  # noqa: D102 (inherited)
        return self.stick_share, self.creep


@documented
@dataclass(frozen=True, eq=False)
class ResetIntegrator(ClassicElement):
    """A spring and damper while it sticks, the law while it slips (Haessig and Friedland 1991).

    The velocity is integrated into the deflection z up to the limit g/K. The force is f = K (1 + stiction) z + B u
    while sticking and f = K z while slipping, with a jump in between. The contact slips while the bristle is at its
    limit and being loaded.

    Attributes
    ----------
    law : Law
        Isotropic friction law.
    """

    model: ClassVar[str] = "reset-integrator"
    kind: ClassVar[int] = RESET_INTEGRATOR
    causality: ClassVar[Causality] = Causality.IMPEDANCE
    law: Law
    stiffness: float = stiffness(_SPRING)
    damping: float = damping("damping while the bristle sticks")
    stiction: float = bounded(
        0.0, minimum=0.0, maximum=5.0, doc="share by which the force before break-away exceeds the law"
    )
    period: float = period()

    @property
    def numbers(self) -> tuple[float, ...]:  # noqa: D102 (inherited)
        return (self.stiction,)


@documented
@dataclass(frozen=True, eq=False)
class Iwan(Element):
    """Elements of model C in parallel, each solved exactly.

    See Iwan 1966; Kikuuwe et al. 2006, section VI. `count` elements share `stiffness` in equal parts. Their break-away
    forces rise evenly from 1 - spread to 1 + spread of an equal part, so that they start to slide one after the other,
    which gives hysteresis before sliding. With `stiff_share`, one further element of `stiff_stiffness` carries that
    share of the law, and the others carry the rest: after a reversal the force first jumps and then builds up over a
    distance. The damping is divided like the law, so that soft elements have enough of it for condition (15) and
    falling laws. Steady sliding has exactly the force of the law.

    The contact sticks while no element slides. `velocity` and `displacement` are means weighted by stiffness. With one
    element and no stiff share it is model C.

    Attributes
    ----------
    law : Law
        Friction law of all elements together; any law.
    """

    model: ClassVar[str] = "iwan"
    kind: ClassVar[int] = IWAN
    causality: ClassVar[Causality] = Causality.IMPEDANCE
    law: Law
    stiffness: float = stiffness("stiffness of all elements together, without the stiff one")
    damping: float = damping("damping B of all elements together, divided like the law")
    count: int = bounded(6, minimum=1, maximum=MOST_ELEMENTS, doc="number of elements")
    spread: float = bounded(0.8, minimum=0.0, maximum=0.99, doc="how far the break-away forces of the elements differ")
    stiff_share: float = bounded(
        0.0, minimum=0.0, maximum=0.95, doc="share of the break-away force that one further, stiff element carries"
    )
    stiff_stiffness: float = bounded(
        6000.0, above=0.0, unit="N/m", slider=STIFFNESSES, doc="stiffness of that element; without a stiff_share unused"
    )
    period: float = period()

    @property
    def coupling_stiffness(self) -> float:
        """Stiffness [N/m] of all elements together, including the stiff one, while none slides."""
        return self.stiffness + self.stiff_stiffness if self.stiff_share > 0.0 else self.stiffness

    @property
    def numbers(self) -> tuple[float, ...]:  # noqa: D102 (inherited)
        return float(self.count), self.spread, self.stiffness / self.coupling_stiffness, 1.0 - self.stiff_share

    @property
    def mobility(self) -> float:
        """Mobility [m/(N s)] of the most mobile element: its share of the force divided by its B + T K."""
        spread, share = self.spread if self.count > 1 else 0.0, self.stiff_share
        mobility = (1.0 + spread) * (1.0 - share) / ((1.0 - share) * self.damping + self.period * self.stiffness)
        stiff = share / (share * self.damping + self.period * self.stiff_stiffness)
        return max(mobility, stiff)

    def _check_law(self) -> None:
        """Warn if the law allows several forces at the mobility of the most mobile element."""
        warn_if_ambiguous(self.law, self.mobility, STEADIER)
