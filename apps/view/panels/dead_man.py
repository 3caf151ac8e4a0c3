"""The dead-man's switch in the window: the key, and a banner that shows whether it is held."""

from __future__ import annotations

from collections.abc import Callable

from apps.front_ends.messages import HOLD_EVERY
from apps.front_ends.run import RunInfo
from apps.shared.theme import DARK, Theme
from apps.view.qt import QtCore, QtWidgets, label
from haptics.device import Causality

KEY = QtCore.Qt.Key.Key_Space
"""The dead-man's key."""

SURE_AFTER_MS = 20
"""Debounce time: a released key counts as released if it is not pressed again within this time [ms].

X11 reports a held key as an endless sequence of releases and presses. Qt marks them as repeats, unless a release
arrives shortly before its press. Such a release looks genuine and would interrupt the force. If the window was blocked
during that time, the debounce time expires before the pending press is processed; pending events are therefore checked
again before the release counts.
"""

Say = Callable[[bool], None]
"""Receives whether the key is held."""


class DeadMansKey(QtCore.QObject):
    """Reports the dead-man's key on press, periodically while it is held, and on release.

    Parameters
    ----------
    say : callable
        Receives whether the key is held.

    Attributes
    ----------
    held : bool
        State reported last.
    """

    def __init__(self, say: Say, parent: QtCore.QObject | None = None) -> None:
        super().__init__(parent)
        self._say = say
        self._wanted = False
        self._down = False
        self.held = False
        self._again = QtCore.QTimer(self)
        self._again.setTimerType(QtCore.Qt.TimerType.PreciseTimer)
        self._again.setInterval(round(1e3 * HOLD_EVERY))
        self._again.timeout.connect(lambda: self._say(True))
        self._last_look = self._once(1, self.release)
        self._doubt = self._once(SURE_AFTER_MS, self._last_look.start)

    def _once(self, milliseconds: int, act: Callable[[], None]) -> QtCore.QTimer:
        timer = QtCore.QTimer(self)
        timer.setTimerType(QtCore.Qt.TimerType.PreciseTimer)
        timer.setSingleShot(True)
        timer.setInterval(milliseconds)
        timer.timeout.connect(act)
        return timer

    def set_required(self, wanted: bool) -> None:
        """Set whether the run requires the key.

        A key that is down must be released and pressed again to count.
        """
        self._wanted = wanted
        self._unsay()

    def press(self) -> None:
        """Handle a press of the key."""
        self._believe()
        if self._wanted and not self._down:
            self.held = True
            self._say(True)
            self._again.start()
        self._down = True

    def handle_release(self) -> None:
        """Handle a release of the key, which counts unless a press follows within `SURE_AFTER_MS`."""
        self._doubt.start()

    def release(self) -> None:
        """Release the key immediately, also if its state can no longer be observed."""
        self._believe()
        self._down = False
        self._unsay()

    def _believe(self) -> None:
        """Cancel a pending release."""
        self._doubt.stop()
        self._last_look.stop()

    def _unsay(self) -> None:
        self._again.stop()
        if self.held:
            self.held = False
            self._say(False)


_WHAT = {"key": "the space bar", "button": "the device's button"}
_WITHOUT: dict[str, str] = {
    Causality.IMPEDANCE: "Without it there is no force; when you let go, the force fades out.",
    Causality.ADMITTANCE: "Without it the device holds its position; when you let go, it brakes.",
}


class DeadManBanner(QtWidgets.QFrame):
    """Banner of the dead-man's switch: prominent while it is released, plain while it is held.

    Its height is constant, so that no control moves under the mouse when the key is pressed.

    Parameters
    ----------
    past : bool
        Whether it describes a recorded run.
    """

    def __init__(self, past: bool = False) -> None:
        super().__init__()
        self.setObjectName("deadman")
        self._past = past
        self._theme = DARK
        self._words = ("", "", "")
        self.released = True
        self.order = label("", 17, bold=True)
        self.reason = label("", 11)
        self.reason.setWordWrap(True)
        row = QtWidgets.QHBoxLayout(self)
        row.setContentsMargins(14, 8, 14, 8)
        row.setSpacing(18)
        row.addWidget(self.order)
        row.addWidget(self.reason, 1)
        self.hide()

    def configure(self, info: RunInfo) -> None:
        """Prepare the banner for a run; hide it if the run has no dead-man's switch."""
        what = _WHAT.get(info.dead_man, "")
        without = _WITHOUT.get(info.causality, "")
        if self._past:
            self._words = f"{what} was not held".upper(), f"{what} was held".capitalize(), ""
        else:
            self._words = f"hold {what}".upper(), f"{what} is held".capitalize(), without
        self.setVisible(bool(what))
        self.show_state(released=True)

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        self._theme = theme
        self._paint()

    def show_state(self, released: bool) -> None:
        """Show whether the switch is released."""
        loud, quiet, without = self._words
        if released != self.released or not self.order.text():
            self.released = released
            self._paint()
        self.order.setText(loud if released else quiet)
        self.reason.setText(without)

    def _paint(self) -> None:
        theme = self._theme
        if self.released:
            look, ink = f"background: {theme.notice}; border: 2px solid {theme.notice};", "#000000"
        else:
            look, ink = f"background: {theme.panel}; border: 2px solid {theme.force};", theme.text
        self.setStyleSheet(f"QFrame#deadman {{ {look} border-radius: 6px; }} QFrame#deadman QLabel {{ color: {ink}; }}")
