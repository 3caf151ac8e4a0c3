"""All front ends of a session: messages are sent to all and received with their sender."""

from __future__ import annotations

import time
from collections.abc import Callable
from multiprocessing.connection import wait
from typing import Any

from apps.front_ends.front_end import FrontEnd
from apps.front_ends.messages import AskShown, Close, Quit, Shown

_LOOK_EVERY = 0.05
"""Polling interval while waiting for a window [s]."""


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
        heard: list[tuple[FrontEnd, Any]] = []
        for front in self.open:
            for message in front.messages():
                heard.append((front, message))
                if isinstance(message, Close):
                    self._present.remove(front)
                    self._left.append(front)
                    break
        return heard

    def remove_lost(self) -> list[FrontEnd]:
        """Remove and return the front ends that have ended without `messages.Close` since the last call."""
        gone = [front for front in self._present if not front.open]
        for front in gone:
            self._present.remove(front)
            self._left.append(front)
        return gone

    def await_key(
        self,
        patience: float,
        hurried: Callable[[], bool],
        heard: Callable[[Any], None] = lambda message: None,
    ) -> bool:
        """Wait for a front end whose key can be held.

        Other messages received during the wait are passed to `heard` only.

        Parameters
        ----------
        patience : float
            Timeout [s].
        hurried : callable
            Returns True if the user wants to quit.
        heard : callable
            Receives the other messages, such as the reason why a window cannot be opened.

        Returns
        -------
        bool
            True if such a front end is open.
        """
        for front in self.open:
            if front.holds_key:
                front.send(AskShown())
        until = time.monotonic() + patience
        while self.can_hold_key and time.monotonic() < until and not hurried():
            wait(self.connections, _LOOK_EVERY)
            said = self.messages()
            if any(message == Shown() and front.holds_key for front, message in said):
                return True
            for _, message in said:
                heard(message)
        return False

    def close(self) -> None:
        """Close all front ends.

        All receive `Quit` before the first is waited for.
        """
        self.broadcast(Quit())
        for front in (*self._present, *self._left):
            front.close()
