"""What the safety envelope does: a lamp for each of its rules, and the energy that the loop gave."""

from __future__ import annotations

from apps.shared.theme import Theme
from apps.view.counts import Counts
from apps.view.feed import Feed
from apps.view.panels.charts import Panel
from apps.view.panels.energy import EnergyMeter
from apps.view.panels.lamps import SAFETY, Lamps
from apps.view.run import RunInfo


class SafetyPanel(Panel):
    """Lamps and energy."""

    def __init__(self) -> None:
        super().__init__("Safety")
        self.lamps = Lamps(SAFETY, columns=2)
        self.energy = EnergyMeter(self)
        self.head.addStretch(1)
        self.head.addWidget(self.energy.number)
        self.body.addWidget(self.energy.bar)
        self.body.addWidget(self.lamps)

    def configure(self, info: RunInfo) -> None:
        """Show another run, empty."""
        self.lamps.refresh(Counts())
        self.energy.configure(info.max_energy)

    def apply(self, theme: Theme) -> None:
        """Take the colours of `theme`."""
        self.lamps.apply(theme)
        self.energy.apply(theme)

    def refresh(self, feed: Feed) -> None:
        """Show what `feed` holds."""
        self.lamps.refresh(feed.counts)
        self.energy.refresh(feed)
