"""Tables of ticks: ``.npy`` files that grow during a run and are always valid.

Recordings may come from untrusted sources. The header is therefore validated column by column
(`haptics.records`): known columns must have their exact type, other columns must be plain numbers of bounded
size. A table may be larger than the memory: `Table.chunks` and `Table.read` use buffers of bounded size, and only
`Table.map` loads or maps all rows.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from haptics.errors import RecordingError
from haptics.files import Header, array_from_npy, read_header
from haptics.records import COLUMNS, MAX_COLUMNS, NEUTRAL, ROW, Rows, column, missing_columns, safe_column

MAX_ROWS = 100_000_000
"""Maximum number of rows of a recording: 27 hours at 1 kHz."""

CHUNK_ROWS = 65_536
"""Default number of rows per chunk (about 18 MB)."""

_BUFFER_SIZE = 1 << 25  # size limit of a chunk [bytes]; tables with many columns are read in chunks of fewer rows

_ROWS_PER_READ = 1 << 20


class TickFile:
    """Append rows to a ``.npy`` file whose header always contains the current number of rows.

    NumPy pads the header so that the number of rows can grow in place. Each append writes the rows first and then the
    new header, so that the file is shorter but valid if it is read, or the process crashes, in between. The header is a
    single write within the first page of the file, so a kill cannot interrupt it.

    Parameters
    ----------
    path : Path
        Path of the new file.
    columns : dtype
        Row type of the file: `haptics.records.columns_with`.
    append : bool
        Whether to append to an existing file of this version, with its columns.
    """

    def __init__(self, path: Path, columns: np.dtype[Any] = COLUMNS, *, append: bool = False) -> None:
        self._file: IO[bytes] = open(path, "rb+" if append else "xb+")
        try:
            self.count, self._columns, self._hash = 0, columns, hashlib.sha256()
            if not append:
                self._data_offset = self._write_header(0)
            else:
                self.count, self._columns = _layout(path, self._file)
                self._data_offset = self._file.tell()
                entries, ours = npy.dtype_to_descr(self._columns), npy.dtype_to_descr(COLUMNS)
                foreign = any(entry[1] != "<f8" for entry in entries[len(ours) :])
                if entries[: len(ours)] != ours or self._columns.itemsize > ROW.itemsize or foreign:
                    raise RecordingError(f"{path} holds other columns than this version records.")
                left = self.count * self._columns.itemsize
                self._file.seek(self._data_offset)
                while left and (piece := self._file.read(min(left, _ROWS_PER_READ))):
                    self._hash.update(piece)
                    left -= len(piece)
        except BaseException:
            self._file.close()
            raise

    def append(self, rows: Rows) -> None:
        """Append trace `rows`, reduced to the columns of the file."""
        if not len(rows):
            return
        size = self._columns.itemsize
        self._file.seek(self._data_offset + self.count * size)  # after a failed write the position is undefined
        whole = np.ascontiguousarray(rows, dtype=ROW).view(np.uint8).reshape(len(rows), ROW.itemsize)
        data = whole[:, :size].tobytes()
        self._file.write(data)
        self._file.flush()
        self._write_header(self.count + len(rows))
        self.count += len(rows)
        self._hash.update(data)

    def close(self) -> str:
        """Flush to disk, close and return the SHA-256 (`TickTable.sha256`); empty if closed already."""
        if self._file.closed:
            return ""
        self._file.flush()
        self._file.truncate(self._data_offset + self.count * self._columns.itemsize)  # remains of failed writes
        os.fsync(self._file.fileno())
        self._hash.update(os.pread(self._file.fileno(), self._data_offset, 0))
        self._file.close()
        return self._hash.hexdigest()

    def _write_header(self, count: int) -> int:
        """Write the header for `count` rows and return its length, which is constant."""
        header = io.BytesIO()
        facts = {"descr": npy.dtype_to_descr(self._columns), "fortran_order": False, "shape": (count,)}
        npy.write_array_header_1_0(header, facts)
        return os.pwrite(self._file.fileno(), header.getbuffer(), 0)


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Convert errors of reading a file to `RecordingError`."""
    try:
        yield
    except RecordingError:
        raise
    except (OSError, ValueError) as error:
        raise RecordingError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


class Table(ABC):
    """Table of ticks with sequential and random access.

    Attributes
    ----------
    path : Path
        File of the table.
    dtype : dtype
        Row type.
    """

    path: Path
    dtype: np.dtype[Any]

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def _pieces(self, first: int, last: int, size: int) -> Iterator[Rows]:
        """Yield the rows from `first` to `last` in chunks of `size`; a chunk may be overwritten by the next."""

    @abstractmethod
    def header(self) -> bytes:
        """Return the header of the ``.npy`` file of the table."""

    def chunks(
        self, columns: Sequence[str] | None = None, rows: int = CHUNK_ROWS, *, start: int = 0, stop: int | None = None
    ) -> Iterator[Rows]:
        """Iterate over the rows from `start` to `stop` in chunks of at most `rows`.

        Chunks may be views of one buffer that is overwritten by the next chunk. Copy rows that are needed longer.

        Parameters
        ----------
        columns : sequence of str, optional
            Names of the columns, in this order; all by default. Columns that the file lacks because its format is older
            are filled with their neutral value.
        rows : int
            Maximum number of rows per chunk.
        start, stop : int
            Range of rows, as in a slice.

        Raises
        ------
        RecordingError
            If a column does not exist or the file cannot be read.
        """
        first, last, _ = slice(start, stop).indices(len(self))
        size = max(min(rows, _BUFFER_SIZE // self.dtype.itemsize, last - first), 1)
        wanted = None if columns is None else _format_of(self.dtype, columns, self.path)
        selected = None if wanted is None else np.empty(size, wanted)
        for piece in self._pieces(first, last, size):
            if selected is None:
                yield piece
                continue
            for name in selected.dtype.names or ():
                selected[name][: len(piece)] = column(piece, name)
            yield selected[: len(piece)]

    def read(self, start: int = 0, stop: int | None = None, columns: Sequence[str] | None = None) -> Rows:
        """Return a copy of the rows from `start` to `stop`; see `chunks`."""
        first, last, _ = slice(start, stop).indices(len(self))
        wanted = self.dtype if columns is None else _format_of(self.dtype, columns, self.path)
        found, place = np.empty(max(last - first, 0), wanted), 0
        for piece in self.chunks(columns, start=first, stop=last):
            copy_rows(piece, found[place : place + len(piece)])
            place += len(piece)
        return found

    def map(self) -> Rows:
        """Return all rows as an array that must not be modified."""
        return self.read()

    def sha256(self) -> str:
        """Return the SHA-256 of the raw rows followed by the file header.

        The header contains the number of rows and is final only at the end of a run. With this order the recorder can
        update the hash during the run.
        """
        found = hashlib.sha256()
        for piece in self.chunks():
            found.update(piece.tobytes())
        found.update(self.header())
        return found.hexdigest()

    def file_sha256(self) -> str:
        """Return the SHA-256 of the complete ``.npy`` file, as stored by older versions."""
        found = hashlib.sha256(self.header())
        for piece in self.chunks():
            found.update(piece.tobytes())
        return found.hexdigest()


class TickTable(Table):
    """Table of ticks in a ``.npy`` file.

    Parameters
    ----------
    path : Path
        Path of the file. If it is truncated, the table contains the remaining complete rows.

    Raises
    ------
    RecordingError
        If the file cannot be read or is not a table of ticks.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with _reading(path), self._open() as file:
            self._count, self.dtype = _layout(path, file)
            self._offset = file.tell()

    def _open(self) -> io.BufferedReader:
        """Open the file, also if the recorder has completed and renamed it in the meantime."""
        for path in (self.path, self.path.with_name(self.path.name.removesuffix(".part"))):
            with contextlib.suppress(FileNotFoundError):
                if path.is_file():  # a pipe would block
                    file = open(path, "rb")
                    self.path = path
                    return file
        raise RecordingError(f"{self.path} cannot be read: there is no such file.")

    def __len__(self) -> int:
        return self._count

    def _pieces(self, first: int, last: int, size: int) -> Iterator[Rows]:
        buffer = np.empty(size, self.dtype)
        with _reading(self.path), self._open() as file:
            file.seek(self._offset + first * self.dtype.itemsize)
            for begin in range(first, last, size):
                piece = buffer[: min(size, last - begin)]
                view = piece.view(np.uint8).reshape(-1).data
                while len(view):
                    length = file.readinto(view)
                    if not length:
                        raise RecordingError(f"{self.path} was cut short while it was read.")
                    view = view[length:]
                yield piece

    def map(self) -> Rows:
        """Return all rows as a read-only memory map."""
        if not self._count:  # mmap fails for empty files
            return np.zeros(0, self.dtype)
        with _reading(self.path), self._open() as file:
            return np.asarray(np.memmap(file, self.dtype, "r", self._offset, (self._count,)))

    def header(self) -> bytes:
        """Return the header of the file."""
        with _reading(self.path), self._open() as file:
            return file.read(self._offset)

    def sha256(self) -> str:
        """Return the SHA-256 of rows and header; see `Table.sha256`."""
        found = hashlib.sha256()
        with _reading(self.path), self._open() as file:
            header = file.read(self._offset)
            left = self._count * self.dtype.itemsize
            while left and (piece := file.read(min(left, _ROWS_PER_READ))):
                found.update(piece)
                left -= len(piece)
            found.update(header)
            found.update(file.read(1))  # trailing bytes must change the hash
        return found.hexdigest()

    def file_sha256(self) -> str:
        """Return the SHA-256 of the whole file."""
        with _reading(self.path), self._open() as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


class TableInMemory(Table):
    """Table of ticks in memory.

    Parameters
    ----------
    rows : structured array
        The rows.
    table : Table, optional
        Table that the rows replace; it provides path, header and hashes.
    """

    def __init__(self, rows: Rows, table: Table | None = None) -> None:
        self.path = table.path if table is not None else Path()
        self.dtype = rows.dtype
        self._table, self._rows = table, rows

    def __len__(self) -> int:
        return len(self._rows)

    def _pieces(self, first: int, last: int, size: int) -> Iterator[Rows]:
        for begin in range(first, last, size):
            yield self._rows[begin : min(begin + size, last)]

    def map(self) -> Rows:
        """Return the rows without copying."""
        return self._rows

    def header(self) -> bytes:
        """Return the header of the replaced table, or of a new file with these rows."""
        if self._table is not None:
            return self._table.header()
        file = io.BytesIO()
        npy.write_array_header_1_0(file, npy.header_data_from_array_1_0(self._rows))
        return file.getvalue()

    def sha256(self) -> str:
        """Return the hash of the replaced table, or of these rows."""
        return self._table.sha256() if self._table is not None else super().sha256()

    def file_sha256(self) -> str:
        """Return the file hash of the replaced table, or of these rows."""
        return self._table.file_sha256() if self._table is not None else super().file_sha256()


def copy_rows(source: Rows, target: Rows) -> None:
    """Copy rows as bytes; NumPy copies structured arrays field by field, which is several times slower."""
    target.view(np.uint8)[:] = np.ascontiguousarray(source).view(np.uint8)


def _format_of(own: np.dtype[Any], columns: Sequence[str], path: Path) -> np.dtype[Any]:
    """Return the row type with the selected columns of the row type `own`."""
    ours = NEUTRAL.dtype
    unknown = [name for name in columns if name not in (own.names or ()) and name not in (COLUMNS.names or ())]
    if unknown:
        raise RecordingError(f"{path} has no column {', '.join(unknown)}.")
    return np.dtype([(name, own[name] if name in (own.names or ()) else ours[name]) for name in columns])


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file.

    Raises
    ------
    RecordingError
        If the file cannot be read.
    """
    with _reading(path), open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _layout(path: Path, file: IO[bytes]) -> tuple[int, np.dtype[Any]]:
    """Return number and type of the complete rows in `file`, leaving it positioned at the first row."""
    header = read_header(file)
    dtype = row_format(path, header)
    count = min(header.shape[0], (os.fstat(file.fileno()).st_size - file.tell()) // dtype.itemsize)
    if count > MAX_ROWS:
        raise RecordingError(f"{path} has {count} ticks; {MAX_ROWS} at most.")
    return count, dtype


def row_format(path: Path, header: Header) -> np.dtype[Any]:
    """Return the row type; raise unless all columns of format 1 are present and all columns are valid."""
    entries = header.descr if isinstance(header.descr, list) and len(header.shape) == 1 else []
    names = [entry[0] for entry in entries if isinstance(entry, tuple) and entry and isinstance(entry[0], str)]
    missing = missing_columns(names, version=1)
    if missing:
        raise RecordingError(f"{path} lacks the columns {', '.join(missing)}: it is not a recording of ours.")
    columns = [column for column in map(safe_column, entries[:MAX_COLUMNS]) if column is not None]
    if len(columns) < len(entries) or len(set(names)) < len(entries):
        raise RecordingError(f"{path} has too many columns, one twice, or one in a format that no recording has.")
    return np.dtype(columns)


# --- packed ticks -----------------------------------------------------------------------------------------------------
#
# Lossless compression of the ticks of a recording, in blocks of rows with random access.
#
# Consecutive rows are similar. Within a block each row except the first is replaced by its exclusive or with the
# previous row, and the bytes are transposed so that bytes at the same position of a row are adjacent; most of them are
# zero and compress well. ``ticks.npz`` is a NumPy archive: ``head`` is the header of ``ticks.npy``, ``rows`` the number
# of rows in a block, and ``block0``, ``block1``, ... are arrays of shape (bytes per row, rows).
#
# Older versions stored one array per column for all rows (``column0``, ...). Such files are read into memory as a
# whole.

BLOCK_ROWS = 32_768
"""Rows in a block."""

_MAX_BLOCK_BYTES = 1 << 26
_MAX_HEADER_BYTES = 1 << 16
_MAX_LEGACY_BYTES = 1 << 30  # size limit of files packed by older versions, which are unpacked in memory [bytes]

_CACHED_BLOCKS = 2  # number of decompressed blocks kept in memory for repeated access

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
                self._header = _member(archive, "head", _MAX_HEADER_BYTES).tobytes()
                header = read_header(io.BytesIO(self._header))
                self.dtype, self._count = row_format(path, header), header.shape[0]
                if self._count > MAX_ROWS:
                    raise ValueError(f"{self._count} ticks; {MAX_ROWS} at most")
                if "rows.npy" not in names:
                    self._old, self._block = self._unpacked_columns(archive), 1
                    return
                self._block = int(_member(archive, "rows", 1000).reshape(-1)[0])
            if not 1 <= self._block <= _MAX_BLOCK_BYTES // self.dtype.itemsize:
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
            planes = _member(archive, f"block{number}", _MAX_BLOCK_BYTES)
            if planes.dtype != np.uint8 or planes.shape != (self.dtype.itemsize, count):
                raise ValueError(f"block {number} has the shape {planes.shape}")
            rows = _rows_of_planes(planes).view(self.dtype)
            kept = list(self._blocks.items())[
                1 - _CACHED_BLOCKS :
            ]  # rebound, not mutated: other threads read the same table
            self._blocks = dict([*kept, (number, rows)])
        return rows

    def _unpacked_columns(self, archive: zipfile.ZipFile) -> Rows:
        """Return all rows of a file of an older version, with one array per column."""
        size = self.dtype.itemsize
        if self._count * size > _MAX_LEGACY_BYTES:
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
    rows = max(min(BLOCK_ROWS, _MAX_BLOCK_BYTES // table.dtype.itemsize), 1)
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
        data = member.read(largest + _MAX_HEADER_BYTES + 1)
    if len(data) > largest + _MAX_HEADER_BYTES:
        raise ValueError(f"{name} is too large")
    array = array_from_npy(data, name)
    if array is None or array.dtype.str not in ("|u1", "<i8"):
        raise ValueError(f"{name} has another type")
    return array
