"""Sources of rows for the panels: a live trace or a recording. No Qt."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from apps.view.history import Counts, History, RateMeter
from apps.view.overview import STEP, Overview, row_of
from haptics.device import Causality
from haptics.recording.recording import Recording
from haptics.recording.tick_file import Table, TableInMemory
from haptics.records import Rows
from haptics.trace import Reader, Ring

SPAN = 5.0
"""Default time span shown by the panels [s]."""

SPANS = (1.0, 2.0, 5.0, 10.0, 20.0)
"""Selectable time spans [s]."""

SAMPLE = 60_000
"""Number of rows used to estimate properties that a recording does not state."""

KEPT = 120_000
"""Number of rows kept by the live view for scrubbing: two minutes at 1 kHz, about 50 MB."""


_COUNTED = ("tick", "time", "status", "injected_energy", "period_error", "tick_time")
"""Columns needed by the counters."""


class Feed:
    """Data source of the panels: the last seconds as a history, and counts since the start.

    Parameters
    ----------
    rate : float
        Nominal rate [Hz].
    causality : str
        Causality of the device, which selects the force drawn as a vector.
    kept : int
        Number of rows to keep, if larger than the longest of `SPANS`.

    Attributes
    ----------
    counted : bool
        True if counts and durations cover the whole run up to the newest row, False if only the visible rows.
    """

    def __init__(self, rate: float, causality: str = Causality.IMPEDANCE, kept: int = 0) -> None:
        self.nominal_rate = rate
        self.history = History(round(SPAN * rate), causality, max(kept, round(SPANS[-1] * rate)))
        self.counts = Counts()
        self.measured_rate: float | None = None
        self.unseen = 0
        self.counted = True

    def show_span(self, seconds: float) -> None:
        """Set the time span shown [s]."""
        self.history.capacity = max(round(seconds * self.nominal_rate), 2)

    def add_rows(self, rows: Rows, unseen: int = 0) -> None:
        """Add rows, oldest first; `unseen` rows before them were lost by the reader."""
        self.history.append(rows)
        self.counts.add(rows, unseen)
        self.unseen += unseen


class LiveFeed(Feed):
    """Follows the trace of a run.

    Raises
    ------
    ConfigurationError
        If there is no trace at `path`.
    """

    def __init__(self, path: Path, rate: float, causality: str = Causality.IMPEDANCE, kept: int = 0) -> None:
        super().__init__(rate, causality, kept)
        self._reader = Reader(Ring.attach(path))
        self._meter = RateMeter()

    def pull(self, now: float) -> int:
        """Read new rows from the trace at the wall-clock time `now` [s]; return their number."""
        lost = self._reader.lost
        rows = self._reader.read()
        self.add_rows(rows, self._reader.lost - lost)
        self.measured_rate = self._meter.update(now, self.history.count + self.unseen)
        return len(rows)


Source = Recording | Table | Rows
"""Data that can be replayed: a recording, a table of ticks, or rows in memory."""


def table_of(source: Source) -> Table:
    """Return the table of ticks of a source."""
    if isinstance(source, Recording):
        return source.table
    return TableInMemory(source) if isinstance(source, np.ndarray) else source


class ReplayFeed(Feed):
    """Feed for a recording. Only the visible rows are in memory.

    Parameters
    ----------
    source : Recording, table or structured array
        Data to show.
    rate : float
        Nominal rate [Hz].
    causality : str
        Causality of the device.
    overview : Overview, optional
        Overview with cumulative counts. Without it, a distant seek counts from the beginning.

    Attributes
    ----------
    index : int
        Index of the newest row shown; -1 before the first `seek`.
    end : float
        Time of the last row [s].
    """

    def __init__(
        self, source: Source, rate: float, causality: str = Causality.IMPEDANCE, overview: Overview | None = None
    ) -> None:
        super().__init__(rate, causality)
        self._table, self._overview = table_of(source), overview
        self.index = -1
        self.newest: Rows = self._table.read(0, 0)
        self.end = float(self._table.read(len(self) - 1, columns=("time",))["time"][0]) if len(self) else 0.0

    def __len__(self) -> int:
        return len(self._table)

    @property
    def time(self) -> float:
        """Time of the newest row shown [s]."""
        return float(self.newest["time"][0])

    @property
    def tick(self) -> int:
        """Tick of the newest row shown."""
        return int(self.newest["tick"][0])

    def index_at(self, time: float) -> int:
        """Return the index of the last row at or before `time` [s]."""
        return row_of(self._table, "time", time, self.index)

    def seek(self, index: int) -> None:
        """Make row `index` the newest row shown."""
        index = min(max(index, 0), len(self) - 1)
        if self.counted and 0 <= index - self.index <= self.history.capacity:
            rows = self._table.read(self.index + 1, index + 1)
            self.add_rows(rows)
            self.newest = rows[-1:] if len(rows) else self.newest
        else:
            self._show(index)
            self._count(index)
        self.index = index

    def show_span(self, seconds: float) -> None:
        """Set the time span shown [s]."""
        super().show_span(seconds)
        if self.index >= 0 and self.history.oldest > max(self.history.count - self.history.capacity, 0):
            self._show(self.index)

    def _show(self, index: int) -> None:
        """Load the visible rows up to `index`."""
        first = max(index + 1 - self.history.capacity, 0)
        rows = self._table.read(first, index + 1)
        self.history.clear()
        self.history.count = first
        self.history.append(rows)
        self.newest = rows[-1:]

    def _count(self, index: int) -> None:
        """Set the counts for the rows up to `index`, or for the visible rows if the overview is incomplete."""
        known = self._overview.counted_until(index + 1) if self._overview is not None else None
        self.counted = known is not None or index + 1 <= 2 * STEP
        first = 0 if self.counted else max(index + 1 - self.history.capacity, 0)
        first, self.counts = known or (first, Counts())
        for rows in self._table.chunks(_COUNTED, start=first, stop=index + 1):
            self.counts.add(rows)
