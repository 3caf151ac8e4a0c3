"""A front end's end of the pipe to the session. No window."""

from __future__ import annotations

from multiprocessing.connection import Connection
from typing import Any

from apps.front_ends.messages import HandTarget, HoldKey
from apps.front_ends.pipes import has_room


class Link:
    """Sends and receives messages, and detects that the other end is closed.

    Attributes
    ----------
    gone : bool
        True if the application has closed its end or has died.
    """

    def __init__(self, connection: Connection[Any, Any]) -> None:
        self._connection = connection
        self.gone = False

    @property
    def waitable(self) -> tuple[Connection[Any, Any], ...]:
        """Connections to wait for (`multiprocessing.connection.wait`)."""
        return () if self.gone else (self._connection,)

    def receive(self) -> list[Any]:
        """Return the messages received since the last call, oldest first. Never blocks."""
        messages: list[Any] = []
        try:
            while not self.gone and self._connection.poll():
                messages.append(self._connection.recv())
        except (EOFError, OSError):
            self.gone = True
        return messages

    def send(self, message: Any) -> None:
        """Send a message. Messages that are repeated periodically are dropped while the pipe is full."""
        repeated = isinstance(message, HandTarget) or message == HoldKey(True)
        if self.gone or (repeated and not has_room(self._connection)):
            return
        try:
            self._connection.send(message)
        except OSError:
            self.gone = True

    def close(self) -> None:
        """Close this end."""
        self.gone = True
        self._connection.close()
