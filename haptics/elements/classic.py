"""Classic friction models with the interface of the elements, for comparison with models A to D.

=====================  ======================  ==================================================================
model                  causality               description
=====================  ======================  ==================================================================
``explicit-coulomb``   admittance, impedance   the law of the last velocity
``viscous-ramp``       admittance, impedance   a high viscosity below a threshold (Martins and Oden 1983)
``karnopp``            admittance, impedance   a velocity that counts as zero below a threshold (Karnopp 1985)
``quinn``              admittance, impedance   a continuous version of Karnopp's model (Quinn 2004)
``dahl``               impedance               a bristle that yields gradually (Dahl 1968)
``lugre``              impedance               Dahl's with damping and any law (Canudas de Wit et al. 1995)
``elastoplastic``      impedance               a bristle that is elastic first (Dupont et al. 2002)
``hayward-armstrong``  impedance               a spring that creeps and slides (Hayward and Armstrong 2000)
``reset-integrator``   impedance               a spring and damper that is switched (Haessig and Friedland 1991)
``iwan``               impedance               elements of model C in parallel (Iwan 1966)
=====================  ======================  ==================================================================

All models slide steadily with exactly the force of their `haptics.friction.laws.Law` and differ only before, at and
after a stop. Forces are vectors and rotate with the coordinate system. The friction force has the direction of the
sliding velocity, as in all elements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from haptics.device import Causality
from haptics.elements import classic_kernels as kernels
from haptics.elements.catalogue import CLASSIC_MODELS, all_loaded
from haptics.elements.models import DAMPING, MASS, PERIOD, STIFFNESS, Element
from haptics.friction.laws import Law
from haptics.settings import bounded, documented

_ADMITTANCE, _IMPEDANCE = Causality.ADMITTANCE, Causality.IMPEDANCE


class _LevelElement(Element):
    """Element that evaluates the level of its law at a known speed."""

    law_evaluation = "level"


# The default stiffness and damping are those of the experiments in Kikuuwe et al. 2006, section V.


# --- models of rigid contacts -----------------------------------------------------------------------------------------
#
# Classic friction models without a bristle: explicit Coulomb, viscous ramp, Karnopp, Quinn.

_RAMP = "speed at which the ramp reaches the law"
_ZERO = "speed below which the velocity counts as zero"
_CHANGE = "speed over which the force changes"


_THRESHOLD: dict[str, Any] = {"above": 0.0, "unit": "m/s", "slider": (1e-3, 0.5)}
_RESIDUAL = "fraction of its velocity at which a mass below the threshold moves"


@documented
@dataclass(frozen=True, eq=False)
class ExplicitCoulombAdmittance(
    Element, model="explicit-coulomb", kind=kernels.EXPLICIT_ADMITTANCE, causality=_ADMITTANCE
):
    """A mass under the friction of its last velocity, f = Phi(v); it chatters at rest.

    See Kikuuwe et al. 2006, (6). The contact sticks only if the velocity was exactly zero.

    Attributes
    ----------
    law : Law
        Any friction law.
    """

    law_evaluation = "force"
    law: Law
    mass: float = bounded(2.0, above=0.0, **MASS)
    period: float = bounded(1e-3, **PERIOD)


@documented
@dataclass(frozen=True, eq=False)
class ExplicitCoulombImpedance(
    Element, model="explicit-coulomb", kind=kernels.EXPLICIT_IMPEDANCE, causality=_IMPEDANCE
):
    """The friction law without modification, f = Phi(u) (Kikuuwe et al. 2006, (6)).

    The force jumps with the sign of the velocity. The contact sticks, without any force, only if the velocity is
    exactly zero.

    Attributes
    ----------
    law : Law
        Any friction law.
    """

    law_evaluation = "force"
    law: Law
    period: float = bounded(1e-3, **PERIOD)


@documented
@dataclass(frozen=True, eq=False)
class ViscousRampAdmittance(_LevelElement, model="viscous-ramp", kind=kernels.RAMP_ADMITTANCE, causality=_ADMITTANCE):
    """A mass with very high viscosity in place of static friction.

    See Kikuuwe et al. 2006, (5); Martins and Oden 1983. Under a constant force h below the friction F the mass creeps
    at ``threshold h/F``. The contact counts as sticking up to the threshold. The explicit step is stable while
    ``T F < 2 M threshold``.

    Attributes
    ----------
    law : Law
        Isotropic friction law.
    """

    kernel_parameters = ("threshold",)
    law: Law
    mass: float = bounded(2.0, above=0.0, **MASS)
    threshold: float = bounded(0.005, **_THRESHOLD, doc=_RAMP)
    period: float = bounded(1e-3, **PERIOD)


@documented
@dataclass(frozen=True, eq=False)
class ViscousRampImpedance(_LevelElement, model="viscous-ramp", kind=kernels.RAMP_IMPEDANCE, causality=_IMPEDANCE):
    """A very high viscosity in place of static friction.

    See Kikuuwe et al. 2006, (5); Martins and Oden 1983. The model has no state. The contact counts as sticking up to
    the threshold.

    Attributes
    ----------
    law : Law
        Isotropic friction law.
    """

    kernel_parameters = ("threshold",)
    law: Law
    threshold: float = bounded(0.02, **_THRESHOLD, doc=_RAMP)
    period: float = bounded(1e-3, **PERIOD)


@documented
@dataclass(frozen=True, eq=False)
class KarnoppAdmittance(_LevelElement, model="karnopp", kind=kernels.KARNOPP_ADMITTANCE, causality=_ADMITTANCE):
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

    kernel_parameters = ("threshold", "residual")
    law: Law
    mass: float = bounded(2.0, above=0.0, **MASS)
    threshold: float = bounded(0.005, **_THRESHOLD, doc=_ZERO)
    residual: float = bounded(0.0, minimum=0.0, maximum=1.0, doc=_RESIDUAL)
    period: float = bounded(1e-3, **PERIOD)


@documented
@dataclass(frozen=True, eq=False)
class KarnoppImpedance(_LevelElement, model="karnopp", kind=kernels.KARNOPP_IMPEDANCE, causality=_IMPEDANCE):
    """`KarnoppAdmittance` pulled through a spring and damper.

    The coupling is that shown in Kikuuwe et al. 2006, Fig. 12(a). The force of the spring on the mass uses the velocity
    of the mass after the last step. This limits stiffness and damping to ``T^2 K + 2 T B < 4 M`` while the mass slides.
    A pull slower than the threshold results in jerky motion.

    Attributes
    ----------
    law : Law
        Isotropic friction law.
    """

    kernel_parameters = ("threshold", "residual")
    law: Law
    mass: float = bounded(0.3, above=0.0, **MASS)
    stiffness: float = bounded(6000.0, above=0.0, **STIFFNESS, doc="stiffness K of the virtual coupling")
    damping: float = bounded(10.0, **DAMPING, doc="damping B of the virtual coupling")
    threshold: float = bounded(0.02, **_THRESHOLD, doc=_ZERO)
    residual: float = bounded(0.0, minimum=0.0, maximum=1.0, doc=_RESIDUAL)
    period: float = bounded(1e-3, **PERIOD)


@documented
@dataclass(frozen=True, eq=False)
class QuinnAdmittance(_LevelElement, model="quinn", kind=kernels.QUINN_ADMITTANCE, causality=_ADMITTANCE):
    """A mass under a force that is continuous in velocity and applied force.

    See Quinn 2004; Kikuuwe et al. 2006, (4). The level of the law at the present speed replaces the constant F of the
    original model. The contact sticks where the friction force is below that level. The explicit step is stable while
    ``T F < 2 M threshold``.

    Attributes
    ----------
    law : Law
        Isotropic friction law.
    """

    kernel_parameters = ("threshold",)
    law: Law
    mass: float = bounded(2.0, above=0.0, **MASS)
    threshold: float = bounded(0.005, **_THRESHOLD, doc=_CHANGE)
    period: float = bounded(1e-3, **PERIOD)


@documented
@dataclass(frozen=True, eq=False)
class QuinnImpedance(_LevelElement, model="quinn", kind=kernels.QUINN_IMPEDANCE, causality=_IMPEDANCE):
    """`QuinnAdmittance` pulled through a spring and damper.

    The coupling is that shown in Kikuuwe et al. 2006, Fig. 12(a). Stiffness and damping are limited as in
    `KarnoppImpedance`.

    Attributes
    ----------
    law : Law
        Isotropic friction law.
    """

    kernel_parameters = ("threshold",)
    law: Law
    mass: float = bounded(0.3, above=0.0, **MASS)
    stiffness: float = bounded(6000.0, above=0.0, **STIFFNESS, doc="stiffness K of the virtual coupling")
    damping: float = bounded(10.0, **DAMPING, doc="damping B of the virtual coupling")
    threshold: float = bounded(0.02, **_THRESHOLD, doc=_CHANGE)
    period: float = bounded(1e-3, **PERIOD)


# --- bristle models ---------------------------------------------------------------------------------------------------
#
# Classic friction models with a bristle.
#
# Models: Dahl, LuGre, elastoplastic, Hayward-Armstrong, reset integrator, Iwan. In all
# of them `displacement` is the deflection z of the bristle, and `velocity` is the remaining motion, the slip. The
# bristle carries the level g of the law at the present speed up to the break-away force. The excess, for instance
# viscosity, opposes the motion directly. Iwan's elements solve the law instead.

_SPRING, _DAMPER = "stiffness K of the bristle", "damping B of the bristle"


@documented
@dataclass(frozen=True, eq=False)
class Dahl(_LevelElement, model="dahl", kind=kernels.BRISTLE, causality=_IMPEDANCE):
    """A bristle that yields more the closer it is to its limit, dz/dt = u - K |u| z/g (Dahl 1968).

    The force is K z; along a straight path it is exponential. This is the member of Dahl's family with exponent 1, in
    two dimensions as in `LuGre`. The contact counts as sticking while the bristle absorbs at least half of the motion.
    The integration is exact for a velocity that is constant over the sample.

    Attributes
    ----------
    law : Law
        Isotropic friction law.
    """

    law: Law
    stiffness: float = bounded(6000.0, above=0.0, **STIFFNESS, doc=_SPRING)
    period: float = bounded(1e-3, **PERIOD)


@documented
@dataclass(frozen=True, eq=False)
class LuGre(_LevelElement, model="lugre", kind=kernels.BRISTLE, causality=_IMPEDANCE):
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

    law: Law
    stiffness: float = bounded(6000.0, above=0.0, **STIFFNESS, doc=_SPRING)
    damping: float = bounded(10.0, **DAMPING, doc=_DAMPER)
    period: float = bounded(1e-3, **PERIOD)


@documented
@dataclass(frozen=True, eq=False)
class Elastoplastic(_LevelElement, model="elastoplastic", kind=kernels.ELASTOPLASTIC, causality=_IMPEDANCE):
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

    kernel_parameters = ("elastic_share",)
    law: Law
    stiffness: float = bounded(6000.0, above=0.0, **STIFFNESS, doc=_SPRING)
    damping: float = bounded(10.0, **DAMPING, doc=_DAMPER)
    elastic_share: float = bounded(
        0.7, minimum=0.0, maximum=0.99, doc="share of its limit up to which the bristle is elastic, z_ba/z_max"
    )
    period: float = bounded(1e-3, **PERIOD)


@documented
@dataclass(frozen=True, eq=False)
class HaywardArmstrong(_LevelElement, model="hayward-armstrong", kind=kernels.HAYWARD_ARMSTRONG, causality=_IMPEDANCE):
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

    kernel_parameters = ("stick_share", "creep")
    law: Law
    stiffness: float = bounded(6000.0, above=0.0, **STIFFNESS, doc="stiffness K of the spring")
    creep: float = bounded(1.0, minimum=0.0, maximum=1.0, doc="creep of the spring's end: 0 none, 1 as published")
    stick_share: float = bounded(
        0.7, minimum=0.1, maximum=1.0, doc="share of the spring's limit around which creep sets in"
    )
    period: float = bounded(1e-3, **PERIOD)


@documented
@dataclass(frozen=True, eq=False)
class ResetIntegrator(_LevelElement, model="reset-integrator", kind=kernels.RESET_INTEGRATOR, causality=_IMPEDANCE):
    """A spring and damper while it sticks, the law while it slips (Haessig and Friedland 1991).

    The velocity is integrated into the deflection z up to the limit g/K. The force is f = K (1 + stiction) z + B u
    while sticking and f = K z while slipping, with a jump in between. The contact slips while the bristle is at its
    limit and being loaded.

    Attributes
    ----------
    law : Law
        Isotropic friction law.
    """

    kernel_parameters = ("stiction",)
    law: Law
    stiffness: float = bounded(6000.0, above=0.0, **STIFFNESS, doc=_SPRING)
    damping: float = bounded(10.0, **DAMPING, doc="damping while the bristle sticks")
    stiction: float = bounded(
        0.0, minimum=0.0, maximum=5.0, doc="share by which the force before break-away exceeds the law"
    )
    period: float = bounded(1e-3, **PERIOD)


@documented
@dataclass(frozen=True, eq=False)
class Iwan(Element, model="iwan", kind=kernels.IWAN, causality=_IMPEDANCE):
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

    law: Law
    stiffness: float = bounded(
        6000.0, above=0.0, **STIFFNESS, doc="stiffness of all elements together, without the stiff one"
    )
    damping: float = bounded(10.0, **DAMPING, doc="damping B of all elements together, divided like the law")
    count: int = bounded(6, minimum=1, maximum=kernels.MAX_BRISTLES, doc="number of elements")
    spread: float = bounded(0.8, minimum=0.0, maximum=0.99, doc="relative spread of the elements' break-away forces")
    stiff_share: float = bounded(
        0.0, minimum=0.0, maximum=0.95, doc="share of the break-away force that one further, stiff element carries"
    )
    stiff_stiffness: float = bounded(
        6000.0, above=0.0, **STIFFNESS, doc="stiffness of the stiff element, if stiff_share > 0"
    )
    period: float = bounded(1e-3, **PERIOD)

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


__all__ = [
    "CLASSICS",
    "Dahl",
    "Elastoplastic",
    "ExplicitCoulombAdmittance",
    "ExplicitCoulombImpedance",
    "HaywardArmstrong",
    "Iwan",
    "KarnoppAdmittance",
    "KarnoppImpedance",
    "LuGre",
    "QuinnAdmittance",
    "QuinnImpedance",
    "ResetIntegrator",
    "ViscousRampAdmittance",
    "ViscousRampImpedance",
]

CLASSICS: dict[str, dict[Causality, type[Element]]] = all_loaded(CLASSIC_MODELS)
"""Classes of every classic model, by name and causality."""
