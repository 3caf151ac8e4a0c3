"""The plots of a run with lamps and numbers below them: arrangement, saving, and help."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from PySide6 import QtSvg

from apps.export.writers import Table, write_csv
from apps.front_ends.run import RunInfo
from apps.shared.display import clock, grouped
from apps.view.feed import Feed
from apps.view.history import Column
from apps.view.indicators import DeadManBanner, EndCard, Notice, SafetyPanel
from apps.view.plot import Plot
from apps.view.qt import QtCore, QtGui, QtWidgets, font, label, lay_out, px
from apps.view.time_plots import ContactPanel, LedgerPanel, MotionPanel, SeriesPanel
from apps.view.transport import Transport
from apps.view.xy_plots import DisplacementPanel, PlanePanel, SpectrumPanel, SpeedPanel, TimingPanel
from haptics.records import Status

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

_TEXT_FRAMES = 3
"""Number of frames between updates of numbers and histogram: ten updates per second remain readable."""

_LEFT, _RIGHT = (17, 10), (12, 10)
"""Relative heights of the upper and lower places at the left and at the right."""

_PLACES = 3
"""Number of places for selectable plots: one below the plane and two at the right."""

KEYS = (
    ("F1", "this help, and away with it"),
    ("F2", "pause: hold the picture while the run goes on; go on"),
    ("F3", "two cursors over every plot: drag them; values, units and the difference stand below"),
    ("F4", "show the whole range of every plot (of one: double click)"),
    ("F5", "copy a picture of the window"),
    ("F6", "save a picture of the window beside the recording"),
)
"""Function keys of all windows with plots, and their functions."""

LIVE_KEYS = (
    ("Space", "STOP, whatever has the focus; where the space bar must be held, hold it, and Esc is STOP"),
    ("others", "are written down in the recording, for instance as answers"),
)
REPLAY_KEYS = (
    ("Space", "play or pause"),
    ("\u2190 \u2192", "one tick; with Shift 0.1 s"),
    ("Page", "one second back or on"),
    ("Home, End", "the beginning, the end"),
    ("N, P", "the next mark on the strip, the one before"),
)

_TEXT = """<h3>Keys</h3><table cellpadding='3'>{keys}</table>
<h3>Mouse over a plot</h3><p>Wheel: zoom (over an axis: that axis alone). Left button: move. Right button: stretch.
Double click: the whole range. \u2922 shows a plot alone; \u22ef copies or saves its picture (PNG, SVG) and the data
that is shown (CSV, units in the names). The list at its upper left chooses another plot for the place.</p>
{live}<h3>Plots</h3>{plots}"""

_LIVE = """<h3>What waits, and what does not</h3><p><b>Session</b> (device, model, law, hand) waits for
<i>Start again</i>; what differs from the run that goes on is marked \u25cf and named in an orange bar. <b>Numbers</b>
are in force from the next tick on.</p>"""


class Places(QtWidgets.QWidget):
    """Arrangement with the plane above a plot at the left, and two plots at the right.

    Parameters
    ----------
    plane : Plot
        Plot with a fixed place at the upper left.
    kinds : sequence of classes
        Selectable plots, each created when it is first shown. Initially, the first is below the plane, and the next two
        are at the right.
    end : QWidget
        Widget that takes the lowest place at the right while it is visible.

    Attributes
    ----------
    shown : list of Plot
        Plots in the places.
    changed : signal
        Another plot is shown and has not been drawn yet.
    requested : signal (plot, action)
        An action on a plot was requested, see `apps.view.plot.ACTIONS`.
    """

    changed = QtCore.Signal()
    requested = QtCore.Signal(object, str)

    def __init__(self, plane: Plot, kinds: Sequence[type[Plot]], end: QtWidgets.QWidget) -> None:
        super().__init__()
        self.kinds = {kind.title: kind for kind in kinds}
        self._info = RunInfo()
        self._values: dict[str, float] = {}
        self._cursors = False
        self._alone: Plot | None = None
        self._occupied = False
        self._plane = plane
        self.built: dict[str, Plot] = {}
        self._listen(plane)
        self.places = [QtWidgets.QVBoxLayout() for _ in range(_PLACES)]
        self.shown = [self.plot(title) for title in list(self.kinds)[:_PLACES]]
        left, right = QtWidgets.QVBoxLayout(), QtWidgets.QVBoxLayout()
        left.addWidget(plane, _LEFT[0])
        left.addLayout(self.places[0], _LEFT[1])
        for place, share in zip(self.places[1:], _RIGHT, strict=True):
            right.addLayout(place, share)
        right.addWidget(end)
        for column in (left, right):
            column.setSpacing(6)
        self._sides = lay_out(QtWidgets.QHBoxLayout(self), (left, 1), (right, 1), spacing=6)
        for place, plot in zip(self.places, self.shown, strict=True):
            place.addWidget(plot)
            plot.show()

    def _listen(self, plot: Plot) -> None:
        plot.chosen.connect(lambda title: self.choose(plot, title))
        plot.requested.connect(lambda action: self.requested.emit(plot, action))
        plot.enlarged.connect(lambda on: self.enlarge(plot if on else None))

    def plot(self, title: str) -> Plot:
        """Return the plot with `title`; create it on first use."""
        if title not in self.built:
            plot = self.built[title] = self.kinds[title]()
            plot.setParent(self)
            plot.hide()
            plot.offer(list(self.kinds))
            self._listen(plot)
        return self.built[title]

    @property
    def all(self) -> list[Plot]:
        """The plane and the plots in the places, whether visible or not."""
        return [self._plane, *self.shown]

    @property
    def visible(self) -> list[Plot]:
        """The visible plots."""
        return [plot for plot in self.all if not plot.isHidden()]

    def choose(self, here: Plot, title: str) -> None:
        """Show the plot with `title` in the place of `here`; if it is already shown, the two are exchanged."""
        chosen, place = self.plot(title), self.shown.index(here)
        if chosen in self.shown:
            other = self.shown.index(chosen)
            self.shown[other] = here
            self.places[other].addWidget(here)
        else:
            self.places[place].removeWidget(here)
            here.hide()
        self.shown[place] = chosen
        self.places[place].addWidget(chosen)
        chosen.prepare(self._info, self._values, self._cursors)
        self.enlarge(chosen if self._alone is here else self._alone)

    def make_room(self, on: bool) -> None:
        """Reserve the lowest place at the right for the card at the end of a run, or return it to its plot."""
        self._occupied = on
        self.enlarge(None)

    def enlarge(self, plot: Plot | None) -> None:
        """Show one plot alone, or all plots if None."""
        self._alone = plot
        taken = self.shown[2:] if self._occupied and plot is None else []
        for other in self.all:
            other.setVisible((plot is None and other not in taken) or other is plot)
            with QtCore.QSignalBlocker(other.size_button):
                other.size_button.setChecked(other is plot)
        at_left = plot in (None, self._plane, self.shown[0])
        self._sides.setStretch(0, 1 if at_left else 0)
        self._sides.setStretch(1, 1 if plot is None or not at_left else 0)
        self.changed.emit()

    def switch_cursors(self, on: bool) -> None:
        """Show or hide the cursors of all plots."""
        self._cursors = on
        for plot in self.visible:
            plot.switch_cursors(on)

    def home(self) -> None:
        """Show the whole range of all plots."""
        for plot in self.all:
            plot.home()

    def configure(self, info: RunInfo) -> None:
        """Clear all plots and prepare them for a run."""
        self._info = info
        for plot in self.all:
            plot.configure(info)

    def change(self, **entries: Any) -> RunInfo:
        """Update all plots for other `entries` of the data of the run, such as its scene; return the updated data.

        The values now in force become those of the data if they contain ``parameters``.
        """
        self._info = dataclasses.replace(self._info, **entries)
        for plot in self.shown:
            plot.change(self._info)
        self.show_values(self._info.values if "parameters" in entries else self._values)
        return self._info

    def show_values(self, values: Mapping[str, float]) -> None:
        """Update all plots for the values now in force (parameter key to value)."""
        self._values = dict(values)
        for plot in self.shown:
            plot.show_values(values)


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
        foot = QtWidgets.QHBoxLayout()
        lay_out(foot, self.numbers, (self.path, 1), margins=(4, 0, 4, 0), spacing=16)
        parts = (self.notice, self.dead_man, (self.places, 1), self.transport, self.safety, foot)
        lay_out(QtWidgets.QVBoxLayout(self), *parts, spacing=6)
        self.transport.span.currentIndexChanged.connect(lambda _: self._show_span())
        self.transport.cursors.toggled.connect(self.places.switch_cursors)
        self.transport.home.clicked.connect(self.places.home)
        self.transport.help.clicked.connect(self.help)
        self.places.changed.connect(self._redraw)
        self.places.requested.connect(self._save)
        self.end.closed.connect(lambda: self.places.make_room(False))
        if not self._past:
            self.transport.button.clicked.connect(self.pause)
            self.transport.slider.valueChanged.connect(self.seek)
        self.configure(self._info)

    def configure(self, info: RunInfo) -> None:
        """Clear all panels and prepare them for a run."""
        self._info = info
        self._feed = None
        self.end.close()
        for part in (self.places, self.safety, self.dead_man):
            part.configure(info)
        self.path.show_text(f"recording to {info.recording}" if info.recording else "")

    def show_ended(self) -> None:
        """Show that the recording has ended."""
        self.path.show_text(f"recorded in {self._info.recording}" if self._info.recording else "")

    def show_end(self, reason: str, summary: Mapping[str, Any], error: str = "") -> None:
        """Show the end of the run in place of the lowest plot at the right, until the user closes it."""
        self.places.make_room(True)
        self.end.show_end(reason, summary, error)

    # --- user input

    def handle_key(self, key: QtCore.Qt.Key) -> bool:
        """Execute a function key and return True if the key has a function.

        The keys are listed in `apps.view.dashboard.KEYS`.
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

    def _save(self, shown: QtWidgets.QWidget, action: str) -> None:
        """Copy or save the picture of the window or of a plot, or the data of a plot, and report the file."""
        folder = shown_folder(self._info.recording)
        time = self._feed.history.newest(Column.TIME) if self._feed is not None else 0.0
        try:
            message = save(shown, action, folder, time)
        except OSError as error:
            message = f"Nothing was saved in {folder}: {error.strerror or error}."
        self.notice.show_notice(message)

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

    def _show_span(self) -> None:
        if self._feed is not None:
            self._feed.show_span(self.transport.seconds)
            self._redraw()

    def _redraw(self) -> None:
        if self._feed is not None:
            self.refresh(self._feed, everything=True)

    def refresh(self, feed: Feed, everything: bool = False) -> None:
        """Draw a frame; `everything` also updates the parts that change less often."""
        if feed is not self._feed:
            self._feed = feed
            feed.show_span(self.transport.seconds)
        standing = feed.history.held and not everything
        if not standing:
            for plot in self.places.visible:
                plot.refresh(feed)
        if feed.counts.ticks:
            self.dead_man.show_state(released=Status.RELEASED in feed.counts.newest)
        if everything or self._frame % _TEXT_FRAMES == 0:
            if not standing:
                for plot in self.places.visible:
                    plot.refresh_texts(feed)
            self.safety.refresh(feed)
            self.numbers.setText(self._numbers(feed))
            if not self._past:
                self.transport.show_history(feed.history, feed.counts.time)
        self._frame += 1

    def _numbers(self, feed: Feed) -> str:
        counts = feed.counts
        if not counts.ticks:
            return "before the first tick"
        measured = f"{feed.measured_rate:.0f} of " if feed.measured_rate is not None else ""
        planned = f" of {clock(self._info.duration)}" if self._info.duration is not None else ""
        parts = [f"{measured}{feed.nominal_rate:g} Hz", f"{clock(counts.time)}{planned}"]
        if feed.counted:
            for count, name in ((counts.ticks, "ticks"), (counts.late, "late"), (counts.skipped, "skipped")):
                parts.append(f"{grouped(count)} {name}")
            parts += [f"{grouped(feed.unseen)} not seen by this window"] if feed.unseen else []
        else:
            parts.append("counting what there was before ...")
        return "\u2002·\u2002".join(parts)


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


# --- saving and help --------------------------------------------------------------------------------------------------


def shown_folder(recording: str) -> Path:
    """Return the folder for saved files: next to the recording of the run, or ``shown`` without one."""
    if not recording:
        return Path("shown")
    folder = Path(recording)
    return folder.with_name(f"{folder.name}-shown")


def save(shown: QtWidgets.QWidget, action: str, folder: Path, time: float) -> str:
    """Execute one of `apps.view.plot.ACTIONS` for a plot or the whole window.

    There is no dialog, because it would take the keyboard focus from a session that the user may have to stop.

    Parameters
    ----------
    shown : QWidget
        A `Plot`, or any other widget.
    action : str
        ``copy``, ``png``, ``svg`` or ``csv``.
    folder : Path
        Folder of the file; created if it does not exist.
    time : float
        Time of the newest row shown [s], which is part of the file name.

    Returns
    -------
    str
        A message about the result.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    if action == "copy":
        QtWidgets.QApplication.clipboard().setPixmap(shown.grab())
        return "The picture is in the clipboard."
    folder.mkdir(parents=True, exist_ok=True)
    name, title = (shown.name, shown.title) if isinstance(shown, Plot) else ("window", shown.windowTitle())
    path, number = folder / f"{name}_{time:.3f}s.{action}", 1
    while path.exists():
        number += 1
        path = folder / f"{name}_{time:.3f}s-{number}.{action}"
    if action == "csv" and isinstance(shown, Plot):
        write_csv(Table.of_columns(shown.table(shown.history)), path)
    elif action == "svg":
        generator, painter = QtSvg.QSvgGenerator(), QtGui.QPainter()
        generator.setFileName(str(path))
        generator.setSize(shown.size())
        generator.setViewBox(shown.rect())
        generator.setTitle(title)
        if not painter.begin(generator):
            raise OSError(f"{path.name} cannot be written")
        shown.render(painter, QtCore.QPoint())
        painter.end()
    elif not shown.grab().save(str(path)):
        raise OSError(f"{path.name} cannot be written")
    return f"Saved {path}"


class HelpWindow(QtWidgets.QDialog):
    """Window with help on the keys and the plots, which does not take the focus from the stop key.

    Parameters
    ----------
    parent : QWidget
        Parent window.
    plots : sequence of classes
        Plots to describe.
    past : bool
        Whether the parent window shows a recording.
    """

    def __init__(self, parent: QtWidgets.QWidget, plots: Sequence[type[Plot]], past: bool) -> None:
        super().__init__(parent)
        self.setWindowTitle("haptics: help")
        self.setModal(False)
        self.setAttribute(QtCore.Qt.WidgetAttribute.WA_ShowWithoutActivating)
        self.text = QtWidgets.QTextBrowser()
        self.text.setFocusPolicy(QtCore.Qt.FocusPolicy.NoFocus)
        keys = "".join(
            f"<tr><td><b>{key}</b></td><td>{html.escape(words)}</td></tr>"
            for key, words in (*(REPLAY_KEYS if past else LIVE_KEYS), *KEYS)
        )
        about = "".join(f"<p><b>{plot.title}.</b> {html.escape(plot.about)}</p>" for plot in plots)
        self.text.setHtml(_TEXT.format(keys=keys, plots=about, live="" if past else _LIVE))
        lay_out(QtWidgets.QVBoxLayout(self), self.text, margins=(8, 8, 8, 8))
        room = parent.screen().availableGeometry()
        self.resize(min(px(640), room.width() - 40), min(px(620), room.height() - 60))
