"""Plot of the timing of the servo: start delay (jitter) and computation time."""

from __future__ import annotations

from typing import Any

import numpy as np

from apps.front_ends.run import RunInfo
from apps.shared.scale import microseconds
from apps.shared.theme import Theme
from apps.view.counts import Durations
from apps.view.feed import Feed
from apps.view.history import Column, History
from apps.view.panels.charts import Key, Sign, brush, chart, dress_chart, pen
from apps.view.plots.plot import Plot, Table, box_of, least_height
from apps.view.qt import label, pg


class TimingPanel(Plot):
    """Histograms of the timing, and quantiles."""

    name = "start_delay"
    title = "Start delay"
    about = (
        "How late the ticks started (filled: those that are shown, thin line: the whole run) and how long their "
        "computation took (wide line). What lies outside the axis is in its first and last bin."
    )

    def __init__(self) -> None:
        super().__init__()
        self.quantiles = label("", 10)
        self.head.addStretch(1)
        self.head.addWidget(self.quantiles)
        self.chart: Any = chart("ticks", "")
        self.charts = [self.chart]
        self._build_axes()
        self.finish()
        least_height(self.chart, 80)
        edges, nothing = Durations.EDGES, np.zeros(len(Durations.EDGES) - 1)
        # A step curve without data raises an error when it is painted, so all curves start with data.
        self._run = pg.PlotCurveItem(edges, nothing, stepMode="center", skipFiniteCheck=True)
        self._recent = pg.PlotCurveItem(edges, nothing, stepMode="center", fillLevel=0, skipFiniteCheck=True)
        self._work = pg.PlotCurveItem(edges, nothing, stepMode="center", skipFiniteCheck=True)
        for item in (self._recent, self._work, self._run):
            self.chart.addItem(item, ignoreBounds=True)
        self._period = self.chart.plotItem.addLine(x=3.0)
        self._key = Key(
            (Sign.BAND, "motion", "shown"),
            (Sign.LINE, "text", "whole run"),
            (Sign.WIDE, "friction", "computation"),
            (Sign.DASH, "faint", "one period"),
        )
        self.body.addWidget(self.chart, 1)
        self.body.addWidget(self._key)
        self._counts = Durations().counts, Durations().counts, Durations().counts

    def _build_axes(self) -> None:
        axes = self.chart.getPlotItem()
        named = ((-1, "0.1 µs"), (0, "1 µs"), (1, "10 µs"), (2, "100 µs"), (3, "1 ms"), (4, "10 ms"))
        minor = [(decade + np.log10(step), "") for decade in range(-1, 4) for step in range(2, 10)]
        axes.getAxis("bottom").setTicks([list(named), minor])
        # Counts are on a logarithmic axis, as log(1 + n), so that one late tick in a million is visible. Labels are
        # short, because hours at 8 kHz are tens of millions of ticks.
        words = ("1", "10", "100", "1k", "10k", "100k", "1M", "10M", "100M")
        ticks = [(float(np.log10(1 + 10**power)), word) for power, word in enumerate(words)]
        axes.getAxis("left").setTicks([ticks])
        box_of(self.chart).show_range((-1.12, 4.12), (0.0, 4.2))

    def configure(self, info: RunInfo) -> None:
        """Clear the plot and prepare it for a run."""
        super().configure(info)
        self._period.setValue(float(np.log10(1e6 / info.rate)))
        self.quantiles.setText("")
        self._draw(Durations(), Durations())

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        super().apply(theme)
        dress_chart(self.chart, theme)
        self._key.apply(theme)
        self._run.setPen(pen(theme.text))
        self._work.setPen(pen(theme.friction, 2))
        self._recent.setPen(None)
        self._recent.setBrush(brush(theme.motion, 0.65))
        self._period.setPen(pen(theme.faint, 1, dashed=True))

    def refresh_texts(self, feed: Feed) -> None:
        """Draw the histograms of `feed`."""
        super().refresh_texts(feed)
        recent = feed.history.column(Column.LATENESS)
        if not len(recent):
            return
        self._draw(feed.lateness, feed.tick_times, Durations.histogram(recent))
        half, most = np.percentile(recent, (50, 99))
        named = (("p50", half), ("p99", most), ("max", feed.lateness.maximum))
        self.quantiles.setText("\u2002·\u2002".join(f"{name} {microseconds(value)}" for name, value in named))
        self.quantiles.setToolTip("p50 and p99 of the ticks that are shown, the maximum of the whole run")

    def table(self, history: History) -> Table:
        """Return the edges of the bins and the number of ticks in each."""
        edges = 10.0**Durations.EDGES
        run, work, recent = (counts.astype(np.float64) for counts in self._counts)
        return {
            "from_us": edges[:-1],
            "to_us": edges[1:],
            "shown_ticks": recent,
            "run_ticks": run,
            "computation_ticks": work,
        }

    def _draw(self, run: Durations, work: Durations, recent: Any = None) -> None:
        recent = np.zeros_like(run.counts) if recent is None else recent
        edges = Durations.EDGES
        self._counts = run.counts.copy(), work.counts.copy(), recent
        self._run.setData(edges, np.log10(1.0 + run.counts), stepMode="center")
        self._work.setData(edges, np.log10(1.0 + work.counts), stepMode="center")
        self._recent.setData(edges, np.log10(1.0 + recent), stepMode="center", fillLevel=0)
        largest = max(run.counts.max(), work.counts.max())
        box_of(self.chart).show_range(y=(0.0, max(round(float(np.log10(1.0 + largest)), 1) + 0.3, 3.2)))
