"""Files that are made anew at any time: written whole, in place of an earlier one of ours and of nothing else."""

from __future__ import annotations

import os
from pathlib import Path

from haptics.files import in_place_of_own


def put(path: Path, text: str) -> None:
    """Write a file in one step and wait for the disk.

    What is there is replaced if it begins as `text` does, up to the first separator of its first two lines, and is no
    link; anything else is somebody's.

    Raises
    ------
    OSError
        If it cannot be written, or something else is there.
    """
    data = text.encode()
    mark = data[: _mark(data)]
    with in_place_of_own(path, lambda start: start == mark, len(mark)) as descriptor:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
    flush_folder(path.parent)


def _mark(data: bytes) -> int:
    """Return the length of what tells a file of ours: the first field of a table, the first pair in JSON."""
    if data.startswith(b"{"):
        return data.index(b"\n", data.index(b"\n") + 1) + 1
    return min(place for place in (data.find(b"\t"), data.find(b","), data.find(b"\n")) if place >= 0) + 1


def flush_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
