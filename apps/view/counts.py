"""What a run has counted so far: ticks, late and skipped ones, flags, energy, and how long things took. No Qt."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apps.view.history import Floats
from haptics.records import Rows, Status

FLAGS: tuple[Status, ...] = tuple(Status)
"""The flags that are counted: all."""

_LATE = int(Status.STARTED_LATE | Status.ENDED_LATE)


class Counts:
    """Adds up rows.

    Attributes
    ----------
    ticks : int
        Ticks executed and seen.
    late : int
        Ticks that started or ended late.
    skipped : int
        Deadlines missed whole: gaps in the numbering, less the rows that this reader was too slow to get.
    flags : (14,) int array
        Ticks with each flag of `FLAGS`.
    last : (14,) float array
        Time of the last tick with each flag [s]; minus infinity if there was none.
    time : float
        Time of the newest row [s].
    newest : Status
        Flags of the newest row.
    largest_energy : float
        The most that the loop had injected at any time [J].
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Start anew."""
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
        """Take rows, oldest first, of which `unseen` were lost on the way since the last call."""
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
        Ticks per bin; what lies outside is in the first and in the last bin.
    maximum : float
        Largest value so far [us].
    """

    EDGES: Floats = np.linspace(-1.0, 4.0, 51)
    """Edges of the bins, as the decimal logarithm of microseconds."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Start anew."""
        self.counts: NDArray[np.int64] = np.zeros(len(self.EDGES) - 1, np.int64)
        self.maximum = 0.0

    def add(self, durations: Floats) -> None:
        """Take values [us]."""
        if len(durations):
            self.counts += self.histogram(durations)
            self.maximum = max(self.maximum, float(durations.max()))

    @classmethod
    def histogram(cls, durations: Floats) -> NDArray[np.int64]:
        """Return the ticks per bin of some values [us]."""
        bins, first, last = len(cls.EDGES) - 1, cls.EDGES[0], cls.EDGES[-1]
        place = (np.log10(np.maximum(durations, 10**first)) - first) * (bins / (last - first))
        return np.bincount(np.minimum(place.astype(np.intp), bins - 1), minlength=bins)


class RateMeter:
    """Measures rows per second of wall-clock time over about one second."""

    def __init__(self) -> None:
        self._marks: list[tuple[float, int]] = []

    def update(self, now: float, count: int) -> None:
        """Note that `count` rows had been seen at the time `now` [s]."""
        self._marks.append((now, count))
        while len(self._marks) > 2 and now - self._marks[1][0] >= 1.0:
            self._marks.pop(0)

    @property
    def rate(self) -> float | None:
        """Rows per second [Hz]; None until it has been measured for half a second."""
        if not self._marks or self._marks[-1][0] - self._marks[0][0] < 0.5:
            return None
        (start, before), (end, after) = self._marks[0], self._marks[-1]
        return (after - before) / (end - start)
