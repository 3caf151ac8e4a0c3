"""A recording as this verification reads it: columns as arrays, the tables of its description, stretches of ticks.

The reader of recordings is the only part of the program that is used: it is proof against hostile files.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.verify.facts import IMPEDANCE, MOTION, UNUSABLE
from haptics.errors import RecordingError
from haptics.recording.recording import Recording

Array = NDArray[Any]

AT_ONCE = 100_000
"""Ticks that are looked at together: an hour of them at once would need gigabytes."""

_NEUTRAL: dict[str, Any] = {"gate": 1.0, "marker": 0, "region": -1, "normal_force": math.nan}
"""What columns stand for that the first formats did not have."""

SHEET: dict[str, Any] = {
    "max_following_error": 1000.0,
    "watchdog": math.inf,
    "delay": 0.0,
    "velocity_lag": 0.0,
    "position_resolution": 0.0,
    "damping": 0.0,
    "mass": None,
}
"""What a data sheet says by what it does not say."""


@dataclass
class Recorded:
    """A recording, its rows as far as no tick is missing.

    Attributes
    ----------
    source : Recording
        As the reader has it.
    """

    source: Recording

    @classmethod
    def open(cls, folder: Path) -> Recorded:
        """Read the recording in `folder`; raise `RecordingError` if it is none, or lacks what every recording has."""
        recorded = cls(Recording(folder))
        try:
            _ = recorded.period, recorded.impedance, recorded.journal
        except (KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
            raise RecordingError(
                f"{folder} does not describe its run as a recording should ({type(error).__name__}: {error})."
            ) from error
        return recorded

    @property
    def metadata(self) -> dict[str, Any]:
        """The content of ``recording.json``."""
        return self.source.metadata

    @cached_property
    def period(self) -> float:
        """Time between two ticks [s]."""
        rate = float(self.metadata["rate_hz"])
        if not 0.0 < rate < math.inf:
            raise ValueError(f"rate_hz = {rate}")
        return 1.0 / rate

    @cached_property
    def impedance(self) -> bool:
        """Whether the device takes forces; else it takes positions."""
        return str(self.metadata["device"]["causality"]) == IMPEDANCE

    @cached_property
    def journal(self) -> dict[int, dict[str, Any]]:
        """The settings of every version."""
        return {int(entry["version"]): entry for entry in self.source.settings}

    @cached_property
    def gap(self) -> int:
        """Rows before the first place where ticks are missing, come twice, or go back."""
        from apps.verify.clock import first_gap

        return first_gap(self.source.rows)

    @cached_property
    def count(self) -> int:
        """Rows that can be looked at."""
        return self.gap

    def column(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        """Return a column of the rows `start` to `stop`."""
        rows = self.source.rows[start : self.count if stop is None else stop]
        if name in (rows.dtype.names or ()):
            return np.array(rows[name])
        return np.full(len(rows), _NEUTRAL[name])

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
        """Whether a tick's command was not the safe output."""
        return np.asarray((self.status & UNUSABLE) == 0)

    @cached_property
    def in_motion(self) -> Array:
        """Whether a tick is one of a motion, and not of an element."""
        versions = [version for version, entry in self.journal.items() if entry.get("model") == MOTION]
        return np.asarray(np.isin(self.column("settings_version"), versions))

    def parameter(self, name: str) -> Array:
        """Return a parameter of the element in every tick, (n,); 0 where it has none."""
        versions = sorted(self.journal)
        tables = (self.journal[version].get("element", {}) for version in versions)
        values = np.array([float(table.get(name, 0.0)) for table in tables])
        places = np.searchsorted(np.array(versions), self.column("settings_version"))
        return np.asarray(values[np.clip(places, 0, len(values) - 1)])

    @property
    def coupling_stiffness(self) -> Array:
        """Stiffness of the sticking element in every tick, (n,) [N/m]: of the stiff element of Iwan's model, too."""
        stiff = np.where(self.parameter("stiff_share") > 0.0, self.parameter("stiff_stiffness"), 0.0)
        return np.asarray(self.parameter("stiffness") + stiff)

    def markers_of(self, ticks: Iterable[int]) -> list[int]:
        """Return the markers, each the number of a trial, that rows with these ticks have; 0 stands for none."""
        found = np.unique(self.column("marker")[np.isin(self.tick, list(ticks))])
        return [int(marker) for marker in found if marker]

    def limit(self, name: str, otherwise: Any = None) -> Any:
        """Return a limit of the envelope; what is not stated is what it is `otherwise`."""
        limits = self.metadata["limits"]
        value = limits.get(name, otherwise)
        return math.inf if value is None else value

    def sheet(self, name: str) -> Any:
        """Return what the data sheet says."""
        value = self.metadata["device"].get(name)
        return SHEET.get(name) if value is None else value

    @cached_property
    def reference(self) -> Array:
        """Where the reference of an admittance device was before each tick, (n, 2) [m]; where it is at its start."""
        before, place = _shifted(self.column("command")), self.column("position")
        unknown = ~np.isfinite(before).all(axis=1) | (np.arange(self.count) == 0)
        before[unknown] = place[unknown]
        return before

    @cached_property
    def last(self) -> Array:
        """What was sent in the tick before, (n, 2): the force [N], or the velocity of the reference [m/s]."""
        command = self.column("command")
        if self.impedance:
            return _shifted(command)
        moved = _shifted(command - self.reference) / self.period
        moved[~np.isfinite(moved).all(axis=1)] = 0.0
        return moved

    def stretches(self) -> Iterator[Stretch]:
        """Yield stretches of ticks under the same settings, none too long for the memory."""
        versions = self.column("settings_version")
        edges = [0, *(np.flatnonzero(np.diff(versions)) + 1).tolist(), self.count]
        for start, stop in itertools.pairwise(edges):
            for begin in range(start, stop, AT_ONCE):
                yield Stretch(self, begin, min(begin + AT_ONCE, stop), int(versions[start]))


def _shifted(values: Array) -> Array:
    """Return values as they were a tick before; zeros before the first."""
    before: Array = np.zeros_like(values)
    before[1:] = values[:-1]
    return before


@dataclass
class Stretch:
    """Ticks under the same settings, rows `start` to `stop`.

    Attributes
    ----------
    run : Recorded
        The recording.
    start, stop : int
        Its rows.
    version : int
        Version of the settings.
    """

    run: Recorded
    start: int
    stop: int
    version: int
    _kept: dict[tuple[str, int], Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.stop - self.start

    def __getitem__(self, name: str) -> Array:
        """Return a column, in floats where it has any."""
        return self.back(name, 0)

    def back(self, name: str, ticks: int) -> Array:
        """Return a column as it was `ticks` rows before; before the first row it is 0."""
        if (name, ticks) not in self._kept:
            begin = self.start - ticks
            values = self.run.column(name, max(begin, 0), max(self.stop - ticks, 0))
            if begin < 0:
                missing = np.zeros((min(-begin, len(self)), *values.shape[1:]), values.dtype)
                values = np.concatenate((missing, values))
            self._kept[name, ticks] = values
        return self._kept[name, ticks]

    @property
    def rows(self) -> slice:
        """Its place in arrays over all rows."""
        return slice(self.start, self.stop)

    @property
    def settings(self) -> dict[str, Any]:
        """What its settings are."""
        return self.run.journal[self.version]

    @property
    def tick(self) -> Array:
        """Numbers of its ticks."""
        return self["tick"]

    @property
    def good(self) -> Array:
        """Whether a tick's command was not the safe output."""
        good: Array = self.run.good[self.rows]
        return good

    @property
    def reference(self) -> Array:
        """See `Recorded.reference`."""
        reference: Array = self.run.reference[self.rows]
        return reference

    @property
    def last(self) -> Array:
        """See `Recorded.last`."""
        last: Array = self.run.last[self.rows]
        return last
