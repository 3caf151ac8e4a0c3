"""Packing a recording, and making it as it was again, to the last byte. At no moment is there less than one of both."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from haptics.errors import RecordingError
from haptics.recording.json_files import parsed_json, small_text
from haptics.recording.packed import PackedTable, write_packed
from haptics.recording.recording import METADATA, PACKED, ROWS_SHA256, TICKS, stated_hash
from haptics.recording.tick_file import Table, TickTable


def pack(folder: Path) -> int:
    """Pack a recording that was closed in order; return how many bytes that saves, 0 where it is packed already.

    Its ticks are removed only when what was written has been read back and is the same.

    Raises
    ------
    RecordingError
        If the ticks are not those of its description, or what was written is not the same.
    OSError
        If it cannot be written.
    """
    ticks, packed = folder / TICKS, folder / PACKED
    if not ticks.exists():
        return 0
    table = TickTable(ticks)
    _require_same(folder, table)
    with _unborn(folder, PACKED) as unborn:
        write_packed(table, unborn)
        written = PackedTable(unborn)
        if not _is_same(folder, written):
            raise RecordingError(f"{unborn} does not hold the ticks of {ticks}: nothing was removed.")
        os.replace(unborn, packed)
    size = ticks.stat().st_size
    ticks.unlink()
    return size - packed.stat().st_size


def unpack(folder: Path) -> int:
    """Make a recording as it was; return how many bytes that takes, 0 where it is so already.

    Raises
    ------
    RecordingError
        If what was packed is not what the description says.
    OSError
        If it cannot be written.
    """
    packed, ticks = folder / PACKED, folder / TICKS
    if ticks.exists() or not packed.exists():
        return 0
    table = PackedTable(packed)
    _require_same(folder, table)
    with _unborn(folder, TICKS) as unborn:
        with open(unborn, "xb") as file:
            file.write(table.header())
            for rows in table.chunks():
                file.write(rows.tobytes())
            file.flush()
            os.fsync(file.fileno())
        if not _is_same(folder, TickTable(unborn)):
            raise RecordingError(f"{unborn} does not hold the ticks of {packed}: nothing was removed.")
        os.replace(unborn, ticks)
    size = packed.stat().st_size
    packed.unlink()
    return ticks.stat().st_size - size


@contextlib.contextmanager
def _unborn(folder: Path, name: str) -> Iterator[Path]:
    """Give the path of a file that is not there yet; what is left of it after an error is removed."""
    path = folder / f".{name}.part"
    path.unlink(missing_ok=True)  # of somebody who was killed
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _require_same(folder: Path, table: Table) -> None:
    if not _is_same(folder, table):
        raise RecordingError(
            f"{table.path} is not what {folder / METADATA} says of its ticks: it was changed, or not closed."
        )


def _is_same(folder: Path, table: Table) -> bool:
    metadata = parsed_json(small_text(folder / METADATA))
    return stated_hash(metadata) == (table.sha256() if ROWS_SHA256 in metadata else table.file_sha256())
