"""Where results are written."""

from __future__ import annotations

import os
from pathlib import Path

from haptics.errors import ConfigurationError


def require_place(out: Path, option: str = "--out") -> None:
    """Make sure that a file can be written, and take the place of one that is there, before anybody takes trouble.

    Raises
    ------
    ConfigurationError
        If it cannot.
    """
    folder = os.path.dirname(os.path.realpath(out))
    mine = os.access(out, os.W_OK) and out.is_file() if out.exists() else True
    if not (mine and os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)):
        raise ConfigurationError(f"{option} = {str(out)!r}: cannot be written; name a file in a folder that can be.")
