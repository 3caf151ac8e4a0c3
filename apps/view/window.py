"""The live window: it displays messages and rows, and sends the requests of the user."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from apps.front_ends.link import Link
from apps.front_ends.messages import (
    Advised,
    AskShown,
    Captioned,
    Close,
    HandButtons,
    HandTarget,
    HoldKey,
    Key,
    Preparing,
    Quit,
    Refused,
    SceneInForce,
    SessionEnded,
    SessionStarted,
    SetParameter,
    Shown,
    Start,
    Stop,
    ValuesInForce,
)
from apps.front_ends.run import RunInfo, from_message
from apps.shared.theme import Theme, other
from apps.view.dashboard import Dashboard
from apps.view.feed import KEPT, Feed, LiveFeed
from apps.view.panels.controls import ControlPanel
from apps.view.panels.dead_man import KEY, DeadMansKey
from apps.view.panels.keys import HeldKeys, types_a_number
from apps.view.qt import KeyFilter, QtCore, QtGui, QtWidgets, dress, fit
from apps.view.throttle import Throttle
from haptics.errors import ConfigurationError

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
        self._told_to_quit = False
        self.theme = theme
        self.running = False
        self.dashboard = Dashboard()
        self.controls = ControlPanel()
        self._space_holds = False
        self._dead_man = DeadMansKey(lambda held: self._send(HoldKey(held)), self)
        self._others = HeldKeys(lambda name, down, at: self._send(Key(name, down, at)), self)
        self._unanswered = 0
        self._throttle = Throttle(self._send_hand, HAND_PAUSE_MS, self)
        self._lay_out()
        self._connect()
        self.apply(theme)
        self._keys = KeyFilter(self._key, parent=self, release=self._key_up)
        self._timer = QtCore.QTimer(self)
        self._timer.setTimerType(QtCore.Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self.frame)
        if link is not None:
            self._timer.start(FRAME_MS)

    def _lay_out(self) -> None:
        row = QtWidgets.QHBoxLayout(self)
        row.setContentsMargins(8, 8, 8, 6)
        row.setSpacing(8)
        row.addWidget(self.controls)
        row.addWidget(self.dashboard, 1)
        self.setMinimumSize(*LEAST)
        fit(self, 1340, 800)
        self.setWindowTitle("haptics: waiting for the session")

    def _connect(self) -> None:
        self.controls.start_asked.connect(self._ask_start)
        self.controls.stop_asked.connect(self._ask_stop)
        self.controls.parameter_changed.connect(self._set_parameter)
        self.controls.theme_asked.connect(lambda: self.apply(other(self.theme)))
        self.dashboard.plane.pointer_moved.connect(self._throttle.offer)
        self.dashboard.plane.buttons_changed.connect(lambda buttons: self._send(HandButtons(buttons)))

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        self.theme = theme
        dress(self, theme)
        self.controls.apply(theme)
        self.dashboard.apply(theme)
        if self._feed is not None:
            self.dashboard.refresh(self._feed, everything=True)

    # --- input from the session

    def frame(self) -> None:
        """Process new messages and rows and draw them; called by the timer."""
        if self._link is None:
            return
        for message in self._link.receive():
            self._take(message)
        self._pull()
        if self._link.gone and not self._told_to_quit:
            self._send_close()

    def _pull(self) -> None:
        if isinstance(self._feed, LiveFeed):
            self._feed.pull(time.monotonic())
            self.dashboard.refresh(self._feed)

    def _take(self, message: Any) -> None:
        if isinstance(message, SessionStarted):
            self._begin(message)
        elif isinstance(message, Preparing):
            self._prepare(message.words)
        elif isinstance(message, SessionEnded):
            self._end(message)
        elif isinstance(message, Refused):
            self.dashboard.notice.show_notice(message.message)
            self.controls.session.allow_start()
            self._take_values(message.values, answer=bool(message.values))
        elif isinstance(message, ValuesInForce):
            self._take_values(message.values, answer=message.yours)
        elif isinstance(message, SceneInForce):
            self.dashboard.show_scene(message.scene)
        elif isinstance(message, Advised | Captioned):
            if isinstance(message, Captioned):
                self._caption = message.message
            words = message.message if isinstance(message, Captioned) else f"{self._caption} {message.message}".strip()
            self._advice = words, _FAULT_SECONDS if self._caption else _ADVICE_SECONDS
            self.dashboard.notice.show_notice(*self._advice)
        elif isinstance(message, AskShown):
            self._send(Shown())
        elif isinstance(message, Quit):
            self._told_to_quit = True
            self.close()

    def _take_values(self, values: dict[str, float], answer: bool) -> None:
        """Show the values in force, unless a change is unanswered: its answer will contain all values."""
        self._unanswered = max(self._unanswered - answer, 0)
        if not self._unanswered:
            self.controls.show_values(values)
            self._show_levels(values)

    def _show_levels(self, values: dict[str, float]) -> None:
        self._values |= values
        self.dashboard.show_values(self._values)

    def _begin(self, message: SessionStarted) -> None:
        info = from_message(message)
        self.show_run(info, message)
        try:
            self._feed = LiveFeed(Path(message.trace), message.rate_hz, message.causality, KEPT)
        except ConfigurationError as error:
            self._feed = None
            self.dashboard.notice.show_notice(f"The run cannot be shown: {error}")

    def show_run(self, info: RunInfo, message: SessionStarted) -> None:
        """Prepare all panels for the run that `message` announces."""
        self._feed = None
        self._advice, self._caption = None, ""
        self.running = True
        self.setWindowTitle(f"haptics: {info.title}")
        self.dashboard.notice.hide()
        self.dashboard.configure(info)
        self.controls.session.offer(message.choices, message.hands, message.laws, message.about, info)
        self.controls.set_parameters(info.parameters)
        self.controls.set_running(True)
        self._space_holds = info.dead_man == "key"
        self._dead_man.set_required(self._space_holds)
        self.controls.name_stop_key("Esc" if self._space_holds else "space bar")
        self._unanswered = 0
        self._values = {}
        self._show_levels({parameter.key: parameter.value for parameter in info.parameters})

    def show_feed(self, feed: Feed) -> None:
        """Show the rows of a feed that the caller fills."""
        self._feed = feed
        self.dashboard.refresh(feed, everything=True)

    def _prepare(self, words: str) -> None:
        """Show the present activity before the first tick."""
        if words:
            self.dashboard.notice.show_notice(f"{words[0].upper()}{words[1:]}.", _FAULT_SECONDS)
        elif self._advice is not None:
            self.dashboard.notice.show_notice(*self._advice)
        else:
            self.dashboard.notice.hide()

    def _end(self, message: SessionEnded) -> None:
        self._pull()
        if self._feed is not None:
            self.show_feed(self._freeze(self._feed))
        self.running = False
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

    @staticmethod
    def _freeze(feed: Feed) -> Feed:
        """Return a copy of the feed that no longer follows the trace, whose file may be removed."""
        frozen = Feed(feed.nominal_rate)  # its history is taken from the run
        frozen.history, frozen.counts, frozen.unseen = feed.history, feed.counts, feed.unseen
        frozen.lateness, frozen.tick_times = feed.lateness, feed.tick_times
        return frozen

    def _send_close(self) -> None:
        self._told_to_quit = True
        self._timer.stop()
        self.setEnabled(False)
        self.dashboard.notice.show_notice("The session's application has gone; this window closes.", 60.0)
        QtCore.QTimer.singleShot(_FAREWELL_MS, self.close)

    # --- output to the session

    def _send(self, message: Any) -> None:
        if self._link is not None:
            self._link.send(message)

    def _send_hand(self, x: float, y: float) -> None:
        self._send(HandTarget(x, y))

    def _ask_start(self, start: Start) -> None:
        self.controls.start.setEnabled(False)
        self._send(start)

    def _ask_stop(self) -> None:
        self._send(Stop())

    def _set_parameter(self, key: str, value: float) -> None:
        self._unanswered += 1
        self._send(SetParameter(key, value))
        self._show_levels({key: value})

    def _key(self, key: QtCore.Qt.Key, modifiers: QtCore.Qt.KeyboardModifier) -> bool:
        if self._space_holds and key == KEY:
            self._dead_man.press()
        elif key == (QtCore.Qt.Key.Key_Escape if self._space_holds else QtCore.Qt.Key.Key_Space):
            self._ask_stop()
        elif not self.dashboard.take_key(key):
            if not types_a_number():
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
        if not self._told_to_quit:
            self._send(Close())
        super().closeEvent(event)
