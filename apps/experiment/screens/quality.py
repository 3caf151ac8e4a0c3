"""Quality of the rendered intervals of a session, for the experimenter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from apps.experiment.design.settings import TrialSettings
from apps.experiment.screens.messages import Certificate, Figure
from apps.shared.scale import grouped

_Verdict = Literal["good", "doubtful"]


@dataclass
class Quality:
    """Accumulated quality of intervals.

    Attributes
    ----------
    intervals, disturbed : int
        Number of intervals, and number of those that were repeated.
    ticks, late : int
        Number of ticks in the intervals, and number of late ticks.
    gap : float
        Longest time between two ticks [s].
    """

    intervals: int = 0
    disturbed: int = 0
    ticks: int = 0
    late: int = 0
    gap: float = 0.0

    def with_interval(self, ticks: int, late: int, gap: float, disturbed: bool) -> Quality:
        """Add an interval and return the updated quality."""
        self.intervals += 1
        self.disturbed += disturbed
        self.ticks, self.late, self.gap = self.ticks + ticks, self.late + late, max(self.gap, gap)
        return self

    def certificate(self, allowed: TrialSettings) -> Certificate:
        """Return the figures for the experimenter, judged by the limits of the experiment."""
        late, disturbed = self.late / max(self.ticks, 1), self.disturbed / max(self.intervals, 1)
        return Certificate(
            (
                Figure("intervals", grouped(self.intervals)),
                Figure("repeated", f"{100 * disturbed:.2g} %", _verdict(disturbed <= allowed.most_repeated)),
                Figure("late ticks in intervals", f"{100 * late:.2g} %", _verdict(late <= allowed.late_ticks)),
                Figure("longest gap", f"{1e3 * self.gap:.2g} ms", _verdict(self.gap <= allowed.longest_gap)),
            )
        )


def _verdict(good: bool) -> _Verdict:
    return "good" if good else "doubtful"
