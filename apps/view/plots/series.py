"""Plot of force and speed over time, with phases of sticking shaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from apps.front_ends.run import RunInfo, levels
from apps.shared.theme import Theme, blend
from apps.view.feed import Feed
from apps.view.history import Column, History, averages
from apps.view.laws.place import levels_at, place_of, with_background
from apps.view.panels.charts import Key, Sign, pen
from apps.view.plots.cursors import Cursors, Reading
from apps.view.plots.plot import Plot, Table, ages, box_of, least_height
from apps.view.plots.strip import Strip, bin_size

if TYPE_CHECKING:
    from haptics.scenes import Scene

_LEAST_HEIGHTS = 61, 76
"""Minimum heights of charts with readable axes [pixel on an ordinary screen]."""


class SeriesPanel(Plot):
    """Plot of force and speed over time, newest at the right edge."""

    name = "force_and_speed"
    title = "Force, speed"
    about = (
        "Norms against time: the friction force, the force that is sent (or measured), the level of the law (in a "
        "scene that where the contact is now), and the speed with its mean over 20 ms. Bands: the contact sticks."
    )

    def __init__(self) -> None:
        super().__init__()
        self._levels: tuple[float, ...] = ()
        self._scene: Scene | None = None
        self._dashes = pen("#808080")
        self.forces = Strip("[N]", "", 2, 1.0)
        self.speeds = Strip("[mm/s]", "seconds before now", 2, 20.0)
        self._level_lines: list[Any] = []
        self._key = Key(
            (Sign.WIDE, "friction", "friction"),
            (Sign.LINE, "force", "command"),
            (Sign.DASH, "text", "law"),
            (Sign.BAND, "stick", "stick"),
        )
        self.head.addWidget(self._key)
        self.charts = [self.forces.chart, self.speeds.chart]
        for shown in self.charts:
            box_of(shown).link(tuple(box_of(other) for other in self.charts))
        self.finish()
        for strip, stretch, least in zip((self.forces, self.speeds), (6, 5), _LEAST_HEIGHTS, strict=True):
            least_height(strip.chart, least)
            self.body.addWidget(strip.chart, stretch)
        self.measure(Cursors(self.charts, ("time", "s"), self.readings))

    def configure(self, info: RunInfo) -> None:
        """Clear the plot and prepare it for a run."""
        super().configure(info)
        self._scene = info.scene
        self._key.texts[1].setText(info.force_name)
        self.forces.reset(1.25 * info.force_scale)
        self.speeds.reset(20.0)

    def show_values(self, values: Mapping[str, float]) -> None:
        """Draw the levels of the law as dashed horizontal lines."""
        self._levels = levels(values)
        self._scene = None if self.info.scene is None else with_background(self.info.scene, values)
        self._draw_levels()

    def refresh_texts(self, feed: Feed) -> None:
        """Update the levels of the law at the contact if there is a scene."""
        super().refresh_texts(feed)
        if self._scene is not None and len(feed.history):
            self._levels = levels_at(self._scene, place_of(feed.history))
            self._draw_levels()

    def _draw_levels(self) -> None:
        while len(self._level_lines) < len(self._levels):
            line = self.forces.chart.plotItem.addLine(y=0.0)
            line.setZValue(5)
            self._level_lines.append(line)
        for number, line in enumerate(self._level_lines):
            line.setVisible(number < len(self._levels))
            line.setPen(self._dashes)
            if number < len(self._levels):
                line.setValue(self._levels[number])

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        super().apply(theme)
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
        self._draw_levels()

    def draw(self, history: History) -> None:
        """Draw the rows of `history`."""
        age = ages(history)
        size = bin_size(history)
        columns = (Column.FRICTION, Column.FORCE, Column.SPEED)
        places = ((self.forces, 0), (self.forces, 1), (self.speeds, 0))
        for (strip, number), column in zip(places, columns, strict=True):
            strip.draw(number, age, history.column(column), history.first, size)
        # A speed from an encoder is quantized; the mean over 20 ms is easier to read.
        middles, values = averages(history.column(Column.SPEED), history.first, max(round(0.02 * self.info.rate), 1))
        self.speeds.curves[1].setData(age[middles.astype(np.intp)], values)
        largest = max(history.column(Column.FRICTION).max(), history.column(Column.FORCE).max(), *self._levels, 0.0)
        span = history.capacity / self.info.rate
        self.forces.follow(float(largest), span)
        self.speeds.follow(float(history.column(Column.SPEED).max()), span)
        for strip in (self.forces, self.speeds):
            strip.shade(history, self.info.rate)

    def readings(self) -> list[Reading]:
        """Return both forces and the speed over time."""
        age = ages(self.history)
        named = (("friction", "N"), (self.info.force_name, "N"), ("speed", "mm/s"))
        columns = (Column.FRICTION, Column.FORCE, Column.SPEED)
        return [
            Reading(name, unit, age, self.history.column(column))
            for (name, unit), column in zip(named, columns, strict=True)
        ]

    def table(self, history: History) -> Table:
        """Return time, forces and speed of the window."""
        names = {"time_s": Column.TIME, "friction_n": Column.FRICTION, "force_n": Column.FORCE}
        names |= {"speed_mm_per_s": Column.SPEED, "sticking": Column.STICKING}
        return {name: history.column(column) for name, column in names.items()}
