"""Curves of a friction law over sliding speed, for comparison with recorded data. No Qt.

The curves are computed by the rendered laws. Loading them takes about one second, more if a custom law is compiled;
windows therefore use `apps.view.laws.process`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from apps.view.history import Floats
from apps.view.laws.place import Place

if TYPE_CHECKING:
    from haptics.friction.laws import Law
    from haptics.scenes import Scene

_POINTS = 160
_DIRECTIONS = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0))


class Curve(NamedTuple):
    """Level of the law in one direction of motion: sliding speeds [mm/s] and forces [N], (n,) arrays."""

    speeds: Floats
    forces: Floats


@dataclass(frozen=True)
class CurveRequest:
    """Request for the curves of a law.

    Attributes
    ----------
    law : tuple of (str, value)
        Settings of the law, including ``name``, and ``source`` for a custom law.
    fastest : float
        End of the curve [mm/s].
    place : (float, float) or None
        Position of the contact [m]; None if the law is the same everywhere.
    scene : Scene or None
        Scene whose law is used instead of the settings.
    """

    law: tuple[tuple[str, Any], ...]
    fastest: float
    place: Place | None = None
    scene: Scene | None = None


def curves(wanted: CurveRequest) -> list[Curve]:
    """Return the level of the requested law.

    The list contains one curve, or three (along x, along y, against x) if the law is anisotropic. It is empty if the
    law is unknown or a parameter is not allowed.
    """
    from haptics.friction.kernels import isotropic_forces, plane_forces

    # A law of another package may raise any exception; the window then shows no curve.
    try:
        law, record = _law_of(wanted)
    except Exception:
        return []
    # A level is a limit towards rest. The first speed is so small that the law has not decreased yet.
    speeds = np.linspace(0.0, 1e-3 * wanted.fastest, _POINTS)
    speeds[0] = 1e-9 * wanted.fastest
    found = []
    for direction in _DIRECTIONS[:1] if law.isotropic else _DIRECTIONS:
        forces = np.empty((_POINTS, 2))
        (isotropic_forces if law.isotropic else plane_forces)(record, np.outer(speeds, direction), 0.0, forces)
        found.append(Curve(1e3 * speeds, np.hypot(forces[:, 0], forces[:, 1])))
    return found


def _law_of(wanted: CurveRequest) -> tuple[Law, Any]:
    """Return the law, and its record with the parameters at the position of the contact."""
    if wanted.scene is None or wanted.place is None:
        from haptics.elements.tables import make_law

        law = make_law(dict(wanted.law))
        return law, law.record
    record = wanted.scene.law.record
    record["numbers"][0] = wanted.scene.numbers_at([wanted.place])[0]
    return wanted.scene.law, record
