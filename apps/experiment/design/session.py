"""Session settings of the blocks, read from the session tables in the experiment file."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from apps.experiment.design.source import Source
from apps.settings.config import TABLES as SESSION_TABLES
from apps.settings.config import SessionConfig, complete
from apps.settings.scenes import is_name, scene_of, with_scene_in_session
from haptics.errors import ConfigurationError

if TYPE_CHECKING:
    from apps.session.mouse import Mouse

_FILES = (
    *(("law", "file"), ("session", "measured"), ("session", "scene")),
    *(("device", "parameters"), ("device", "friction_parameters"), ("hand", "file")),
)
"""Session settings that are file names, resolved relative to the folder of the experiment file."""

_SESSION_ALONE = ("duration", "clock", "record", "picture")
"""Session settings that the experiment determines."""


def session_of(source: Source) -> SessionConfig:
    """Return the session settings of the blocks.

    Raises
    ------
    ConfigurationError
        If a setting is invalid. The message contains line and key.
    """
    given = {name: source.tables[name] for name in SESSION_TABLES if name in source.tables}
    tables = {name: dict(table) for name, table in with_scene_in_session(given).items()}
    for name in _SESSION_ALONE:
        if name in tables.get("session", {}):
            raise source.error(("session", name), f"session.{name}: an experiment decides that; leave it out.")
    for table, name in _FILES:
        named = tables.get(table, {}).get(name)
        if isinstance(named, str) and named and not (name == "scene" and is_name(named)):
            tables[table][name] = str(source.path.parent / named)
    if tables.get("hand", {}).get("name") == "mouse":
        tables["hand"]["target"] = _place_of_the_mouse().path
    _require_scene(source, tables)
    where = next((name for name in SESSION_TABLES if name in tables), "session")
    with source.telling(where):
        return complete(tables)


def _require_scene(source: Source, tables: dict[str, Any]) -> None:
    """Raise if the scene of the session is invalid, with the position of its key."""
    from haptics.scenes.tables import SceneError

    whole = isinstance(source.tables.get("scene"), dict)
    if "scene" in source.tables and "scene" in source.tables.get("session", {}):
        raise source.error(("session", "scene"), "session.scene: there is a scene in the file already; leave one out.")
    try:
        with source.telling(*(("scene",) if "scene" in source.tables else ("session", "scene"))):
            scene_of(tables)
    except ConfigurationError as error:
        if whole and isinstance(error.__cause__, SceneError):
            raise source.error(("scene", *error.__cause__.keys), str(error.__cause__)) from error
        raise


@functools.cache
def _place_of_the_mouse() -> Mouse:
    """Return a placeholder for the mouse target, which is needed to validate the device settings.

    Each session replaces it with its own target.
    """
    from apps.session.mouse import Mouse

    return Mouse()
