"""Timing of the servo: start delay (jitter), computation time, and a lamp for each way to miss a deadline."""

from __future__ import annotations

from typing import Any

import numpy as np

from apps.shared.scale import microseconds
from apps.shared.theme import Theme
from apps.view.counts import Counts, Durations
from apps.view.feed import Feed
from apps.view.history import Column
from apps.view.panels.charts import Key, Panel, Sign, brush, chart, dress_chart, pen
from apps.view.panels.lamps import TIMING, Lamps
from apps.view.qt import label, pg
from apps.view.run import RunInfo


class TimingPanel(Panel):
    """Histogram, its quantiles and the lamps."""

    def __init__(self) -> None:
        super().__init__("Start delay")
        self.quantiles = label("", 10)
        self.head.addStretch(1)
        self.head.addWidget(self.quantiles)
        self.chart: Any = chart("ticks", "")
        self._build_axes()
        self.chart.setToolTip(
            "start delay of the ticks (filled: the last 5 s; thin line: the whole run)\n"
            "and their computation time (wide line); what lies outside the axis is in its first and last bin"
        )
        edges, nothing = Durations.EDGES, np.zeros(len(Durations.EDGES) - 1)
        # A step curve without data raises when it is painted: both have edges from the start.
        self._run = pg.PlotCurveItem(edges, nothing, stepMode="center", skipFiniteCheck=True)
        self._recent = pg.PlotCurveItem(edges, nothing, stepMode="center", fillLevel=0, skipFiniteCheck=True)
        self._work = pg.PlotCurveItem(edges, nothing, stepMode="center", skipFiniteCheck=True)
        for item in (self._recent, self._work, self._run):
            self.chart.addItem(item, ignoreBounds=True)
        self._period = self.chart.plotItem.addLine(x=3.0)
        self._key = Key(
            (Sign.BAND, "motion", "last 5 s"),
            (Sign.LINE, "text", "whole run"),
            (Sign.WIDE, "friction", "computation"),
            (Sign.DASH, "faint", "one period"),
        )
        self.lamps = Lamps(TIMING, columns=3)
        self.body.addWidget(self.chart, 1)
        self.body.addWidget(self._key)
        self.body.addWidget(self.lamps)

    def _build_axes(self) -> None:
        axes = self.chart.getPlotItem()
        named = ((-1, "0.1 µs"), (0, "1 µs"), (1, "10 µs"), (2, "100 µs"), (3, "1 ms"), (4, "10 ms"))
        minor = [(decade + np.log10(step), "") for decade in range(-1, 4) for step in range(2, 10)]
        axes.getAxis("bottom").setTicks([list(named), minor])
        # Counts on a logarithmic axis, as log(1 + n), so that one late tick in a million can be seen.
        ticks = [(float(np.log10(1 + 10**power)), f"{10**power:,}".replace(",", "\u2009")) for power in range(8)]
        axes.getAxis("left").setTicks([ticks])
        self.chart.getViewBox().setRange(xRange=(-1.12, 4.12), yRange=(0, 4.2), padding=0)

    def configure(self, info: RunInfo) -> None:
        """Show another run, empty."""
        self._period.setValue(float(np.log10(1e6 / info.rate)))
        self.quantiles.setText("")
        self._draw(Durations(), Durations())
        self.lamps.refresh(Counts())

    def apply(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        dress_chart(self.chart, theme)
        self._key.apply(theme)
        self.lamps.apply(theme)
        self._run.setPen(pen(theme.text))
        self._work.setPen(pen(theme.friction, 2))
        self._recent.setPen(None)
        self._recent.setBrush(brush(theme.motion, 0.65))
        self._period.setPen(pen(theme.faint, 1, dashed=True))

    def refresh(self, feed: Feed) -> None:
        """Draw what `feed` holds."""
        self.lamps.refresh(feed.counts)
        recent = feed.history.column(Column.LATENESS)
        if not len(recent):
            return
        self._draw(feed.lateness, feed.tick_times, Durations.histogram(recent))
        half, most = np.percentile(recent, (50, 99))
        named = (("p50", half), ("p99", most), ("max", feed.lateness.maximum))
        self.quantiles.setText("\u2002·\u2002".join(f"{name} {microseconds(value)}" for name, value in named))
        self.quantiles.setToolTip("p50 and p99 of the last 5 s, the maximum of the whole run")

    def _draw(self, run: Durations, work: Durations, recent: Any = None) -> None:
        recent = np.zeros_like(run.counts) if recent is None else recent
        edges = Durations.EDGES
        self._run.setData(edges, np.log10(1.0 + run.counts), stepMode="center")
        self._work.setData(edges, np.log10(1.0 + work.counts), stepMode="center")
        self._recent.setData(edges, np.log10(1.0 + recent), stepMode="center", fillLevel=0)
        largest = max(run.counts.max(), work.counts.max())
        self.chart.getViewBox().setYRange(0, max(np.log10(1.0 + largest) + 0.25, 3.2), padding=0)
