"""Access to a recording for the verification: metadata, and windows of ticks with their stretches.

A recording may be larger than the memory, so its ticks are verified in windows. Each window includes `LOOK_BACK`
earlier rows; checks that depend on older rows keep separate state.

Only the reader of recordings is shared with the program; it is hardened against malicious files.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.errors import RecordingError
from haptics.recording.recording import Recording

Array = NDArray[Any]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Flag:
    """Bits of the column ``status``."""

    NOT_FINITE, STALE, LIMITED, SLEW = (1 << bit for bit in range(4))
    WORKSPACE, SPEED, FADE, ENERGY = (1 << bit for bit in range(4, 8))
    STARTED_LATE, ENDED_LATE, AFTER_SKIP, IMPLAUSIBLE = (1 << bit for bit in range(8, 12))
    RELEASED, PASSIVITY, ASTRAY, FOLLOWING_ERROR = (1 << bit for bit in range(12, 16))
    THERMAL = 1 << 16


FLAGS: dict[str, int] = {name: bit for name, bit in vars(Flag).items() if name.isupper()}
"""Bits of the column ``status`` by name."""

UNUSABLE = Flag.NOT_FINITE | Flag.STALE | Flag.IMPLAUSIBLE | Flag.ASTRAY | Flag.FOLLOWING_ERROR
"""Flags of a tick with the safe output."""


class Permission:
    """Bits of the column ``permission``."""

    RELEASED, ENDING = 1, 2


FADE_OUT = 8e-3
"""Duration of the fade-out [s]."""

EPS = 2.0**-52

ROUNDINGS = 64.0
"""Number of roundings in a value, each half a unit in the last place of the largest term, times two."""

ADMITTANCE, IMPEDANCE = "admittance", "impedance"
MOTION = "motion"


def rounding(*terms: Any) -> Array:
    """Return the rounding bound of a sum of `terms`: numbers or arrays, of any sign."""
    bound: Array = ROUNDINGS * EPS * sum(abs(term) for term in terms)
    return bound


WINDOW = 50_000
"""Number of rows per window."""

LOOK_BACK = 520
"""Number of earlier rows in a window; must exceed the number of commands stored by the energy ledger."""

ADDED: dict[str, tuple[int, Any]] = {
    "marker": (3, 0),
    "gate": (3, 1.0),
    "region": (3, -1),
    "normal_force": (3, math.nan),
    "hand_force": (3, math.nan),
}
"""Columns that the first formats did not have: their first format, and their value in earlier ones."""

SHEET: dict[str, Any] = {
    "max_following_error": 1000.0,
    "watchdog": math.inf,
    "delay": 0.0,
    "velocity_lag": 0.0,
    "position_resolution": 0.0,
    "damping": 0.0,
    "mass": None,
    "continuous_force": 0.0,
    "full_force_time": 0.0,
}
"""Defaults of entries that a data sheet omits."""


class Recorded:
    """Recording with its rows up to the first gap.

    Attributes
    ----------
    source : Recording
        The underlying recording.
    metadata : dict
        Content of ``recording.json``.
    period : float
        Time between two ticks [s].
    impedance : bool
        Whether the device is an impedance device, which receives forces; otherwise it receives positions.
    journal : dict
        Settings by version.

    Raises
    ------
    RecordingError
        If the folder is not a recording, or required metadata are missing.
    """

    def __init__(self, folder: Path) -> None:
        self.source = Recording(folder)
        self.metadata: dict[str, Any] = self.source.metadata
        try:
            rate = float(self.metadata["rate_hz"])
            if not 0.0 < rate < math.inf:
                raise ValueError(f"rate_hz = {rate}")
            self.period = 1.0 / rate
            self.impedance = str(self.metadata["device"]["causality"]) == IMPEDANCE
            self.journal: dict[int, dict[str, Any]] = {int(entry["version"]): entry for entry in self.source.settings}
        except (KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
            raise RecordingError(
                f"{folder} does not describe its run as a recording should ({type(error).__name__}: {error})."
            ) from error

    def limit(self, name: str, otherwise: Any = None) -> Any:
        """Return a limit of the envelope, or `otherwise` if it is not stated."""
        value = self.metadata["limits"].get(name, otherwise)
        return math.inf if value is None else value

    def sheet(self, name: str) -> Any:
        """Return an entry of the data sheet, or its default."""
        value = self.metadata["device"].get(name)
        return SHEET.get(name) if value is None else value

    @cached_property
    def order(self) -> Order:
        """Order of the tick numbers."""
        return Order(self.source)

    @cached_property
    def count(self) -> int:
        """Number of rows that can be checked: those before the first missing, repeated or decreasing tick."""
        return self.order.gap

    def windows(self) -> Iterator[Window]:
        """Iterate over windows of the rows before the first gap."""
        segment, version = 0, None
        for start in range(0, self.count, WINDOW):
            begin = max(start - LOOK_BACK, 0)
            rows = self.source.read(begin, min(start + WINDOW, self.count))
            versions = rows["settings_version"][start - begin :]
            segment += version is not None and versions[0] != version
            yield Window(self, rows, begin, start - begin, segment)
            segment += int(np.count_nonzero(np.diff(versions)))
            version = int(versions[-1])


class Order:
    """Order of the tick numbers of a recording.

    Attributes
    ----------
    gap : int
        Index of the first row with a repeated or decreasing tick, or after missing ticks that are not flagged as
        skipped; the number of rows if there is no such row.
    gap_tick : int
        Tick of that row.
    back : (int, int) or None
        First pair of consecutive ticks that do not increase.
    last : int
        Last tick, -1 without rows.
    """

    def __init__(self, source: Recording) -> None:
        self.gap, self.gap_tick, self.last = 0, 0, -1
        self.back: tuple[int, int] | None = None
        whole = True
        for rows in source.chunks(("tick", "status")):
            ticks = rows["tick"].copy()
            step = np.diff(ticks, prepend=self.last)
            skipped = (rows["status"].astype(np.int64) & Flag.AFTER_SKIP) != 0
            broken = (step < 1) | ((step > 1) & ~skipped)
            if whole and broken.any():
                place = int(np.argmax(broken))
                self.gap, self.gap_tick, whole = self.gap + place, int(ticks[place]), False
            elif whole:
                self.gap += len(ticks)
            back = np.flatnonzero(step <= 0)
            if self.back is None and len(back) and (back[0] or self.last >= 0):
                before = self.last if back[0] == 0 else ticks[back[0] - 1]
                self.back = int(before), int(ticks[back[0]])
            self.last = int(ticks[-1])


class Window(Recorded):
    """Window of consecutive rows, preceded by look-back rows.

    Attributes
    ----------
    first : int
        Index in the recording of the first row of the arrays.
    skip : int
        Number of look-back rows at the beginning of the arrays.
    segment : int
        Number of changes of the settings before the window.
    whole, total : Recorded, int
        The recording that the window belongs to, and the number of its rows.
    is_last : bool
        Whether this is the last window.
    count : int
        Number of rows, including look-back rows.
    """

    def __init__(self, whole: Recorded, rows: Array, first: int, skip: int, segment: int) -> None:
        vars(self).update(vars(whole))
        self.whole, self.first, self.skip, self.segment = whole, first, skip, segment
        self._rows = rows
        self.total, self.count = whole.count, len(rows)
        self.is_last = first + len(rows) >= whole.count

    def column(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        """Return a column of the rows `start` to `stop` of the window."""
        rows = self._rows[start : self.count if stop is None else stop]
        if name in (rows.dtype.names or ()):
            return np.array(rows[name])
        return np.full(len(rows), ADDED[name][1])

    @cached_property
    def tick(self) -> Array:
        """Numbers of the ticks."""
        return self.column("tick")

    @cached_property
    def status(self) -> Array:
        """Flags of the ticks."""
        return self.column("status").astype(np.int64)

    @cached_property
    def good(self) -> Array:
        """Whether the tick had a usable sample, so that its command was not the safe output."""
        return np.asarray((self.status & UNUSABLE) == 0)

    @cached_property
    def in_motion(self) -> Array:
        """Whether the tick belongs to a prescribed motion instead of an element."""
        versions = [version for version, entry in self.journal.items() if entry.get("model") == MOTION]
        return np.asarray(np.isin(self.column("settings_version"), versions))

    def parameter(self, name: str) -> Array:
        """Return a parameter of the element in every tick, (n,); 0 if the element does not have it."""
        versions = sorted(self.journal)
        tables = (self.journal[version].get("element", {}) for version in versions)
        values = np.array([float(table.get(name, 0.0)) for table in tables])
        places = np.searchsorted(np.array(versions), self.column("settings_version"))
        return np.asarray(values[np.clip(places, 0, len(values) - 1)])

    @property
    def coupling_stiffness(self) -> Array:
        """Stiffness of the sticking element in every tick, (n,) [N/m].

        It includes the stiff element of Iwan's model.
        """
        stiff = np.where(self.parameter("stiff_share") > 0.0, self.parameter("stiff_stiffness"), 0.0)
        return np.asarray(self.parameter("stiffness") + stiff)

    @cached_property
    def reference(self) -> Array:
        """Reference of an admittance device before each tick, (n, 2) [m]; initially the device position."""
        before, place = shifted(self.column("command")), self.column("position")
        unknown = ~np.isfinite(before).all(axis=1) | (np.arange(self.count) == 0)
        before[unknown] = place[unknown]
        return before

    @cached_property
    def last(self) -> Array:
        """Previous output, (n, 2): the force [N], or the velocity of the reference [m/s]."""
        command = self.column("command")
        if self.impedance:
            return shifted(command)
        moved = shifted(command - self.reference) / self.period
        moved[~np.isfinite(moved).all(axis=1)] = 0.0
        return moved

    def stretches(self) -> Iterator[Stretch]:
        """Yield stretches of ticks with the same settings."""
        versions = self.column("settings_version", self.skip)
        edges = [0, *(np.flatnonzero(np.diff(versions)) + 1).tolist(), len(versions)]
        for number, (start, stop) in enumerate(itertools.pairwise(edges)):
            place = self.skip + start, self.skip + stop
            yield Stretch(self, *place, int(versions[start]), self.segment + number)


def copy_rows(target: Any, rows: Any, source: Any, own: Any = slice(None)) -> None:
    """Copy rows of all arrays of an object to another of the same kind."""
    for name, values in vars(target).items():
        values[rows] = vars(source)[name][own]


def shifted(values: Array) -> Array:
    """Return values shifted by one tick, with zeros before the first."""
    before: Array = np.zeros_like(values)
    before[1:] = values[:-1]
    return before


class Stretch:
    """Ticks with the same settings, rows `start` to `stop` of a window.

    Attributes
    ----------
    run : Window
        The window.
    start, stop, rows : int, int, slice
        Range of rows.
    version, settings : int, dict
        Version of the settings, and the settings; empty if the journal lacks them.
    segment : int
        Number of changes of the settings before this stretch.
    good, reference, last : array
        See `Window`.
    """

    def __init__(self, run: Window, start: int, stop: int, version: int, segment: int) -> None:
        self.run, self.start, self.stop, self.version, self.segment = run, start, stop, version, segment
        self.rows, self.settings = slice(start, stop), run.journal.get(version, {})
        self.good, self.reference, self.last = run.good[self.rows], run.reference[self.rows], run.last[self.rows]
        self._kept: dict[tuple[str, int], Array] = {}
        self.tick: Array = self["tick"]

    def __len__(self) -> int:
        return self.stop - self.start

    def __getitem__(self, name: str) -> Array:
        """Return a column."""
        return self.back(name, 0)

    def back(self, name: str, ticks: int) -> Array:
        """Return a column shifted by `ticks` rows, with zeros before the first row of the recording."""
        if (name, ticks) not in self._kept:
            begin = self.start - ticks
            values = self.run.column(name, max(begin, 0), max(self.stop - ticks, 0))
            if begin < 0:
                missing = np.zeros((min(-begin, len(self)), *values.shape[1:]), values.dtype)
                values = np.concatenate((missing, values))
            self._kept[name, ticks] = values
        return self._kept[name, ticks]
