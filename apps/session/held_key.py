"""Transmission of the dead-man's key from the view to the servo."""

from __future__ import annotations

import time
from pathlib import Path

from haptics.servo.kernels import CONTROL
from haptics.servo.mailbox import Mailbox


class HeldKey:
    """Passes the time at which the dead-man's key was last held to the servo, by the clock of the view.

    The servo releases the output `haptics.servo.kernels.KEY_TIMEOUT` after that instant. A late message can therefore
    only shorten the hold, and a lost message ends it.

    Parameters
    ----------
    control : Path
        Control record shared by application and servo (`haptics.servo.control.SharedFiles.control`).
    """

    def __init__(self, control: Path) -> None:
        self._pressed_ns = Mailbox(control, CONTROL).record["key_ns"]

    def held(self, at: float) -> None:
        """Report that the key was held at `at` [s, monotonic]; future instants are clipped to the present."""
        self._pressed_ns[0] = min(round(at * 1e9), time.monotonic_ns())

    def release(self) -> None:
        """Report that the key is released."""
        self._pressed_ns[0] = 0
