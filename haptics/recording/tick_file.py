"""The table of ticks of a recording: a ``.npy`` file that is appended to, and may be read at every moment.

Who reads one may have got it from anybody. So what the file says of itself is judged column by column
(`haptics.recording.columns`): ours must be as this version writes them, others plain numbers of bounded size. The
file's own description never becomes the format of the memory that is looked at.
"""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from haptics.errors import RecordingError
from haptics.reading import Header, read_header
from haptics.recording.columns import MOST_COLUMNS, missing_columns, safe_column
from haptics.records import COLUMNS, ROW, Rows

MOST_ROWS = 100_000_000
"""Rows that a recording may have: 27 hours at 1 kHz."""

_AT_ONCE = 1 << 20


class TickFile:
    """Appends rows to a ``.npy`` file whose header always tells the rows that are in it.

    NumPy pads the header so that the number of rows can grow in place; each append writes the rows first and the new
    header after them, so that a reader, or a crash, in between finds a shorter but valid file. The header is one write
    within the first page of the file: a kill comes before it or after it.

    Parameters
    ----------
    path : Path
        The file; it must not exist yet.
    columns : dtype
        What it is to have of a row: `haptics.recording.columns.columns_with`.
    append : bool
        Whether it is one that this version has made already, with its columns.
    """

    def __init__(self, path: Path, columns: np.dtype[Any] = COLUMNS, *, append: bool = False) -> None:
        self._file: IO[bytes] = open(path, "rb+" if append else "xb+")
        try:
            self.count, self._columns = _rows_to_append_to(path, self._file) if append else (0, columns)
            self._data_offset = self._file.tell() if append else self._write_header()
        except BaseException:
            self._file.close()
            raise

    def append(self, rows: Rows) -> None:
        """Write `rows` of a trace at the end, as much of each as the file has columns, and make them part of it."""
        if not len(rows):
            return
        size = self._columns.itemsize
        self._file.seek(self._data_offset + self.count * size)  # a write that failed may have left it elsewhere
        whole = np.ascontiguousarray(rows, dtype=ROW).view(np.uint8).reshape(len(rows), ROW.itemsize)
        self._file.write(whole[:, :size].tobytes())
        self._file.flush()
        self.count += len(rows)
        self._write_header()

    def close(self) -> str:
        """Flush to the disk and close; return the SHA-256 of the file. Closing twice does nothing."""
        if self._file.closed:
            return ""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.seek(0)
        digest = _digest(self._file)
        self._file.close()
        return digest

    def _write_header(self) -> int:
        """Write the header for the present number of rows and return its length, which never changes."""
        header = io.BytesIO()
        facts = {"descr": npy.dtype_to_descr(self._columns), "fortran_order": False, "shape": (self.count,)}
        npy.write_array_header_1_0(header, facts)
        return os.pwrite(self._file.fileno(), header.getbuffer(), 0)


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file.

    Raises
    ------
    RecordingError
        If it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return _digest(file)
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror or error}.") from error


def _digest(file: IO[bytes]) -> str:
    found = hashlib.sha256()
    while piece := file.read(_AT_ONCE):
        found.update(piece)
    return found.hexdigest()


def read_ticks(path: Path) -> Rows:
    """Map the rows of a table of ticks; of one that was cut short, the whole rows that are left.

    Raises
    ------
    RecordingError
        If it cannot be read, or is anything but a table of ticks of ours.
    """
    try:
        if not path.is_file():
            raise RecordingError(f"{path} cannot be read: there is no such file.")
        with open(path, "rb") as file:
            count, dtype = _layout(path, file)
            # An empty file cannot be mapped.
            return np.asarray(np.memmap(file, dtype, "r", file.tell(), (count,)) if count else np.zeros(0, dtype))
    except (OSError, ValueError) as error:
        if isinstance(error, RecordingError):
            raise
        raise RecordingError(f"{path} cannot be read: {error}.") from error


def _layout(path: Path, file: IO[bytes]) -> tuple[int, np.dtype[Any]]:
    """Return how many whole rows are in `file` and what they are, and leave it at the first of them."""
    header = read_header(file)
    dtype = _row_format(path, header)
    count = min(header.shape[0], (os.fstat(file.fileno()).st_size - file.tell()) // dtype.itemsize)
    if count > MOST_ROWS:
        raise RecordingError(f"{path} has {count} ticks; {MOST_ROWS} at most.")
    return count, dtype


def _row_format(path: Path, header: Header) -> np.dtype[Any]:
    """Return the rows' format: columns of the first formats at least, each of ours as it must be, no other unsafe."""
    entries = header.descr if isinstance(header.descr, list) and len(header.shape) == 1 else []
    names = [entry[0] for entry in entries if isinstance(entry, tuple) and entry and isinstance(entry[0], str)]
    missing = missing_columns(names, version=1)
    if missing:
        raise RecordingError(f"{path} lacks the columns {', '.join(missing)}: it is not a recording of ours.")
    columns = [column for column in map(safe_column, entries[:MOST_COLUMNS]) if column is not None]
    if len(columns) < len(entries) or len(set(names)) < len(entries):
        raise RecordingError(f"{path} has too many columns, one twice, or one in a format that no recording has.")
    return np.dtype(columns)


def _rows_to_append_to(path: Path, file: IO[bytes]) -> tuple[int, np.dtype[Any]]:
    count, dtype = _layout(path, file)
    entries = npy.dtype_to_descr(dtype)
    ours = npy.dtype_to_descr(COLUMNS)
    further = entries[len(ours) :]
    if entries[: len(ours)] != ours or dtype.itemsize > ROW.itemsize or any(one[1] != "<f8" for one in further):
        raise RecordingError(f"{path} holds other columns than this version records.")
    return count, dtype
