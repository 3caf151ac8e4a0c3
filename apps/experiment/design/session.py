"""The session that every block of an experiment is: its tables stand in the same file."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from apps.experiment.design.source import Source
from apps.settings.config import TABLES as SESSION_TABLES
from apps.settings.config import SessionConfig, complete

if TYPE_CHECKING:
    from apps.session.mouse import Mouse

_FILES = ("law", "file"), ("device", "parameters"), ("device", "friction_parameters"), ("hand", "file")
"""Names of files in the session's tables, which are found from the folder of the experiment's."""

_SESSION_ALONE = ("duration", "clock", "record", "picture", "scene")
"""Settings of a session that an experiment decides."""


def session_of(source: Source) -> SessionConfig:
    """Return the session of every block.

    Raises
    ------
    ConfigurationError
        Naming line and key.
    """
    tables = {name: dict(source.tables[name]) for name in SESSION_TABLES if name in source.tables}
    for name in _SESSION_ALONE:
        if name in tables.get("session", {}):
            raise source.error(("session", name), f"session.{name}: an experiment decides that; leave it out.")
    for table, name in _FILES:
        if isinstance(named := tables.get(table, {}).get(name), str) and named:
            tables[table][name] = str(source.path.parent / named)
    if tables.get("hand", {}).get("name") == "mouse":
        tables["hand"]["target"] = _place_of_the_mouse().path
    where = next((name for name in SESSION_TABLES if name in tables), "session")
    with source.telling(where):
        return complete(tables)


@functools.cache
def _place_of_the_mouse() -> Mouse:
    """Return a place for the mouse that is the hand, without which no device is built; a session puts in its own."""
    from apps.session.mouse import Mouse

    return Mouse()
