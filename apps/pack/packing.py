"""Pack and unpack recordings.

At any moment, at least one of the two files is complete.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from haptics.errors import RecordingError
from haptics.files import parse_json, read_small_text
from haptics.recording.recording import METADATA, PACKED, ROWS_SHA256, TICKS, stated_hash
from haptics.recording.tick_file import PackedTable, Table, TickTable, write_packed


def pack(folder: Path) -> int:
    """Pack a completed recording and return the number of bytes saved.

    The result is 0 if the recording is already packed or was not completed.

    The original file is removed after the packed file has been read back and its hash verified.

    Raises
    ------
    RecordingError
        If the ticks do not match the stored hash, or the packed file does not.
    OSError
        If the file cannot be written.
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
    """Restore a packed recording.

    Return the number of bytes added, 0 if it is not packed.

    Raises
    ------
    RecordingError
        If the packed ticks do not match the stored hash.
    OSError
        If the file cannot be written.
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
    """Provide a temporary path and remove the file after an error."""
    path = folder / f".{name}.part"
    path.unlink(missing_ok=True)  # left by a killed process
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _require_same(folder: Path, table: Table) -> None:
    if not _is_same(folder, table):
        raise RecordingError(
            f"{table.path} does not match the hash in {folder / METADATA}: it was changed, or not closed."
        )


def _is_same(folder: Path, table: Table) -> bool:
    metadata = parse_json(read_small_text(folder / METADATA))
    return stated_hash(metadata) == (table.sha256() if ROWS_SHA256 in metadata else table.file_sha256())
