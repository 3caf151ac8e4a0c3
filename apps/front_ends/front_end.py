"""Front ends, such as the live view, which display a session to the user and send requests to it."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Protocol

from apps.front_ends.messages import Quit
from apps.front_ends.pipes import has_room
from haptics.servo.standby import without_signals

_AT_ONCE = 1000
"""Maximum number of messages read at a time, so that heartbeats are not delayed by a busy front end."""

_MOST_WAITING = 5000
"""Maximum number of messages queued for a front end; beyond it, the front end counts as lost."""

_LAST_WORDS = 5.0
"""Time to wait for the process of a front end after `messages.Quit` [s]."""


class FrontEnd(Protocol):
    """Display of a session that also sends requests of the user; it exchanges `apps.front_ends.messages`.

    Attributes
    ----------
    open : bool
        True until the front end has ended, died or been closed.
    holds_key : bool
        Whether its dead-man's key can be held.
    """

    open: bool
    holds_key: bool

    @property
    def connection(self) -> Any:
        """Connection to wait for (`multiprocessing.connection.wait`) while the front end is open."""
        ...

    def send(self, message: Any) -> None:
        """Send a message. Never blocks; has no effect on a closed front end."""
        ...

    def messages(self) -> list[Any]:
        """Return the messages received since the last call, oldest first, and update `open`. Never blocks."""
        ...

    def close(self) -> None:
        """End the front end and wait until it has ended. Closing twice has no effect."""
        ...


class ProcessFrontEnd:
    """Front end in a separate process, connected by a pipe.

    The run continues if the process dies or freezes.

    Parameters
    ----------
    target : callable
        Entry point of the process, called with its end of the pipe and `arguments`. It must return on `messages.Quit`
        and when the pipe is closed.
    arguments : tuple
        Further arguments of `target`.
    name : str
        Name of the process.
    holds_key : bool
        Whether its dead-man's key can be held.
    """

    def __init__(
        self, target: Callable[..., None], arguments: tuple[Any, ...] = (), *, name: str, holds_key: bool = True
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection: Connection
        self._connection, far_end = context.Pipe()
        self._process = context.Process(target=target, args=(far_end, *arguments), name=name, daemon=True)
        with without_signals():
            self._process.start()
        far_end.close()
        self._waiting: deque[Any] = deque()
        self.open = True
        self.holds_key = holds_key

    @property
    def connection(self) -> Connection:
        """The session's end of the pipe."""
        return self._connection

    def send(self, message: Any) -> None:
        """Send a message, or queue it while the pipe is full."""
        if self.open:
            self._waiting.append(message)
            self._flush()

    def messages(self) -> list[Any]:
        """Return the messages received through the pipe since the last call, oldest first."""
        received: list[Any] = []
        try:
            while self.open and len(received) < _AT_ONCE and self._connection.poll():
                received.append(self._connection.recv())
        except (EOFError, OSError):
            self._forget()
        self._flush()
        return received

    def close(self) -> None:
        """Send `messages.Quit` and wait for the process; kill it after a timeout."""
        self.send(Quit())
        self._forget()
        self._process.join(_LAST_WORDS)
        if self._process.is_alive():
            self._process.kill()  # a frozen process may not react to `Quit` or SIGTERM
            self._process.join()
        self._connection.close()

    def _flush(self) -> None:
        """Send queued messages while the pipe has room. Never blocks, so that heartbeats are not delayed."""
        try:
            while self.open and self._waiting and has_room(self._connection):
                self._connection.send(self._waiting.popleft())
        except OSError:
            self._forget()
        if len(self._waiting) > _MOST_WAITING:
            self._forget()

    def _forget(self) -> None:
        self.open = False
        self._waiting.clear()
