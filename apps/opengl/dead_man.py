"""The dead-man's key of a pyglet window: told when it goes down, again and again while it is held, and when let go."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from apps.front_ends.messages import HOLD_EVERY, HoldKey

KEY = "space"
"""The dead-man's key."""


class DeadMansKey:
    """Says `HoldKey` as long as a run wants it.

    Parameters
    ----------
    send : callable
        Gets the messages.

    Attributes
    ----------
    wanted : bool
        Whether the run has such a key.
    """

    def __init__(self, send: Callable[[Any], None]) -> None:
        self._send = send
        self._down = False
        self._said = 0.0
        self.wanted = False

    @property
    def held(self) -> bool:
        """Whether the key is down."""
        return self._down

    def want(self, wanted: bool, *, anew: bool = False) -> None:
        """Begin or end a run that has such a key, or has not.

        Parameters
        ----------
        anew : bool
            Whether a key that is down must come up and be pressed anew before it counts.
        """
        self.wanted = wanted
        self._down = self._down and not anew

    def press(self, down: bool, at: float) -> None:
        """Take note that the key went down, or came up, at the instant `at` [s]."""
        self._down = down
        if self.wanted:
            self._send(HoldKey(down, at))
            self._said = time.monotonic()

    def repeat(self, now: float) -> None:
        """Say again that it is held, if it is time for that."""
        if self.wanted and self._down and now - self._said >= HOLD_EVERY:
            self._send(HoldKey(True))
            self._said = now
