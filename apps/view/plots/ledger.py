"""Plot of the energies: work of the hand, dissipated, stored, and injected by the loop."""

from __future__ import annotations

from collections.abc import Mapping

from apps.front_ends.run import RunInfo
from apps.shared.theme import Theme
from apps.view.history import Column, Floats, History
from apps.view.panels.charts import Key, Sign, pen
from apps.view.plots.cursors import Cursors, Reading
from apps.view.plots.plot import Plot, Table, ages, least_height
from apps.view.plots.strip import Strip, bin_size

_NAMES = ("work of the hand", "dissipated", "stored", "injected by the loop")


class LedgerPanel(Plot):
    """Plot of energies over time."""

    name = "energy"
    title = "Energy"
    about = (
        "Energies since the left edge of the plot: the work that the moving end effector gave to the element, what "
        "sliding dissipated, what its spring holds, and what the loop injected beyond that, as recorded. Work is "
        "stored, or dissipated by sliding or by the damper of the element; what the loop injects should stay near zero."
    )

    def __init__(self) -> None:
        super().__init__()
        self._stiffness = 0.0
        self._key = Key(
            (Sign.LINE, "motion", "work"),
            (Sign.WIDE, "friction", "dissipated"),
            (Sign.LINE, "stick", "stored"),
            (Sign.LINE, "force", "injected"),
        )
        self.head.addWidget(self._key)
        self.strip = Strip("[mJ]", "seconds before now", len(_NAMES), 1.0, signed=True)
        self.charts = [self.strip.chart]
        self.finish()
        least_height(self.strip.chart, 100)
        self.body.addWidget(self.strip.chart, 1)
        self.measure(Cursors(self.charts, ("time", "s"), self.readings))

    def configure(self, info: RunInfo) -> None:
        """Clear the plot and prepare it for a run."""
        super().configure(info)
        self.strip.reset(1.0)

    def show_values(self, values: Mapping[str, float]) -> None:
        """Update the stiffness of the element, if it has one."""
        self._stiffness = values.get("element.stiffness", 0.0)

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        super().apply(theme)
        self._key.apply(theme)
        self.strip.apply(theme)
        looks = ((theme.motion, 2.0), (theme.friction, 3.0), (theme.stick, 2.0), (theme.force, 1.5))
        for item, (colour, width) in zip(self.strip.curves, looks, strict=True):
            item.setPen(pen(colour, width))

    def _energies(self, history: History) -> list[Floats]:
        """Return work, dissipated, stored and injected energy in the window [mJ]."""
        work, dissipated = (history.column(column) for column in (Column.WORK, Column.DISSIPATED))
        # Half of N/m times square millimetres is in microjoules.
        stored = 0.5e-3 * self._stiffness * history.column(Column.STRETCH) ** 2
        return [work - work[:1], dissipated - dissipated[:1], stored, history.column(Column.ENERGY)]

    def draw(self, history: History) -> None:
        """Draw the rows of `history`."""
        age, size, energies = ages(history), bin_size(history), self._energies(history)
        for number, values in enumerate(energies):
            self.strip.draw(number, age, values, history.first, size)
        ends = [(float(values.min()), float(values.max())) for values in energies]
        span = history.capacity / self.info.rate
        self.strip.follow(max(high for _, high in ends), span, min(low for low, _ in ends))

    def readings(self) -> list[Reading]:
        """Return the energies over time."""
        age, energies = ages(self.history), self._energies(self.history)
        return [Reading(name, "mJ", age, values) for name, values in zip(_NAMES, energies, strict=True)]

    def table(self, history: History) -> Table:
        """Return time and energies of the window."""
        names = ("work_mj", "dissipated_mj", "stored_mj", "injected_mj")
        return {"time_s": history.column(Column.TIME), **dict(zip(names, self._energies(history), strict=True))}
