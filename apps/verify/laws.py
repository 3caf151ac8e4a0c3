r"""Sets of friction forces of the laws (Kikuuwe et al. 2006, (2), (24)).

An isotropic law has a level g(s) [N] at the speed s [m/s] and a static level. The force is :math:`g(|v|) v/|v|` during
sliding, and any vector up to the static level at rest. A directional law has a set of forces at rest. During sliding,
the force is the point of the set with maximum dissipation, plus a viscous force.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.verify.text_law import NotUnderstood, levels

Floats = NDArray[np.float64]

APPROXIMATE = "-closed-form"
"""Suffix of the names of laws that are solved by the closed-form approximation of the paper."""

AT_REST = 1e-12
"""Speed at which a level with a jump at rest takes its static value [m/s]."""

TEXT_ROUNDING = 1e-10
"""Relative accuracy of a level given as text, whose expression may cancel digits."""


@dataclass(frozen=True)
class Isotropic:
    """Isotropic law: a level over speed.

    In a scene, the parameters are arrays with a value per tick.

    Attributes
    ----------
    static : float
        Maximum force at rest [N].
    identity : tuple
        Identifies the law: laws with equal identity have equal behaviour.
    level : callable
        Level [N] at speeds [m/s].
    loose : float
        Relative accuracy of the level, if lower than floating-point accuracy.
    approximate : bool
        True if the law was solved by the closed form (46), (57).
    """

    static: Any
    identity: tuple[Any, ...]
    level: Callable[[Floats], Floats] = field(compare=False, repr=False)
    loose: float = 0.0
    approximate: bool = False


@dataclass(frozen=True)
class Quarters:
    """Directional law: a set of quarter ellipses rotated by `angle` [rad], and a viscosity [N s/m].

    Attributes
    ----------
    axes : tuple of float
        Semi-axes [N] forwards, backwards and sideways.
    """

    axes: tuple[Any, Any, Any]
    angle: Any
    viscosity: Any
    approximate: bool = False
    loose: float = 0.0

    @property
    def static(self) -> Any:
        """Maximum force at rest [N]."""
        return np.maximum.reduce(self.axes)

    @property
    def slender(self) -> Any:
        """Squared aspect ratio of the set."""
        return (self.static / np.minimum.reduce(self.axes)) ** 2

    @property
    def identity(self) -> tuple[Any, ...]:
        """Identifies the law."""
        return ("quarters", *self.axes, self.angle, self.viscosity, self.approximate)

    def turned(self, vectors: Floats) -> Floats:
        """Rotate vectors, (n, 2), into the axes of the law."""
        c, s = np.cos(self.angle), np.sin(self.angle)
        return np.stack((c * vectors[:, 0] + s * vectors[:, 1], c * vectors[:, 1] - s * vectors[:, 0]), axis=1)

    def turned_back(self, own: Floats) -> Floats:
        """Rotate vectors, (n, 2), from the axes of the law back into the plane."""
        c, s = np.cos(self.angle), np.sin(self.angle)
        return np.stack((c * own[:, 0] - s * own[:, 1], s * own[:, 0] + c * own[:, 1]), axis=1)

    def semi_axes(self, own: Floats) -> Floats:
        """Return the semi-axes [N] of the quadrants of vectors in the axes of the law, (n, 2)."""
        forward, backward, sideways = self.axes
        return np.stack((np.where(own[:, 0] >= 0.0, forward, backward), np.full(len(own), sideways)), axis=1)


Law = Isotropic | Quarters


def law_of(table: Mapping[str, Any]) -> Law:
    """Return the law of a recorded table.

    Raises
    ------
    NotUnderstood
        If the law is unknown.
    """
    name = str(table.get("name", ""))
    try:
        if isinstance(table.get("source"), str):
            return _text_law(table)
        exact = name.removesuffix(APPROXIMATE)
        if exact not in _LAWS:
            raise NotUnderstood(f"the law {name[:40]!r} is unknown to the verification")
        return _LAWS[exact]({key: float(value) for key, value in table.items() if key != "name"}, exact != name)
    except (KeyError, TypeError, ValueError) as error:
        raise NotUnderstood(f"the law {name[:40]!r} lacks a parameter, or has a wrong one ({error})") from error


def law_with(name: str, numbers: Mapping[str, Any], loose: float) -> Law:
    """Return a law with parameters that may be arrays, (n,), with the relative accuracy `loose`.

    Raises
    ------
    NotUnderstood
        If the law is unknown.
    """
    exact = name.removesuffix(APPROXIMATE)
    if exact not in _LAWS:
        raise NotUnderstood(f"the law {name[:40]!r} is unknown to the verification")
    try:
        return replace(_LAWS[exact](numbers, exact != name), loose=loose)
    except (KeyError, TypeError, ValueError) as error:
        raise NotUnderstood(f"the law {name[:40]!r} lacks a parameter, or has a wrong one ({error})") from error


def _viscous(p: Mapping[str, Any], approximate: bool) -> Law:
    """Return the law with the level F + D s; (2), (24)."""
    F, D = p["force"], p.get("viscosity", 0.0)
    return Isotropic(F, ("viscous", F, D, approximate), lambda s: F + D * s, approximate=approximate)


def _peaked(power: int) -> Callable[[Mapping[str, Any], bool], Law]:
    """Return a factory of laws with the level F_c + (F_s - F_c) exp(-(s/v_s)^power) + D s."""

    def make(p: Mapping[str, Any], approximate: bool) -> Law:
        Fc, Fs, vs, D = p["kinetic_force"], p["static_force"], p["stribeck_velocity"], p.get("viscosity", 0.0)
        identity = (f"peaked {power}", Fc, Fs, vs, D, approximate)
        return Isotropic(
            Fs, identity, lambda s: Fc + (Fs - Fc) * np.exp(-((s / vs) ** power)) + D * s, approximate=approximate
        )

    return make


def _dead_zone(p: Mapping[str, Any], approximate: bool) -> Law:
    """Return the law with the level F + D max(s - w, 0)."""
    F, D, w = p["force"], p["viscosity"], p["dead_zone"]
    identity = ("dead zone", F, D, w, approximate)
    return Isotropic(F, identity, lambda s: F + D * np.maximum(s - w, 0.0), approximate=approximate)


def _elliptic(p: Mapping[str, Any], approximate: bool) -> Law:
    axes = (p["force_x"], p["force_x"], p["force_y"])
    return Quarters(axes, p.get("angle", 0.0), p.get("viscosity", 0.0), approximate)


def _asymmetric(p: Mapping[str, Any], approximate: bool) -> Law:
    axes = (p["forward_force"], p["backward_force"], p["sideways_force"])
    return Quarters(axes, p.get("angle", 0.0), p.get("viscosity", 0.0), approximate)


_LAWS: dict[str, Callable[[Mapping[str, Any], bool], Law]] = {
    "coulomb": _viscous,
    "coulomb-viscous": _viscous,
    "stribeck": _peaked(1),
    "gaussian-stribeck": _peaked(2),
    "dead-zone-viscous": _dead_zone,
    "elliptic": _elliptic,
    "asymmetric": _asymmetric,
}


def _text_law(table: Mapping[str, Any]) -> Law:
    source = str(table["source"])
    values = {key: float(value) for key, value in table.items() if key not in {"name", "source"}}

    def level(speeds: Floats) -> Floats:
        return levels(source, values, speeds)

    at_zero, at_rest = level(np.array([0.0, AT_REST]))
    static = at_zero if math.isclose(at_zero, at_rest, rel_tol=1e-9, abs_tol=1e-12) else at_rest
    return Isotropic(float(static), ("text", source, *sorted(values.items())), level, loose=TEXT_ROUNDING)
