"""Writers of the export formats.

Files are written to a temporary folder and moved to their destination on success.

All writers process the rows in chunks; their memory does not depend on the length of the recording.
"""

from __future__ import annotations

import datetime
import importlib
import io
import json
import math
import shutil
import struct
import tempfile
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from haptics.errors import ConfigurationError
from haptics.recording.recording import ORIGIN_UTC, Recording
from haptics.records import cells_of, flatten

Piece = dict[str, NDArray[Any]]
"""Chunk of rows: column name to (n,) array."""

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True)
class Table:
    """Flat columns of a recording or of data in memory.

    Attributes
    ----------
    columns : dict
        Column name with unit (`haptics.recording.recording.flat_columns`) to dtype.
    length : int
        Number of rows.
    description : str
        Content of ``recording.json``.
    origin_ns : int
        UTC time of tick 0 in nanoseconds since 1970; 0 if unknown.
    pieces : callable
        Takes the number of rows per chunk and yields the chunks in order. Each chunk owns its memory.
    """

    columns: dict[str, np.dtype[Any]]
    length: int
    description: str
    origin_ns: int
    pieces: Callable[[int], Iterator[Piece]]

    @classmethod
    def of(cls, recording: Recording) -> Self:
        """Return the table of a recording.

        The ticks are read while the chunks are consumed.
        """
        metadata = recording.metadata
        causality = str(metadata.get("device", {}).get("causality", ""))
        known = metadata.get("columns", {})
        units = {name: known.get(name, "") for name in recording.table.dtype.names or ()}

        def pieces(rows: int) -> Iterator[Piece]:
            for chunk in recording.chunks(rows=rows):
                flat = flatten(chunk, units, causality)
                yield {name: np.array(values) for name, values in flat.items()}

        empty = flatten(np.empty(0, recording.table.dtype), units, causality)
        columns = {name: values.dtype for name, values in empty.items()}
        origin = 0
        with suppress(KeyError, TypeError, ValueError):
            instant = datetime.datetime.fromisoformat(metadata[ORIGIN_UTC])
            origin = (instant - _EPOCH) // datetime.timedelta(microseconds=1) * 1000
        return cls(columns, len(recording), json.dumps(metadata), origin, pieces)

    @classmethod
    def of_columns(cls, columns: Mapping[str, NDArray[Any]], description: str = "") -> Self:
        """Return a table of columns in memory."""
        length = len(next(iter(columns.values()), ()))

        def pieces(rows: int) -> Iterator[Piece]:
            for start in range(0, length, rows):
                yield {name: values[start : start + rows] for name, values in columns.items()}

        return cls({name: values.dtype for name, values in columns.items()}, length, description, 0, pieces)


TOPIC = "/haptics/tick"
"""The topic of the messages of an MCAP file."""

ROWS_PER_GROUP = 32_768
"""Rows of a row group of a Parquet file."""

_ROWS_AT_ONCE = 16_384
_THREADS = 2
_FEW = 20_000
"""Below this number of rows, importing pyarrow takes longer than writing the file without it."""


def write(table: Table, kind: str, path: Path) -> None:
    """Write `table` as a file of a `kind` (`apps.export.command.FORMATS`).

    Raises
    ------
    ConfigurationError
        If that cannot be written, something that is no file is there, or a package is missing.
    """
    writer = _WRITERS[kind]
    if path.exists() and not path.is_file():
        raise ConfigurationError(f"--out = {str(path)!r}: is no file; name a new file, or one that may be replaced.")
    try:
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
            whole = Path(folder) / path.name
            writer(table, whole)
            whole.replace(path)
    except OSError as error:
        raise ConfigurationError(
            f"--out = {str(path)!r}: cannot be written ({error.strerror or error}); name a file in an existing folder."
        ) from error


def write_csv(table: Table, path: Path) -> None:
    """Write comma-separated values with one header line; non-finite values are empty cells.

    Floats are written with the shortest decimal representation that reads back to the same value. If pyarrow is
    installed, it formats long tables in two threads; the text is the same without pyarrow.
    """
    text_of: Callable[[Piece], bytes] = _text_of
    if table.length >= _FEW:
        with suppress(ImportError):
            text_of = _text_by_pyarrow()
    with path.open("wb") as file, ThreadPoolExecutor(_THREADS, "haptics export") as pool:
        file.write((",".join(table.columns) + "\r\n").encode())
        pending: deque[Future[bytes]] = deque()
        for piece in table.pieces(_ROWS_AT_ONCE):
            pending.append(pool.submit(text_of, piece))
            if len(pending) > _THREADS:
                file.write(pending.popleft().result())
        for future in pending:
            file.write(future.result())


def _text_by_pyarrow() -> Callable[[Piece], bytes]:
    """Return a function that formats a chunk as CSV lines; raise `ImportError` without pyarrow."""
    import pyarrow
    from pyarrow import csv

    options = csv.WriteOptions(include_header=False, quoting_style="none", eol="\r\n")

    def text_of(piece: Piece) -> bytes:
        arrays = [
            pyarrow.array(values.astype("f8") if values.dtype.kind == "f" else values, mask=~np.isfinite(values))
            for values in piece.values()
        ]
        text = io.BytesIO()
        csv.write_csv(pyarrow.record_batch(arrays, names=list(piece)), text, options)
        return text.getvalue()

    return text_of


def _text_of(piece: Piece) -> bytes:
    """Format a chunk as CSV lines in the same way as pyarrow: with an exponent below 1e-6 and from 1e10."""
    columns = []
    for values in piece.values():
        cells = values.tolist()
        if values.dtype.kind == "f":
            decimals = (Decimal(repr(cell)).normalize() for cell in cells)
            cells = [
                "" if not one.is_finite() else f"{one:f}" if -7 < one.adjusted() < 10 else f"{one:e}"
                for one in decimals
            ]
        columns.append(map(str, cells))
    return "".join(",".join(cells) + "\r\n" for cells in zip(*columns, strict=True)).encode()


def write_parquet(table: Table, path: Path) -> None:
    """Write Apache Parquet. pandas restores the content of ``recording.json`` as ``attrs['recording']``."""
    pandas, pyarrow, parquet = _package("pandas"), _package("pyarrow"), _package("pyarrow.parquet")
    empty = pandas.DataFrame({name: np.empty(0, kind) for name, kind in table.columns.items()})
    schema = pyarrow.Table.from_pandas(empty, preserve_index=False).schema
    attributes = json.dumps({"recording": table.description})
    schema = schema.with_metadata({**(schema.metadata or {}), "PANDAS_ATTRS": attributes})
    with parquet.ParquetWriter(path, schema) as writer:
        for piece in table.pieces(ROWS_PER_GROUP):
            arrays = [pyarrow.array(values, from_pandas=True) for values in piece.values()]
            writer.write_batch(pyarrow.record_batch(arrays, schema=schema))


_MATLAB = {
    "<f8": (6, 9),
    "<f4": (7, 7),
    "|i1": (8, 1),
    "|u1": (9, 2),
    "<i4": (12, 5),
    "<u4": (13, 6),
    "<i8": (14, 12),
    "<u8": (15, 13),
}
"""MATLAB array class and data type of NumPy types (MAT-File Format, tables 1-1 and 1-3)."""

_LARGEST_VARIABLE = 1 << 31
"""Size limit of a variable in MATLAB 5 files [bytes]."""


def write_mat(table: Table, path: Path) -> None:
    """Write a MATLAB 5 file with a column vector per column, and ``recording.json`` as a string.

    MATLAB 5 files store compressed variables one after the other. All variables are compressed in parallel to temporary
    files, which are concatenated at the end.
    """
    from scipy.io import savemat

    widest = max(table.columns.values(), key=lambda kind: kind.itemsize)
    if table.length * widest.itemsize >= _LARGEST_VARIABLE:
        raise ConfigurationError(
            f"--to mat: {table.length} ticks are more than a MATLAB 5 file can hold in a variable of {widest}; "
            "choose --to parquet or --to csv."
        )
    text = {"recording": table.description}
    if table.length < 8:  # MATLAB 5 uses a different element format up to four bytes
        columns = next(table.pieces(8), {name: np.empty(0, kind) for name, kind in table.columns.items()})
        savemat(path, text | columns, long_field_names=True, do_compression=True, oned_as="column")
        return
    with ExitStack() as stack, path.open("wb") as file:
        savemat(file, text, long_field_names=True, do_compression=True)
        file.seek(0, io.SEEK_END)
        parts = [
            _Compressed(stack.enter_context(tempfile.TemporaryFile(dir=path.parent)), name, kind, table.length)
            for name, kind in table.columns.items()
        ]
        for piece in table.pieces(_ROWS_AT_ONCE):
            for part, values in zip(parts, piece.values(), strict=True):
                part.add(values.tobytes())
        for part in parts:
            part.put_into(file)


class _Compressed:
    """Compressed variable of shape (n, 1) of a MATLAB 5 file."""

    def __init__(self, file: Any, name: str, kind: np.dtype[Any], length: int) -> None:
        array_class, data_type = _MATLAB[kind.str]
        size = length * kind.itemsize
        self._padding = bytes(-size % 8)
        head = b"".join(
            (
                _element(6, struct.pack("<II", array_class, 0)),
                _element(5, struct.pack("<ii", length, 1)),
                _element(1, name.encode("ascii")),
                struct.pack("<II", data_type, size),
            )
        )
        self._file, self._compressor = file, zlib.compressobj()
        self.add(struct.pack("<II", 14, len(head) + size + len(self._padding)) + head)

    def add(self, data: bytes) -> None:
        """Compress the next bytes of the array."""
        self._file.write(self._compressor.compress(data))

    def put_into(self, file: Any) -> None:
        """Finish the variable and append it to `file`."""
        self.add(self._padding)
        self._file.write(self._compressor.flush())
        file.write(struct.pack("<II", 15, self._file.tell()))
        self._file.seek(0)
        shutil.copyfileobj(self._file, file)


def _element(kind: int, data: bytes) -> bytes:
    """Return a padded data element of a MATLAB 5 file, in the small format up to four bytes."""
    if len(data) <= 4:
        return struct.pack("<I", len(data) << 16 | kind) + data.ljust(4, b"\0")
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def write_mcap(table: Table, path: Path) -> None:
    """Write MCAP with one JSON message per tick, stamped with its nominal time; non-finite values are null."""
    writing = _package("mcap.writer")
    with path.open("wb") as file:
        writer = writing.Writer(file)
        writer.start(profile="", library="haptics")
        kinds = {"f": ["number", "null"]}
        properties = {name: {"type": kinds.get(kind.kind, "integer")} for name, kind in table.columns.items()}
        described = {"type": "object", "title": "haptics.Tick", "properties": properties}
        schema = writer.register_schema("haptics.Tick", "jsonschema", json.dumps(described).encode())
        channel = writer.register_channel(topic=TOPIC, message_encoding="json", schema_id=schema)
        number, names = 0, list(table.columns)
        for piece in table.pieces(4096):
            times = piece.get("time_s")
            for k, cells in enumerate(zip(*(cells_of(values) for values in piece.values()), strict=True)):
                time = 0.0 if times is None else float(times[k])
                stamp = table.origin_ns + max(round(1e9 * time), 0) if math.isfinite(time) else table.origin_ns
                message = json.dumps(dict(zip(names, cells, strict=True)), allow_nan=False).encode()
                writer.add_message(channel, log_time=stamp, data=message, publish_time=stamp, sequence=number)
                number += 1
        writer.add_metadata("recording", {"description": table.description})
        writer.finish()


_WRITERS: dict[str, Callable[[Table, Path], None]] = {
    "csv": write_csv,
    "parquet": write_parquet,
    "mat": write_mat,
    "mcap": write_mcap,
}


def _package(name: str) -> Any:
    """Import an optional package."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigurationError(
            f"this format needs the package {name.partition('.')[0]}, which is not installed: "
            "pip install 'haptics[export]', or choose --to csv or --to mat."
        ) from error
