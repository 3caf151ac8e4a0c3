"""The panels that show a run, and the line of numbers under them."""

from __future__ import annotations

from apps.shared.scale import clock, grouped
from apps.shared.theme import Theme
from apps.view.feed import Feed
from apps.view.panels.dead_man import DeadManBanner
from apps.view.panels.end import EndCard
from apps.view.panels.notice import Notice
from apps.view.panels.plane import PlanePanel
from apps.view.panels.safety import SafetyPanel
from apps.view.panels.timing import TimingPanel
from apps.view.qt import QtCore, QtGui, QtWidgets, font, label
from apps.view.run import RunInfo
from apps.view.series import SeriesPanel
from haptics.records import Status

_TEXT_FRAMES = 3
"""Numbers and the histogram change in every third frame: ten times a second is as fast as one can read."""


class ElidedLabel(QtWidgets.QLabel):
    """A line that gives up its middle when there is no room for all of it."""

    def __init__(self) -> None:
        super().__init__()
        self._full = ""
        self.setFont(font())
        self.setSizePolicy(QtWidgets.QSizePolicy.Policy.Ignored, QtWidgets.QSizePolicy.Policy.Preferred)
        self.setAlignment(QtCore.Qt.AlignmentFlag.AlignRight | QtCore.Qt.AlignmentFlag.AlignVCenter)
        self.setProperty("faint", True)

    def show_text(self, text: str) -> None:
        """Show `text`, whole in the tool tip."""
        self._full = text
        self.setToolTip(text)
        self._elide()

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:  # noqa: N802
        """Fit the text anew (Qt calls this)."""
        super().resizeEvent(event)
        self._elide()

    def _elide(self) -> None:
        mode = QtCore.Qt.TextElideMode.ElideMiddle
        self.setText(self.fontMetrics().elidedText(self._full, mode, max(self.width() - 4, 20)))


class Dashboard(QtWidgets.QWidget):
    """Plane and timing at the left, time plots at the right, notices above, numbers below.

    Parameters
    ----------
    past : bool
        Whether it shows a recorded run.

    Attributes
    ----------
    safety : SafetyPanel
        Kept up to date here, but the window has to find a place for it.
    """

    def __init__(self, past: bool = False) -> None:
        super().__init__()
        self.plane = PlanePanel()
        self.series = SeriesPanel()
        self.timing = TimingPanel()
        self.safety = SafetyPanel()
        self.dead_man = DeadManBanner(past)
        self.notice = Notice()
        self.end = EndCard()
        self.numbers = label("")
        self.path = ElidedLabel()
        self._info = RunInfo()
        self._frame = 0
        left, right = QtWidgets.QVBoxLayout(), QtWidgets.QVBoxLayout()
        for column in (left, right):
            column.setSpacing(8)
        left.addWidget(self.plane, 17)
        left.addWidget(self.timing, 10)
        right.addWidget(self.series, 1)
        right.addWidget(self.end)
        sides = QtWidgets.QHBoxLayout()
        sides.setSpacing(8)
        sides.addLayout(left, 14)
        sides.addLayout(right, 10)
        foot = QtWidgets.QHBoxLayout()
        foot.setContentsMargins(4, 0, 4, 0)
        foot.setSpacing(16)
        foot.addWidget(self.numbers)
        foot.addWidget(self.path, 1)
        column = QtWidgets.QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(self.notice)
        column.addWidget(self.dead_man)
        column.addLayout(sides, 1)
        column.addLayout(foot)
        self.configure(self._info)

    def configure(self, info: RunInfo) -> None:
        """Show another run, empty."""
        self._info = info
        self.end.hide()
        self.plane.configure(info)
        self.series.configure(info)
        self.timing.configure(info)
        self.safety.configure(info)
        self.dead_man.configure(info)
        self.path.show_text(f"recording to {info.recording}" if info.recording else "")

    def show_ended(self) -> None:
        """Say that nothing is recorded any more."""
        self.path.show_text(f"recorded in {self._info.recording}" if self._info.recording else "")

    def apply(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        self.plane.apply(theme)
        self.series.apply(theme)
        self.timing.apply(theme)
        self.safety.apply(theme)
        self.dead_man.apply(theme)
        self.end.apply(theme)

    def refresh(self, feed: Feed, everything: bool = False) -> None:
        """Draw a frame; `everything` also brings those parts up to date that change less often."""
        self.plane.refresh(feed.history)
        self.series.refresh(feed.history)
        if feed.counts.ticks:
            self.dead_man.tell(released=Status.RELEASED in feed.counts.newest)
        if everything or self._frame % _TEXT_FRAMES == 0:
            self.plane.refresh_texts(feed.history)
            self.timing.refresh(feed)
            self.safety.refresh(feed)
            self.numbers.setText(self._numbers(feed))
        self._frame += 1

    def _numbers(self, feed: Feed) -> str:
        counts = feed.counts
        if not counts.ticks:
            return "before the first tick"
        rate = f"{feed.nominal_rate:g} Hz"
        if feed.measured_rate is not None:
            rate = f"{feed.measured_rate:.0f} of {feed.nominal_rate:g} Hz"
        elapsed = clock(counts.time)
        if self._info.duration is not None:
            elapsed += f" of {clock(self._info.duration)}"
        parts = [rate, elapsed, f"{grouped(counts.ticks)} ticks", f"{grouped(counts.late)} late"]
        parts.append(f"{grouped(counts.skipped)} skipped")
        if feed.unseen:
            parts.append(f"{grouped(feed.unseen)} not seen by this window")
        return "\u2002·\u2002".join(parts)
