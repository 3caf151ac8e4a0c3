"""Recomputation of the timing certificate, force statistics and flag counts from the rows.

The rows are read in chunks. Quantiles are exact: the distinct values are counted. Times with a resolution of 1 ns have
few distinct values. If there are too many, the order statistics are found by radix selection, in four passes over the
rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.verify.findings import Findings
from apps.verify.recorded import FLAGS, UNUSABLE, Flag, Recorded

_DURATIONS = {
    "period_error_us": "period_error",
    "tick_us": "tick_time",
    "sample_age_us": "sample_age",
    "write_us": "write_time",
}
MOST_LATE_TICKS = 1000
_EDGES = np.array([0.0, *(10.0 ** (k / 10.0 - 1.0) for k in range(61))])
"""Edges of the histograms [us]: ten per decade from 0.1 us to 100 ms, and one bin below."""

_SHARES = {"p50": 0.5, "p99": 0.99, "p999": 0.999, "max": 1.0}
"""Quantiles in a certificate."""

_LIMITS = {
    "late_share": 0.05,
    "skipped_share": 0.01,
    "unusable_share": 0.01,
    "longest_gap": 0.1,
    "lost_ticks": 0.0,
}
"""Limits of a fit run that are not stated in its configuration."""


def check_certificate(run: Recorded, findings: Findings) -> None:
    """Compare the stored certificate and statistics with the values recomputed from the rows."""
    recorded = run.metadata.get("certificate")
    if not isinstance(recorded, dict):
        findings.lack("certificate", "the recording has no certificate: the application ended before it was made.")
        return
    if run.count < len(run.source) or run.count != recorded.get("ticks"):
        findings.lack("certificate", "the certificate cannot be made again: rows are missing.")
        return
    beside = {name: run.metadata.get(name) for name in ("flags", "force_n", "stick_fraction")}
    rows = _Rows(run)
    differing, absent = [], []
    for name, value in _made(run, rows, recorded).items():
        stated = beside.get(name, recorded.get(name))
        tolerance = 2e-3 + rows.resolution(name, recorded) if name.endswith("_us") else 2e-6
        if stated is None and value is not None:
            absent.append(name)
        elif not _alike(stated, value, tolerance):
            differing.append(name)
    if differing:
        findings.violate("certificate", f"the rows give another certificate: {', '.join(differing)}")
    if absent and run.metadata.keys() & {"rows_sha256", "ticks_sha256"}:
        findings.lack("certificate", f"the certificate lacks {', '.join(absent)}.")


class _Rows:
    """Statistics of all rows.

    Attributes
    ----------
    force, forces, largest : float, int, float
        Sum, number and maximum of the norms of the force on the hand [N].
    late : list of int
        First ticks that started or ended late.
    late_count : int
        Number of all late ticks.
    flags : dict
        Number of ticks with each flag.
    durations : dict
        Values of each duration column [us].
    """

    COLUMNS = ("tick", "status", "sticking", "command", "force", *_DURATIONS.values())

    def __init__(self, run: Recorded) -> None:
        self._period, self._vector = run.period, "command" if run.impedance else "force"
        self.count = self.late_count = self.unusable = self.sticking = 0
        self.late: list[int] = []
        self.flags = dict.fromkeys(FLAGS, 0)
        self.gap: float | None = None
        self.last_tick = -1
        self._start: float | None = None
        self.force, self.forces, self.largest = 0.0, 0, 0.0
        self.durations = {name: _Values(column) for name, column in _DURATIONS.items()}
        for rows in run.source.chunks(self.COLUMNS):
            self._add(rows)
        for values in self.durations.values():
            values.finish(run)

    def _add(self, rows: NDArray[Any]) -> None:
        """Process the next chunk of rows."""
        status, tick = rows["status"].astype(np.int64), rows["tick"].copy()
        late = tick[(status & (Flag.STARTED_LATE | Flag.ENDED_LATE)) != 0]
        self.late_count += len(late)
        self.late += late[: MOST_LATE_TICKS - len(self.late)].tolist()
        self.unusable += int(np.count_nonzero(status & UNUSABLE))
        self.sticking += int(np.count_nonzero(rows["sticking"]))
        for name, flag in FLAGS.items():
            self.flags[name] += int(np.count_nonzero(status & flag))
        starts = tick * self._period + rows["period_error"]
        steps = np.diff(starts) if self._start is None else np.diff(starts, prepend=self._start)
        if len(steps):
            self.gap = max(float(np.max(steps)), -math.inf if self.gap is None else self.gap)
        self._start, self.last_tick = float(starts[-1]), int(tick[-1])
        vectors = rows[self._vector]
        norms = np.sqrt(vectors[:, 0] ** 2 + vectors[:, 1] ** 2)
        norms = norms[np.isfinite(norms)]
        self.force, self.forces = self.force + float(norms.sum()), self.forces + len(norms)
        self.largest = max(self.largest, float(np.max(norms, initial=0.0)))
        for values in self.durations.values():
            values.add(rows[values.column] * 1e6)
        self.count += len(rows)

    def resolution(self, name: str, recorded: Mapping[str, Any]) -> float:
        """Return the resolution of quantiles stated in the certificate [us].

        The stated value is accepted only if the number of distinct values requires rounding.
        """
        stated = recorded.get("resolution_us")
        resolution = stated.get(name, 0.0) if isinstance(stated, dict) and name in self.durations else 0.0
        if not isinstance(resolution, int | float) or isinstance(resolution, bool):
            return 0.0
        return float(resolution) if 0.0 < resolution <= self.durations[name].coarsest else 0.0


class _Values:
    """Finite values of a duration column [us]: quantiles and histogram."""

    MOST = 1 << 18
    TOGETHER = 1 << 16
    """Number of distinct values that a recorder stores."""

    def __init__(self, column: str) -> None:
        self.column, self.count = column, 0
        self._values: NDArray[np.float64] | None = np.empty(0)
        self._counts = np.empty(0, np.int64)
        self._found: dict[int, float] = {}
        self.histogram = np.zeros(len(_EDGES) - 1, np.int64)
        self._least, self._largest = math.inf, -math.inf
        self.coarsest = 0.0

    def add(self, values: NDArray[np.float64]) -> None:
        """Add the values of the next rows."""
        values = values[np.isfinite(values)]
        self.count += len(values)
        if not len(values):
            return
        self._least, self._largest = min(self._least, float(values.min())), max(self._largest, float(values.max()))
        clipped = np.clip(values, 0.0, _EDGES[-1])
        places = np.minimum(np.searchsorted(_EDGES, clipped, side="right"), len(_EDGES) - 1)
        self.histogram += np.bincount(places, minlength=len(_EDGES))[1:]
        if self._values is not None:
            new, counts = np.unique(values, return_counts=True)
            both = np.concatenate((self._values, new))
            self._values, place = np.unique(both, return_inverse=True)
            self._counts = np.bincount(place, np.concatenate((self._counts, counts))).astype(np.int64)
            if len(self._values) > self.MOST:
                self._values, self._counts = None, np.empty(0, np.int64)

    def finish(self, run: Recorded) -> None:
        """Determine the order statistics required for the quantiles."""
        wanted = sorted({place for share in _SHARES.values() for place in self._between(share)[:2]})
        different = self.MOST if self._values is None else len(self._values)
        if different > self.TOGETHER:
            self.coarsest = 8.0 * (self._largest - self._least) / self.TOGETHER
        if not self.count:
            return
        if self._values is not None:
            upto = np.cumsum(self._counts)
            self._found = {k: float(self._values[np.searchsorted(upto, k, side="right")]) for k in wanted}
        else:
            self._found = {k: self._select(run, k) for k in wanted}

    def quantiles(self, more: bool) -> dict[str, float]:
        """Return the quantiles by linear interpolation between order statistics.

        `more` includes ``p999``.
        """
        if not self.count:
            return {}
        found = {}
        for name, share in _SHARES.items():
            if name != "p999" or more:
                low, high, part = self._between(share)
                found[name] = self._found[low] + part * (self._found[high] - self._found[low])
        return found

    def _between(self, share: float) -> tuple[int, int, float]:
        place = share * (self.count - 1)
        low = max(int(place), 0)
        return low, max(min(low + 1, self.count - 1), 0), place - low

    def _select(self, run: Recorded, place: int) -> float:
        """Return the order statistic with index `place` by radix selection, 16 bits per pass."""
        key = 0
        for shift in (48, 32, 16, 0):
            counts = np.zeros(1 << 16, np.int64)
            for rows in run.source.chunks((self.column,)):
                values = rows[self.column] * 1e6
                bits = (values[np.isfinite(values)] + 0.0).view(np.uint64)
                keys = np.where(bits >> np.uint64(63), ~bits, bits | np.uint64(1 << 63))  # in the order of the values
                if shift < 48:
                    keys = keys[keys >> np.uint64(shift + 16) == np.uint64(key)]
                digits = (keys >> np.uint64(shift)) & np.uint64(0xFFFF)
                counts += np.bincount(digits.astype(np.int64), minlength=1 << 16)
            upto = np.cumsum(counts)
            digit = int(np.searchsorted(upto, place, side="right"))
            place -= int(upto[digit - 1]) if digit else 0
            key = key << 16 | digit
        pattern = key & ~(1 << 63) if key >> 63 else ~key & (1 << 64) - 1
        return float(np.array([pattern], np.uint64).view(np.float64)[0])


def _made(run: Recorded, rows: _Rows, recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Recompute the statistics that the metadata contain."""
    session = run.metadata.get("configuration", {}).get("session", {})
    duration = session.get("duration") if isinstance(session, dict) else None
    deadlines = rows.last_tick + 1
    if run.metadata.get("reason") == "completed" and isinstance(duration, int | float):
        deadlines = round(duration * float(run.metadata["rate_hz"]))
    made: dict[str, Any] = {
        "skipped": max(deadlines - rows.count, 0),
        "lost_ticks": 0,
        "overruns": rows.late_count,
        "longest_gap_us": None if rows.gap is None else rows.gap * 1e6,
        "unusable_ticks": rows.unusable,
        "late_ticks": rows.late,
        "flags": {name: count for name, count in rows.flags.items() if count},
        "stick_fraction": rows.sticking / rows.count if rows.count else None,
        "force_n": {"mean": rows.force / rows.forces, "max": rows.largest} if rows.forces else {},
    }
    for name, values in rows.durations.items():
        made[name] = values.quantiles(name == "period_error_us")
    edges = [round(float(edge), 4) for edge in _EDGES]
    made["histograms"] = {"edges_us": edges, **{name: one.histogram.tolist() for name, one in rows.durations.items()}}
    made |= {name: value for name, value in run.metadata.get("real_time", {}).items() if name in recorded}
    if run.metadata.keys() & {"rows_sha256", "ticks_sha256"}:
        timing = {"ticks": rows.count, **made}
        configured = run.metadata.get("configuration", {}).get("fitness", {})
        limits = {**_LIMITS, **(configured if isinstance(configured, dict) else {})}
        executed, deadlines = max(timing["ticks"], 1), max(timing["ticks"] + timing["skipped"], 1)
        gap = timing["longest_gap_us"]
        made["fit"] = not (
            timing["overruns"] / executed > limits["late_share"]
            or timing["skipped"] / deadlines > limits["skipped_share"]
            or timing["unusable_ticks"] / executed > limits["unusable_share"]
            or (gap is not None and round(gap, 3) * 1e-6 > limits["longest_gap"])
            or timing["lost_ticks"] > limits["lost_ticks"]
            or run.metadata.get("error")
        )
    return made


def _alike(recorded: Any, value: Any, tolerance: float) -> bool:
    """Return True if two plain values are equal up to the rounding of the last stored digit."""
    match recorded, value:
        case dict(), dict():
            return recorded.keys() == value.keys() and all(
                _alike(recorded[key], one, tolerance) for key, one in value.items()
            )
        case list(), list():
            return len(recorded) == len(value) and all(
                map(lambda one, other: _alike(one, other, tolerance), recorded, value)
            )
        case bool(), bool():
            return recorded == value
        case bool(), _:
            return False
        case int() | float(), float():
            return math.isclose(recorded, value, rel_tol=1e-9, abs_tol=tolerance)
    return type(recorded) is type(value) and bool(recorded == value)
