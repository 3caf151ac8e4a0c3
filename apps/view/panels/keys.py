"""Keys without a function in the window, reported to the session with name, state, and time."""

from __future__ import annotations

from collections.abc import Callable

from apps.view.panels.dead_man import SURE_AFTER_MS
from apps.view.qt import QtCore, QtWidgets

Say = Callable[[str, bool, float], None]
"""Receives the name of a key, True for a press, and the instant [s, monotonic]."""


def name_of(key: QtCore.Qt.Key) -> str:
    """Return the name of a key in messages and recordings (`apps.front_ends.messages.Key`)."""
    if key.name.startswith("Key_"):
        return key.name.removeprefix("Key_").lower()
    # Qt has no names for the letters of most scripts. The code of such a key is the code point of its letter.
    return chr(key).lower() if 0 < key < 0x110000 else f"key {int(key)}"


def types_a_number() -> bool:
    """Return True if keyboard input presently goes to a field for numbers."""
    return isinstance(QtWidgets.QApplication.focusWidget(), QtWidgets.QAbstractSpinBox)


class HeldKeys(QtCore.QObject):
    """Reports each press and release of a key once, without keyboard repeats.

    A release counts if no press follows within `SURE_AFTER_MS`; it is then reported with its original instant.

    Parameters
    ----------
    say : callable
        Receives every change.
    """

    def __init__(self, say: Say, parent: QtCore.QObject | None = None) -> None:
        super().__init__(parent)
        self._say = say
        self._down: set[QtCore.Qt.Key] = set()
        self._doubts: dict[QtCore.Qt.Key, QtCore.QTimer] = {}

    def press(self, key: QtCore.Qt.Key, at: float) -> None:
        """Handle a press at the instant `at` [s]."""
        doubt = self._doubts.pop(key, None)
        if doubt is not None:
            doubt.stop()
        if key not in self._down:
            self._down.add(key)
            self._say(name_of(key), True, at)

    def handle_release(self, key: QtCore.Qt.Key, at: float) -> None:
        """Handle a release, which counts unless a press follows within `SURE_AFTER_MS`."""
        if key in self._down and key not in self._doubts:
            doubt = QtCore.QTimer(self)
            doubt.setTimerType(QtCore.Qt.TimerType.PreciseTimer)
            doubt.setSingleShot(True)
            doubt.timeout.connect(lambda: self._up(key, at))
            doubt.start(SURE_AFTER_MS)
            self._doubts[key] = doubt

    def release(self, at: float) -> None:
        """Report all keys as released, since their state can no longer be observed."""
        for key in tuple(self._down):
            self._up(key, at)

    def _up(self, key: QtCore.Qt.Key, at: float) -> None:
        doubt = self._doubts.pop(key, None)
        if doubt is not None:
            doubt.stop()
        self._down.discard(key)
        self._say(name_of(key), False, at)
