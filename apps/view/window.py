"""The live window: it displays messages and rows, and sends the requests of the user.

Its input are the dead-man's key, other keys, and the mouse as the hand.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from apps.front_ends import messages as say
from apps.front_ends.front_end import Link
from apps.front_ends.messages import HOLD_EVERY
from apps.front_ends.run import RunInfo, from_message
from apps.shared.theme import Theme, other
from apps.view.controls import ControlPanel
from apps.view.dashboard import Dashboard
from apps.view.feed import KEPT, Feed, LiveFeed
from apps.view.qt import KeyFilter, QtCore, QtGui, QtWidgets, dress, fit, lay_out, timer
from haptics.errors import ConfigurationError

KEY = QtCore.Qt.Key.Key_Space
"""The dead-man's key."""

DEBOUNCE_MS = 20
"""Debounce time: a released key counts as released if it is not pressed again within this time [ms].

X11 reports a held key as an endless sequence of releases and presses. Qt marks them as repeats, unless a release
arrives shortly before its press. Such a release looks genuine and would interrupt the force. If the window was blocked
during that time, the debounce time expires before the pending press is processed; pending events are therefore checked
again before the release counts.
"""


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
        self._repeat = timer(self, round(1e3 * HOLD_EVERY), lambda: self._report(True))
        self._last_check = timer(self, 1, self.release, once=True)
        self._debounce = timer(self, DEBOUNCE_MS, self._last_check.start, once=True)

    def set_required(self, required: bool) -> None:
        """Set whether the run requires the key.

        A key that is down must be released and pressed again to count.
        """
        self._required = required
        self._report_release()

    def press(self) -> None:
        """Handle a press of the key."""
        self._debounce.stop()
        self._last_check.stop()
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
        self._debounce.stop()
        self._last_check.stop()
        self._down = False
        self._report_release()

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
        self._stop_release(key)
        if key not in self._down:
            self._down.add(key)
            self._report(name_of(key), True, at)

    def handle_release(self, key: QtCore.Qt.Key, at: float) -> None:
        """Handle a release, which counts unless a press follows within `DEBOUNCE_MS`."""
        if key in self._down and key not in self._releases:
            self._releases[key] = timer(self, DEBOUNCE_MS, lambda: self._release(key, at), once=True)
            self._releases[key].start()

    def release(self, at: float) -> None:
        """Report all keys as released, since their state can no longer be observed."""
        for key in tuple(self._down):
            self._release(key, at)

    def _release(self, key: QtCore.Qt.Key, at: float) -> None:
        self._stop_release(key)
        self._down.discard(key)
        self._report(name_of(key), False, at)

    def _stop_release(self, key: QtCore.Qt.Key) -> None:
        if key in self._releases:
            self._releases.pop(key).stop()


def name_of(key: QtCore.Qt.Key) -> str:
    """Return the name of a key in messages and recordings (`apps.front_ends.messages.Key`)."""
    if key.name.startswith("Key_"):
        return key.name.removeprefix("Key_").lower()
    # Qt has no names for the letters of most scripts. The code of such a key is the code point of its letter.
    return chr(key).lower() if 0 < key < 0x110000 else f"key {int(key)}"


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
        self._pause = timer(self, pause_ms, self._forward, once=True)

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


FRAME_MS = 33
LEAST = (1260, 600)
"""Minimum size of the window [pixel]; it fits a screen of 1280 x 720 with a panel and a title bar."""
HAND_PAUSE_MS = 8
_FAREWELL_MS = 2500
_FAULT_SECONDS = 600.0
_ADVICE_SECONDS = 20.0


class LiveWindow(QtWidgets.QWidget):
    """Main window of a session with all displays and controls.

    Parameters
    ----------
    link : Link or None
        Link to the session. Without it, `show_run` and `show_feed` set the content (for pictures).
    theme : Theme
        Initial colours.
    """

    def __init__(self, link: Link | None, theme: Theme) -> None:
        super().__init__()
        self._link = link
        self._feed: Feed | None = None
        self._values: dict[str, float] = {}
        self._advice: tuple[str, float] | None = None
        self._caption = ""
        self._closing = False
        self.theme = theme
        self.dashboard = Dashboard()
        self.controls = ControlPanel()
        self._space_holds = False
        self._dead_man = DeadMansKey(lambda held: self._send(say.HoldKey(held)), self)
        self._others = HeldKeys(lambda name, down, at: self._send(say.Key(name, down, at)), self)
        self._unanswered = 0
        self._throttle = Throttle(lambda x, y: self._send(say.HandTarget(x, y)), HAND_PAUSE_MS, self)
        row = QtWidgets.QHBoxLayout(self)
        lay_out(row, self.controls, (self.dashboard, 1), margins=(8, 8, 8, 6), spacing=8)
        self.setMinimumSize(*LEAST)
        fit(self, 1340, 800)
        self.setWindowTitle("haptics: waiting for the session")
        self.controls.session.start_requested.connect(self._request_start)
        # The signal is `pressed`, not `clicked`: a stop must not wait for the release of the button.
        self.controls.stop.pressed.connect(lambda: self._send(say.Stop()))
        self.controls.parameter_changed.connect(self._set_parameter)
        self.controls.theme_button.clicked.connect(lambda: self.apply(other(self.theme)))
        self.dashboard.plane.pointer_moved.connect(self._throttle.offer)
        self.dashboard.plane.buttons_changed.connect(lambda buttons: self._send(say.HandButtons(buttons)))
        self.apply(theme)
        self._keys = KeyFilter(self._key, parent=self, release=self._key_up)
        self._timer = timer(self, FRAME_MS, self.frame)
        if link is not None:
            self._timer.start()

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        self.theme = theme
        dress(self, theme)
        if self._feed is not None:
            self.dashboard.refresh(self._feed, everything=True)

    # --- input from the session

    def frame(self) -> None:
        """Process new messages and rows and draw them; called by the timer."""
        if self._link is None:
            return
        for message in self._link.receive():
            self._handle(message)
        self._pull()
        if self._link.gone and not self._closing:
            self._closing = True
            self._timer.stop()
            self.setEnabled(False)
            self.dashboard.notice.show_notice("The session's application has gone; this window closes.", 60.0)
            QtCore.QTimer.singleShot(_FAREWELL_MS, self.close)

    def _pull(self) -> None:
        if isinstance(self._feed, LiveFeed):
            self._feed.pull(time.monotonic())
            self.dashboard.refresh(self._feed)

    def _handle(self, message: Any) -> None:
        notice = self.dashboard.notice
        match message:
            case say.SessionStarted():
                self._begin(message)
            case say.Preparing(words):
                self._show_preparation(words)
            case say.SessionEnded():
                self._end(message)
            case say.Refused(words, values):
                notice.show_notice(words)
                self.controls.session.allow_start()
                self._show_values_in_force(values, answered=bool(values))
            case say.ValuesInForce(values, yours):
                self._show_values_in_force(values, answered=yours)
            case say.SceneInForce(scene):
                self.dashboard.places.change(scene=scene)
            case say.LawInForce():  # another law or model of the same run
                self._values = {one.key: one.value for one in message.parameters}
                info = self.dashboard.places.change(**vars(message))
                self.setWindowTitle(f"haptics: {info.title}")
                self.controls.session.show_present(model=info.model, law=info.law)
                self.controls.set_parameters(info.parameters)
            case say.Captioned(words):
                self._caption = words
                self._advise(words)
            case say.Advised(words):
                self._advise(f"{self._caption} {words}".strip())
            case say.AskShown():
                self._send(say.Shown())
            case say.Quit():
                self._closing = True
                self.close()

    def _show_preparation(self, words: str) -> None:
        """Show the activity before the first tick; afterwards, the advice on the run, if any."""
        if words:
            self.dashboard.notice.show_notice(f"{words[0].upper()}{words[1:]}.", _FAULT_SECONDS)
        elif self._advice is not None:
            self.dashboard.notice.show_notice(*self._advice)
        else:
            self.dashboard.notice.hide()

    def _advise(self, words: str) -> None:
        self._advice = words, _FAULT_SECONDS if self._caption else _ADVICE_SECONDS
        self.dashboard.notice.show_notice(*self._advice)

    def _show_values_in_force(self, values: dict[str, float], answered: bool) -> None:
        """Show the values in force, unless a change is unanswered: its answer will contain all values."""
        self._unanswered = max(self._unanswered - answered, 0)
        if not self._unanswered:
            self.controls.show_values(values)
            self._show_values(values)

    def _show_values(self, values: dict[str, float]) -> None:
        self._values |= values
        self.dashboard.places.show_values(self._values)

    def _begin(self, message: say.SessionStarted) -> None:
        self.show_run(from_message(message), message)
        try:
            self._feed = LiveFeed(Path(message.trace), message.rate_hz, message.causality, KEPT)
        except ConfigurationError as error:
            self.dashboard.notice.show_notice(f"The run cannot be shown: {error}")

    def show_run(self, info: RunInfo, message: say.SessionStarted) -> None:
        """Prepare all panels for the run that `message` announces."""
        self._feed = None
        self._advice, self._caption = None, ""
        self.setWindowTitle(f"haptics: {info.title}")
        self.dashboard.notice.hide()
        self.dashboard.configure(info)
        self.controls.session.offer(message, info)
        self.controls.set_parameters(info.parameters)
        self.controls.set_running(True)
        self._space_holds = info.dead_man == "key"
        self._dead_man.set_required(self._space_holds)
        self.controls.name_stop_key("Esc" if self._space_holds else "space bar")
        self._unanswered = 0
        self._values = {}
        self._show_values(info.values)

    def show_feed(self, feed: Feed) -> None:
        """Show the rows of a feed that the caller fills."""
        self._feed = feed
        self.dashboard.refresh(feed, everything=True)

    def _end(self, message: say.SessionEnded) -> None:
        self._pull()
        if self._feed is not None:  # the feed no longer follows the trace, whose file may be removed
            frozen = Feed(self._feed.nominal_rate)
            frozen.history, frozen.counts, frozen.unseen = self._feed.history, self._feed.counts, self._feed.unseen
            self.show_feed(frozen)
        self.dashboard.plane.set_mouse(False)
        self._dead_man.set_required(False)
        self.dashboard.dead_man.hide()
        self.dashboard.show_ended()
        self.dashboard.show_end(f"Run ended: {message.reason}", message.summary)
        if message.error:
            self.dashboard.notice.show_notice(message.error, _FAULT_SECONDS)
        self.controls.set_running(False)
        self.controls.session.allow_start()
        self.setWindowTitle(f"{self.windowTitle().removesuffix(' (ended)')} (ended)")

    # --- output to the session

    def _send(self, message: Any) -> None:
        if self._link is not None:
            self._link.send(message)

    def _request_start(self, start: say.Start) -> None:
        self.controls.start.setEnabled(False)
        self._send(start)

    def _set_parameter(self, key: str, value: float) -> None:
        self._unanswered += 1
        self._send(say.SetParameter(key, value))
        self._show_values({key: value})

    def _key(self, key: QtCore.Qt.Key, modifiers: QtCore.Qt.KeyboardModifier) -> bool:
        if self._space_holds and key == KEY:
            self._dead_man.press()
        elif key == (QtCore.Qt.Key.Key_Escape if self._space_holds else QtCore.Qt.Key.Key_Space):
            self._send(say.Stop())
        elif not self.dashboard.handle_key(key):
            # In a field for numbers, keys type a number.
            if not isinstance(QtWidgets.QApplication.focusWidget(), QtWidgets.QAbstractSpinBox):
                self._others.press(key, self._keys.at)
            return False
        return True

    def _key_up(self, key: QtCore.Qt.Key, modifiers: QtCore.Qt.KeyboardModifier) -> bool:
        if key == KEY:
            self._dead_man.handle_release()
        self._others.handle_release(key, self._keys.at)
        return key == KEY

    def changeEvent(self, event: QtCore.QEvent) -> None:  # noqa: N802
        """Release the dead-man's key when the window loses the focus (Qt event handler)."""
        super().changeEvent(event)
        if event.type() == QtCore.QEvent.Type.ActivationChange and not self.isActiveWindow():
            self._release_keys()

    def _release_keys(self) -> None:
        """Treat all keys as released, since their releases cannot be observed any longer."""
        self._dead_man.release()
        self._others.release(time.monotonic())

    def closeEvent(self, event: QtGui.QCloseEvent) -> None:  # noqa: N802
        """Report the closed window to the session, unless the session requested it (Qt event handler)."""
        self._timer.stop()
        self._keys.remove()
        self._release_keys()
        if not self._closing:
            self._send(say.Close())
        super().closeEvent(event)
