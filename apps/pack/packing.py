"""Pack and unpack recordings.

At any moment, at least one of the two files is complete.
"""

from __future__ import annotations

import os
from pathlib import Path

from haptics.errors import RecordingError
from haptics.files import parse_json, read_small_text
from haptics.recording.recording import METADATA, PACKED, ROWS_SHA256, TICKS, stated_hash
from haptics.recording.tick_file import PackedTable, TickTable, write_packed


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
    if not (folder / TICKS).exists():
        return 0
    return -_replace(folder, TickTable(folder / TICKS), folder / PACKED)


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
    if (folder / TICKS).exists() or not (folder / PACKED).exists():
        return 0
    return _replace(folder, PackedTable(folder / PACKED), folder / TICKS)


def _replace(folder: Path, table: TickTable | PackedTable, path: Path) -> int:
    """Replace the ticks of a recording by a file at `path` with the same ticks. Return the number of bytes added."""
    if not _is_same(folder, table):
        raise RecordingError(
            f"{table.path} does not match the hash in {folder / METADATA}: it was changed, or not closed."
        )
    unborn = folder / f".{path.name}.part"
    unborn.unlink(missing_ok=True)  # left by a killed process
    try:
        if isinstance(table, PackedTable):
            with open(unborn, "xb") as file:
                file.write(table.header())
                for rows in table.chunks():
                    file.write(rows.tobytes())
                file.flush()
                os.fsync(file.fileno())
        else:
            write_packed(table, unborn)
        if not _is_same(folder, TickTable(unborn) if isinstance(table, PackedTable) else PackedTable(unborn)):
            raise RecordingError(f"{unborn} does not hold the ticks of {table.path}: nothing was removed.")
        os.replace(unborn, path)
    finally:
        unborn.unlink(missing_ok=True)
    size = table.path.stat().st_size
    table.path.unlink()
    return path.stat().st_size - size


def _is_same(folder: Path, table: TickTable | PackedTable) -> bool:
    metadata = parse_json(read_small_text(folder / METADATA))
    return stated_hash(metadata) == (table.sha256() if ROWS_SHA256 in metadata else table.file_sha256())
