"""All front ends of a session: what it says goes to each, and what each says comes with its name on it."""

from __future__ import annotations

import time
from collections.abc import Callable
from multiprocessing.connection import wait
from typing import Any

from apps.front_ends.front_end import FrontEnd
from apps.front_ends.messages import AskShown, Close, Quit, Shown

_LOOK_EVERY = 0.05
"""Who waits for a window looks up this often [s]."""


class FrontEnds:
    """Any number of front ends, which may come and go in mid-run.

    Parameters
    ----------
    greet : callable
        Returns what one that joins must know: the `messages.SessionStarted` of the present run with the values in
        force, or None if there is no run.
    """

    def __init__(self, greet: Callable[[], Any | None] = lambda: None) -> None:
        self._greet = greet
        self._present: list[FrontEnd] = []
        self._left: list[FrontEnd] = []

    def add(self, front: FrontEnd) -> None:
        """Let one join."""
        greeting = self._greet()
        self._present.append(front)
        if greeting is not None:
            front.send(greeting)

    @property
    def open(self) -> tuple[FrontEnd, ...]:
        """Those that are there, in the order in which they joined."""
        return tuple(front for front in self._present if front.open)

    @property
    def connections(self) -> tuple[Any, ...]:
        """What to wait for."""
        return tuple(front.connection for front in self.open)

    @property
    def can_hold_key(self) -> bool:
        """Whether one is there whose dead-man's key can be held."""
        return any(front.holds_key for front in self.open)

    def tell(self, message: Any, but: FrontEnd | None = None) -> None:
        """Tell all, or all `but` one."""
        for front in self.open:
            if front is not but:
                front.send(message)

    def messages(self) -> list[tuple[FrontEnd, Any]]:
        """Return what they have said since the last call, and who; what one has said is in the order of its saying.

        One that says `messages.Close` is told nothing from then on, and heard no more: its window is closed.
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

    def lost(self) -> list[FrontEnd]:
        """Return those that have gone without a word since the last call."""
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
        """Wait until one is there whose key can be held; what they say until then has no session to go to.

        Parameters
        ----------
        patience : float
            How long at most [s].
        hurried : callable
            Tells whether somebody wants to leave.
        heard : callable
            Gets what is said meanwhile, such as why a window cannot be opened.

        Returns
        -------
        bool
            Whether there is.
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
        """Close all; each is asked before the first is waited for."""
        self.tell(Quit())
        for front in (*self._present, *self._left):
            front.close()
