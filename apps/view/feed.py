"""Where the panels get their rows from: a running trace or a recorded array. No Qt."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from apps.view.counts import Counts, Durations, RateMeter
from apps.view.history import History
from haptics.device import Causality
from haptics.records import Rows
from haptics.trace import Reader, Ring

SPAN = 5.0
"""Seconds that the panels show, unless a person asks for another span."""

SPANS = (1.0, 2.0, 5.0, 10.0, 20.0)
"""Spans that can be asked for [s]."""

KEPT = 120_000
"""Rows that the live view keeps to scrub through: two minutes at 1 kHz, some 50 MB."""


class Feed:
    """What the panels read: the last seconds as a history, and what was counted since the start.

    Parameters
    ----------
    rate : float
        Nominal rate [Hz].
    causality : str
        Of the device; decides which force is drawn as a vector.
    kept : int
        Rows to keep, if these are more than the longest of `SPANS` has.
    """

    def __init__(self, rate: float, causality: str = Causality.IMPEDANCE, kept: int = 0) -> None:
        self.nominal_rate = rate
        self.history = History(round(SPAN * rate), causality, max(kept, round(SPANS[-1] * rate)))
        self.counts = Counts()
        self.lateness = Durations()
        self.tick_times = Durations()
        self.measured_rate: float | None = None
        self.unseen = 0

    def show_span(self, seconds: float) -> None:
        """Show so many seconds from now on."""
        self.history.capacity = max(round(seconds * self.nominal_rate), 2)

    def take(self, rows: Rows, unseen: int = 0) -> None:
        """Add rows, oldest first; `unseen` rows between these and the last ones were lost to this reader."""
        self.history.append(rows)
        self.counts.add(rows, unseen)
        self.lateness.add(1e6 * rows["period_error"])
        self.tick_times.add(1e6 * rows["tick_time"])
        self.unseen += unseen


class LiveFeed(Feed):
    """Follows the trace of a run.

    Raises
    ------
    ConfigurationError
        When there is no trace at `path`.
    """

    def __init__(self, path: Path, rate: float, causality: str = Causality.IMPEDANCE, kept: int = 0) -> None:
        super().__init__(rate, causality, kept)
        self._reader = Reader(Ring.attach(path))
        self._meter = RateMeter()

    def pull(self, now: float) -> int:
        """Take what the trace has published since the last call, at the wall-clock time `now` [s]; return its rows."""
        before = self._reader.lost
        rows = self._reader.read()
        self.take(rows, self._reader.lost - before)
        self._meter.update(now, self.history.count + self.unseen)
        self.measured_rate = self._meter.rate
        return len(rows)


class ReplayFeed(Feed):
    """Shows a recorded array as it was when one of its rows was the newest.

    Attributes
    ----------
    index : int
        The newest row shown; -1 before the first `seek`.
    """

    def __init__(self, rows: Rows, rate: float, causality: str = Causality.IMPEDANCE) -> None:
        super().__init__(rate, causality)
        self.rows = rows
        self.times = np.ascontiguousarray(rows["time"])
        self.index = -1

    def seek(self, index: int) -> None:
        """Make row `index` the newest; going on is cheap, going back counts afresh."""
        index = min(max(index, 0), len(self.rows) - 1)
        if index < self.index:
            self._restart()
        self.take(self.rows[self.index + 1 : index + 1])
        self.index = index

    def _restart(self) -> None:
        self.history.clear()
        self.counts.clear()
        self.lateness.clear()
        self.tick_times.clear()
        self.index = -1
