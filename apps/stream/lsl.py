"""Lab Streaming Layer: ticks as a regular stream, and markers as an irregular stream.

Receivers such as LabRecorder discover both automatically. Samples carry the time of the tick, not of sending: the time
of tick 0 plus the nominal time of the tick, on the monotonic clock, which ``lsl_local_clock`` reads too
(https://labstreaminglayer.readthedocs.io/info/time_synchronization.html).
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from apps.stream.ticks import Batch

TICKS, MARKERS = "haptics ticks", "haptics markers"
"""Names of the two streams."""

LAST_WORDS = 0.5
"""Time for receivers to read pending samples before the outlets are closed [s]."""

_SAME_CLOCK = 1e-3
"""Difference below which two clocks are considered equal [s]. The remainder is the time to read them."""


class LslSink:
    """LSL outlets of ticks and markers.

    The tick outlet opens with the first run, or earlier if `columns` is given.

    Parameters
    ----------
    columns : sequence of str, optional
        Names of the values of a tick, if known before the first run.
    rate : float
        Tick rate in this case [Hz].
    """

    def __init__(self, columns: Sequence[str] = (), rate: float = 0.0) -> None:
        import pylsl

        self._pylsl = pylsl
        self._shift = _shift(pylsl.local_clock)
        self._columns: list[str] = []
        self._rate = 0.0
        self._marker = 0
        self._ticks: Any = None
        self.origin: float | None = None
        info = pylsl.StreamInfo(MARKERS, "Markers", 1, 0.0, pylsl.cf_string, f"haptics-markers-{platform.node()}")
        self._markers = pylsl.StreamOutlet(info)
        if columns:
            self._open(list(columns), rate)

    def begin(self, about: dict[str, Any]) -> None:
        """Open the outlet of the ticks.

        It stays open between runs with the same columns and rate.
        """
        self._open(list(about["columns"]), float(about["rate_hz"]))
        self.origin = None
        self._marker = 0

    def send(self, batch: Batch) -> None:
        """Push a batch with the times of its ticks, and a marker for every change of the column ``marker``."""
        if batch.lost:
            self.mark({"event": "lost", "ticks": batch.lost}, time.monotonic())
        if not batch.ticks:
            return
        self.origin = batch.origin
        table = np.array(batch.ticks, dtype=np.float64)
        stamps = batch.origin + table[:, batch.columns.index("time_s")]
        self._ticks.push_chunk(table[:, 1:], (stamps + self._shift).tolist())  # without the UTC time in column 0
        self._mark_changes(table[:, batch.columns.index("marker")].astype(int).tolist(), stamps.tolist())

    def mark(self, what: dict[str, Any], at: float) -> None:
        """Push a marker, a JSON object, at a time of the monotonic clock [s]."""
        self._markers.push_sample([json.dumps(what, separators=(",", ":"), allow_nan=False)], at + self._shift)

    def end(self, reason: str) -> None:
        """Push a marker for the end of the run."""
        self.mark({"event": "end of run", "reason": reason}, time.monotonic())

    def tick_time(self, tick: int) -> float | None:
        """Return the deadline of a tick of the current run on the monotonic clock [s].

        None before the first batch of the run.
        """
        return None if self.origin is None else self.origin + tick / self._rate

    def close(self) -> None:
        """Wait until receivers have read pending samples, and close the outlets."""
        outlets = [one for one in (self._ticks, self._markers) if one is not None]
        if any(one.have_consumers() for one in outlets):
            time.sleep(LAST_WORDS)
        self._ticks = self._markers = None

    def _open(self, columns: list[str], rate: float) -> None:
        if self._ticks is not None and (columns, rate) == (self._columns, self._rate):
            return
        self._columns, self._rate = columns, rate
        lsl = self._pylsl
        source = f"haptics-ticks-{platform.node()}"
        info = lsl.StreamInfo(TICKS, "Haptics", len(columns) - 1, rate, lsl.cf_double64, source)
        channels = info.desc().append_child("channels")
        for name in columns[1:]:
            channels.append_child("channel").append_child_value("label", name)
        self._ticks = lsl.StreamOutlet(info)

    def _mark_changes(self, markers: list[int], stamps: list[float]) -> None:
        for marker, stamp in zip(markers, stamps, strict=True):
            if marker != self._marker:
                self._marker = marker
                self.mark({"event": "marker", "marker": marker}, stamp)


def _shift(local_clock: Any) -> float:
    """Return the offset from the monotonic clock to the LSL clock [s]; 0 if they are equal."""
    gaps = []
    for _ in range(20):
        before = time.monotonic()
        there = local_clock()
        gaps.append(there - 0.5 * (before + time.monotonic()))
    shift = sorted(gaps)[len(gaps) // 2]
    return 0.0 if abs(shift) < _SAME_CLOCK else float(shift)
