"""The classic friction models behind the interface of the elements, to compare models A to D with.

=====================  ======================  ==================================================================
model                  causality               what it is
=====================  ======================  ==================================================================
``explicit-coulomb``   admittance, impedance   the law of the last velocity
``viscous-ramp``       admittance, impedance   a high viscosity below a threshold (Martins and Oden 1983)
``karnopp``            admittance, impedance   a velocity that counts as zero below a threshold (Karnopp 1985)
``quinn``              admittance, impedance   Karnopp's, made continuous (Quinn 2004)
``dahl``               impedance               a bristle that yields gradually (Dahl 1968)
``lugre``              impedance               Dahl's with damping and any law (Canudas de Wit et al. 1995)
``elastoplastic``      impedance               a bristle that is elastic first (Dupont et al. 2002)
``hayward-armstrong``  impedance               a spring that creeps and slides (Hayward and Armstrong 2000)
``reset-integrator``   impedance               a spring and damper that is switched (Haessig and Friedland 1991)
``iwan``               impedance               elements of model C side by side (Iwan 1966)
=====================  ======================  ==================================================================

All slide steadily with exactly the force of their `haptics.friction.law.Law`, so that they can be compared; what
differs is what happens before, at and after a stop. Forces are vectors and turn with the coordinates. The friction
force has the direction of the sliding velocity, as everywhere.
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
"""The classes of every classic model by its name, as an admittance, as an impedance or as both."""
