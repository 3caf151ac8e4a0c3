"""Input of the live window: the dead-man's key, other keys, and a rate limiter for positions of the mouse."""

from __future__ import annotations

from collections.abc import Callable

from apps.front_ends.messages import HOLD_EVERY
from apps.view.qt import QtCore, QtWidgets

KEY = QtCore.Qt.Key.Key_Space
"""The dead-man's key."""

DEBOUNCE_MS = 20
"""Debounce time: a released key counts as released if it is not pressed again within this time [ms].

X11 reports a held key as an endless sequence of releases and presses. Qt marks them as repeats, unless a release
arrives shortly before its press. Such a release looks genuine and would interrupt the force. If the window was blocked
during that time, the debounce time expires before the pending press is processed; pending events are therefore checked
again before the release counts.
"""


def _timer(parent: QtCore.QObject, milliseconds: int, act: Callable[[], None]) -> QtCore.QTimer:
    """Return a precise timer that fires once after it was started."""
    timer = QtCore.QTimer(parent)
    timer.setTimerType(QtCore.Qt.TimerType.PreciseTimer)
    timer.setSingleShot(True)
    timer.setInterval(milliseconds)
    timer.timeout.connect(act)
    return timer


class DeadMansKey(QtCore.QObject):
    """Reports the dead-man's key on press, periodically while it is held, and on release.

    Parameters
    ----------
    report : callable
        Receives whether the key is held.

    Attributes
    ----------
    held : bool
        State reported last.
    """

    def __init__(self, report: Callable[[bool], None], parent: QtCore.QObject | None = None) -> None:
        super().__init__(parent)
        self._report = report
        self._required = False
        self._down = False
        self.held = False
        self._repeat = _timer(self, round(1e3 * HOLD_EVERY), lambda: self._report(True))
        self._repeat.setSingleShot(False)
        self._last_check = _timer(self, 1, self.release)
        self._debounce = _timer(self, DEBOUNCE_MS, self._last_check.start)

    def set_required(self, required: bool) -> None:
        """Set whether the run requires the key.

        A key that is down must be released and pressed again to count.
        """
        self._required = required
        self._report_release()

    def press(self) -> None:
        """Handle a press of the key."""
        self._cancel_release()
        if self._required and not self._down:
            self.held = True
            self._report(True)
            self._repeat.start()
        self._down = True

    def handle_release(self) -> None:
        """Handle a release of the key, which counts unless a press follows within `DEBOUNCE_MS`."""
        self._debounce.start()

    def release(self) -> None:
        """Release the key immediately, also if its state can no longer be observed."""
        self._cancel_release()
        self._down = False
        self._report_release()

    def _cancel_release(self) -> None:
        self._debounce.stop()
        self._last_check.stop()

    def _report_release(self) -> None:
        self._repeat.stop()
        if self.held:
            self.held = False
            self._report(False)


class HeldKeys(QtCore.QObject):
    """Reports each press and release of a key without a function in the window once, without keyboard repeats.

    A release counts if no press follows within `DEBOUNCE_MS`; it is then reported with its original instant.

    Parameters
    ----------
    report : callable
        Receives the name of a key, True for a press, and the instant [s, monotonic].
    """

    def __init__(self, report: Callable[[str, bool, float], None], parent: QtCore.QObject | None = None) -> None:
        super().__init__(parent)
        self._report = report
        self._down: set[QtCore.Qt.Key] = set()
        self._releases: dict[QtCore.Qt.Key, QtCore.QTimer] = {}

    def press(self, key: QtCore.Qt.Key, at: float) -> None:
        """Handle a press at the instant `at` [s]."""
        release = self._releases.pop(key, None)
        if release is not None:
            release.stop()
        if key not in self._down:
            self._down.add(key)
            self._report(name_of(key), True, at)

    def handle_release(self, key: QtCore.Qt.Key, at: float) -> None:
        """Handle a release, which counts unless a press follows within `DEBOUNCE_MS`."""
        if key in self._down and key not in self._releases:
            self._releases[key] = _timer(self, DEBOUNCE_MS, lambda: self._release(key, at))
            self._releases[key].start()

    def release(self, at: float) -> None:
        """Report all keys as released, since their state can no longer be observed."""
        for key in tuple(self._down):
            self._release(key, at)

    def _release(self, key: QtCore.Qt.Key, at: float) -> None:
        release = self._releases.pop(key, None)
        if release is not None:
            release.stop()
        self._down.discard(key)
        self._report(name_of(key), False, at)


def name_of(key: QtCore.Qt.Key) -> str:
    """Return the name of a key in messages and recordings (`apps.front_ends.messages.Key`)."""
    if key.name.startswith("Key_"):
        return key.name.removeprefix("Key_").lower()
    # Qt has no names for the letters of most scripts. The code of such a key is the code point of its letter.
    return chr(key).lower() if 0 < key < 0x110000 else f"key {int(key)}"


def types_a_number() -> bool:
    """Return True if keyboard input presently goes to a field for numbers."""
    return isinstance(QtWidgets.QApplication.focusWidget(), QtWidgets.QAbstractSpinBox)


class Throttle(QtCore.QObject):
    """Forwards positions at a limited rate.

    A position is forwarded immediately, or at the end of the pause after the previous one; of the positions received
    during a pause, only the newest is forwarded.

    Parameters
    ----------
    send : callable
        Receives x and y.
    pause_ms : int
        Minimum time between two calls [ms].
    """

    def __init__(
        self, send: Callable[[float, float], None], pause_ms: int, parent: QtCore.QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._send = send
        self._waiting: tuple[float, float] | None = None
        self._pause = _timer(self, pause_ms, self._forward)

    def offer(self, x: float, y: float) -> None:
        """Handle a new position."""
        self._waiting = (x, y)
        if not self._pause.isActive():
            self._forward()

    def _forward(self) -> None:
        if self._waiting is not None:
            position, self._waiting = self._waiting, None
            self._pause.start()
            self._send(*position)
