"""Which friction laws and models there are, and where their classes are: the one list, from which all others come.

A command that computes nothing knows the names from here, without numba. `haptics.elements.tables` has the classes.
"""

from __future__ import annotations

import importlib
from typing import Any

from haptics.device import Causality

_LAWS, _PLANAR = "haptics.friction.laws", "haptics.friction.anisotropy"
_FOUR = "haptics.elements.models"
_RIGID, _BRISTLE = "haptics.elements.classic.rigid", "haptics.elements.classic.bristle"

LAWS: dict[str, tuple[str, str]] = {
    "coulomb": (_LAWS, "Coulomb"),
    "coulomb-viscous": (_LAWS, "CoulombViscous"),
    "stribeck": (_LAWS, "Stribeck"),
    "gaussian-stribeck": (_LAWS, "GaussianStribeck"),
    "dead-zone-viscous": (_LAWS, "DeadZoneViscous"),
    "elliptic": (_PLANAR, "Elliptic"),
    "asymmetric": (_PLANAR, "Asymmetric"),
}
"""Every law that is made from its numbers by the name used in settings: module and class."""

Places = dict[Causality, tuple[str, str]]


def _impedance(module: str, name: str) -> Places:
    return {Causality.IMPEDANCE: (module, name)}


def _admittance(module: str, name: str) -> Places:
    return {Causality.ADMITTANCE: (module, name)}


def _both(name: str) -> Places:
    return _admittance(_RIGID, f"{name}Admittance") | _impedance(_RIGID, f"{name}Impedance")


FOUR_MODELS: dict[str, Places] = {
    "A": _admittance(_FOUR, "RigidAdmittance"),
    "B": _impedance(_FOUR, "InertialImpedance"),
    "C": _impedance(_FOUR, "MasslessImpedance"),
    "D": _admittance(_FOUR, "CompliantAdmittance"),
}
"""The models of Kikuuwe et al. 2006 by their letters: causality, module and class."""

CLASSIC_MODELS: dict[str, Places] = {
    "explicit-coulomb": _both("ExplicitCoulomb"),
    "viscous-ramp": _both("ViscousRamp"),
    "karnopp": _both("Karnopp"),
    "quinn": _both("Quinn"),
    "dahl": _impedance(_BRISTLE, "Dahl"),
    "lugre": _impedance(_BRISTLE, "LuGre"),
    "elastoplastic": _impedance(_BRISTLE, "Elastoplastic"),
    "hayward-armstrong": _impedance(_BRISTLE, "HaywardArmstrong"),
    "reset-integrator": _impedance(_BRISTLE, "ResetIntegrator"),
    "iwan": _impedance(_BRISTLE, "Iwan"),
}
"""The models from the literature by their names: causality, module and class."""


def loaded(place: tuple[str, str]) -> Any:
    """Return the class that has a `place` in one of the lists above."""
    module, name = place
    return getattr(importlib.import_module(module), name)


def all_loaded(models: dict[str, Places]) -> dict[str, dict[Causality, Any]]:
    """Return the classes of `models` by name and causality."""
    return {
        model: {causality: loaded(place) for causality, place in places.items()} for model, places in models.items()
    }
