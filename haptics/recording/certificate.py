"""Timing certificate, force statistics and status flag counts of a run.

`RunSummary` accumulates them from chunks of rows, during a run or from a file, in constant memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from haptics.device import Causality
from haptics.records import UNUSABLE, Rows, Status
from haptics.settings import Checked, bounded, documented

# --- certificate ------------------------------------------------------------------------------------------------------

_LATE = int(Status.STARTED_LATE | Status.ENDED_LATE)

_LATE_TICKS_KEPT = 1000  # maximum number of late ticks listed in a certificate; the rows contain all of them

BIN_EDGES_US: NDArray[np.float64] = np.concatenate(([0.0], np.logspace(-1.0, 5.0, 61)))
"""Bin edges of the histograms of a certificate [us]: ten per decade from 0.1 us to 100 ms, and 0."""

# Columns and their names in a certificate.
_DURATIONS = {
    "period_error": "period_error_us",
    "tick_time": "tick_us",
    "sample_age": "sample_age_us",
    "write_time": "write_us",
}

SUMMARY_COLUMNS = ("tick", "status", "sticking", "command", "force", *_DURATIONS)
"""Columns that `RunSummary` needs."""

NOT_PRINTED = ("late_ticks", "histograms")
"""Parts of a certificate that are recorded but not printed."""

MAX_EXACT_VALUES = 1 << 16
"""Largest number of distinct values stored per duration."""

_MIN_BIN = 1e-9  # resolution to which values are rounded first if `MAX_EXACT_VALUES` is exceeded [s]

_STAGED = 4096  # rows buffered before they are processed: a live recorder delivers about twenty at a time


def quantiles(values: NDArray[np.float64], *, scale: float, p999: bool = False) -> dict[str, float]:
    """Return ``p50``, ``p99``, (``p999``,) and ``max`` of the finite `values`, multiplied by `scale`."""
    found = Distribution()
    found.add(values)
    return found.quantiles(scale=scale, p999=p999)


class Distribution:
    """Empirical distribution of a duration: quantiles and histogram in bounded memory.

    Distinct values are counted. Clocks have a resolution of 1 ns, so the number of distinct values is usually small and
    the quantiles are exact for any number of samples. If there are more than `MAX_EXACT_VALUES` distinct values, they
    are rounded to 1 ns and then merged in pairs until the limit is met; the error of a quantile is at most ``resolution
    / 2``. The result does not depend on the order or the chunks of the input. Histogram and maximum are always exact.

    Attributes
    ----------
    resolution : float
        Width of the bins in which values are counted [s]; 0 if every distinct value is counted separately.
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
        """Add durations [s], shape (n,), ignoring non-finite values."""
        self._pending.append(durations[np.isfinite(durations)])  # a copy
        self._waiting += len(self._pending[-1])
        if self._waiting > max(16 * _STAGED, len(self._values)):
            self._merge()

    def quantiles(self, *, scale: float, p999: bool = False) -> dict[str, float]:
        """Return ``p50``, ``p99``, (``p999``,) and ``max``, multiplied by `scale`; empty without samples.

        Quantiles are interpolated linearly between order statistics, as by `numpy.percentile`.
        """
        wanted = {"p50": 50.0, "p99": 99.0} | ({"p999": 99.9} if p999 else {}) | {"max": 100.0}
        found = {name: self.percentile(percent) for name, percent in wanted.items()}
        return {name: round(value * scale, 3) for name, value in found.items() if value is not None}

    def percentile(self, percent: float) -> float | None:
        """Return a percentile [s], or None without samples."""
        self._merge()
        if not len(self._values):
            return None
        if percent == 100.0:
            return self._largest
        upto = np.cumsum(self._counts)
        place = percent / 100.0 * (int(upto[-1]) - 1)
        whole = math.floor(place)
        at = np.searchsorted(upto, [whole, min(whole + 1, int(upto[-1]) - 1)], side="right")
        low, high = (float(value) for value in self._values[at])
        if self.resolution:
            low, high = (value * self.resolution + 0.5 * (self.resolution - _MIN_BIN) for value in (low, high))
        part = place - whole
        return low + (high - low) * part if part < 0.5 else high - (high - low) * (1.0 - part)

    def histogram(self) -> list[int]:
        """Return the number of durations per bin of `BIN_EDGES_US`; larger ones are counted in the last bin."""
        self._merge()
        return [int(count) for count in self._histogram]

    def _merge(self) -> None:
        """Merge pending values into the counts."""
        if not self._waiting:
            return
        values: NDArray[Any]
        values, counts = np.unique(np.concatenate(self._pending), return_counts=True)
        self._pending, self._waiting = [], 0
        self._largest = max(self._largest, float(values[-1]))
        places = np.searchsorted(np.clip(values * 1e6, 0.0, BIN_EDGES_US[-1]), BIN_EDGES_US[:-1])
        self._histogram += np.diff([*np.concatenate(([0], np.cumsum(counts)))[places], counts.sum()])
        if self.resolution:
            values = _in_nanoseconds(values) // round(self.resolution / _MIN_BIN)
        self._values, self._counts = _merge_counts(
            np.concatenate((self._values, values)), np.concatenate((self._counts, counts))
        )
        while len(self._values) > MAX_EXACT_VALUES:
            coarser = self._values // 2 if self.resolution else _in_nanoseconds(self._values)
            self.resolution = 2.0 * self.resolution or _MIN_BIN
            self._values, self._counts = _merge_counts(coarser, self._counts)


def _in_nanoseconds(durations: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.clip(np.rint(durations * 1e9), -(2.0**62), 2.0**62).astype(np.int64)


def _merge_counts(values: NDArray[Any], counts: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the sorted distinct values and the sum of the counts of each."""
    order = np.argsort(values, kind="stable")
    values, counts = values[order], counts[order]
    first = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))
    return values[first], np.add.reduceat(counts, first)


class RunSummary:
    """Accumulate certificate, force statistics and flag counts of a run from chunks of rows.

    Parameters
    ----------
    period : float
        Nominal period [s].

    Attributes
    ----------
    count : int
        Number of rows added.
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
        self._norms = dict.fromkeys(("command", "force"), (0.0, 0, -math.inf))  # sum, number, maximum

    def add(self, rows: Rows) -> Self:
        """Add the next rows, with at least the `SUMMARY_COLUMNS`; the array may be reused afterwards."""
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
        status = np.array(rows["status"])  # contiguous: each access to a column of a structured array reads all rows
        late = rows["tick"][(status & _LATE) != 0]
        self._late_count += len(late)
        self._late_ticks += [int(tick) for tick in late[: _LATE_TICKS_KEPT - len(self._late_ticks)]]
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
        for name, (total, count, largest) in self._norms.items():
            norms = np.hypot(rows[name][:, 0], rows[name][:, 1])
            norms = norms[np.isfinite(norms)]
            if len(norms):
                self._norms[name] = total + float(norms.sum()), count + len(norms), max(largest, float(norms.max()))

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
            ``ticks``, ``skipped``, ``lost_ticks``, ``overruns``, ``period_error_us`` and ``tick_us``: as the command
            prints them. ``sample_age_us`` and ``write_us``: age of the samples, and time from the start of a tick until
            the device had its command. ``longest_gap_us``: longest time between two ticks, which includes skipped
            deadlines. ``unusable_ticks``: ticks with the safe output because of an untrusted sample. ``resolution_us``:
            resolution of quantiles that are not exact (`Distribution`). ``late_ticks``: numbers of the first late
            ticks. ``histograms``: ticks per bin of ``edges_us`` for all durations; larger values are counted in the
            last bin.
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
            if (one := self._durations[column]).resolution > _MIN_BIN
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

    def force_statistics(self, causality: Causality) -> dict[str, Any]:
        """Return statistics of the rendered interaction: ``force_n`` and ``stick_fraction``.

        The force is the command of an impedance device and the measured force of an admittance device [N].
        """
        self._flush()
        total, count, largest = self._norms["command" if causality is Causality.IMPEDANCE else "force"]
        force = {"mean": round(total / count, 6), "max": round(largest, 6)} if count else {}
        return {"force_n": force, "stick_fraction": round(self._sticking / self.count, 6) if self.count else None}

    def flags_seen(self) -> dict[str, int]:
        """Return the number of ticks with each status flag, for the flags that occurred."""
        self._flush()
        return {str(flag.name): count for flag, count in self._flags.items() if count}


def real_time_factor(simulated: float, used: dict[str, Any]) -> float | None:
    """Return the ratio of simulated time to elapsed time of a run in simulated time.

    Parameters
    ----------
    simulated : float
        Duration of the run in simulated time [s].
    used : dict
        Resource usage of the run (`haptics.servo.realtime.usage`), including the elapsed time.
    """
    taken = used.get("elapsed_s")
    return round(simulated / taken, 1) if taken else None


# --- fitness ----------------------------------------------------------------------------------------------------------


@documented
@dataclass(frozen=True)
class Fitness(Checked, section="fitness"):
    """The table ``fitness``: limits of the timing of a fit run."""

    late_share: float = bounded(0.05, minimum=0.0, maximum=1.0, doc="largest share of ticks that started or ended late")
    skipped_share: float = bounded(0.01, minimum=0.0, maximum=1.0, doc="largest share of skipped deadlines")
    unusable_share: float = bounded(
        0.01, minimum=0.0, maximum=1.0, doc="largest share of ticks without a usable sample"
    )
    longest_gap: float = bounded(0.1, above=0.0, unit="s", doc="longest time between two ticks")
    lost_ticks: float = bounded(0.0, minimum=0.0, doc="largest number of ticks executed but not recorded")

    def evaluate(self, timing: dict[str, Any], fault: str | None = None) -> list[str]:
        """Return the reasons why a run with the certificate `timing` is not fit; empty if it is fit.

        Each reason is a sentence. See `haptics.recording.certificate` for the entries of `timing`. A run that ended
        with a `fault` is never fit.
        """
        executed, deadlines = max(timing["ticks"], 1), max(timing["ticks"] + timing["skipped"], 1)
        gap = timing["longest_gap_us"]
        found = (
            ("late_share", timing["overruns"] / executed, "of the ticks started or ended late"),
            ("skipped_share", timing["skipped"] / deadlines, "of the deadlines were missed whole"),
            ("unusable_share", timing["unusable_ticks"] / executed, "of the ticks had no usable sample"),
        )
        reasons = [
            f"{100 * share:.3g} % {event}; fitness.{name} allows {100 * getattr(self, name):g} %"
            for name, share, event in found
            if share > getattr(self, name)
        ]
        if gap is not None and gap * 1e-6 > self.longest_gap:
            allowed = f"fitness.longest_gap allows {self.longest_gap * 1e3:g} ms"
            reasons.append(f"{gap * 1e-3:.4g} ms passed between two ticks; {allowed}")
        if timing["lost_ticks"] > self.lost_ticks:
            allowed = f"fitness.lost_ticks allows {self.lost_ticks:g}"
            reasons.append(f"{timing['lost_ticks']} ticks were not recorded; {allowed}")
        if fault:
            reasons.append(f"the run ended with a fault: {fault}")
        return reasons
