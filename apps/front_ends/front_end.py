"""A front end: what shows a session to a person and lets them act on it, such as the live view."""

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
"""A front end that talks without end is heard so many messages at a time: heartbeats come between."""

_MOST_WAITING = 5000
"""So many messages may wait for a front end that does not listen; then it counts as gone."""

_LAST_WORDS = 5.0
"""A front end that was told to quit is waited for this long [s]."""


class FrontEnd(Protocol):
    """What shows a session to a person and lets them act on it; it speaks `apps.front_ends.messages`.

    Attributes
    ----------
    open : bool
        Whether it is there; false once it has ended, died or been closed.
    holds_key : bool
        Whether its dead-man's key can be held.
    """

    open: bool
    holds_key: bool

    @property
    def connection(self) -> Any:
        """What to wait for (`multiprocessing.connection.wait`) while it is open."""
        ...

    def send(self, message: Any) -> None:
        """Tell it something; never waits, and without effect once it is gone."""
        ...

    def messages(self) -> list[Any]:
        """Return what it has said since the last call, oldest first; never waits. Afterwards `open` is up to date."""
        ...

    def close(self) -> None:
        """Let it end, and see to it that it does. Closing twice does nothing."""
        ...


class ProcessFrontEnd:
    """A front end in a process of its own, behind a pipe; one that dies or freezes never disturbs the run.

    Parameters
    ----------
    target : callable
        Entry of the process; gets its end of the pipe and `arguments`. It is to leave on `messages.Quit` and when the
        pipe ends.
    arguments : tuple
        What else it gets.
    name : str
        Of the process.
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
        """Send a message, or keep it while the other side has no room for it."""
        if self.open:
            self._waiting.append(message)
            self._flush()

    def messages(self) -> list[Any]:
        """Return what has come through the pipe."""
        received: list[Any] = []
        try:
            while self.open and len(received) < _AT_ONCE and self._connection.poll():
                received.append(self._connection.recv())
        except (EOFError, OSError):
            self._forget()
        self._flush()
        return received

    def close(self) -> None:
        """Tell it to quit and wait for its process."""
        self.send(Quit())
        self._forget()
        self._process.join(_LAST_WORDS)
        if self._process.is_alive():
            self._process.kill()  # a frozen one would not hear anything else
            self._process.join()
        self._connection.close()

    def _flush(self) -> None:
        """Send what waits as far as there is room: the heartbeat must not wait for somebody who does not read."""
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
