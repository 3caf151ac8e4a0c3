"""Mouse input for a virtual device in another process, sent through a small shared file."""

from __future__ import annotations

import functools
import operator
import time
from types import TracebackType

import numpy as np

from haptics.servo.mailbox import Mailbox
from haptics.shared import SharedFile

CLICK = 0.02
"""Minimum duration of a click [s]: press and release may otherwise fall between two ticks."""


class Mouse:
    """Position and buttons of the mouse, for a virtual device in another process.

    Attributes
    ----------
    path : str
        File that the simulated hand of the device reads; its setting ``hand.target``.
    """

    def __init__(self) -> None:
        from devices.virtual.hands.registry import HAND_TARGET

        self._file = SharedFile("mouse")
        self._lane = Mailbox(self._file.path, HAND_TARGET, create=True)
        self._value = np.zeros(1, HAND_TARGET)
        self._held: dict[object, int] = {}
        self._click, self._clicked = 0, 0.0
        self.path = str(self._file.path)

    def press(self, who: object, buttons: int) -> None:
        """Set the buttons that the front end `who` holds.

        The bits are defined in `devices.virtual.hands.mouse.HAND_TARGET`.
        """
        self._held[who] = buttons
        held = functools.reduce(operator.or_, self._held.values())
        pressed = held & ~int(self._value["buttons"][0])
        if pressed:
            self._click, self._clicked = self._click | pressed, time.monotonic()
        self._show(held | self._click)

    def refresh(self) -> None:
        """Release buttons that were only clicked. Must be called periodically."""
        if self._click and time.monotonic() - self._clicked > CLICK:
            self._click = 0
            self._show(functools.reduce(operator.or_, self._held.values()))

    def _show(self, buttons: int) -> None:
        self._value["buttons"] = buttons
        self._lane.publish(self._value[0])

    def move(self, x: float, y: float, grip: float = 1.0) -> None:
        """Move the target of the hand to (x, y) [m], with the relative grip strength `grip` from 0 to 1."""
        self._value["position"] = (x, y)
        self._value["ease"] = 1.0 - grip
        self._value["engaged"] = 1
        self._lane.publish(self._value[0])

    def __enter__(self) -> Mouse:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
