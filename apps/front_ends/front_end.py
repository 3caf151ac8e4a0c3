"""Front ends, such as the live view, which display a session to the user and send requests to it.

`FrontEnd` and `FrontEnds` are the side of the session, `Link` is the side of the window. They exchange
`apps.front_ends.messages` over a pipe.
"""

from __future__ import annotations

import multiprocessing
import select
import time
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from apps.front_ends.messages import AskShown, Close, HandTarget, HoldKey, Quit, Shown
from haptics.servo.standby import without_signals

_AT_ONCE = 1000
"""Maximum number of messages read at a time, so that heartbeats are not delayed by a busy front end."""

_MOST_WAITING = 5000
"""Maximum number of messages queued for a front end; beyond it, the front end counts as lost."""

_LAST_WORDS = 5.0
"""Time to wait for the process of a front end after `messages.Quit` [s]."""

_POLL_EVERY = 0.05
"""Polling interval while waiting for a window [s]."""

_LONGEST_DELAY = 0.5
"""Maximum plausible delay of a key event by drawing and processor load [s]."""


def has_room(connection: Connection[Any, Any]) -> bool:
    """Return True if a message of a few kilobytes can be sent without blocking."""
    try:
        return bool(select.select([], [connection.fileno()], [], 0)[1])
    except (OSError, ValueError):
        return True  # not supported for this kind of pipe (Windows); errors show when sending


def start_process(
    target: Callable[..., None], arguments: tuple[Any, ...], name: str
) -> tuple[Connection[Any, Any], BaseProcess]:
    """Run ``target(connection, *arguments)`` in a new process; return our end of the pipe and the process."""
    context = multiprocessing.get_context("spawn")
    connection, far_end = context.Pipe()
    process = context.Process(target=target, args=(far_end, *arguments), name=name, daemon=True)
    with without_signals():
        process.start()
    far_end.close()
    return connection, process


# --- side of the session ----------------------------------------------------------------------------------------------


class FrontEnd:
    """Front end at the other end of a pipe: it displays a session and sends requests of its user.

    Parameters
    ----------
    connection : Connection
        The session's end of the pipe, to wait for (`multiprocessing.connection.wait`) while the front end is open.
    holds_key : bool
        Whether its dead-man's key can be held.
    required : bool
        Whether the run must not go on without it.

    Attributes
    ----------
    open : bool
        True until the front end has ended, died or been closed.
    """

    def __init__(self, connection: Connection[Any, Any], *, holds_key: bool = False, required: bool = False) -> None:
        self.connection = connection
        self._waiting: deque[Any] = deque()
        self.open = True
        self.holds_key, self.required = holds_key, required

    def send(self, message: Any) -> None:
        """Send a message, or queue it while the pipe is full; no effect on a closed front end. Never blocks."""
        if self.open:
            self._waiting.append(message)
            self._flush()

    def messages(self) -> list[Any]:
        """Return the messages received since the last call, oldest first, and update `open`. Never blocks."""
        received: list[Any] = []
        try:
            while self.open and len(received) < _AT_ONCE and self.connection.poll():
                received.append(self.connection.recv())
        except (EOFError, OSError):
            self._set_closed()
        self._flush()
        return received

    def close(self) -> None:
        """Send `messages.Quit` and close the pipe."""
        self.send(Quit())
        self._set_closed()
        self.connection.close()

    def _flush(self) -> None:
        """Send queued messages while the pipe has room. Never blocks, so that heartbeats are not delayed."""
        try:
            while self.open and self._waiting and has_room(self.connection):
                self.connection.send(self._waiting.popleft())
        except OSError:
            self._set_closed()
        if len(self._waiting) > _MOST_WAITING:
            self._set_closed()

    def _set_closed(self) -> None:
        self.open = False
        self._waiting.clear()


class ProcessFrontEnd(FrontEnd):
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
        connection, self._process = start_process(target, arguments, name)
        super().__init__(connection, holds_key=holds_key)

    def close(self) -> None:
        """Send `messages.Quit` and wait for the process; kill it after a timeout."""
        self.send(Quit())
        self._set_closed()
        self._process.join(_LAST_WORDS)
        if self._process.is_alive():
            self._process.kill()  # a frozen process may not react to `Quit` or SIGTERM
            self._process.join()
        self.connection.close()


class FrontEnds:
    """Any number of front ends, which can be added and removed during a run.

    Parameters
    ----------
    greet : callable
        Returns the message for a new front end: the `messages.SessionStarted` of the present run with the values in
        force, or None if there is no run.
    """

    def __init__(self, greet: Callable[[], Any | None] = lambda: None) -> None:
        self._greet = greet
        self._present: list[FrontEnd] = []
        self._left: list[FrontEnd] = []

    def add(self, front: FrontEnd) -> None:
        """Add a front end and send it the greeting."""
        greeting = self._greet()
        self._present.append(front)
        if greeting is not None:
            front.send(greeting)

    @property
    def open(self) -> tuple[FrontEnd, ...]:
        """The open front ends, in the order in which they were added."""
        return tuple(front for front in self._present if front.open)

    @property
    def connections(self) -> tuple[Any, ...]:
        """Connections to wait for."""
        return tuple(front.connection for front in self.open)

    @property
    def can_hold_key(self) -> bool:
        """Whether a front end is open whose dead-man's key can be held."""
        return any(front.holds_key for front in self.open)

    def broadcast(self, message: Any, but: FrontEnd | None = None) -> None:
        """Send a message to all front ends except `but`."""
        for front in self.open:
            if front is not but:
                front.send(message)

    def messages(self) -> list[tuple[FrontEnd, Any]]:
        """Return the messages received since the last call with their senders, in order for each sender.

        A front end that sends `messages.Close` is removed: it receives no further messages and is not read again.
        """
        received: list[tuple[FrontEnd, Any]] = []
        for front in self.open:
            for message in front.messages():
                received.append((front, message))
                if isinstance(message, Close):
                    self._present.remove(front)
                    self._left.append(front)
                    break
        return received

    def remove_lost(self) -> list[FrontEnd]:
        """Remove and return the front ends that have ended without `messages.Close` since the last call."""
        lost = [front for front in self._present if not front.open]
        self._present = [front for front in self._present if front not in lost]
        self._left += lost
        return lost

    def await_key(
        self, timeout: float, cancelled: Callable[[], bool], handle: Callable[[Any], None] = lambda message: None
    ) -> bool:
        """Wait for a front end whose key can be held; return True if one is open.

        Parameters
        ----------
        timeout : float
            Longest time to wait [s].
        cancelled : callable
            Returns True if the user wants to quit.
        handle : callable
            Receives other messages, such as the reason why a window cannot be opened.
        """
        for front in self.open:
            if front.holds_key:
                front.send(AskShown())
        until = time.monotonic() + timeout
        while self.can_hold_key and time.monotonic() < until and not cancelled():
            wait(self.connections, _POLL_EVERY)
            received = self.messages()
            if any(message == Shown() and front.holds_key for front, message in received):
                return True
            for _, message in received:
                handle(message)
        return False

    def close(self) -> None:
        """Close all front ends.

        All receive `Quit` before the first is waited for.
        """
        self.broadcast(Quit())
        for front in (*self._present, *self._left):
            front.close()


# --- side of the window -----------------------------------------------------------------------------------------------


class Link:
    """A front end's end of the pipe to the session.

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


def instant_of(stamp: int) -> float:
    """Return the time of an input event on the monotonic clock [s].

    A local display stamps events with the same clock, in milliseconds modulo 2**32. The stamp then excludes the time
    for which the event waited while the window was drawn. If the stamp is implausible, the present time is returned.

    Parameters
    ----------
    stamp : int
        Time stamp of the window system [ms]; 0 if unknown.
    """
    now = time.monotonic()
    waited = 1e-3 * ((int(now * 1e3) - stamp) % 2**32)
    return now - waited if stamp and waited < _LONGEST_DELAY else now
