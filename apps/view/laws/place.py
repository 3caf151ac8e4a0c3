"""Parameters of a scene at the position of the contact. No Qt."""

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
    """Return the position of the contact at the newest row of a window [m], rounded to 0.1 mm."""
    x, y = (1e-3 * history.newest(column) for column in (Column.PROXY_X, Column.PROXY_Y))
    return round(x, 4), round(y, 4)


def with_background(scene: Scene, values: Mapping[str, float]) -> Scene:
    """Return a scene whose background law has the parameters in force (parameter key to value)."""
    from haptics.friction.laws import ClosedForm

    closed = isinstance(scene.law, ClosedForm)
    law: Any = scene.law.law if isinstance(scene.law, ClosedForm) else scene.law
    keys = {field.name: f"law.{field.name}" for field in dataclasses.fields(law)}
    try:
        law = dataclasses.replace(law, **{name: values[key] for name, key in keys.items() if key in values})
    except ConfigurationError:  # parameters of another scene, whose values follow in a separate message
        return scene
    return dataclasses.replace(scene, law=ClosedForm(law) if closed else law)


def levels_at(scene: Scene, place: Place) -> tuple[float, ...]:
    """Return the levels of the law [N] at a position, the break-away force first."""
    from haptics.scenes.scene import forces_of

    # A law with more than two forces is anisotropic: only its largest force is a level.
    forces = forces_of(scene.law)
    numbers = scene.numbers_at([place])[0]
    return tuple(dict.fromkeys(float(numbers[slot]) for slot in (forces if len(forces) < 3 else forces[:1])))
