"""How punctual the servo is: a histogram of how late ticks started, and a lamp for each flag."""

from __future__ import annotations

from typing import Any

import numpy as np

from apps.view.charts import Key, Panel, Sign, brush, chart, dress_chart, pen
from apps.view.counts import FLAGS, Counts, Lateness
from apps.view.feed import Feed
from apps.view.history import Column
from apps.view.qt import QtCore, QtWidgets, label, pg
from apps.view.run import RunInfo
from apps.view.scale import grouped, microseconds
from apps.view.theme import DARK, Theme

_GLOW = 1.0
"""Seconds for which a lamp stays lit."""

_LAMPS = ("LIMITED", "SLEW", "WORKSPACE", "STALE", "NOT FINITE", "LATE START", "LATE END", "SKIPPED")
_MEANINGS = (
    "the norm of the command was clamped",
    "the rate of change of the command was limited",
    "the end effector or its reference was at the edge of the workspace",
    "the sample was older than the device allows: safe output",
    "the sample or the element's output was not a finite number: safe output",
    "the tick started more than half a period late",
    "the tick ended after the next deadline",
    "deadlines before this tick were missed whole",
)


class Lamps(QtWidgets.QWidget):
    """One lamp per flag of `FLAGS`: an outline while it never was set, a dot once it was, filled while it is."""

    def __init__(self) -> None:
        super().__init__()
        self._theme = DARK
        self._shown: list[tuple[bool, bool] | None] = [None] * len(FLAGS)
        grid = QtWidgets.QGridLayout(self)
        grid.setContentsMargins(0, 2, 0, 0)
        grid.setSpacing(5)
        self.lamps: list[QtWidgets.QLabel] = []
        for number, name in enumerate(_LAMPS):
            lamp = label(name, 10)
            lamp.setAlignment(QtCore.Qt.AlignmentFlag.AlignCenter)
            lamp.setFixedHeight(23)
            self.lamps.append(lamp)
            grid.addWidget(lamp, number // 4, number % 4)
            grid.setColumnStretch(number % 4, 1)

    def apply(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        self._theme = theme
        self._shown = [None] * len(FLAGS)

    def refresh(self, counts: Counts) -> None:
        """Light the lamps; only those that change are touched, since a style costs more than a frame."""
        for number, lamp in enumerate(self.lamps):
            lamp.setToolTip(f"{_MEANINGS[number]}: {grouped(int(counts.flags[number]))} ticks of this run")
            state = bool(counts.flags[number]), bool(counts.time - counts.last[number] < _GLOW)
            if state != self._shown[number]:
                self._shown[number] = state
                self._paint(lamp, _LAMPS[number], *state)

    def _paint(self, lamp: QtWidgets.QLabel, name: str, ever: bool, now: bool) -> None:
        theme = self._theme
        if now:
            look = f"background: {theme.alarm}; color: {theme.on_alarm}; border: 2px solid {theme.text};"
        elif ever:
            look = f"color: {theme.text}; border: 2px solid {theme.text};"
        else:
            look = f"color: {theme.faint}; border: 1px solid {theme.border};"
        lamp.setText(name)
        lamp.setStyleSheet(f"QLabel {{ {look} border-radius: 5px; }}")


class TimingPanel(Panel):
    """Histogram, its quantiles and the lamps."""

    def __init__(self) -> None:
        super().__init__("Lateness")
        self.quantiles = label("", 10)
        self.head.addStretch(1)
        self.head.addWidget(self.quantiles)
        self.chart: Any = chart("ticks", "")
        self._build_axes()
        self.chart.setToolTip("how late ticks started; what lies outside the axis is in its first and last bin")
        edges, nothing = Lateness.EDGES, np.zeros(len(Lateness.EDGES) - 1)
        # A step curve without data raises when it is painted: both have edges from the start.
        self._run = pg.PlotCurveItem(edges, nothing, stepMode="center", skipFiniteCheck=True)
        self._recent = pg.PlotCurveItem(edges, nothing, stepMode="center", fillLevel=0, skipFiniteCheck=True)
        self.chart.addItem(self._recent, ignoreBounds=True)
        self.chart.addItem(self._run, ignoreBounds=True)
        self._period = self.chart.plotItem.addLine(x=3.0)
        self._key = Key(
            (Sign.BAND, "motion", "last 5 s"), (Sign.LINE, "text", "whole run"), (Sign.DASH, "faint", "one period")
        )
        self.lamps = Lamps()
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
        self._draw(Lateness())
        self.lamps.refresh(Counts())

    def apply(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        dress_chart(self.chart, theme)
        self._key.apply(theme)
        self.lamps.apply(theme)
        self._run.setPen(pen(theme.text))
        self._recent.setPen(None)
        self._recent.setBrush(brush(theme.motion, 0.65))
        self._period.setPen(pen(theme.faint, 1, dashed=True))

    def refresh(self, feed: Feed) -> None:
        """Draw what `feed` holds."""
        self.lamps.refresh(feed.counts)
        recent = feed.history.column(Column.LATENESS)
        if not len(recent):
            return
        self._draw(feed.lateness, Lateness.histogram(recent))
        half, most = np.percentile(recent, (50, 99))
        named = (("p50", half), ("p99", most), ("max", feed.lateness.maximum))
        self.quantiles.setText("\u2002·\u2002".join(f"{name} {microseconds(value)}" for name, value in named))
        self.quantiles.setToolTip("p50 and p99 of the last 5 s, the maximum of the whole run")

    def _draw(self, run: Lateness, recent: Any = None) -> None:
        recent = np.zeros_like(run.counts) if recent is None else recent
        self._run.setData(Lateness.EDGES, np.log10(1.0 + run.counts), stepMode="center")
        self._recent.setData(Lateness.EDGES, np.log10(1.0 + recent), stepMode="center", fillLevel=0)
        self.chart.getViewBox().setYRange(0, max(np.log10(1.0 + run.counts.max()) + 0.25, 3.2), padding=0)
