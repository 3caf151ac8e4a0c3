"""Overview strip of a recording: force and speed over the whole time, with marks. Clicking seeks."""

from __future__ import annotations

import numpy as np

from apps.shared.scale import clock
from apps.shared.theme import DARK, Theme
from apps.view.overview import BINS, KINDS, Mark, Overview
from apps.view.panels.charts import brush
from apps.view.qt import QtCore, QtGui, QtWidgets, font, px

_HEIGHT, _AXIS = 56, 13
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 28_800, 43_200, 86_400)
"""Distances of the labels on the time axis [s]."""

_APART = 90
"""Minimum distance of the labels [pixel]."""

_NEAR = 5
"""Distance within which marks are listed in the tool tip [pixel]."""


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
        self._theme: Theme = DARK
        self._place, self._span = 0, 1
        self._marks: list[Mark] = []
        self.setFixedHeight(px(_HEIGHT))
        self.setMouseTracking(True)
        self.setFocusPolicy(QtCore.Qt.FocusPolicy.NoFocus)
        self.setCursor(QtCore.Qt.CursorShape.PointingHandCursor)
        self.setAccessibleName("overview of the recording")

    def apply(self, theme: Theme) -> None:
        """Set the colour theme."""
        self._theme = theme
        self.update()

    def show_place(self, row: int, span: int) -> None:
        """Show the current row and the visible span."""
        self._place, self._span = row, span
        self.update()

    def refresh(self) -> None:
        """Update the marks and redraw."""
        self._marks = self._overview.marks
        self.update()

    @property
    def colours(self) -> dict[str, str]:
        """Colour of each kind of mark."""
        theme = self._theme
        return {
            "unusable": theme.stop,
            "limit": theme.stick,
            "skipped": theme.faint,
            "trial": theme.motion,
            "settings": theme.friction,
            "key": theme.text,
            "end": theme.text,
        }

    def legend(self) -> str:
        """Return a legend of the kinds of marks present, as rich text."""
        there = {mark.kind for mark in self._marks} - {"end"}
        names = {"unusable": "unusable", "limit": "limited", "skipped": "skipped"}
        return "\u2002".join(
            f"<span style='color:{self.colours[kind]}'>\u25ae</span>\u00a0{names.get(kind, kind)}"
            for kind in KINDS
            if kind in there
        )

    # --- drawing

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:  # noqa: N802
        """Draw the strip (Qt event handler)."""
        painter = QtGui.QPainter(self)
        height, tall = self.height() - px(_AXIS), px(8)
        painter.fillRect(0, 0, self.width(), height, QtGui.QColor(self._theme.ground))
        self._draw_axis(painter, height)
        half = (height - tall) // 2
        self._draw_extremes(painter, self._overview.force, self._theme.force, 0, half)
        self._draw_extremes(painter, self._overview.speed, self._theme.motion, half + tall, height - half - tall)
        for kind, colour in self.colours.items():
            painter.setPen(QtGui.QPen(QtGui.QColor(colour), 2))
            for mark in self._marks:
                if mark.kind == kind:
                    x = self._x_of(mark.row)
                    painter.drawLine(x, half, x, half + tall)
        first = self._x_of(max(self._place - self._span, 0))
        last = max(self._x_of(self._place), first + 1)
        painter.fillRect(first, 0, last - first, height, brush(self._theme.text, 0.18))
        painter.setPen(QtGui.QPen(QtGui.QColor(self._theme.text), 1))
        painter.drawLine(last, 0, last, height)
        painter.setFont(font(8))
        for words, top in (("force", 0), ("speed", height - half)):
            room = QtCore.QRect(0, top, painter.fontMetrics().horizontalAdvance(words) + px(6), half)
            painter.fillRect(room, brush(self._theme.panel, 0.8))
            painter.setPen(QtGui.QColor(self._theme.text))
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

    def labels(self) -> list[tuple[int, str]]:
        """Return row and text of the labels on the time axis, in h:min:s."""
        duration = self._rows / self._rate
        room = px(_APART) * duration / max(self.width(), 1)
        step = next((step for step in _STEPS if step >= room), _STEPS[-1])
        seconds = range(0, int(duration) + 1, step)
        return [(round(time * self._rate), clock(time).removesuffix(".0")) for time in seconds]

    def _draw_axis(self, painter: QtGui.QPainter, top: int) -> None:
        painter.setPen(QtGui.QColor(self._theme.faint))
        painter.setFont(font(8))
        for row, words in self.labels():
            x, width = self._x_of(row), painter.fontMetrics().horizontalAdvance(words)
            painter.drawLine(x, top, x, top + px(3))
            left = min(max(x - width // 2, 0), self.width() - width)
            painter.drawText(QtCore.QPoint(left, top + px(_AXIS) - 1), words)

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
