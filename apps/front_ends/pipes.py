"""The pipes between a session and its front ends."""

from __future__ import annotations

import select
from multiprocessing.connection import Connection
from typing import Any


def has_room(connection: Connection[Any, Any]) -> bool:
    """Tell whether a message of a few kilobytes can be sent without waiting for the other side to read."""
    try:
        return bool(select.select([], [connection.fileno()], [], 0)[1])
    except (OSError, ValueError):
        return True  # this kind of pipe cannot tell (Windows); sending will say more
