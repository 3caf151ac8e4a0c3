"""Force and speed against time, with the phases of sticking shaded."""

from __future__ import annotations

from typing import Any

import numpy as np

from apps.shared.scale import AxisTop
from apps.shared.theme import Theme, blend
from apps.view.feed import SPAN
from apps.view.history import Column, History, averages, envelope, runs
from apps.view.panels.charts import Key, Panel, Sign, brush, chart, curve, dress_chart, pen
from apps.view.qt import QtCore, QtGui, QtWidgets
from apps.view.run import RunInfo

_LEAST_HEIGHTS = 112, 126
"""What plots with readable axes need [pixel]."""

_POINTS = 500
"""Bins across a plot: about one per pixel."""


class _Strip:
    """One plot against time: shaded phases behind, curves in front, an axis from zero that follows them."""

    def __init__(self, left: str, bottom: str, curves: int, least: float) -> None:
        self.chart: Any = chart(left, bottom)
        self._phases = QtWidgets.QGraphicsPathItem()
        self.chart.addItem(self._phases, ignoreBounds=True)
        self.curves = [curve(self.chart) for _ in range(curves)]
        self.reset(least)

    def reset(self, least: float) -> None:
        """Empty the plot; its axis goes up to `least` or more."""
        self._top = AxisTop(least)
        self._phases.setPath(QtGui.QPainterPath())
        for item in self.curves:
            item.setData(np.zeros(0), np.zeros(0))
        self._set_range()

    def _set_range(self) -> None:
        self.chart.getViewBox().setRange(xRange=(-SPAN, 0), yRange=(0, self._top.top), padding=0)

    def apply(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        dress_chart(self.chart, theme)
        self._phases.setPen(QtGui.QPen(QtCore.Qt.PenStyle.NoPen))
        self._phases.setBrush(brush(theme.stick, 0.22))

    def follow(self, largest: float) -> None:
        """Let the axis follow the largest value shown."""
        if self._top.follow(largest):
            self._set_range()

    def shade(self, phases: list[tuple[float, float]]) -> None:
        """Shade stretches of time (start, stop) [s]."""
        path = QtGui.QPainterPath()
        for start, stop in phases:
            path.addRect(QtCore.QRectF(start, 0.0, stop - start, self._top.top))
        self._phases.setPath(path)


class SeriesPanel(Panel):
    """The time plots, newest at the right edge."""

    def __init__(self) -> None:
        super().__init__()
        self._info = RunInfo()
        self._levels: tuple[float, ...] = ()
        self._dashes = pen("#808080")
        self.forces = _Strip("force [N]", "", 2, 1.0)
        self.speeds = _Strip("speed [mm/s]", "seconds before now", 2, 20.0)
        self._level_lines: list[Any] = []
        self._key = Key(
            (Sign.WIDE, "friction", "friction"),
            (Sign.LINE, "force", "command"),
            (Sign.DASH, "text", "law"),
            (Sign.BAND, "stick", "stick"),
        )
        self.head.addWidget(self._key)
        for strip, stretch, least in zip((self.forces, self.speeds), (6, 5), _LEAST_HEIGHTS, strict=True):
            strip.chart.setMinimumHeight(least)
            self.body.addWidget(strip.chart, stretch)

    def configure(self, info: RunInfo) -> None:
        """Show another run, empty."""
        self._info = info
        self._key.texts[1].setText(info.force_name)
        self.forces.reset(1.25 * info.force_scale)
        self.speeds.reset(20.0)

    def set_levels(self, levels: tuple[float, ...]) -> None:
        """Draw the law's levels [N] as dashed lines across."""
        self._levels = levels
        while len(self._level_lines) < len(levels):
            line = self.forces.chart.plotItem.addLine(y=0.0)
            line.setZValue(5)
            self._level_lines.append(line)
        for number, line in enumerate(self._level_lines):
            line.setVisible(number < len(levels))
            line.setPen(self._dashes)
            if number < len(levels):
                line.setValue(levels[number])

    def apply(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        self._key.apply(theme)
        self.forces.apply(theme)
        self.speeds.apply(theme)
        friction, force = self.forces.curves
        friction.setPen(pen(theme.friction, 3))
        force.setPen(pen(theme.force, 1))
        samples, mean = self.speeds.curves
        samples.setPen(pen(blend(theme.motion, theme.panel, 0.4)))
        mean.setPen(pen(theme.motion, 2))
        self._dashes = pen(theme.text, 1, dashed=True)
        self.set_levels(self._levels)

    def refresh(self, history: History) -> None:
        """Draw the rows of `history`."""
        if not len(history):
            return
        age = history.column(Column.TIME) - history.newest(Column.TIME)
        size = max(history.capacity // _POINTS, 1)
        samples, mean = self.speeds.curves
        columns = (Column.FRICTION, Column.FORCE, Column.SPEED)
        for item, column in zip((*self.forces.curves, samples), columns, strict=True):
            places, values = envelope(history.column(column), history.first, size)
            item.setData(age[places.astype(np.intp)], values)
        # A speed taken from an encoder comes in steps: the mean over 20 ms is what the eye looks for.
        places, values = averages(history.column(Column.SPEED), history.first, max(round(0.02 * self._info.rate), 1))
        mean.setData(age[places.astype(np.intp)], values)
        largest = max(history.column(Column.FRICTION).max(), history.column(Column.FORCE).max(), *self._levels, 0.0)
        self.forces.follow(float(largest))
        self.speeds.follow(float(history.column(Column.SPEED).max()))
        phases = self._phases(history)
        self.forces.shade(phases)
        self.speeds.shade(phases)

    def _phases(self, history: History) -> list[tuple[float, float]]:
        age = history.column(Column.TIME) - history.newest(Column.TIME)
        stretches = runs(history.column(Column.STICKING))
        period = 1.0 / self._info.rate
        return list(zip(age[stretches.start].tolist(), (age[stretches.stop - 1] + period).tolist(), strict=True))
