"""The mouse as a hand: from the view to the virtual device, through one small shared file."""

from __future__ import annotations

import functools
import operator
import time
from types import TracebackType

import numpy as np

from haptics.servo.lane import Lane
from haptics.shared import SharedFile

CLICK = 0.02
"""A press lasts at least this long [s]: press and release may come in one breath, and no tick would see them."""


class Mouse:
    """Where the mouse is on the plane, for a virtual device in another process.

    Attributes
    ----------
    path : str
        The file that the device's hand reads; its setting ``hand.target``.
    """

    def __init__(self) -> None:
        from devices.virtual.hands.registry import HAND_TARGET

        self._file = SharedFile("mouse")
        self._lane = Lane(self._file.path, HAND_TARGET, create=True)
        self._value = np.zeros(1, HAND_TARGET)
        self._held: dict[object, int] = {}
        self._click, self._clicked = 0, 0.0
        self.path = str(self._file.path)

    def press(self, who: object, buttons: int) -> None:
        """Take note of which of the device's buttons `who` holds (`devices.virtual.hands.mouse.HAND_TARGET`)."""
        self._held[who] = buttons
        held = functools.reduce(operator.or_, self._held.values())
        pressed = held & ~int(self._value["buttons"][0])
        if pressed:
            self._click, self._clicked = self._click | pressed, time.monotonic()
        self._show(held | self._click)

    def refresh(self) -> None:
        """Let go what was only clicked; to be called now and then."""
        if self._click and time.monotonic() - self._clicked > CLICK:
            self._click = 0
            self._show(functools.reduce(operator.or_, self._held.values()))

    def _show(self, buttons: int) -> None:
        self._value["buttons"] = buttons
        self._lane.publish(self._value[0])

    def move(self, x: float, y: float, grip: float = 1.0) -> None:
        """Put the hand's target at (x, y) [m], and let it grip as firmly as `grip` says, 0 to 1."""
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
