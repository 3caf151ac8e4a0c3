"""Chart over time with curves, shaded phases of sticking, and axes that follow the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from apps.front_ends.stretches import runs
from apps.shared.scale import AxisTop
from apps.shared.theme import Theme
from apps.view.feed import SPAN
from apps.view.history import Column, Floats, History, envelope
from apps.view.panels.charts import brush, chart, curve, dress_chart
from apps.view.plots.plot import ages, box_of
from apps.view.qt import QtCore, QtGui, QtWidgets

POINTS = 500
"""Number of bins across a chart: about one per pixel."""


class Strip:
    """One chart over time.

    Parameters
    ----------
    left, bottom : str
        Labels of the axes.
    curves : int
        Number of curves.
    least : float
        Minimum upper end of the y axis.
    signed : bool
        Whether values may be negative; if so, the lower end of the axis follows them.
    floor : float
        Lower end of the y axis for non-negative values.
    """

    def __init__(
        self, left: str, bottom: str, curves: int, least: float, signed: bool = False, floor: float = 0.0
    ) -> None:
        self.chart: Any = chart(left, bottom)
        self._phases = QtWidgets.QGraphicsPathItem()
        self.chart.addItem(self._phases, ignoreBounds=True)
        self.curves = [curve(self.chart) for _ in range(curves)]
        self._signed, self._floor = signed, floor
        self.reset(least)

    def reset(self, least: float) -> None:
        """Clear the chart."""
        self._span = SPAN
        self._top, self._bottom = AxisTop(least), AxisTop(least)
        self._phases.setPath(QtGui.QPainterPath())
        for item in self.curves:
            item.setData(np.zeros(0), np.zeros(0))
        self._set_range()

    @property
    def _low(self) -> float:
        return -self._bottom.top if self._signed else self._floor

    def _set_range(self) -> None:
        box_of(self.chart).show_range((-self._span, 0.0), (self._low, self._top.top))

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        dress_chart(self.chart, theme)
        self._phases.setPen(QtGui.QPen(QtCore.Qt.PenStyle.NoPen))
        self._phases.setBrush(brush(theme.stick, 0.22))

    def draw(self, number: int, age: Floats, values: Floats, first: int, size: int) -> None:
        """Draw a curve through the extremes of every `size` rows; the oldest row has the number `first`."""
        places, extremes = envelope(values, first, size)
        self.curves[number].setData(age[places.astype(np.intp)], extremes)

    def follow(self, largest: float, span: float, smallest: float = 0.0) -> None:
        """Adapt the axes to the extreme values and the time span [s] shown."""
        changed = self._top.follow(largest)
        changed = (self._signed and self._bottom.follow(-smallest)) or changed
        if changed or span != self._span:
            self._span = span
            self._set_range()

    def shade(self, history: History, rate: float) -> None:
        """Shade the time in which the contact sticks."""
        age, stretches = ages(history), runs(history.column(Column.STICKING))
        path = QtGui.QPainterPath()
        starts, stops = age[stretches.start].tolist(), (age[stretches.stop - 1] + 1.0 / rate).tolist()
        for start, stop in zip(starts, stops, strict=True):
            path.addRect(QtCore.QRectF(start, self._low, stop - start, self._top.top - self._low))
        self._phases.setPath(path)


def bin_size(history: History) -> int:
    """Return the number of rows per bin of a curve."""
    return max(history.capacity // POINTS, 1)
