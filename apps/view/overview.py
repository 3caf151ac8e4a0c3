"""Overview of a recording: extremes for the strip, marks for navigation, and cumulative counts.

A background thread computes it in one pass over the ticks and stores it in a cache file in the recording's folder. The
cache may be deleted at any time. No Qt.
"""

from __future__ import annotations

import contextlib
import copy
import os
import threading
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.view.history import FLAGS, Counts, Durations
from haptics.device import Causality
from haptics.errors import HapticError, RecordingError
from haptics.files import read_npz
from haptics.recording.recording import Recording, stated_hash
from haptics.recording.tick_file import Table
from haptics.records import UNUSABLE, Rows, Status

CACHE = "overview.npz"
"""Name of the cache file in the folder of a recording."""

BINS = 4096
"""Number of bins of the extremes, larger than the width of a window in pixels."""

STEP = 65_536
"""Number of rows between two stored states of the counters."""

WORTH_KEEPING = 4 * STEP
"""Minimum number of rows for which a cache file is written."""

MOST_MARKS = 2000
"""Maximum number of marks of each kind."""

_FORMAT = 2
_LIMITS = int(Status.ENERGY | Status.SPEED | Status.WORKSPACE | Status.PASSIVITY)

KINDS = {
    "unusable": "no usable sample",
    "limit": "the envelope took force away: energy, speed, workspace or passivity",
    "skipped": "deadlines were missed",
    "trial": "another marker",
    "settings": "other settings",
    "key": "a key",
    "end": "the end",
}
"""Kinds of marks with their descriptions, in drawing order."""

_NAMES = tuple(KINDS)
_IN_ROWS = _NAMES[:5]


@dataclass(frozen=True)
class Mark:
    """Event in a recording.

    Attributes
    ----------
    row : int
        Index of the row.
    kind : str
        One of `KINDS`.
    words : str
        Description for the user.
    """

    row: int
    kind: str
    words: str


class Overview:
    """Extremes, marks and counts of a recording, filled by `scan`.

    Parameters
    ----------
    table : Table
        Table of ticks.
    causality : str
        Causality of the device: the force is the command (impedance) or the measured force (admittance).

    Attributes
    ----------
    done : int
        Number of rows processed.
    force, speed : (BINS, 2) array
        Minimum and maximum norm per bin [N, m/s]; nan for bins without data.
    """

    def __init__(self, table: Table, causality: str = Causality.IMPEDANCE) -> None:
        self._table = table
        self._vector = "command" if causality == Causality.IMPEDANCE else "force"
        self.done = 0
        self.force = np.full((BINS, 2), np.nan, np.float32)
        self.speed = np.full((BINS, 2), np.nan, np.float32)
        self._marks: dict[str, list[tuple[int, int]]] = {kind: [] for kind in _IN_ROWS}
        self._states = [Counts()]
        self._before: dict[str, int] = {}
        self._other: list[Mark] = []

    @property
    def complete(self) -> bool:
        """Whether all rows have been processed."""
        return self.done >= len(self._table)

    @property
    def marks(self) -> list[Mark]:
        """The marks found, sorted by row."""
        numbered = {"trial": "marker", "settings": "settings"}
        found = list(self._other)
        for kind, marks in self._marks.items():
            for row, value in marks:
                words = f"{numbered[kind]} {value}" if kind in numbered else KINDS[kind]
                found.append(Mark(row, kind, words))
        return sorted(found, key=lambda mark: mark.row)

    def counted_until(self, rows: int) -> tuple[int, Counts] | None:
        """Return the last stored counts before row `rows` with their number of rows; None if not yet scanned."""
        number = rows // STEP
        if number >= len(self._states):
            return None
        return number * STEP, copy.deepcopy(self._states[number])

    def scan(self, stopped: Callable[[], bool] = lambda: False) -> bool:
        """Process the remaining rows; return False if `stopped` returned True before the end."""
        columns = (
            *("tick", "time", "status", self._vector, "velocity", "marker", "settings_version"),
            *("period_error", "tick_time", "injected_energy"),
        )
        for rows in self._table.chunks(columns, STEP, start=self.done):
            if stopped():
                return False
            self._add(rows)
        return True

    def _add(self, rows: Rows) -> None:
        places = np.arange(self.done, self.done + len(rows)) * BINS // len(self._table)
        for extremes, name in ((self.force, self._vector), (self.speed, "velocity")):
            norms = np.nan_to_num(np.hypot(rows[name][:, 0], rows[name][:, 1]), nan=0.0, posinf=0.0)
            starts = np.flatnonzero(np.diff(places, prepend=-1))
            parts = places[starts]
            extremes[parts, 0] = np.fmin(extremes[parts, 0], np.minimum.reduceat(norms, starts))
            extremes[parts, 1] = np.fmax(extremes[parts, 1], np.maximum.reduceat(norms, starts))
        status = rows["status"]
        # Marks at rising edges of flags; edges that follow closely on a mark are merged with it.
        apart = max(len(self._table) // MOST_MARKS, 1000)
        for kind, flags in (("unusable", UNUSABLE), ("limit", _LIMITS), ("skipped", int(Status.AFTER_SKIP))):
            marks, on = self._marks[kind], ((status & flags) != 0).astype(np.int8)
            begins = np.flatnonzero(np.diff(on, prepend=np.int8(self._before.get(kind, 0))) > 0)
            self._before[kind] = int(on[-1])
            for row in (begins + self.done).tolist():
                if not marks or row - marks[-1][0] >= apart:
                    marks.append((row, 0))
        # Marks where a value changes.
        for kind, column in (("trial", "marker"), ("settings", "settings_version")):
            values, marks = rows[column], self._marks[kind]
            before = self._before.get(kind, int(values[0]))
            changes = np.flatnonzero(np.diff(values, prepend=before))[: MOST_MARKS - len(marks)]
            marks += [(self.done + place, int(values[place])) for place in changes.tolist()]
            self._before[kind] = int(values[-1])
        counts = copy.deepcopy(self._states[-1])
        counts.add(rows)
        self._states.append(counts)
        self.done += len(rows)

    def mark_events(self, events: Sequence[Mapping[str, Any]], metadata: Mapping[str, Any]) -> None:
        """Add marks for key presses and for the end of the run."""
        last = len(self._table) - 1
        if last < 0:
            return
        found: list[Mark] = []
        for event in events:
            tick = event.get("tick")
            if event.get("event") == "key" and event.get("down") and type(tick) is int and len(found) < MOST_MARKS:
                row = min(max(tick, 0), last)
                if self._table.read(row, row + 1, ("tick",))["tick"][0] != tick:  # skipped deadlines have no row
                    row = row_of(self._table, "tick", tick)
                found.append(Mark(row, "key", f"key {str(event.get('name'))[:20]}"))
        reason = metadata.get("error") or metadata.get("reason")
        if reason:
            found.append(Mark(last, "end", f"the end: {str(reason)[:200]}"))
        self._other = found

    # --- cache file

    def save(self, folder: Path, seal: str) -> None:
        """Write the cache file for the recording with the hash `seal`. Errors of the file system are ignored."""
        arrays: dict[str, Any] = {
            "format": np.array([_FORMAT, len(self._table)]),
            "seal": np.frombuffer(seal.encode(), np.uint8),
            "force": self.force,
            "speed": self.speed,
            **{f"marks_{kind}": np.array(marks, np.int64).reshape(-1, 2) for kind, marks in self._marks.items()},
            "counts": np.array([_packed(one) for one in self._states]),
        }
        unborn = folder / f".{CACHE}.{os.getpid()}"
        with contextlib.suppress(OSError):
            try:
                with open(unborn, "xb") as file:
                    np.savez_compressed(file, allow_pickle=False, **arrays)
                os.replace(unborn, folder / CACHE)
            finally:
                unborn.unlink(missing_ok=True)

    def load(self, folder: Path, seal: str) -> bool:
        """Load the cache file if it is valid and belongs to the hash `seal`; return True on success."""
        path = folder / CACHE
        if path.is_symlink() or not path.is_file():
            return False
        try:
            arrays = read_npz(path)
            if arrays["format"].tolist() != [_FORMAT, len(self._table)] or arrays["seal"].tobytes() != seal.encode():
                return False
            force, speed = (_checked(arrays[name], (BINS, 2)) for name in ("force", "speed"))
            marks = {kind: _checked(arrays[f"marks_{kind}"], (-1, 2)).astype(np.int64) for kind in _IN_ROWS}
            counts = _checked(arrays["counts"], (1 - (-len(self._table) // STEP), int(_SPLITS[-1]) + 2))
            states = [_unpacked(row) for row in counts]
            if any(((one[:, 0] < 0) | (one[:, 0] >= len(self._table))).any() for one in marks.values()):
                return False
        except (HapticError, KeyError, ValueError, OverflowError):
            return False
        self.force, self.speed, self._states = force.astype(np.float32), speed.astype(np.float32), states
        self._marks = {kind: [(row, value) for row, value in one[:MOST_MARKS].tolist()] for kind, one in marks.items()}
        self.done = len(self._table)
        return True


class OverviewScan:
    """Background thread that fills an overview.

    Parameters
    ----------
    overview : Overview
        Overview to fill. It may be read at any time.
    recording : Recording, optional
        Recording whose folder holds the cache file.

    Attributes
    ----------
    over : bool
        Whether the scan has finished.
    """

    def __init__(self, overview: Overview, recording: Recording | None = None) -> None:
        self.overview, self._recording = overview, recording
        self._seal = stated_hash(recording.metadata) if recording is not None else ""
        self._stopped = threading.Event()
        self.over: bool = False
        self._thread = threading.Thread(target=self._run, name="haptics overview", daemon=True)

    def start(self) -> None:
        """Load the cache file if there is one, and start the thread."""
        if self._recording is not None and self._seal:
            self.overview.load(self._recording.folder, self._seal)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and wait for its end."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        overview, recording = self.overview, self._recording
        with contextlib.suppress(RecordingError):  # reported by the window when it reads the rows
            if not overview.complete and overview.scan(self._stopped.is_set):
                if recording is not None and self._seal and overview.done >= WORTH_KEEPING:
                    overview.save(recording.folder, self._seal)
            if recording is not None:
                overview.mark_events(recording.events, recording.metadata)
        self.over = True


def row_of(table: Table, column: str, value: float, near: int = 0) -> int:
    """Return the index of the last row with ``column <= value`` for an increasing column, or 0.

    The search starts at the row `near` with doubling steps, because reading distant rows of a packed table is slow.
    """

    def value_at(row: int) -> float:
        return float(table.read(row, row + 1, (column,))[column][0])

    low, high, step = 0, len(table), 1
    near = min(max(near, 0), high - 1)
    if high and value_at(near) > value:
        high = near
        while high - step > 0 and value_at(high - step) > value:
            high, step = high - step, 2 * step
        low = max(high - step, 0)
    elif high:
        low = near + 1
        while low + step < high and value_at(low + step) <= value:
            low, step = low + step + 1, 2 * step
        high = min(low + step, high)
    return max(bisect_right(range(high), value, low, key=value_at) - 1, 0)


def _checked(array: NDArray[Any], shape: tuple[int, int]) -> NDArray[Any]:
    """Validate the shape of a two-dimensional array; raise `ValueError` otherwise."""
    if array.ndim != 2 or array.shape[1] != shape[1] or (shape[0] >= 0 and array.shape[0] != shape[0]):
        raise ValueError(f"an array of the shape {array.shape}")
    return array


_NUMBERS = ("ticks", "late", "skipped", "time", "newest", "largest_energy", "_previous_tick")
_DURATIONS = len(Durations.EDGES) - 1
_SPLITS = np.cumsum((len(_NUMBERS), len(FLAGS), len(FLAGS), _DURATIONS, _DURATIONS))


def _packed(counts: Counts) -> NDArray[np.float64]:
    """Return counts as one vector of numbers, flags, times of flags, histograms, and maxima."""
    durations = counts.lateness, counts.tick_times
    numbers, maxima = [float(getattr(counts, name)) for name in _NUMBERS], [one.maximum for one in durations]
    return np.concatenate((numbers, counts.flags, counts.last, *(one.counts for one in durations), maxima))


def _unpacked(row: NDArray[np.float64]) -> Counts:
    counts = Counts()
    numbers, flags, last, *histograms, maxima = np.split(row, _SPLITS)
    for name, value in zip(_NUMBERS, numbers.tolist(), strict=True):
        setattr(counts, name, value if name in ("time", "largest_energy") else int(value))
    counts.newest = Status(int(counts.newest) & sum(int(flag) for flag in Status))
    counts.flags, counts.last = flags.astype(np.int64), last.astype(np.float64)
    for durations, histogram, most in zip((counts.lateness, counts.tick_times), histograms, maxima, strict=True):
        durations.counts, durations.maximum = histogram.astype(np.int64), float(most)
    return counts
