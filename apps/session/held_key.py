"""The dead-man's switch: its key on the way from the view to the servo."""

from __future__ import annotations

import time
from pathlib import Path

from haptics.servo.job import CONTROL
from haptics.servo.lane import Lane


class HeldKey:
    """Passes on to the servo when the key was last known to be held, by the clock of the view.

    The servo lets go `haptics.servo.job.KEY_LASTS` after that instant: a word that was on its way for long can only
    shorten the hold, and one that never comes ends it.

    Parameters
    ----------
    control : Path
        The control record between application and servo (`haptics.servo.job.Paths.control`).
    """

    def __init__(self, control: Path) -> None:
        self._pressed_ns = Lane(control, CONTROL).record["key_ns"]

    def held(self, at: float) -> None:
        """Say that the key was held at the instant `at` [s, monotonic], which is not to come."""
        self._pressed_ns[0] = min(round(at * 1e9), time.monotonic_ns())

    def let_go(self) -> None:
        """Say that the key is not held."""
        self._pressed_ns[0] = 0
