"""Scene of a session: a file, the name of a shipped scene, or a complete scene as in recordings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from apps.settings.models import Table, law_table
from haptics.errors import ConfigurationError

if TYPE_CHECKING:
    from haptics.device import Causality
    from haptics.scenes import Scene

SHORT = {"scene": "session.scene"}
"""Short forms of setting names."""


def is_name(text: str) -> bool:
    """Return True if `text` can only be the name of a shipped scene, not a path."""
    return "/" not in text and not text.endswith(".toml")


def with_scene_in_session(tables: dict[str, Any]) -> dict[str, Any]:
    """Return the tables of a file, with a scene named at the top level moved to ``session.scene``."""
    named = tables.get("scene")
    if not isinstance(named, str):
        return tables
    rest = {name: table for name, table in tables.items() if name != "scene"}
    return {**rest, "session": {"scene": named, **rest.get("session", {})}}


def scene_of(tables: Mapping[str, Any]) -> Scene | None:
    """Return the scene that the tables of a session name or contain.

    Raises
    ------
    ConfigurationError
        If the scene is invalid.
    """
    whole = tables.get("scene")
    named = tables.get("session", {}).get("scene") or (whole if isinstance(whole, str) else "")
    if not named and whole in (None, ""):
        return None
    from haptics.scenes import read_scene, scene_from_table

    if named:
        if not isinstance(named, str):
            raise ConfigurationError(
                f"scene = {named!r}: must be a scene file, or the name of a scene that is shipped."
            )
        return read_scene(named)
    if not isinstance(whole, Mapping):
        raise ConfigurationError(f"scene = {whole!r:.60}: must be a scene file, a name, or the table of a scene.")
    return scene_from_table(whole)


def scene_table(scene: Scene) -> Table:
    """Return the complete scene as a table of plain values."""
    from haptics.scenes import scene_table as table_of

    return table_of(scene)


def background_law(scene: Scene) -> Table:
    """Return the background law of a scene as a table."""
    from haptics.scenes.scene import exact, title_of

    law: Any = exact(scene.law)
    return {"name": title_of(scene.law), **{field.name: getattr(law, field.name) for field in dataclasses.fields(law)}}


def law_on(scene: Scene | None, table: Table, causality: Causality) -> Table:
    """Return the complete table of a session's law. With a scene, it is the background law.

    Raises
    ------
    ConfigurationError
        If a different law is given besides a scene.
    """
    if scene is None:
        return law_table(table, causality)
    own = background_law(scene)
    other = [name for name, value in table.items() if own.get(name) != value]
    if other:
        raise ConfigurationError(
            f"law.{other[0]} = {table[other[0]]!r}: the laws of this session are those of its scene; change them in "
            "the scene's file, or leave the scene out."
        )
    return own


WALL = ("friction", "stiffness", "damping")
"""Parameters that can be set for all walls of a scene at once, as ``wall.NAME``."""


def with_background(scene: Scene | None, law: Table) -> Scene | None:
    """Return a scene with another background law."""
    from haptics.elements.tables import make_law

    return None if scene is None else replace(scene, law=make_law(law))
