"""Safety panel: a lamp for each flag of the safety envelope and of timing, and the injected energy."""

from __future__ import annotations

from apps.front_ends.run import RunInfo
from apps.shared.theme import Theme
from apps.view.counts import Counts
from apps.view.feed import Feed
from apps.view.panels.charts import Panel
from apps.view.panels.energy import EnergyMeter
from apps.view.panels.lamps import SAFETY, TIMING, Lamps
from apps.view.qt import QtWidgets, px


class SafetyPanel(Panel):
    """Energy meter at the left and a strip of lamps at the right."""

    def __init__(self) -> None:
        super().__init__()
        self.lamps = Lamps(SAFETY + TIMING, columns=8)
        self.energy = EnergyMeter(self)
        meter = QtWidgets.QVBoxLayout()
        meter.addWidget(self.energy.number)
        meter.addWidget(self.energy.bar)
        self.energy.bar.setFixedWidth(px(180))
        self.head.addLayout(meter)
        self.head.addWidget(self.lamps, 1)

    def configure(self, info: RunInfo) -> None:
        """Clear the panel and prepare it for a run."""
        self.lamps.refresh(Counts())
        self.energy.configure(info.max_energy)

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        self.lamps.apply(theme)
        self.energy.apply(theme)

    def refresh(self, feed: Feed) -> None:
        """Show the data of `feed`."""
        self.lamps.refresh(feed.counts)
        self.energy.refresh(feed)
