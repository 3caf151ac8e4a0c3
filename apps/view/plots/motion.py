"""Plot of position, velocity, force, and command over time, in charts that zoom together."""

from __future__ import annotations

from apps.front_ends.run import RunInfo
from apps.shared.theme import Theme
from apps.view.history import Column, History
from apps.view.panels.charts import Key, Sign, pen
from apps.view.plots.cursors import Cursors, Reading
from apps.view.plots.plot import Plot, Table, ages, box_of, least_height
from apps.view.plots.strip import Strip, bin_size
from haptics.device import Causality

_LEAST = (5.0, 20.0, 1.0, 1.0)
"""Minimum height of each axis, in its unit."""


class MotionPanel(Plot):
    """Plot of four charts with x and y components."""

    name = "motion"
    title = "Position, velocity, force, command"
    about = (
        "Both components against time: position and velocity of the end effector, the friction force (or the measured "
        "hand force, where the device takes positions) and the command. The charts zoom together along time."
    )

    def __init__(self) -> None:
        super().__init__()
        self._key = Key((Sign.LINE, "motion", "x"), (Sign.WIDE, "stick", "y"))
        self.head.addWidget(self._key)
        names = ("position [mm]", "velocity [mm/s]", "force [N]", "command [N]")
        last = len(names) - 1
        self.strips = [
            Strip(name, "seconds before now" if number == last else "", 2, least, signed=True)
            for number, (name, least) in enumerate(zip(names, _LEAST, strict=True))
        ]
        self.charts = [strip.chart for strip in self.strips]
        for shown in self.charts:
            box_of(shown).link(tuple(box_of(other) for other in self.charts))
            least_height(shown, 34)
            self.body.addWidget(shown, 1)
        self.body.setSpacing(0)
        self.finish()
        self.measure(Cursors(self.charts, ("time", "s"), self.readings))
        self._name_axes()

    def _name_axes(self) -> None:
        admittance = self.info.causality == Causality.ADMITTANCE
        self._columns = (
            ("position", "mm", Column.X),
            ("velocity", "mm/s", Column.VELOCITY_X),
            ("hand force", "N", Column.MEASURED_X) if admittance else ("friction", "N", Column.FRICTION_X),
            ("reference", "mm", Column.COMMAND_X) if admittance else ("command", "N", Column.COMMAND_X),
        )
        for strip, (name, unit, _) in zip(self.strips, self._columns, strict=True):
            strip.chart.plotItem.setLabel("left", f"[{unit}]")
            strip.chart.setToolTip(f"{name} [{unit}]: x thin, y wide\n{self.about}")

    def configure(self, info: RunInfo) -> None:
        """Clear the plot and prepare it for a run."""
        super().configure(info)
        self._name_axes()
        for strip, least in zip(self.strips, _LEAST, strict=True):
            strip.reset(least)

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        super().apply(theme)
        self._key.apply(theme)
        for strip in self.strips:
            strip.apply(theme)
            along, up = strip.curves
            along.setPen(pen(theme.motion, 1))
            up.setPen(pen(theme.stick, 2))

    def draw(self, history: History) -> None:
        """Draw the rows of `history`."""
        age, size, span = ages(history), bin_size(history), history.capacity / self.info.rate
        for strip, (_, _, first) in zip(self.strips, self._columns, strict=True):
            both = [history.column(Column(first + k)) for k in (0, 1)]
            for number, values in enumerate(both):
                strip.draw(number, age, values, history.first, size)
            largest, smallest = max(float(v.max()) for v in both), min(float(v.min()) for v in both)
            strip.follow(largest, span, smallest)

    def readings(self) -> list[Reading]:
        """Return both components of all quantities over time."""
        age = ages(self.history)
        return [
            Reading(f"{name} {axis}", unit, age, self.history.column(Column(first + k)))
            for name, unit, first in self._columns
            for k, axis in enumerate("xy")
        ]

    def table(self, history: History) -> Table:
        """Return time and all quantities of the window."""
        table = {"time_s": history.column(Column.TIME)}
        for name, unit, first in self._columns:
            for k, axis in enumerate("xy"):
                words = f"{name}_{axis}_{unit}".lower().replace(" ", "_").replace("/", "_per_")
                table[words] = history.column(Column(first + k))
        return table
