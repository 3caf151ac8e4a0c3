"""Navigation in a run: transport bar, and overview strip of a recording."""

from __future__ import annotations

import numpy as np

from apps.shared.display import clock, grouped
from apps.view.charts import Panel, brush
from apps.view.feed import SPAN, SPANS
from apps.view.history import Column, History
from apps.view.overview import BINS, KINDS, Mark, Overview
from apps.view.qt import QtCore, QtGui, QtWidgets, current_theme, font, label, px, tool_button

SPEEDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
"""Selectable speeds of a replay, 1 for real time."""

_HEIGHT, _AXIS = 56, 13
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 28_800, 43_200, 86_400)
"""Distances of the labels on the time axis [s]."""

_APART = 90
"""Minimum distance of the labels [pixel]."""

_NEAR = 5
"""Distance within which marks are listed in the tool tip [pixel]."""


class Transport(Panel):
    """Transport bar below the plots: pause or play, position, and time span, for live and recorded runs.

    Its widgets emit the requests of the user.

    Parameters
    ----------
    rows : int
        Number of rows of the recording; 0 for a live run, whose newest rows can be scrubbed.

    Attributes
    ----------
    button, slider : QPushButton, QSlider
        Play or pause, and the row shown. `slider` emits ``valueChanged`` only for the user.
    speed, span : QComboBox
        Speed of the replay, and seconds shown, as data of their entries.
    cursors, home, help : QToolButton
        Cursors on or off, the whole range of all plots, and help.
    previous, next : QToolButton
        The marks of a recording before and after the row shown.
    """

    def __init__(self, rows: int = 0) -> None:
        super().__init__()
        past = rows > 0
        self.button = QtWidgets.QPushButton("Play" if past else "Pause")
        self.button.setFixedWidth(px(84))
        self.button.setToolTip(
            "play or pause (space bar)" if past else "hold the picture; the run goes on (F2). Back to it: again"
        )
        self.slider = QtWidgets.QSlider(QtCore.Qt.Orientation.Horizontal)
        self.slider.setRange(0, max(rows - 1, 0))
        self.slider.setAccessibleName("place in the recording" if past else "place in the last minutes")
        self.slider.setToolTip("drag to look at an earlier moment")
        self.place = label("", centred=True)
        self.place.setMinimumWidth(px(226))
        self.speed = _list("speed of the replay", {speed: f"{speed:g} ×" for speed in SPEEDS}, 1.0)
        self.span = _list("seconds that are shown", {span: f"{span:g} s" for span in SPANS}, SPAN)
        tip = "two cursors over every plot, with values and difference (F3)"
        self.cursors = tool_button("Cursors", tip, checkable=True)
        self.home = tool_button("Fit", "show the whole range of every plot again (F4); of one: double click")
        self.help = tool_button("?", "keys, and what each panel shows (F1)")
        self.previous = tool_button("◂", "the mark before (P)")
        self.next = tool_button("▸", "the next mark (N)")
        self.legend = label("", 10)
        self.speed.setVisible(past)
        for widget in (self.button, self.slider, self.place, self.speed, self.span, self.cursors, self.home, self.help):
            self.head.addWidget(widget, 1 if widget is self.slider else 0)
        if past:
            help_text = "space: play or pause   ← →: tick   Shift ← →: 0.1 s   Page: 1 s   Home, End   N, P: marks"
            foot = QtWidgets.QHBoxLayout()
            foot.addWidget(label(help_text, 10, faint=True))
            foot.addStretch(1)
            for widget in (self.legend, self.previous, self.next):
                foot.addWidget(widget)
            self.body.addLayout(foot)

    def show_legend(self, words: str) -> None:
        """Show the legend of the marks on the strip; without marks, disable the buttons for navigation."""
        self.legend.setText(words)
        for widget in (self.previous, self.next):
            widget.setEnabled(bool(words))

    @property
    def factor(self) -> float:
        """Selected speed, 1 for real time."""
        return float(self.speed.currentData())

    @property
    def seconds(self) -> float:
        """Selected time span [s]."""
        return float(self.span.currentData())

    def show_place(self, index: int, tick: int, time: float, end: float) -> None:
        """Show the position of the replay without a signal of the slider."""
        with QtCore.QSignalBlocker(self.slider):
            self.slider.setValue(index)
        self.place.setText(f"tick {grouped(tick)}\u2002·\u2002{clock(time)} of {clock(end)}")

    def show_history(self, history: History, latest: float) -> None:
        """Show the position of the window in a live run, whose newest row is at `latest` [s]."""
        with QtCore.QSignalBlocker(self.slider):
            self.slider.setRange(min(history.oldest + 1, history.count), history.count)
            self.slider.setValue(history.stop)
        self.button.setText("Go on" if history.held else "Pause")
        shown = history.newest(Column.TIME)
        if history.held:
            self.place.setText(f"<b>PAUSED</b> at {clock(shown)}, {latest - shown:.1f} s ago")
        else:
            self.place.setText(f"live\u2002·\u2002{clock(shown)}")


def _list(meaning: str, entries: dict[float, str], chosen: float) -> QtWidgets.QComboBox:
    """Return a list of values with their texts."""
    box = QtWidgets.QComboBox()
    for value, words in entries.items():
        box.addItem(words, value)
    box.setCurrentIndex(list(entries).index(chosen))
    box.setAccessibleName(meaning)
    box.setToolTip(meaning)
    return box


_ROLES = dict(zip(KINDS, ("stop", "stick", "faint", "motion", "friction", "text", "text"), strict=True))
"""Colour of each kind of mark in the theme."""


class OverviewStrip(QtWidgets.QWidget):
    """Overview strip.

    Parameters
    ----------
    overview : Overview
        Data to draw. It may still be incomplete.
    rows : int
        Number of rows of the recording.
    rate : float
        Nominal rate of the recording [Hz].

    Attributes
    ----------
    moved : signal (row)
        Emitted when the user selects a row.
    """

    moved = QtCore.Signal(int)

    def __init__(self, overview: Overview, rows: int, rate: float) -> None:
        super().__init__()
        self._overview, self._rows, self._rate = overview, max(rows, 1), rate
        self._place, self._span = 0, 1
        self._marks: list[Mark] = []
        self.setFixedHeight(px(_HEIGHT))
        self.setMouseTracking(True)
        self.setFocusPolicy(QtCore.Qt.FocusPolicy.NoFocus)
        self.setCursor(QtCore.Qt.CursorShape.PointingHandCursor)
        self.setAccessibleName("overview of the recording")

    def show_place(self, row: int, span: int) -> None:
        """Show the current row and the visible span."""
        self._place, self._span = row, span
        self.update()

    def refresh(self) -> None:
        """Update the marks and redraw."""
        self._marks = self._overview.marks
        self.update()

    def legend(self) -> str:
        """Return a legend of the kinds of marks present, as rich text."""
        there = {mark.kind for mark in self._marks} - {"end"}
        names = {"unusable": "unusable", "limit": "limited", "skipped": "skipped"}
        return "\u2002".join(
            f"<span style='color:{getattr(current_theme(), _ROLES[kind])}'>\u25ae</span>\u00a0{names.get(kind, kind)}"
            for kind in KINDS
            if kind in there
        )

    # --- drawing

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:  # noqa: N802
        """Draw the strip (Qt event handler)."""
        painter, theme = QtGui.QPainter(self), current_theme()
        height, tall = self.height() - px(_AXIS), px(8)
        painter.fillRect(0, 0, self.width(), height, QtGui.QColor(theme.ground))
        painter.setPen(QtGui.QColor(theme.faint))
        painter.setFont(font(8))
        duration = self._rows / self._rate
        least = px(_APART) * duration / max(self.width(), 1)
        step = next((step for step in _STEPS if step >= least), _STEPS[-1])
        for second in range(0, int(duration) + 1, step):  # labels of the time axis in h:min:s
            words = clock(second).removesuffix(".0")
            x, width = self._x_of(round(second * self._rate)), painter.fontMetrics().horizontalAdvance(words)
            painter.drawLine(x, height, x, height + px(3))
            left = min(max(x - width // 2, 0), self.width() - width)
            painter.drawText(QtCore.QPoint(left, height + px(_AXIS) - 1), words)
        half = (height - tall) // 2
        self._draw_extremes(painter, self._overview.force, theme.force, 0, half)
        self._draw_extremes(painter, self._overview.speed, theme.motion, half + tall, height - half - tall)
        for kind, role in _ROLES.items():
            painter.setPen(QtGui.QPen(QtGui.QColor(getattr(theme, role)), 2))
            for mark in self._marks:
                if mark.kind == kind:
                    x = self._x_of(mark.row)
                    painter.drawLine(x, half, x, half + tall)
        first = self._x_of(max(self._place - self._span, 0))
        last = max(self._x_of(self._place), first + 1)
        painter.fillRect(first, 0, last - first, height, brush(theme.text, 0.18))
        painter.setPen(QtGui.QPen(QtGui.QColor(theme.text), 1))
        painter.drawLine(last, 0, last, height)
        painter.setFont(font(8))
        for words, top in (("force", 0), ("speed", height - half)):
            room = QtCore.QRect(0, top, painter.fontMetrics().horizontalAdvance(words) + px(6), half)
            painter.fillRect(room, brush(theme.panel, 0.8))
            painter.setPen(QtGui.QColor(theme.text))
            painter.drawText(room, QtCore.Qt.AlignmentFlag.AlignCenter, words)

    def _draw_extremes(self, painter: QtGui.QPainter, extremes: np.ndarray, colour: str, top: int, height: int) -> None:
        """Draw a vertical line from minimum to maximum for each pixel column."""
        width = max(self.width(), 1)
        edges = np.arange(width + 1) * BINS // width
        starts = edges[:-1]
        with np.errstate(invalid="ignore"):
            low = np.fmin.reduceat(extremes[:, 0], np.minimum(starts, BINS - 1))
            high = np.fmax.reduceat(extremes[:, 1], np.minimum(starts, BINS - 1))
        known = np.isfinite(low) & np.isfinite(high)
        if not known.any():
            return
        most = max(float(high[known].max()), 1e-9)
        bottom = top + height
        lines = [
            QtCore.QLineF(x, bottom - height * float(low[x]) / most, x, bottom - height * float(high[x]) / most - 0.5)
            for x in np.flatnonzero(known).tolist()
        ]
        painter.setPen(QtGui.QPen(QtGui.QColor(colour), 1))
        painter.drawLines(lines)

    def _x_of(self, row: int) -> int:
        return int(row * (self.width() - 1) / self._rows)

    # --- mouse

    def _row_at(self, x: float) -> int:
        return min(max(round(x * self._rows / max(self.width() - 1, 1)), 0), self._rows - 1)

    def mousePressEvent(self, event: QtGui.QMouseEvent) -> None:  # noqa: N802
        """Seek to the clicked position (Qt event handler)."""
        self.moved.emit(self._row_at(event.position().x()))

    def mouseMoveEvent(self, event: QtGui.QMouseEvent) -> None:  # noqa: N802
        """Seek while dragging, otherwise show a tool tip (Qt event handler)."""
        x = event.position().x()
        if event.buttons():
            self.moved.emit(self._row_at(x))
            return
        near = [mark for mark in self._marks if abs(self._x_of(mark.row) - x) <= px(_NEAR)]
        lines = [clock(self._row_at(x) / self._rate)]
        lines += [f"{clock(mark.row / self._rate)}  {mark.words}" for mark in near[:8]]
        lines += [f"and {len(near) - 8} more"] if len(near) > 8 else []
        QtWidgets.QToolTip.showText(event.globalPosition().toPoint(), "\n".join(lines), self)
