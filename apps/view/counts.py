"""Counters and histograms of a run: ticks, flags, energy, and durations. No Qt."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apps.view.history import Floats
from haptics.records import Rows, Status

FLAGS: tuple[Status, ...] = tuple(Status)
"""The counted flags: all flags."""

_LATE = int(Status.STARTED_LATE | Status.ENDED_LATE)


class Counts:
    """Accumulates counts over rows.

    Attributes
    ----------
    ticks : int
        Ticks read.
    late : int
        Ticks that started or ended late.
    skipped : int
        Skipped deadlines: gaps in the tick numbers, minus the rows that this reader lost.
    flags : (14,) int array
        Number of ticks with each flag of `FLAGS`.
    last : (14,) float array
        Time of the last tick with each flag [s]; minus infinity without such a tick.
    time : float
        Time of the newest row [s].
    newest : Status
        Flags of the newest row.
    largest_energy : float
        Maximum of the energy injected by the loop [J].
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Reset all counts."""
        self.ticks = 0
        self.late = 0
        self.skipped = 0
        self.time = 0.0
        self.newest = Status(0)
        self.largest_energy = 0.0
        self.flags: NDArray[np.int64] = np.zeros(len(FLAGS), np.int64)
        self.last: Floats = np.full(len(FLAGS), -np.inf)
        self._previous_tick = -1

    def add(self, rows: Rows, unseen: int = 0) -> None:
        """Add rows, oldest first. `unseen` is the number of rows lost by the reader since the last call."""
        if not len(rows):
            return
        self._add_gaps(rows["tick"], unseen)
        self.ticks += len(rows)
        self.time = float(rows["time"][-1])
        status = rows["status"]
        self.newest = Status(int(status[-1]))
        self.largest_energy = float(np.fmax(self.largest_energy, np.fmax.reduce(rows["injected_energy"])))
        self.late += int(np.count_nonzero(status & _LATE))
        for number, flag in enumerate(FLAGS):
            hits = np.flatnonzero(status & int(flag))
            if len(hits):
                self.flags[number] += len(hits)
                self.last[number] = rows["time"][hits[-1]]

    def _add_gaps(self, ticks: NDArray[np.int64], unseen: int) -> None:
        before = self._previous_tick if self._previous_tick >= 0 else int(ticks[0]) - 1
        missing = int(ticks[-1]) - before - len(ticks)
        self.skipped += max(missing - unseen, 0)
        self._previous_tick = int(ticks[-1])


class Durations:
    """Histogram of durations, in bins of equal ratio from 0.1 us to 10 ms.

    Attributes
    ----------
    counts : (50,) int array
        Ticks per bin. Values outside the range are counted in the first and the last bin.
    maximum : float
        Largest value added [us].
    """

    EDGES: Floats = np.linspace(-1.0, 4.0, 51)
    """Edges of the bins, as decimal logarithms of microseconds."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Reset the histogram."""
        self.counts: NDArray[np.int64] = np.zeros(len(self.EDGES) - 1, np.int64)
        self.maximum = 0.0

    def add(self, durations: Floats) -> None:
        """Add values [us]."""
        if len(durations):
            self.counts += self.histogram(durations)
            self.maximum = max(self.maximum, float(durations.max()))

    @classmethod
    def histogram(cls, durations: Floats) -> NDArray[np.int64]:
        """Return the number of `durations` [us] in each bin."""
        bins, first, last = len(cls.EDGES) - 1, cls.EDGES[0], cls.EDGES[-1]
        place = (np.log10(np.maximum(durations, 10**first)) - first) * (bins / (last - first))
        return np.bincount(np.minimum(place.astype(np.intp), bins - 1), minlength=bins)


class RateMeter:
    """Measures the rate of rows over about one second of wall-clock time."""

    def __init__(self) -> None:
        self._marks: list[tuple[float, int]] = []

    def update(self, now: float, count: int) -> None:
        """Record that `count` rows have been read at time `now` [s]."""
        self._marks.append((now, count))
        while len(self._marks) > 2 and now - self._marks[1][0] >= 1.0:
            self._marks.pop(0)

    @property
    def rate(self) -> float | None:
        """Rate of rows [Hz]; None until it has been measured for half a second."""
        if not self._marks or self._marks[-1][0] - self._marks[0][0] < 0.5:
            return None
        (start, before), (end, after) = self._marks[0], self._marks[-1]
        return (after - before) / (end - start)
