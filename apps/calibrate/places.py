"""Checks of output paths."""

from __future__ import annotations

import os
from pathlib import Path

from haptics.errors import ConfigurationError


def require_place(out: Path, option: str = "--out") -> None:
    """Check that a file can be written or replaced, before a long measurement starts.

    Raises
    ------
    ConfigurationError
        If the file cannot be written.
    """
    folder = os.path.dirname(os.path.realpath(out))
    mine = os.access(out, os.W_OK) and out.is_file() if out.exists() else True
    if not (mine and os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)):
        raise ConfigurationError(f"{option} = {str(out)!r}: cannot be written; name a file in a folder that can be.")
