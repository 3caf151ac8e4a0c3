"""Plot of friction force over sliding speed, together with the curve of the law."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from apps.front_ends.run import RunInfo, region_name
from apps.shared.scale import AxisTop
from apps.shared.theme import Theme
from apps.view.feed import Feed
from apps.view.history import Column, History, every
from apps.view.laws.curves import CurveRequest
from apps.view.laws.place import place_of, with_background
from apps.view.laws.process import LawCurves
from apps.view.panels.charts import Key, Sign, brush, chart, curve, dress_chart, pen
from apps.view.plots.cursors import Cursors
from apps.view.plots.plot import Plot, Table, box_of, least_height
from apps.view.qt import pg, px

if TYPE_CHECKING:
    from haptics.scenes import Scene

_STEP = 0.004
"""Time between two points drawn [s]."""

_RECENT = 0.4
"""Duration of the newest part that is drawn bold [s]."""

_MOST_CURVES = 3


class SpeedPanel(Plot):
    """Plot of force over speed."""

    name = "force_over_speed"
    title = "Force over speed"
    about = (
        "The friction force over the sliding speed: what was rendered (line; the newest 0.4 s bold) on what the law "
        "says (dashed); in a scene, what it says where the contact is. While the contact sticks the speed is zero and "
        "the force anything up to the level at rest."
    )

    def __init__(self) -> None:
        super().__init__()
        self.law = LawCurves()
        self._values: dict[str, float] = {}
        self._scene: Scene | None = None
        self._key = Key(
            (Sign.DASH, "text", "law"), (Sign.LINE, "motion", "rendered"), (Sign.WIDE, "friction", "newest")
        )
        self.head.addWidget(self._key)
        self.chart: Any = chart("friction [N]", "sliding speed [mm/s]")
        self.charts = [self.chart]
        self.finish()
        least_height(self.chart, 92)
        self._laws = [curve(self.chart) for _ in range(_MOST_CURVES)]
        for item in self._laws:
            item.setSegmentedLineMode("off")  # in segmented mode, the dash pattern would restart at every point
        self._all, self._newest = curve(self.chart), curve(self.chart)
        self._point = pg.ScatterPlotItem(pxMode=True, symbol="o", size=px(10))
        self.chart.addItem(self._point, ignoreBounds=True)
        self.body.addWidget(self.chart, 1)
        self.measure(Cursors(self.charts, ("sliding speed", "mm/s"), up=("friction", "N")))
        self._reset(1.0)

    def _reset(self, force: float) -> None:
        self._fastest, self._top = AxisTop(20.0), AxisTop(force)
        self._set_range()

    def _set_range(self) -> None:
        fastest, top = self._fastest.top, self._top.top
        box_of(self.chart).show_range((-0.02 * fastest, fastest), (0.0, top))

    def configure(self, info: RunInfo) -> None:
        """Clear the plot and prepare it for a run."""
        super().configure(info)
        self._scene = info.scene
        self.law.clear()
        self._reset(1.25 * info.force_scale)
        for item in (*self._laws, self._all, self._newest, self._point):
            item.setData(np.zeros(0), np.zeros(0))

    def show_values(self, values: Mapping[str, float]) -> None:
        """Update the parameters of the law that is drawn."""
        self._values = dict(values)
        self._scene = None if self.info.scene is None else with_background(self.info.scene, values)

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        super().apply(theme)
        dress_chart(self.chart, theme)
        self._key.apply(theme)
        for item in self._laws:
            item.setPen(pen(theme.text, 2, dashed=True))
        self._all.setPen(pen(theme.motion))
        self._newest.setPen(pen(theme.friction, 3))
        self._point.setPen(None)
        self._point.setBrush(brush(theme.text))

    def draw(self, history: History) -> None:
        """Draw the rows of `history`."""
        speed, force = history.column(Column.SLIDING), history.column(Column.FRICTION)
        chosen = every(history.first, len(speed), max(round(_STEP * self.info.rate), 1))
        self._all.setData(speed[chosen], force[chosen])
        recent = round(_RECENT * self.info.rate)
        self._newest.setData(speed[-recent:].copy(), force[-recent:].copy())
        self._point.setData(speed[-1:].copy(), force[-1:].copy())
        grown = self._fastest.follow(float(speed.max())), self._top.follow(float(force.max()))
        if any(grown):
            self._set_range()

    def refresh_texts(self, feed: Feed) -> None:
        """Request and draw the law in force."""
        super().refresh_texts(feed)
        numbers = {key.partition(".")[2]: value for key, value in self._values.items() if key.startswith("law.")}
        table = {"name": self.info.law, **self.info.law_settings, **numbers}
        place = place_of(feed.history) if self._scene is not None else None
        self.law.request(CurveRequest(tuple(sorted(table.items())), self._fastest.top, place, self._scene))
        self._draw_law(round(feed.history.newest(Column.REGION)))

    def _draw_law(self, region: int) -> None:
        """Draw the available curves of the law and label them."""
        found = self.law.found
        for number, item in enumerate(self._laws):
            item.setData(*(found[number] if number < len(found) else (np.zeros(0), np.zeros(0))))
        here = "" if self._scene is None else f" in {region_name(self._scene, region)}"
        self._key.texts[0].setText("no law" if not found else "law here" if here else "law")
        self._key.texts[0].setToolTip(f"{self.info.law}{here}")

    def table(self, history: History) -> Table:
        """Return time, sliding speed and friction force of the window."""
        names = {"time_s": Column.TIME, "sliding_speed_mm_per_s": Column.SLIDING, "friction_n": Column.FRICTION}
        return {name: history.column(column) for name, column in names.items()}
