"""Atomic writes of generated files, which replace only earlier files of the same kind."""

from __future__ import annotations

import os
from pathlib import Path

from haptics.files import replacing_owned


def put(path: Path, text: str) -> None:
    """Write a file atomically and flush it to disk.

    An existing file is replaced if it is not a link and begins like `text`, up to the first field of a table or the
    first entry of a JSON object.

    Raises
    ------
    OSError
        If the file cannot be written, or another file exists.
    """
    data = text.encode()
    mark = data[: _mark(data)]
    with replacing_owned(path, lambda start: start == mark, len(mark)) as descriptor:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
    flush_folder(path.parent)


def _mark(data: bytes) -> int:
    """Return the length of the identifying prefix: the first field of a table, or the first entry in JSON."""
    if data.startswith(b"{"):
        return data.index(b"\n", data.index(b"\n") + 1) + 1
    return min(place for place in (data.find(b"\t"), data.find(b","), data.find(b"\n")) if place >= 0) + 1


def flush_folder(folder: Path) -> None:
    """Flush the directory entries of a folder to disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
