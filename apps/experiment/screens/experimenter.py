"""Window of the experimenter: displays messages and trace rows, and sends commands and notes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from apps.experiment.screens.messages import (
    Certificate,
    Command,
    Note,
    Notice,
    Outcome,
    Progress,
    SessionOutline,
    hidden,
)
from apps.experiment.screens.panels import (
    AnswersPanel,
    Buttons,
    CertificatePanel,
    HeadPanel,
    MotionPanel,
    NotesPanel,
    PlacePanel,
    TrackPanel,
)
from apps.front_ends.front_end import Link
from apps.front_ends.messages import AskShown, Close, Quit, SessionEnded, SessionStarted, Shown
from apps.front_ends.run import from_message
from apps.shared.theme import Theme, other
from apps.view import indicators
from apps.view.feed import LiveFeed
from apps.view.qt import QtCore, QtGui, QtWidgets, dress, fit
from haptics.errors import ConfigurationError
from haptics.records import Rows

FRAME_MS = 40
"""Period of the display updates [ms]."""

_NOTICE_SECONDS = 30.0


class ExperimenterWindow(QtWidgets.QWidget):
    """Main window of the experimenter.

    Parameters
    ----------
    link : Link
        Connection to the session.
    theme : Theme
        Initial colours.
    """

    def __init__(self, link: Link, theme: Theme) -> None:
        super().__init__()
        self._link = link
        self._feed: LiveFeed | None = None
        self._blind = False
        self._quit = False
        self.theme = theme
        self.head, self.notice = HeadPanel(), indicators.Notice()
        self.track, self.answers = TrackPanel(), AnswersPanel()
        self.motion, self.place = MotionPanel(), PlacePanel()
        self.certificate, self.notes, self.buttons = CertificatePanel(), NotesPanel(), Buttons()
        self._lay_out()
        self.head.theme_button.clicked.connect(lambda: self.apply(other(self.theme)))
        self.notes.written.connect(lambda text: link.send(Note(text)))
        self.buttons.requested.connect(lambda request: link.send(Command(request)))
        self.apply(theme)
        self._timer = QtCore.QTimer(self)
        self._timer.timeout.connect(self.frame)
        self._timer.start(FRAME_MS)

    def _lay_out(self) -> None:
        left = _filled(QtWidgets.QVBoxLayout(), (self.track, 5), (self.answers, 4))
        below = _filled(QtWidgets.QHBoxLayout(), (self.place, 1), (self.certificate, 1))
        right = _filled(QtWidgets.QVBoxLayout(), (self.motion, 6), (below, 4), (self.notes, 0), (self.buttons, 0))
        sides = _filled(QtWidgets.QHBoxLayout(), (left, 1), (right, 1))
        column = _filled(QtWidgets.QVBoxLayout(self), (self.head, 0), (self.notice, 0), (sides, 1))
        column.setContentsMargins(8, 8, 8, 8)
        self.setMinimumSize(1000, 640)
        fit(self, 1264, 672)
        self.setWindowTitle("haptics: experimenter")
        self.notes.line.setFocus()

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        self.theme = theme
        dress(self, theme)

    def frame(self) -> None:
        """Read messages and rows and draw them.

        Called by the timer.
        """
        for message in self._link.receive():
            self._handle(hidden(message) if self._blind else message)
        if self._feed is not None:
            self._feed.pull(time.monotonic())
            self.motion.refresh(self._feed)
            self.place.refresh(self._feed)
            self.certificate.refresh(self._feed)
        if self._link.gone:
            self.close()  # the application has died, and a resumed session opens a new window

    def _handle(self, message: Any) -> None:
        match message:
            case SessionOutline():
                self._blind = message.blind
                self.head.configure(message)
                self.track.configure(message)
                self.answers.clear()
                self.certificate.show_figures(Certificate(()))
                self.motion.blind(message.blind)
                self.buttons.allow(True)
            case Progress():
                self.head.show_progress(message)
                self.buttons.show_paused(message.paused)
            case Outcome():
                self.track.add_trial(message)
                self.answers.add_trial(message)
            case Certificate():
                self.certificate.show_figures(message)
            case Notice(words):
                self.notice.show_notice(words, _NOTICE_SECONDS)
            case SessionStarted():
                info = from_message(message)
                self.motion.configure(info)
                self.place.configure(info)
                kind = BlindFeed if self._blind else LiveFeed
                try:
                    self._feed = kind(Path(message.trace), message.rate_hz, message.causality)
                except ConfigurationError as error:
                    self._feed = None
                    self.notice.show_notice(f"The hand cannot be shown: {error}", _NOTICE_SECONDS)
            case SessionEnded():
                self._feed = None
            case AskShown():
                self._link.send(Shown())
            case Quit():
                self._quit = True
                self.close()

    def closeEvent(self, event: QtGui.QCloseEvent) -> None:  # noqa: N802
        """Close the window.

        Called by Qt.
        """
        self._timer.stop()
        if not self._quit:
            self._link.send(Close())
        event.accept()


def _filled(line: QtWidgets.QBoxLayout, *items: tuple[Any, int]) -> QtWidgets.QBoxLayout:
    """Add widgets and layouts with their stretch factors to a row or column, and return it."""
    line.setSpacing(8)
    for item, stretch in items:
        (line.addLayout if isinstance(item, QtWidgets.QLayout) else line.addWidget)(item, stretch)
    return line


class BlindFeed(LiveFeed):
    """Feed of the trace of a run, without its forces."""

    def add_rows(self, rows: Rows, unseen: int = 0) -> None:
        """Add rows, of which only the motion is kept."""
        rows = rows.copy()
        for name in ("command", "force", "friction_force"):
            rows[name] = 0.0
        rows["proxy"] = rows["position"]
        rows["sticking"] = 0
        super().add_rows(rows, unseen)
