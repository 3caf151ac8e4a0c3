"""What a scene says of the place where the contact is. No Qt."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from apps.view.history import Column, History
from haptics.errors import ConfigurationError

if TYPE_CHECKING:
    from haptics.scenes import Scene

Place = tuple[float, float]
"""A point (x, y) [m]."""


def place_of(history: History) -> Place:
    """Return where the contact is at the newest row of a window, to a tenth of a millimetre."""
    x, y = (1e-3 * history.newest(column) for column in (Column.PROXY_X, Column.PROXY_Y))
    return round(x, 4), round(y, 4)


def with_background(scene: Scene, values: Mapping[str, float]) -> Scene:
    """Return a scene whose background has the numbers of the law that are in force (parameter key to value)."""
    from haptics.friction.closed_form import ClosedForm

    closed = isinstance(scene.law, ClosedForm)
    law: Any = scene.law.law if isinstance(scene.law, ClosedForm) else scene.law
    keys = {field.name: f"law.{field.name}" for field in dataclasses.fields(law)}
    try:
        law = dataclasses.replace(law, **{name: values[key] for name, key in keys.items() if key in values})
    except ConfigurationError:  # numbers of another scene: its own follow in a message of their own
        return scene
    return dataclasses.replace(scene, law=ClosedForm(law) if closed else law)


def levels_at(scene: Scene, place: Place) -> tuple[float, ...]:
    """Return the levels of the law [N] at a place, the break-away force first."""
    from haptics.scenes.family import forces_of

    # A law with more than two forces is one that differs between directions: only its largest is a level.
    forces = forces_of(scene.law)
    numbers = scene.numbers_at([place])[0]
    return tuple(dict.fromkeys(float(numbers[slot]) for slot in (forces if len(forces) < 3 else forces[:1])))
