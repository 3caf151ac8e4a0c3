"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from haptics.errors import ConfigurationError


def write_whole(path: str | Path, text: str) -> None:
    """Write a file, all of it or nothing: whatever happens, one that was there is not half overwritten.

    Raises
    ------
    ConfigurationError
        If it cannot be written.
    """
    try:
        where = Path(os.path.realpath(path))  # the file, where it is a link to one
        with tempfile.TemporaryDirectory(prefix=f".{where.name}.", dir=where.parent) as folder:
            whole = Path(folder) / where.name
            with whole.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            whole.replace(where)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path}: cannot be written ({getattr(error, 'strerror', None) or error}).") from error
