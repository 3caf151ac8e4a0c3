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

All models slide steadily with exactly the force of their `haptics.friction.law.Law` and differ only before, at and
after a stop. Forces are vectors and rotate with the coordinate system. The friction force has the direction of the
sliding velocity, as in all elements.
"""

from __future__ import annotations

from haptics.device import Causality
from haptics.elements.catalogue import CLASSIC_MODELS, all_loaded
from haptics.elements.classic.bristle import Dahl, Elastoplastic, HaywardArmstrong, Iwan, LuGre, ResetIntegrator
from haptics.elements.classic.rigid import (
    ExplicitCoulombAdmittance,
    ExplicitCoulombImpedance,
    KarnoppAdmittance,
    KarnoppImpedance,
    QuinnAdmittance,
    QuinnImpedance,
    ViscousRampAdmittance,
    ViscousRampImpedance,
)
from haptics.elements.models import Element

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
