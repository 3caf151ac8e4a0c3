"""The files of ``haptics export``. Each is written beside its place and put there whole, or not at all."""

from __future__ import annotations

import csv
import importlib
import json
import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from apps.export.table import Table
from haptics.errors import ConfigurationError
from haptics.recording.flat import cells_of

TOPIC = "/haptics/tick"
"""The topic of the messages of an MCAP file."""

_BLOCK = 4096


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
    """Write comma-separated values: a line of names, a line a tick; numbers read back as they were."""
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(table.columns)
        for block in _blocks(table):
            lines.writerows(zip(*(cells_of(values) for values in block), strict=True))


def write_parquet(table: Table, path: Path) -> None:
    """Write Apache Parquet; the recording's description is in ``attrs['recording']`` of the frame."""
    pandas = _package("pandas")
    _package("pyarrow")
    frame = pandas.DataFrame(table.columns)
    frame.attrs["recording"] = table.description
    frame.to_parquet(path, engine="pyarrow", index=False)


def write_mat(table: Table, path: Path) -> None:
    """Write a MATLAB 5 file: a column vector for each column, and the description as the text ``recording``."""
    from scipy.io import savemat

    columns = {"recording": table.description, **table.columns}
    savemat(path, columns, long_field_names=True, do_compression=True, oned_as="column")


def write_mcap(table: Table, path: Path) -> None:
    """Write MCAP: a JSON message a tick, stamped with the time at which the tick was due."""
    writing = _package("mcap.writer")
    with path.open("wb") as file:
        writer = writing.Writer(file)
        writer.start(profile="", library="haptics")
        schema = writer.register_schema("haptics.Tick", "jsonschema", json.dumps(_schema(table)).encode())
        channel = writer.register_channel(topic=TOPIC, message_encoding="json", schema_id=schema)
        for number, (stamp, message) in enumerate(_messages(table)):
            writer.add_message(channel, log_time=stamp, data=message, publish_time=stamp, sequence=number)
        writer.add_metadata("recording", {"description": table.description})
        writer.finish()


_WRITERS: dict[str, Callable[[Table, Path], None]] = {
    "csv": write_csv,
    "parquet": write_parquet,
    "mat": write_mat,
    "mcap": write_mcap,
}


def _package(name: str) -> Any:
    """Return a module of a package that only exports need."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigurationError(
            f"this format needs the package {name.partition('.')[0]}, which is not installed: "
            "pip install 'haptics[export]', or choose --to csv or --to mat."
        ) from error


def _blocks(table: Table) -> Iterator[list[Any]]:
    """Yield the columns piece by piece, so that a long recording is not turned into Python's numbers at once."""
    for first in range(0, table.length, _BLOCK):
        yield [values[first : first + _BLOCK] for values in table.columns.values()]


def _messages(table: Table) -> Iterator[tuple[int, bytes]]:
    """Yield when each tick was due [ns] and its numbers as JSON, in which null stands for what is not a number."""
    names = list(table.columns)
    times = table.columns.get("time_s")
    for number, block in enumerate(_blocks(table)):
        for k, cells in enumerate(zip(*(cells_of(values) for values in block), strict=True)):
            time = 0.0 if times is None else float(times[number * _BLOCK + k])
            stamp = table.origin_ns + max(round(1e9 * time), 0) if math.isfinite(time) else table.origin_ns
            yield stamp, json.dumps(dict(zip(names, cells, strict=True)), allow_nan=False).encode()


def _schema(table: Table) -> dict[str, Any]:
    kinds = {"f": ["number", "null"]}
    properties = {name: {"type": kinds.get(values.dtype.kind, "integer")} for name, values in table.columns.items()}
    return {"type": "object", "title": "haptics.Tick", "properties": properties}
