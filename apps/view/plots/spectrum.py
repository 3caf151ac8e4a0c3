"""Plot of the spectrum of the forces, which shows tremor, ringing, and buzz of the contact."""

from __future__ import annotations

from typing import Any

import numpy as np

from apps.front_ends.run import RunInfo
from apps.shared.theme import Theme
from apps.view.feed import Feed
from apps.view.history import Column, Floats, History
from apps.view.panels.charts import Key, Lines, Sign, chart, curve, dress_chart, pen
from apps.view.plots.cursors import Cursors, Reading
from apps.view.plots.plot import Plot, Table, box_of, least_height
from apps.view.plots.welch import Spectrum, welch

_FLOOR = 1e-5
"""Minimum amplitude density drawn [N/sqrt(Hz)]; smaller values are clipped."""

_DECADES = range(-5, 3)
_POWERS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class SpectrumPanel(Plot):
    """Plot of the amplitude spectral density over frequency, both on logarithmic axes."""

    name = "spectrum"
    title = "Spectrum"
    about = (
        "Amplitude spectral density of the friction force and of the force that is sent (or measured), both components "
        "together, by Welch's method over what is shown. A peak is a vibration: a ringing grip, a buzz, a tremor."
    )

    def __init__(self) -> None:
        super().__init__()
        self._key = Key((Sign.WIDE, "friction", "friction"), (Sign.LINE, "force", "command"))
        self.head.addWidget(self._key)
        self.chart: Any = chart("[N/√Hz]", "frequency [Hz]")
        self.charts = [self.chart]
        self.finish()
        least_height(self.chart, 90)
        self._curves = curve(self.chart), curve(self.chart)
        self.method = Lines(faint=True)
        self.method.setWordWrap(True)
        self.body.addWidget(self.chart, 1)
        self.body.addWidget(self.method)
        self._found: list[Spectrum | None] = [None, None]
        self.measure(Cursors(self.charts, ("log₁₀ of frequency", "Hz"), self.readings))
        self._set_axes()

    def _set_axes(self) -> None:
        axes, half = self.chart.getPlotItem(), self.info.rate / 2
        marks = [(float(np.log10(step * 10**power)), step, power) for power in range(5) for step in (1, 2, 5)]
        axes.getAxis("bottom").setTicks([[(at, f"{step * 10**power:g}") for at, step, power in marks]])
        axes.getAxis("left").setTicks([[(float(p), f"10{str(p).translate(_POWERS)}") for p in _DECADES]])
        box_of(self.chart).show_range((0.0, float(np.log10(half))), (-5.0, 1.0))

    def configure(self, info: RunInfo) -> None:
        """Clear the plot and prepare it for a run."""
        super().configure(info)
        self._key.texts[1].setText(info.force_name)
        self._found = [None, None]
        for item in self._curves:
            item.setData(np.zeros(0), np.zeros(0))
        self.method.set_lines("")
        self._set_axes()

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        super().apply(theme)
        dress_chart(self.chart, theme)
        self._key.apply(theme)
        friction, force = self._curves
        friction.setPen(pen(theme.friction, 2.5))
        force.setPen(pen(theme.force, 1))

    def refresh_texts(self, feed: Feed) -> None:
        """Compute and draw the spectra of the window."""
        history = feed.history
        self._found = [
            welch(history.column(x), history.column(y), self.info.rate)
            for x, y in ((Column.FRICTION_X, Column.FRICTION_Y), (Column.VECTOR_X, Column.VECTOR_Y))
        ]
        for item, found in zip(self._curves, self._found, strict=True):
            if found is not None:
                item.setData(*_logarithms(found))
        if self._found[0] is not None:
            self.method.set_lines(f"{self._found[0].method}{self._peak()}{_gaps(history, self.info.rate)}.")
        super().refresh_texts(feed)

    def _peak(self) -> str:
        """Describe the peak of the command or measured force above the slow motion of the hand."""
        found = self._found[1]
        if found is None:
            return ""
        fast = found.frequency >= 5.0
        if not fast.any() or not found.density[fast].max() > _FLOOR**2:
            return ""
        return f"; largest above 5 Hz: {found.frequency[fast][found.density[fast].argmax()]:.3g} Hz"

    def readings(self) -> list[Reading]:
        """Return frequency and both densities over the logarithm of the frequency."""
        readings: list[Reading] = []
        for found, name in zip(self._found, ("friction", self.info.force_name), strict=True):
            if found is not None:
                where = np.log10(found.frequency[1:])
                if not readings:
                    readings.append(Reading("frequency", "Hz", where, found.frequency[1:]))
                readings.append(Reading(name, "N/√Hz", where, np.sqrt(found.density[1:])))
        return readings

    def table(self, history: History) -> Table:
        """Return frequency and the power spectral densities."""
        friction, force = (
            welch(history.column(x), history.column(y), self.info.rate)
            for x, y in ((Column.FRICTION_X, Column.FRICTION_Y), (Column.VECTOR_X, Column.VECTOR_Y))
        )
        if friction is None or force is None:
            return {}
        return {
            "frequency_hz": friction.frequency,
            "friction_n2_per_hz": friction.density,
            "force_n2_per_hz": force.density,
        }


def _logarithms(found: Spectrum) -> tuple[Floats, Floats]:
    amplitude = np.sqrt(found.density[1:])
    return np.log10(found.frequency[1:]), np.log10(np.maximum(amplitude, _FLOOR))


def _gaps(history: History, rate: float) -> str:
    """Describe the number of missing ticks, which the spectrum ignores."""
    missing = int(np.count_nonzero(np.diff(history.column(Column.TIME)) > 1.5 / rate))
    return f"; {missing} gaps were closed up" if missing else ""
