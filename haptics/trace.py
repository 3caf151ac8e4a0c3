"""The trace: one row per tick in a file mapped into memory, one writer, any number of readers.

The writer fills a slot and then publishes the count; a reader copies slots, reads the count again and drops what may
have been overwritten meanwhile. There are no locks, so a reader can never delay the servo, and the ring outlives the
process that wrote it as long as anybody has it mapped: after a crash it is the flight recorder.

The publication relies on stores becoming visible in program order, which x86-64 guarantees.
"""

from __future__ import annotations

import json
import mmap
from enum import IntFlag
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from haptics.device import MOST_CHANNELS
from haptics.errors import ConfigurationError
from haptics.shared import map_new

Rows = NDArray[Any]
"""A structured array of trace rows."""

_HEADER = 4096
_COUNT_OFFSET = 0
_ORIGIN_OFFSET = 16
_LAYOUT_OFFSET = 64


class Status(IntFlag):
    """What happened in a tick; `haptics.envelope` has the order in which its rules are applied."""

    NOT_FINITE = 1 << 0
    """The sample or the element's output was nan or infinite: safe output instead."""
    STALE = 1 << 1
    """The sample was older than the device allows: safe output instead."""
    LIMITED = 1 << 2
    """The norm was clamped (force, or speed of the reference); the direction was kept."""
    SLEW = 1 << 3
    """The rate of change was limited (force rate, or acceleration of the reference)."""
    WORKSPACE = 1 << 4
    """The end effector or its reference was at the edge of the workspace."""
    SPEED = 1 << 5
    """The end effector was so fast that what drove it on was taken out of the force."""
    FADE = 1 << 6
    """The output was fading in (after the start, a release, a change of parameters) or out (before the end)."""
    ENERGY = 1 << 7
    """The loop had given the hand all the energy it may: what would give more was taken out of the output."""
    STARTED_LATE = 1 << 8
    """The tick started more than half a period after its deadline."""
    ENDED_LATE = 1 << 9
    """The tick ended after the next deadline."""
    AFTER_SKIP = 1 << 10
    """One or more deadlines before this tick were missed whole and skipped."""
    IMPLAUSIBLE = 1 << 11
    """No hand can have moved the handle there, or so fast, or the force is beyond its sensor's range: safe output."""
    RELEASED = 1 << 12
    """The dead-man was not held: the output was fading out, or was the safe one."""
    PASSIVITY = 1 << 13
    """The passivity controller added damping."""
    ASTRAY = 1 << 14
    """The end effector was farther from where a motion wanted it, or faster, than that allows: safe output."""


class Permission(IntFlag):
    """What the envelope was told in a tick, besides the sample; a recording keeps it, so that a replay can say it."""

    RELEASED = 1 << 0
    """The dead-man is not held."""
    ENDING = 1 << 1
    """The run is about to end: fade out."""


ROW_UNITS = {
    "tick": "1",
    "time": "s",
    "position": "m",
    "velocity": "m/s",
    "force": "N",
    "command": "N (impedance) or m (admittance)",
    "command_unlimited": "N (impedance) or m (admittance)",
    "proxy": "m",
    "displacement": "m",
    "friction_force": "N",
    "sliding_velocity": "m/s",
    "sample_age": "s",
    "period_error": "s",
    "tick_time": "s",
    "write_time": "s",
    "injected_energy": "J",
    "settings_version": "1",
    "status": "bit flags",
    "sticking": "0 or 1",
    "permission": "bit flags",
    "buttons": "bit flags",
    "marker": "1",
    "gate": "1",
    "region": "1",
    "normal_force": "N",
    "hand_force": "N",
}
"""Columns of a recording with their units, in order; the channels of its device follow (`haptics.columns`)."""

COLUMNS = np.dtype(
    [
        ("tick", "<i8"),
        ("time", "<f8"),
        ("position", "<f8", (2,)),
        ("velocity", "<f8", (2,)),
        ("force", "<f8", (2,)),
        ("command", "<f8", (2,)),
        ("command_unlimited", "<f8", (2,)),
        ("proxy", "<f8", (2,)),
        ("displacement", "<f8", (2,)),
        ("friction_force", "<f8", (2,)),
        ("sliding_velocity", "<f8", (2,)),
        ("sample_age", "<f8"),
        ("period_error", "<f8"),
        ("tick_time", "<f8"),
        ("write_time", "<f8"),
        ("injected_energy", "<f8"),
        ("settings_version", "<i8"),
        ("status", "<u4"),
        ("sticking", "<u4"),
        ("permission", "<u4"),
        ("buttons", "<u4"),
        ("marker", "<i8"),
        ("gate", "<f8"),
        ("region", "<i8"),
        ("normal_force", "<f8"),
        ("hand_force", "<f8", (2,)),
    ]
)
"""What a recording has of a tick. ``time`` is nominal (tick x period); ``period_error`` is how late the tick really
started, ``write_time`` how long after that the command had been handed to the device, ``tick_time`` how long the tick
took in all. ``marker`` says which trial or stage the tick belongs to, ``gate`` how much of the output was let through
from outside, ``region`` where in a scene the proxy was (-1: there is no scene), ``normal_force`` what it was pressed
against a wall with (nan: there is none), ``hand_force`` what a virtual hand really did (nan where nobody knows)."""

ROW = np.dtype([*npy.dtype_to_descr(COLUMNS), ("channels", "<f8", (MOST_CHANNELS,))])
"""One tick in a trace: `COLUMNS`, and room for what else a device measures. It is the same for all devices, so that no
kernel is compiled anew for one."""

NEUTRAL = np.zeros(1, ROW)
"""What a row, (1,), holds of which nothing is known: what a column stands for that nobody filled."""
NEUTRAL["gate"], NEUTRAL["region"] = 1.0, -1
NEUTRAL["normal_force"] = NEUTRAL["hand_force"] = NEUTRAL["channels"] = np.nan
NEUTRAL.flags.writeable = False


class Ring:
    """A ring of fixed-size records in a mapped file.

    Use `create` in the writer and `attach` in readers.

    Attributes
    ----------
    slots : (capacity,) structured array
        The mapped records.
    counter : (1,) int64 array
        The mapped number of records ever published.
    origin : (2,) int64 array
        The instant of tick 0, stored by the writer before its first record: monotonic clock, and time since 1970 [ns].
    """

    def __init__(self, path: Path, mapping: mmap.mmap, dtype: np.dtype[Any], capacity: int) -> None:
        self.path = path
        self.capacity = capacity
        self.counter: NDArray[np.int64] = np.frombuffer(mapping, "<i8", 1, _COUNT_OFFSET)
        self.origin: NDArray[np.int64] = np.frombuffer(mapping, "<i8", 2, _ORIGIN_OFFSET)
        self.slots: Rows = np.frombuffer(mapping, dtype, capacity, _HEADER)

    @classmethod
    def create(cls, path: Path, dtype: np.dtype[Any], capacity: int) -> Self:
        """Make a ring for `capacity` records of `dtype` in the new or empty file at `path` and map it for writing."""
        layout = json.dumps({"dtype": dtype.descr, "capacity": capacity}).encode()
        mapping = map_new(path, _HEADER + capacity * dtype.itemsize)
        start = _LAYOUT_OFFSET + 4
        mapping[start : start + len(layout)] = layout
        mapping[_LAYOUT_OFFSET:start] = len(layout).to_bytes(4, "little")  # last: until then it is no trace to others
        return cls(path, mapping, dtype, capacity)

    @classmethod
    def attach(cls, path: Path) -> Self:
        """Map an existing ring; raise `ConfigurationError` if `path` is none."""
        try:
            with open(path, "rb+") as file:
                mapping = mmap.mmap(file.fileno(), 0)
            size = int.from_bytes(mapping[_LAYOUT_OFFSET : _LAYOUT_OFFSET + 4], "little")
            layout = json.loads(mapping[_LAYOUT_OFFSET + 4 : _LAYOUT_OFFSET + 4 + size])
            dtype = np.dtype([(name, kind, *(tuple(s) for s in shape)) for name, kind, *shape in layout["dtype"]])
            return cls(path, mapping, dtype, layout["capacity"])
        except (OSError, ValueError, KeyError) as error:
            raise ConfigurationError(f"{path} is not a trace: {error}") from error

    @property
    def count(self) -> int:
        """Number of records ever published."""
        return int(self.counter[0])

    def publish(self, count: int) -> None:
        """Make all records before `count` visible to readers (writer only)."""
        self.counter[0] = count

    def append(self, row: Any) -> None:
        """Copy one record in and publish it (writer only)."""
        count = self.count
        self.slots[count % self.capacity] = row
        self.publish(count + 1)

    def since(self, count: int) -> Rows:
        """Return a copy of the records from number `count` on, oldest first; overwritten ones are left out."""
        return self._copy(count)[0]

    def _copy(self, count: int) -> tuple[Rows, int]:
        """Return the records from `count` on and the number of the record after the last of them."""
        newest = self.count
        first = max(count, newest - self.capacity, 0)
        if first >= newest:
            return self.slots[:0].copy(), newest
        start, stop = first % self.capacity, newest % self.capacity
        if start < stop:
            rows = self.slots[start:stop].copy()
        else:
            rows = np.concatenate((self.slots[start:], self.slots[:stop]))
        # While we copied, the writer may have gone on: it owns everything up to record `count + 1 - capacity`.
        overwritten = self.count + 1 - self.capacity - first
        return rows[max(overwritten, 0) :], newest


class Reader:
    """Follows a ring from its first record on and counts what it was too slow to get.

    Attributes
    ----------
    lost : int
        Records overwritten before they were read.
    """

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._next = 0
        self.lost = 0

    @property
    def origin(self) -> tuple[int, int]:
        """The instant of tick 0: monotonic clock, and time since 1970 [ns]; known when there is a record."""
        monotonic, utc = self._ring.origin.tolist()
        return monotonic, utc

    def read(self) -> Rows:
        """Return the records published since the last call."""
        rows, following = self._ring._copy(self._next)
        self.lost += following - self._next - len(rows)
        self._next = following
        return rows


class Trace(Ring):
    """The ring of tick rows (dtype `ROW`); the default capacity holds 16 s at 1 kHz."""

    @classmethod
    def create(cls, path: Path, dtype: np.dtype[Any] = ROW, capacity: int = 16384) -> Self:
        """Make a trace at `path` and map it for writing; what nobody fills of a row is as in `NEUTRAL`."""
        trace = super().create(path, dtype, capacity)
        trace.slots[:] = NEUTRAL
        return trace

    def save(self, path: Path) -> None:
        """Write what the ring still holds to `path` as a ``.npy`` file (the flight recorder)."""
        with open(path, "wb") as file:
            np.save(file, self.since(0))
