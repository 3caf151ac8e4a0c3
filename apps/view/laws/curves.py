"""What a law says: the friction force over the sliding speed, to be drawn under what is recorded. No Qt.

The laws are those that are rendered. To load them takes a second of computing, more where a custom law is compiled: a
window asks `apps.view.laws.process`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from apps.view.history import Floats
from apps.view.laws.place import Place

if TYPE_CHECKING:
    from haptics.friction.law import Law
    from haptics.scenes import Scene

_POINTS = 160
_DIRECTIONS = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0))


class Curve(NamedTuple):
    """The level of the law in one direction of motion: sliding speeds [mm/s] and forces [N], (n,) arrays."""

    speeds: Floats
    forces: Floats


@dataclass(frozen=True)
class Wanted:
    """The law whose curve is wanted.

    Attributes
    ----------
    law : tuple of (str, value)
        Its settings, ``name`` among them, and ``source`` if it is a custom one.
    fastest : float
        Where the curve ends [mm/s].
    place : (float, float) or None
        Where the contact is [m]; None where the law is the same everywhere.
    scene : Scene or None
        What lies where; then its law counts, not the settings.
    """

    law: tuple[tuple[str, Any], ...]
    fastest: float
    place: Place | None = None
    scene: Scene | None = None


def curves(wanted: Wanted) -> list[Curve]:
    """Return the level of the law that is wanted.

    One curve, or three (along x, along y, backwards) if the law is not the same in all directions. None where the law
    is not known, or a number is not allowed.
    """
    from haptics.friction.kernels import isotropic_forces, plane_forces

    # A law of a package is code of somebody else's: whatever it raises, the window goes on without the curve.
    try:
        law, record = _law_of(wanted)
    except Exception:
        return []
    # A level is a limit towards rest: the first speed is so small that the law has not fallen yet.
    speeds = np.linspace(0.0, 1e-3 * wanted.fastest, _POINTS)
    speeds[0] = 1e-9 * wanted.fastest
    found = []
    for direction in _DIRECTIONS[:1] if law.isotropic else _DIRECTIONS:
        forces = np.empty((_POINTS, 2))
        (isotropic_forces if law.isotropic else plane_forces)(record, np.outer(speeds, direction), 0.0, forces)
        found.append(Curve(1e3 * speeds, np.hypot(forces[:, 0], forces[:, 1])))
    return found


def _law_of(wanted: Wanted) -> tuple[Law, Any]:
    """Return the law, and its record with the numbers that it has where the contact is."""
    if wanted.scene is None or wanted.place is None:
        from haptics.elements.tables import make_law

        law = make_law(dict(wanted.law))
        return law, law.record
    record = wanted.scene.law.record
    record["numbers"][0] = wanted.scene.numbers_at([wanted.place])[0]
    return wanted.scene.law, record
