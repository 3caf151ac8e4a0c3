"""The timing certificate of a run, its forces and its share of sticking, all from its rows.

`RunSummary` takes the rows piece by piece, while they are recorded or when they are read again; what it keeps does not
grow with the length of the run.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from haptics.device import Causality
from haptics.records import UNUSABLE, Rows, Status

_LATE = int(Status.STARTED_LATE | Status.ENDED_LATE)

LATE_TICKS_KEPT = 1000
"""Numbers of late ticks that a certificate holds at most; the rows have them all."""

BIN_EDGES_US: NDArray[np.float64] = np.concatenate(([0.0], np.logspace(-1.0, 5.0, 61)))
"""Edges of the bins of a certificate's histograms [us]: ten per decade from 0.1 us to 100 ms, and one below them."""

_DURATIONS = {
    "period_error": "period_error_us",
    "tick_time": "tick_us",
    "sample_age": "sample_age_us",
    "write_time": "write_us",
}
"""Column to its name in a certificate."""

SUMMARY_COLUMNS = ("tick", "status", "sticking", "command", "force", *_DURATIONS)
"""Columns that `RunSummary` needs."""

NOT_PRINTED = ("late_ticks", "histograms")
"""Parts of a certificate that are for the recording only."""

MOST_VALUES = 1 << 16
"""Different values of a duration that are told apart."""

_FINEST = 1e-9
"""Values are rounded to this [s] where there are more of them."""

_STAGED = 4096
"""Rows that are put together before they are looked at: a live recorder comes with twenty at a time."""


def quantiles(values: NDArray[np.float64], *, scale: float, p999: bool = False) -> dict[str, float]:
    """Return ``p50``, ``p99``, (``p999``,) and ``max`` of the finite `values`, times `scale`; empty without any."""
    found = Distribution()
    found.add(values)
    return found.quantiles(scale=scale, p999=p999)


class Distribution:
    """How often each value of a duration occurred: its quantiles and its histogram, in bounded memory.

    Durations are as a rule whole nanoseconds, so that there are few different values, and the quantiles are exact
    however many there are in all. Where there are more than `MOST_VALUES` different ones, all are rounded to 1 ns, and
    put together in pairs of neighbours as often as it takes. A quantile is then off by at most half of `resolution`,
    which does not depend on the pieces that the durations came in. Histogram and largest value are always exact.

    Attributes
    ----------
    resolution : float
        How far values may be apart that are taken for one [s]; 0 where all are told apart.
    """

    def __init__(self) -> None:
        self.resolution = 0.0
        self._values: NDArray[Any] = np.empty(0)  # in s, or counted in `resolution`
        self._counts = np.empty(0, np.int64)
        self._pending: list[NDArray[np.float64]] = []
        self._waiting = 0
        self._largest = -math.inf
        self._histogram = np.zeros(len(BIN_EDGES_US) - 1, np.int64)

    def add(self, durations: NDArray[np.float64]) -> None:
        """Take further durations [s], (n,); those that are not finite are left out."""
        self._pending.append(durations[np.isfinite(durations)])  # a copy
        self._waiting += len(self._pending[-1])
        if self._waiting > max(16 * _STAGED, len(self._values)):
            self._merge()

    def quantiles(self, *, scale: float, p999: bool = False) -> dict[str, float]:
        """Return ``p50``, ``p99``, (``p999``,) and ``max``, times `scale`; empty without any duration.

        Between two of the ordered values they are interpolated linearly, as NumPy does.
        """
        wanted = {"p50": 50.0, "p99": 99.0} | ({"p999": 99.9} if p999 else {}) | {"max": 100.0}
        found = {name: self.percentile(percent) for name, percent in wanted.items()}
        return {name: round(value * scale, 3) for name, value in found.items() if value is not None}

    def percentile(self, percent: float) -> float | None:
        """Return the percentile [s]; None without any duration."""
        self._merge()
        if not len(self._values):
            return None
        return self._largest if percent == 100.0 else self._interpolated(np.cumsum(self._counts), percent / 100.0)

    def histogram(self) -> list[int]:
        """Return how many durations lie in each bin of `BIN_EDGES_US`; what is beyond the last edge is in the last."""
        self._merge()
        return [int(count) for count in self._histogram]

    def _interpolated(self, upto: NDArray[np.int64], share: float) -> float:
        place = share * (int(upto[-1]) - 1)
        whole = math.floor(place)
        at = np.searchsorted(upto, [whole, min(whole + 1, int(upto[-1]) - 1)], side="right")
        low, high = (float(value) for value in self._values[at])
        if self.resolution:
            low, high = (value * self.resolution + 0.5 * (self.resolution - _FINEST) for value in (low, high))
        part = place - whole
        return low + (high - low) * part if part < 0.5 else high - (high - low) * (1.0 - part)

    def _merge(self) -> None:
        """Count what has been added since the last time."""
        if not self._waiting:
            return
        values: NDArray[Any]
        values, counts = np.unique(np.concatenate(self._pending), return_counts=True)
        self._pending, self._waiting = [], 0
        self._largest = max(self._largest, float(values[-1]))
        places = np.searchsorted(np.clip(values * 1e6, 0.0, BIN_EDGES_US[-1]), BIN_EDGES_US[:-1])
        self._histogram += np.diff([*np.concatenate(([0], np.cumsum(counts)))[places], counts.sum()])
        if self.resolution:
            values = _in_nanoseconds(values) // round(self.resolution / _FINEST)
        self._values, self._counts = _counted(
            np.concatenate((self._values, values)), np.concatenate((self._counts, counts))
        )
        while len(self._values) > MOST_VALUES:
            coarser = self._values // 2 if self.resolution else _in_nanoseconds(self._values)
            self.resolution = 2.0 * self.resolution or _FINEST
            self._values, self._counts = _counted(coarser, self._counts)


def _in_nanoseconds(durations: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.clip(np.rint(durations * 1e9), -(2.0**62), 2.0**62).astype(np.int64)


def _counted(values: NDArray[Any], counts: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the different ones of `values`, the smallest first, and how many there are of each."""
    order = np.argsort(values, kind="stable")
    values, counts = values[order], counts[order]
    first = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))
    return values[first], np.add.reduceat(counts, first)


class RunSummary:
    """Certificate, forces and flags of a run, from rows that come piece by piece.

    Parameters
    ----------
    period : float
        Nominal period [s].

    Attributes
    ----------
    count : int
        Rows that were added.
    """

    def __init__(self, period: float) -> None:
        self.count = 0
        self._period = period
        self._staged: list[Rows] = []
        self._durations = {column: Distribution() for column in _DURATIONS}
        self._late_count, self._late_ticks = 0, list[int]()
        self._last_tick, self._last_start, self._longest_gap = -1, math.nan, -math.inf
        self._flags = dict.fromkeys(Status, 0)
        self._unusable = self._sticking = 0
        self._norms = {name: _Norms() for name in ("command", "force")}

    def add(self, rows: Rows) -> Self:
        """Take the next rows, which have `SUMMARY_COLUMNS` at least; they are not kept."""
        self.count += len(rows)
        if len(rows) < _STAGED:
            self._staged.append(rows.copy())
            if sum(map(len, self._staged)) >= _STAGED:
                self._flush()
        else:
            self._flush()
            self._take(rows)
        return self

    def _flush(self) -> None:
        staged, self._staged = self._staged, []
        if staged:
            self._take(np.concatenate(staged))

    def _take(self, rows: Rows) -> None:
        if not len(rows):
            return
        status = np.array(rows["status"])  # in one piece: rows are long, and each look at a column reads through all
        late = rows["tick"][(status & _LATE) != 0]
        self._late_count += len(late)
        self._late_ticks += [int(tick) for tick in late[: LATE_TICKS_KEPT - len(self._late_ticks)]]
        for column, distribution in self._durations.items():
            distribution.add(rows[column])
        starts = rows["tick"] * self._period + rows["period_error"]
        gaps = np.diff(starts, prepend=self._last_start)[0 if self._last_tick >= 0 else 1 :]
        self._longest_gap = float(np.max(gaps, initial=self._longest_gap))
        self._last_tick, self._last_start = int(rows["tick"][-1]), float(starts[-1])
        for flag in Status:
            self._flags[flag] += int(np.count_nonzero(status & int(flag)))
        self._unusable += int(np.count_nonzero(status & UNUSABLE))
        self._sticking += int(np.count_nonzero(rows["sticking"]))
        for name, norms in self._norms.items():
            norms.add(rows[name])

    def certificate(self, executed: int, planned: int | None) -> dict[str, Any]:
        """Return the timing certificate of the run.

        Parameters
        ----------
        executed : int
            Ticks that were executed, recorded or not.
        planned : int or None
            Deadlines of a run that reached its planned end; None if it was ended before.

        Returns
        -------
        dict
            ``ticks``, ``skipped``, ``lost_ticks``, ``overruns``, ``period_error_us`` and ``tick_us`` as the command
            prints them; ``sample_age_us`` and ``write_us``, how old samples were and how long after the start of its
            tick a command had been handed to the device; ``longest_gap_us``: the longest time between two ticks, whose
            lateness alone says nothing of the deadlines skipped before it; ``unusable_ticks``, with the safe output
            because no sample could be trusted; where quantiles are not exact, ``resolution_us`` by their names
            (`Distribution`); ``late_ticks``, the numbers of the first late ones; and ``histograms``
            of all durations, ticks per bin of ``edges_us``, what lies beyond in the last bin.
        """
        self._flush()
        if planned is None:
            planned = self._last_tick + 1
        quantiles = {
            name: self._durations[column].quantiles(scale=1e6, p999=column == "period_error")
            for column, name in _DURATIONS.items()
        }
        resolution = {
            name: round(1e6 * one.resolution, 3)
            for column, name in _DURATIONS.items()
            if (one := self._durations[column]).resolution > _FINEST
        }
        return {
            "ticks": executed,
            "skipped": max(planned - executed, 0),
            "lost_ticks": executed - self.count,
            "overruns": self._late_count,
            **quantiles,
            **({"resolution_us": resolution} if resolution else {}),
            "longest_gap_us": round(self._longest_gap * 1e6, 3) if self.count > 1 else None,
            "unusable_ticks": self._unusable,
            "late_ticks": list(self._late_ticks),
            "histograms": {
                "edges_us": [round(float(edge), 4) for edge in BIN_EDGES_US],
                **{name: self._durations[column].histogram() for column, name in _DURATIONS.items()},
            },
        }

    def felt(self, causality: Causality) -> dict[str, Any]:
        """Return what the hand felt: ``force_n`` and ``stick_fraction``.

        The force is the command of an impedance device and the measured force of an admittance device [N].
        """
        self._flush()
        norms = self._norms["command" if causality is Causality.IMPEDANCE else "force"]
        share = round(self._sticking / self.count, 6) if self.count else None
        return {"force_n": norms.mean_and_max(), "stick_fraction": share}

    def flags_seen(self) -> dict[str, int]:
        """Return how many ticks carried each status flag, for those that occurred."""
        self._flush()
        return {str(flag.name): count for flag, count in self._flags.items() if count}


class _Norms:
    """Mean and maximum of the norms of vectors; those that are not finite are left out."""

    def __init__(self) -> None:
        self._sum, self._count, self._largest = 0.0, 0, -math.inf

    def add(self, vectors: NDArray[np.float64]) -> None:
        norms = np.hypot(vectors[:, 0], vectors[:, 1])
        norms = norms[np.isfinite(norms)]
        if len(norms):
            self._sum += float(norms.sum())
            self._count += len(norms)
            self._largest = max(self._largest, float(norms.max()))

    def mean_and_max(self) -> dict[str, float]:
        if not self._count:
            return {}
        return {"mean": round(self._sum / self._count, 6), "max": round(self._largest, 6)}


def certificate(rows: Rows, executed: int, planned: int | None, period: float) -> dict[str, Any]:
    """Return the timing certificate of a run whose recorded ticks are all in `rows` (`RunSummary.certificate`)."""
    return RunSummary(period).add(rows).certificate(executed, planned)


def felt(rows: Rows, causality: Causality) -> dict[str, Any]:
    """Return what the hand felt in `rows` (`RunSummary.felt`)."""
    return RunSummary(1.0).add(rows).felt(causality)


def flags_seen(rows: Rows) -> dict[str, int]:
    """Return how many ticks of `rows` carried each status flag, for those that occurred."""
    return RunSummary(1.0).add(rows).flags_seen()


def real_time_factor(simulated: float, used: dict[str, Any]) -> float | None:
    """Return how many times faster than a clock a run was that did not follow one.

    Parameters
    ----------
    simulated : float
        Time in the run [s].
    used : dict
        What it used of the machine (`haptics.servo.realtime.Usage`), the time in which it ran among it.
    """
    taken = used.get("elapsed_s")
    return round(simulated / taken, 1) if taken else None
