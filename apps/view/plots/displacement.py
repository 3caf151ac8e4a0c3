"""Plot of friction force over displacement (hysteresis loops) along the main direction of motion."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from apps.front_ends.run import RunInfo
from apps.shared.scale import AxisTop
from apps.shared.theme import Theme
from apps.view.feed import Feed
from apps.view.history import Column, Floats, History, every
from apps.view.panels.charts import Key, Sign, brush, chart, curve, dress_chart, pen
from apps.view.plots.cursors import Cursors
from apps.view.plots.plot import Plot, Table, box_of, least_height, main_axis
from apps.view.qt import pg, px

_STEP = 0.002
_RECENT = 0.4


class DisplacementPanel(Plot):
    """Plot of force over displacement."""

    name = "force_over_displacement"
    title = "Force over displacement"
    about = (
        "Hysteresis: the friction force along the direction in which the end effector moved most, over its "
        "displacement in that direction from the middle of the workspace. The area of a loop is the energy it took. "
        "Zoom into a turning point to see the element being wound up before it slides."
    )

    def __init__(self) -> None:
        super().__init__()
        self._axis: Floats = np.array([1.0, 0.0])
        self._middle: Floats = np.zeros(2)
        self._key = Key((Sign.LINE, "motion", "rendered"), (Sign.WIDE, "friction", "newest"))
        self.head.addWidget(self._key)
        self.chart: Any = chart("friction [N]", "displacement along 0° [mm]")
        self.charts = [self.chart]
        self.finish()
        least_height(self.chart, 100)
        self._all, self._newest = curve(self.chart), curve(self.chart)
        self._point = pg.ScatterPlotItem(pxMode=True, symbol="o", size=px(10))
        self.chart.addItem(self._point, ignoreBounds=True)
        self.body.addWidget(self.chart, 1)
        self.measure(Cursors(self.charts, ("displacement", "mm"), up=("friction", "N")))
        self._reset(1.0)

    def _reset(self, force: float) -> None:
        self._far, self._top = AxisTop(5.0), AxisTop(force)
        self._set_range()

    def _set_range(self) -> None:
        far, top = self._far.top, self._top.top
        box_of(self.chart).show_range((-far, far), (-top, top))

    def configure(self, info: RunInfo) -> None:
        """Clear the plot and prepare it for a run."""
        super().configure(info)
        self._middle = 1e3 * np.mean(info.workspace, axis=0)
        self._reset(1.25 * info.force_scale)
        for item in (self._all, self._newest, self._point):
            item.setData(np.zeros(0), np.zeros(0))

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        super().apply(theme)
        dress_chart(self.chart, theme)
        self._key.apply(theme)
        self._all.setPen(pen(theme.motion))
        self._newest.setPen(pen(theme.friction, 3))
        self._point.setPen(None)
        self._point.setBrush(brush(theme.text))

    def _along(self, history: History) -> tuple[Floats, Floats]:
        """Return displacement [mm] and friction force [N] along the main direction of motion."""
        x, y = history.column(Column.X) - self._middle[0], history.column(Column.Y) - self._middle[1]
        self._axis = main_axis(x, y, self._axis)
        across, up = self._axis
        force = across * history.column(Column.FRICTION_X) + up * history.column(Column.FRICTION_Y)
        return across * x + up * y, force

    def draw(self, history: History) -> None:
        """Draw the rows of `history`."""
        place, force = self._along(history)
        chosen = every(history.first, len(place), max(round(_STEP * self.info.rate), 1))
        self._all.setData(place[chosen], force[chosen])
        recent = round(_RECENT * self.info.rate)
        self._newest.setData(place[-recent:].copy(), force[-recent:].copy())
        self._point.setData(place[-1:].copy(), force[-1:].copy())
        grown = self._far.follow(float(np.abs(place).max())), self._top.follow(float(np.abs(force).max()))
        if any(grown):
            self._set_range()

    def refresh_texts(self, feed: Feed) -> None:
        """Show the direction of the displacement in the axis label."""
        super().refresh_texts(feed)
        degrees = math.degrees(math.atan2(self._axis[1], self._axis[0]))
        self.chart.plotItem.setLabel("bottom", f"displacement along {degrees:.0f}° [mm]")

    def table(self, history: History) -> Table:
        """Return time, and displacement and friction force along the main direction, of the window."""
        place, force = self._along(history)
        return {"time_s": history.column(Column.TIME), "displacement_mm": place, "friction_along_n": force}
