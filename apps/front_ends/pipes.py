"""Pipes between a session and its front ends."""

from __future__ import annotations

import select
from multiprocessing.connection import Connection
from typing import Any


def has_room(connection: Connection[Any, Any]) -> bool:
    """Return True if a message of a few kilobytes can be sent without blocking."""
    try:
        return bool(select.select([], [connection.fileno()], [], 0)[1])
    except (OSError, ValueError):
        return True  # not supported for this kind of pipe (Windows); errors show when sending
