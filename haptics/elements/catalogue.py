"""Catalogue of friction laws and models: names, and the modules and classes that implement them.

Commands that compute nothing read the names from this module, which does not import numba. `haptics.elements.tables`
maps the names to classes.
"""

from __future__ import annotations

import importlib
from typing import Any

from haptics.device import Causality

_LAWS = "haptics.friction.laws"
_FOUR = "haptics.elements.models"
_CLASSIC = "haptics.elements.classic"

LAWS: dict[str, tuple[str, str]] = {
    "coulomb": (_LAWS, "Coulomb"),
    "coulomb-viscous": (_LAWS, "CoulombViscous"),
    "stribeck": (_LAWS, "Stribeck"),
    "gaussian-stribeck": (_LAWS, "GaussianStribeck"),
    "dead-zone-viscous": (_LAWS, "DeadZoneViscous"),
    "elliptic": (_LAWS, "Elliptic"),
    "asymmetric": (_LAWS, "Asymmetric"),
}
"""Module and class of every parametric law, by its name in settings."""

FORCE_SETTINGS = ("law.force", "law.kinetic_force", "law.static_force")
"""Settings that are levels [N] of the isotropic laws."""

Places = dict[Causality, tuple[str, str]]


_ADMITTANCE, _IMPEDANCE = Causality.ADMITTANCE, Causality.IMPEDANCE

FOUR_MODELS: dict[str, Places] = {
    "A": {_ADMITTANCE: (_FOUR, "RigidAdmittance")},
    "B": {_IMPEDANCE: (_FOUR, "InertialImpedance")},
    "C": {_IMPEDANCE: (_FOUR, "MasslessImpedance")},
    "D": {_ADMITTANCE: (_FOUR, "CompliantAdmittance")},
}
"""Module and class of the models of Kikuuwe et al. 2006, by letter and causality."""

CLASSIC_MODELS: dict[str, Places] = {
    "explicit-coulomb": {
        _ADMITTANCE: (_CLASSIC, "ExplicitCoulombAdmittance"),
        _IMPEDANCE: (_CLASSIC, "ExplicitCoulombImpedance"),
    },
    "viscous-ramp": {_ADMITTANCE: (_CLASSIC, "ViscousRampAdmittance"), _IMPEDANCE: (_CLASSIC, "ViscousRampImpedance")},
    "karnopp": {_ADMITTANCE: (_CLASSIC, "KarnoppAdmittance"), _IMPEDANCE: (_CLASSIC, "KarnoppImpedance")},
    "quinn": {_ADMITTANCE: (_CLASSIC, "QuinnAdmittance"), _IMPEDANCE: (_CLASSIC, "QuinnImpedance")},
    "dahl": {_IMPEDANCE: (_CLASSIC, "Dahl")},
    "lugre": {_IMPEDANCE: (_CLASSIC, "LuGre")},
    "elastoplastic": {_IMPEDANCE: (_CLASSIC, "Elastoplastic")},
    "hayward-armstrong": {_IMPEDANCE: (_CLASSIC, "HaywardArmstrong")},
    "reset-integrator": {_IMPEDANCE: (_CLASSIC, "ResetIntegrator")},
    "iwan": {_IMPEDANCE: (_CLASSIC, "Iwan")},
}
"""Module and class of the models from the literature, by name and causality."""


def loaded(place: tuple[str, str]) -> Any:
    """Import and return the class at `place` (module, class)."""
    module, name = place
    return getattr(importlib.import_module(module), name)


def all_loaded(models: dict[str, Places]) -> dict[str, dict[Causality, Any]]:
    """Import and return the classes of `models`, by name and causality."""
    return {
        model: {causality: loaded(place) for causality, place in places.items()} for model, places in models.items()
    }
