"""Lossless compression of the ticks of a recording, in blocks of rows with random access.

Consecutive rows are similar. Within a block each row except the first is replaced by its exclusive or with the previous
row, and the bytes are transposed so that bytes at the same position of a row are adjacent; most of them are zero and
compress well. ``ticks.npz`` is a NumPy archive: ``head`` is the header of ``ticks.npy``, ``rows`` the number of rows in
a block, and ``block0``, ``block1``, ... are arrays of shape (bytes per row, rows).

Older versions stored one array per column for all rows (``column0``, ...). Such files are read into memory as a whole.
"""

from __future__ import annotations

import io
import math
import os
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from haptics.errors import RecordingError
from haptics.reading import read_header
from haptics.recording.tick_file import MOST_ROWS, Table, copy_rows, row_format
from haptics.records import Rows

BLOCK_ROWS = 32_768
"""Rows in a block."""

_LARGEST_BLOCK = 1 << 26
_LARGEST_HEADER = 1 << 16
_LARGEST_OLD = 1 << 30
"""Size limit of files packed by older versions, which are unpacked in memory [bytes]."""

_KEPT = 2
"""Number of decompressed blocks kept in memory for repeated access."""

_DAMAGED = (
    *(OSError, ValueError, LookupError, EOFError, zipfile.BadZipFile, zlib.error),
    *(RuntimeError, NotImplementedError),  # encrypted, or compressed in another way
)


class PackedTable(Table):
    """Rows of a packed recording (``ticks.npz``).

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    RecordingError
        If the file cannot be read or is not a valid packed recording.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._blocks: dict[int, Rows] = {}
        self._old: Rows | None = None
        try:
            with zipfile.ZipFile(path) as archive:
                names = set(archive.namelist())
                self._header = _member(archive, "head", _LARGEST_HEADER).tobytes()
                header = read_header(io.BytesIO(self._header))
                self.dtype, self._count = row_format(path, header), header.shape[0]
                if self._count > MOST_ROWS:
                    raise ValueError(f"{self._count} ticks; {MOST_ROWS} at most")
                if "rows.npy" not in names:
                    self._old, self._block = self._unpacked_columns(archive), 1
                    return
                self._block = int(_member(archive, "rows", 1000).reshape(-1)[0])
            if not 1 <= self._block <= _LARGEST_BLOCK // self.dtype.itemsize:
                raise ValueError(f"blocks of {self._block} rows")
            number = -(-self._count // self._block)
            if missing := [k for k in range(number) if f"block{k}.npy" not in names]:
                raise ValueError(f"block {missing[0]} is missing")
        except _DAMAGED as error:
            raise self._damaged(error) from error

    def __len__(self) -> int:
        return self._count

    def header(self) -> bytes:
        """Return the header of the original ``.npy`` file."""
        return self._header

    def _pieces(self, first: int, last: int, size: int) -> Iterator[Rows]:
        if self._old is not None:
            for begin in range(first, last, size):
                yield self._old[begin : min(begin + size, last)]
            return
        buffer = np.empty(size, self.dtype)
        try:
            with zipfile.ZipFile(self.path) as archive:
                for begin in range(first, last, size):
                    stop = min(begin + size, last)
                    for number in range(begin // self._block, -(-stop // self._block)):
                        start = number * self._block
                        rows = self._rows_of(archive, number)[max(begin - start, 0) : stop - start]
                        place = max(start - begin, 0)
                        copy_rows(rows, buffer[place : place + len(rows)])
                    yield buffer[: stop - begin]
        except _DAMAGED as error:
            raise self._damaged(error) from error

    def _rows_of(self, archive: zipfile.ZipFile, number: int) -> Rows:
        """Return the rows of a block, from the cache if possible."""
        rows = self._blocks.get(number)
        if rows is None:
            count = min(self._block, self._count - number * self._block)
            planes = _member(archive, f"block{number}", _LARGEST_BLOCK)
            if planes.dtype != np.uint8 or planes.shape != (self.dtype.itemsize, count):
                raise ValueError(f"block {number} has the shape {planes.shape}")
            rows = _rows_of_planes(planes).view(self.dtype)
            kept = list(self._blocks.items())[1 - _KEPT :]  # rebound, not mutated: other threads read the same table
            self._blocks = dict([*kept, (number, rows)])
        return rows

    def _unpacked_columns(self, archive: zipfile.ZipFile) -> Rows:
        """Return all rows of a file of an older version, with one array per column."""
        size = self.dtype.itemsize
        if self._count * size > _LARGEST_OLD:
            raise ValueError("packed by an older version and too large to be read; unpack them with --undo")
        raw, number = np.zeros((self._count, size), np.uint8), 0
        for kind, start in ((one[0], one[1]) for one in (self.dtype.fields or {}).values()):
            width = kind.base.itemsize
            for at in range(start, start + kind.itemsize, width):
                planes = _member(archive, f"column{number}", self._count * width + 1000)
                raw[:, at : at + width] = np.bitwise_xor.accumulate(planes.reshape(width, self._count), axis=1).T
                number += 1
        return raw.reshape(-1).view(self.dtype)

    def _damaged(self, error: BaseException) -> RecordingError:
        if isinstance(error, RecordingError):
            return error
        return RecordingError(f"{self.path} holds no packed ticks ({error}).")


def write_packed(table: Table, path: Path) -> None:
    """Write the rows of a table to a new packed file and flush it to the disk."""
    rows = max(min(BLOCK_ROWS, _LARGEST_BLOCK // table.dtype.itemsize), 1)
    with open(path, "xb") as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            _write(archive, "head", np.frombuffer(table.header(), np.uint8))
            _write(archive, "rows", np.array([rows]))
            for start in range(0, len(table), rows):
                block = table.read(start, start + rows).view(np.uint8).reshape(-1, table.dtype.itemsize)
                _write(archive, f"block{start // rows}", _planes_of_rows(block))
        file.flush()
        os.fsync(file.fileno())


def _planes_of_rows(rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the transposed differences of consecutive rows, shape (bytes per row, rows)."""
    count, size = rows.shape
    padded = np.zeros((count, -(-size // 8) * 8), np.uint8)
    padded[:, :size] = rows
    words = np.ascontiguousarray(padded.view(np.uint64).T)  # eight bytes at a time is several times faster
    changed = words.copy()
    changed[:, 1:] ^= words[:, :-1]
    planes = changed.view(np.uint8).reshape(len(words), count, 8).transpose(0, 2, 1)
    return np.ascontiguousarray(planes).reshape(-1, count)[:size]


def _rows_of_planes(planes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Invert `_planes_of_rows`; return the bytes of all rows in order, shape (bytes per row * rows,)."""
    size, count = planes.shape
    padded = np.zeros((-(-size // 8) * 8, count), np.uint8)
    padded[:size] = planes
    words = np.ascontiguousarray(padded.reshape(-1, 8, count).transpose(0, 2, 1)).view(np.uint64)[..., 0]
    np.bitwise_xor.accumulate(words, axis=1, out=words)
    rows = np.ascontiguousarray(words.T).view(np.uint8).reshape(count, -1)
    return np.ascontiguousarray(rows[:, :size]).reshape(-1)


def _write(archive: zipfile.ZipFile, name: str, array: NDArray[Any]) -> None:
    info = zipfile.ZipInfo(f"{name}.npy")
    info.compress_type = zipfile.ZIP_DEFLATED
    with archive.open(info, "w") as member:
        npy.write_array(member, array, version=(1, 0), allow_pickle=False)


def _member(archive: zipfile.ZipFile, name: str, largest: int) -> NDArray[Any]:
    """Return a member array of type uint8 or int64 with at most `largest` bytes."""
    with archive.open(f"{name}.npy") as member:
        data = member.read(largest + _LARGEST_HEADER + 1)
    if len(data) > largest + _LARGEST_HEADER:
        raise ValueError(f"{name} is too large")
    file = io.BytesIO(data)
    header = read_header(file)
    if header.descr not in ("|u1", "<i8") or header.fortran_order:
        raise ValueError(f"{name} has another type")
    kind = np.dtype(header.descr)
    if math.prod(header.shape) * kind.itemsize != len(data) - file.tell():
        raise ValueError(f"{name} is cut short")
    return np.frombuffer(data, kind, offset=file.tell()).reshape(header.shape).copy()
