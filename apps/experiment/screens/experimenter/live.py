"""Live plots of the hand: force and speed over time, and position in the workspace."""

from __future__ import annotations

from typing import Any

from apps.front_ends.run import RunInfo
from apps.shared.theme import Theme
from apps.view.feed import Feed
from apps.view.history import Column, every
from apps.view.panels.charts import Panel, brush, chart, curve, dress_chart, pen
from apps.view.plots.series import SeriesPanel
from apps.view.qt import pg

_PATH_STEP = 0.008

_LEAST_HEIGHTS = 78, 92
"""Minimum heights of the plots over time [pixel], less than in the live view because of other panels."""


class PlacePanel(Panel):
    """Workspace with the path of the last seconds."""

    def __init__(self) -> None:
        super().__init__()
        self._rate = 1000.0
        self.chart: Any = chart("y [mm]", "x [mm]")
        self.chart.getPlotItem().setAspectLocked(True)
        self._outline, self.path = curve(self.chart), curve(self.chart)
        self.effector = pg.ScatterPlotItem(pxMode=True, symbol="o", size=11)
        self.chart.addItem(self.effector, ignoreBounds=True)
        self.body.addWidget(self.chart, 1)

    def configure(self, info: RunInfo) -> None:
        """Clear the plot for a new run."""
        self._rate = info.rate
        (left, low), (right, high) = [[1e3 * part for part in corner] for corner in info.workspace]
        self._outline.setData([left, right, right, left, left], [low, low, high, high, low])
        self.chart.getViewBox().setRange(xRange=(left, right), yRange=(low, high), padding=0.06)
        self.path.setData([], [])
        self.effector.setData([], [])

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        dress_chart(self.chart, theme)
        self._outline.setPen(pen(theme.faint, 1.5))
        self.path.setPen(pen(theme.motion, 2))
        self.effector.setPen(pen(theme.panel, 1))
        self.effector.setBrush(brush(theme.text))

    def refresh(self, feed: Feed) -> None:
        """Draw the newest rows."""
        history = feed.history
        if not len(history):
            return
        x, y = history.column(Column.X), history.column(Column.Y)
        chosen = every(history.first, len(x), max(round(_PATH_STEP * self._rate), 1))
        self.path.setData(x[chosen], y[chosen])
        self.effector.setData([x[-1]], [y[-1]])


class MotionPanel(SeriesPanel):
    """Force and speed over time, only the speed in blind mode."""

    def __init__(self) -> None:
        super().__init__()
        for widget in (self.choice, self.size_button, self.menu_button):
            widget.hide()
        for strip, least in zip((self.forces, self.speeds), _LEAST_HEIGHTS, strict=True):
            strip.chart.setMinimumHeight(least)
        self.speeds.chart.plotItem.setLabel("left", "[mm/s]")  # there is no space for a longer label

    def blind(self, blind: bool) -> None:
        """Hide or show the force."""
        self.forces.chart.setVisible(not blind)
        self._key.setVisible(not blind)
