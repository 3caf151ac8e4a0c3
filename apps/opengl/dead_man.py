"""The dead-man's key of a pyglet window: reported on press, periodically while held, and on release."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from apps.front_ends.messages import HOLD_EVERY, HoldKey

KEY = "space"
"""The dead-man's key."""


class DeadMansKey:
    """Sends `HoldKey` messages while a run requires the key.

    Parameters
    ----------
    send : callable
        Receives the messages.

    Attributes
    ----------
    wanted : bool
        Whether the run requires the key.
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

    def set_required(self, wanted: bool, *, require_release: bool = False) -> None:
        """Set whether the present run requires the key.

        Parameters
        ----------
        require_release : bool
            Whether a key that is down must be released and pressed again to count.
        """
        self.wanted = wanted
        self._down = self._down and not require_release

    def press(self, down: bool, at: float) -> None:
        """Handle a press (`down`) or release of the key at the instant `at` [s]."""
        self._down = down
        if self.wanted:
            self._send(HoldKey(down, at))
            self._said = time.monotonic()

    def repeat(self, now: float) -> None:
        """Report again that the key is held, if `HOLD_EVERY` has passed."""
        if self.wanted and self._down and now - self._said >= HOLD_EVERY:
            self._send(HoldKey(True))
            self._said = now
