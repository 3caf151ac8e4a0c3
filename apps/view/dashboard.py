"""Layout of the plots of a run, with the indicator lamps and the line of numbers below them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from apps.front_ends.run import RunInfo
from apps.shared.scale import clock, grouped
from apps.shared.theme import Theme
from apps.view.feed import Feed
from apps.view.history import Column
from apps.view.instrument.help import HelpWindow
from apps.view.instrument.saving import save, shown_folder
from apps.view.panels.dead_man import DeadManBanner
from apps.view.panels.end import EndCard
from apps.view.panels.notice import Notice
from apps.view.panels.safety import SafetyPanel
from apps.view.panels.transport import Transport
from apps.view.plots.contact import ContactPanel
from apps.view.plots.displacement import DisplacementPanel
from apps.view.plots.ledger import LedgerPanel
from apps.view.plots.motion import MotionPanel
from apps.view.plots.places import Places
from apps.view.plots.plane import PlanePanel
from apps.view.plots.plot import Plot
from apps.view.plots.series import SeriesPanel
from apps.view.plots.spectrum import SpectrumPanel
from apps.view.plots.speed import SpeedPanel
from apps.view.plots.timing import TimingPanel
from apps.view.qt import QtCore, QtGui, QtWidgets, font, label
from haptics.records import Status

if TYPE_CHECKING:
    from haptics.scenes import Scene

_TEXT_FRAMES = 3
"""Number of frames between updates of numbers and histogram: ten updates per second remain readable."""

PLOTS: tuple[type[Plot], ...] = (
    TimingPanel,
    SeriesPanel,
    SpeedPanel,
    DisplacementPanel,
    SpectrumPanel,
    LedgerPanel,
    MotionPanel,
    ContactPanel,
)
"""The selectable plots; the first three are shown initially."""


class ElidedLabel(QtWidgets.QLabel):
    """Label of one line whose middle is elided if the text does not fit."""

    def __init__(self) -> None:
        super().__init__()
        self._full = ""
        self.setFont(font())
        self.setSizePolicy(QtWidgets.QSizePolicy.Policy.Ignored, QtWidgets.QSizePolicy.Policy.Preferred)
        self.setAlignment(QtCore.Qt.AlignmentFlag.AlignRight | QtCore.Qt.AlignmentFlag.AlignVCenter)
        self.setProperty("faint", True)

    def show_text(self, text: str) -> None:
        """Show `text`; the tool tip contains the complete text."""
        self._full = text
        self.setToolTip(text)
        self._elide()

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:  # noqa: N802
        """Elide the text for the new size (Qt event handler)."""
        super().resizeEvent(event)
        self._elide()

    def _elide(self) -> None:
        mode = QtCore.Qt.TextElideMode.ElideMiddle
        self.setText(self.fontMetrics().elidedText(self._full, mode, max(self.width() - 4, 20)))


class Dashboard(QtWidgets.QWidget):
    """Plots with notices above and lamps, transport controls and numbers below.

    Parameters
    ----------
    rows : int
        Number of rows of a recorded run; 0 for a live run.
    """

    def __init__(self, rows: int = 0) -> None:
        super().__init__()
        self.plane, self.end = PlanePanel(), EndCard()
        self.places = Places(self.plane, PLOTS, self.end)
        self.safety = SafetyPanel()
        self.transport = Transport(rows)
        self.dead_man = DeadManBanner(rows > 0)
        self.notice = Notice()
        self.numbers = label("")
        self.path = ElidedLabel()
        self._past = rows > 0
        self._info = RunInfo()
        self._feed: Feed | None = None
        self._frame = 0
        self._help: HelpWindow | None = None
        self._lay_out()
        self._connect()
        self.configure(self._info)

    def _lay_out(self) -> None:
        foot = QtWidgets.QHBoxLayout()
        foot.setContentsMargins(4, 0, 4, 0)
        foot.setSpacing(16)
        foot.addWidget(self.numbers)
        foot.addWidget(self.path, 1)
        column = QtWidgets.QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(self.notice)
        column.addWidget(self.dead_man)
        column.addWidget(self.places, 1)
        column.addWidget(self.transport)
        column.addWidget(self.safety)
        column.addLayout(foot)

    def _connect(self) -> None:
        self.transport.span_asked.connect(self._show_span)
        self.transport.cursors_asked.connect(self.places.switch_cursors)
        self.transport.home_asked.connect(self.places.home)
        self.places.changed.connect(self._redraw)
        self.places.asked.connect(self._save)
        self.transport.help_asked.connect(self.help)
        self.end.closed.connect(lambda: self.places.make_room(False))
        if not self._past:
            self.transport.play_asked.connect(self.pause)
            self.transport.moved.connect(self.seek)

    def configure(self, info: RunInfo) -> None:
        """Clear all panels and prepare them for a run."""
        self._info = info
        self._feed = None
        self.end.close()
        self.places.configure(info)
        self.safety.configure(info)
        self.dead_man.configure(info)
        self.path.show_text(f"recording to {info.recording}" if info.recording else "")

    def show_ended(self) -> None:
        """Show that the recording has ended."""
        self.path.show_text(f"recorded in {self._info.recording}" if self._info.recording else "")

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        self.places.apply(theme)
        self.safety.apply(theme)
        self.dead_man.apply(theme)
        self.end.apply(theme)

    def show_scene(self, scene: Scene | None) -> None:
        """Update all panels for the scene now in force."""
        self.places.show_scene(scene)

    def show_values(self, values: Mapping[str, float]) -> None:
        """Update all panels for the values now in force (parameter key to value)."""
        self.places.show_values(values)

    def show_end(self, reason: str, summary: Mapping[str, Any], error: str = "") -> None:
        """Show the end of the run in place of the lowest plot at the right, until the user closes it."""
        self.places.make_room(True)
        self.end.show_end(reason, summary, error)

    # --- user input

    def take_key(self, key: QtCore.Qt.Key) -> bool:
        """Execute a function key and return True if the key has a function.

        The keys are listed in `apps.view.instrument.help.KEYS`.
        """
        keys = QtCore.Qt.Key
        actions: dict[QtCore.Qt.Key, Callable[[], None]] = {
            keys.Key_F1: self.help,
            keys.Key_F2: self.transport.button.click,
            keys.Key_F3: self.transport.cursors.toggle,
            keys.Key_F4: self.places.home,
            keys.Key_F5: lambda: self._save(self.window(), "copy"),
            keys.Key_F6: lambda: self._save(self.window(), "png"),
        }
        if key not in actions:
            return False
        actions[key]()
        return True

    def help(self) -> None:
        """Show or hide the help on the keys and the plots."""
        if self._help is None:
            self._help = HelpWindow(self.window(), (PlanePanel, *PLOTS), self._past)
        self._help.setVisible(not self._help.isVisible())

    def _save(self, what: QtWidgets.QWidget, action: str) -> None:
        """Copy or save the picture of the window or of a plot, or the data of a plot, and report the file."""
        folder = shown_folder(self._info.recording)
        time = self._feed.history.newest(Column.TIME) if self._feed is not None else 0.0
        try:
            told = save(what, action, folder, time)
        except OSError as error:
            told = f"Nothing was saved in {folder}: {error.strerror or error}."
        self.notice.show_notice(told)

    # --- display

    def pause(self) -> None:
        """Pause the display, or follow the run again."""
        if self._feed is not None:
            history = self._feed.history
            history.hold(None if history.held else history.count)
            self._redraw()

    def seek(self, stop: int) -> None:
        """Show the rows before number `stop` of a live run; at the newest row, follow the run again."""
        if self._feed is not None:
            history = self._feed.history
            history.hold(stop if stop < history.count else None)
            self._redraw()

    def _show_span(self, seconds: float) -> None:
        if self._feed is not None:
            self._feed.show_span(seconds)
            self._redraw()

    def _redraw(self) -> None:
        if self._feed is not None:
            self.refresh(self._feed, everything=True)

    def refresh(self, feed: Feed, everything: bool = False) -> None:
        """Draw a frame; `everything` also updates the parts that change less often."""
        if feed is not self._feed:
            self._feed = feed
            feed.show_span(float(self.transport.span.currentData()))
        standing = feed.history.held and not everything
        if not standing:
            self.places.refresh(feed)
        if feed.counts.ticks:
            self.dead_man.show_state(released=Status.RELEASED in feed.counts.newest)
        if everything or self._frame % _TEXT_FRAMES == 0:
            if not standing:
                self.places.refresh_texts(feed)
            self.safety.refresh(feed)
            self.numbers.setText(self._numbers(feed))
            if not self._past:
                self.transport.show_history(feed.history, feed.counts.time)
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
        if not feed.counted:
            return "\u2002·\u2002".join((rate, elapsed, "counting what there was before ..."))
        parts = [rate, elapsed, f"{grouped(counts.ticks)} ticks", f"{grouped(counts.late)} late"]
        parts.append(f"{grouped(counts.skipped)} skipped")
        if feed.unseen:
            parts.append(f"{grouped(feed.unseen)} not seen by this window")
        return "\u2002·\u2002".join(parts)
