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

Places = dict[Causality, tuple[str, str]]


def _impedance(module: str, name: str) -> Places:
    return {Causality.IMPEDANCE: (module, name)}


def _admittance(module: str, name: str) -> Places:
    return {Causality.ADMITTANCE: (module, name)}


def _both(name: str) -> Places:
    return _admittance(_CLASSIC, f"{name}Admittance") | _impedance(_CLASSIC, f"{name}Impedance")


FOUR_MODELS: dict[str, Places] = {
    "A": _admittance(_FOUR, "RigidAdmittance"),
    "B": _impedance(_FOUR, "InertialImpedance"),
    "C": _impedance(_FOUR, "MasslessImpedance"),
    "D": _admittance(_FOUR, "CompliantAdmittance"),
}
"""Module and class of the models of Kikuuwe et al. 2006, by letter and causality."""

CLASSIC_MODELS: dict[str, Places] = {
    "explicit-coulomb": _both("ExplicitCoulomb"),
    "viscous-ramp": _both("ViscousRamp"),
    "karnopp": _both("Karnopp"),
    "quinn": _both("Quinn"),
    "dahl": _impedance(_CLASSIC, "Dahl"),
    "lugre": _impedance(_CLASSIC, "LuGre"),
    "elastoplastic": _impedance(_CLASSIC, "Elastoplastic"),
    "hayward-armstrong": _impedance(_CLASSIC, "HaywardArmstrong"),
    "reset-integrator": _impedance(_CLASSIC, "ResetIntegrator"),
    "iwan": _impedance(_CLASSIC, "Iwan"),
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
