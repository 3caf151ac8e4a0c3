"""Trace: a ring buffer of tick rows in a memory-mapped file, with one writer and many readers.

The writer fills a slot and then publishes the count. A reader copies slots, reads the count again and discards rows
that may have been overwritten during the copy. There are no locks, so readers cannot delay the servo. The ring outlives
the writer as long as any process maps it, and serves as flight recorder after a crash.

Publication relies on stores becoming visible in program order, which x86-64 guarantees.
"""

from __future__ import annotations

import json
import mmap
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from haptics.errors import ConfigurationError
from haptics.records import NEUTRAL, ROW, Rows
from haptics.shared import map_new

_HEADER = 4096
_COUNT_OFFSET = 0
_ORIGIN_OFFSET = 16
_LAYOUT_OFFSET = 64


class Ring:
    """A ring buffer of fixed-size records in a mapped file.

    Use `create` in the writer and `attach` in readers.

    Attributes
    ----------
    slots : (capacity,) structured array
        Mapped records.
    counter : (1,) int64 array
        Mapped number of records published since creation.
    origin : (2,) int64 array
        Time of tick 0 on the monotonic clock and since 1970 [ns]; the writer stores it before its first record.
    """

    def __init__(self, path: Path, mapping: mmap.mmap | bytearray, dtype: np.dtype[Any], capacity: int) -> None:
        self.path = path
        self.capacity = capacity
        self.counter: NDArray[np.int64] = np.frombuffer(mapping, "<i8", 1, _COUNT_OFFSET)
        self.origin: NDArray[np.int64] = np.frombuffer(mapping, "<i8", 2, _ORIGIN_OFFSET)
        self.slots: Rows = np.frombuffer(mapping, dtype, capacity, _HEADER)

    @classmethod
    def create(cls, path: Path, dtype: np.dtype[Any], capacity: int) -> Self:
        """Create a ring for `capacity` records of `dtype` in a new or empty file and map it for writing."""
        layout = json.dumps({"dtype": dtype.descr, "capacity": capacity}).encode()
        mapping = map_new(path, _HEADER + capacity * dtype.itemsize)
        start = _LAYOUT_OFFSET + 4
        mapping[start : start + len(layout)] = layout
        mapping[_LAYOUT_OFFSET:start] = len(layout).to_bytes(4, "little")  # last: before this, readers reject the file
        return cls(path, mapping, dtype, capacity)

    @classmethod
    def attach(cls, path: Path) -> Self:
        """Map an existing ring; raise `ConfigurationError` if `path` is not a ring."""
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
        """Number of records published since creation."""
        return int(self.counter[0])

    def publish(self, count: int) -> None:
        """Make all records before `count` visible to readers (writer only)."""
        self.counter[0] = count

    def append(self, row: Any) -> None:
        """Append one record and publish it (writer only)."""
        count = self.count
        self.slots[count % self.capacity] = row
        self.publish(count + 1)

    def since(self, count: int) -> Rows:
        """Return a copy of the records from index `count` on, oldest first, without overwritten ones."""
        return self._copy(count)[0]

    def _copy(self, count: int) -> tuple[Rows, int]:
        """Return a copy of the records from index `count` on, and the index after the last of them."""
        newest = self.count
        first = max(count, newest - self.capacity, 0)
        if first >= newest:
            return self.slots[:0].copy(), newest
        start, stop = first % self.capacity, newest % self.capacity
        if start < stop:
            rows = self.slots[start:stop].copy()
        else:
            rows = np.concatenate((self.slots[start:], self.slots[:stop]))
        # The writer may have continued during the copy: it may overwrite records before `count + 1 - capacity`.
        overwritten = self.count + 1 - self.capacity - first
        return rows[max(overwritten, 0) :], newest


class Reader:
    """Read a ring from its first record on and count the records that were overwritten too early.

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
        """Time of tick 0 on the monotonic clock and since 1970 [ns]; valid as soon as there is a record."""
        monotonic, utc = self._ring.origin.tolist()
        return monotonic, utc

    def read(self) -> Rows:
        """Return the records published since the last call."""
        rows, following = self._ring._copy(self._next)
        self.lost += following - self._next - len(rows)
        self._next = following
        return rows


class Trace(Ring):
    """Ring buffer of tick rows (dtype `ROW`); the default capacity holds 16 s at 1 kHz."""

    @classmethod
    def create(cls, path: Path, dtype: np.dtype[Any] = ROW, capacity: int = 16384) -> Self:
        """Create a trace at `path` and map it for writing; columns that are not written remain `NEUTRAL`."""
        trace = super().create(path, dtype, capacity)
        trace.slots[:] = NEUTRAL
        return trace

    @classmethod
    def private(cls, capacity: int) -> Self:
        """Create a trace in private memory, without a file."""
        trace = cls(Path(), bytearray(_HEADER + capacity * ROW.itemsize), ROW, capacity)
        trace.slots[:] = NEUTRAL
        return trace
