"""Answer of a command: a result for programs, text for users, and an exit status."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from haptics.errors import ConfigurationError


@dataclass(frozen=True)
class Answer:
    """Answer of a command.

    Attributes
    ----------
    result : dict
        Result for ``--json``.
    text : str
        Text for users, with the same content.
    status : int
        Exit status.
    error : str
        Error message for standard error; empty on success.
    """

    result: dict[str, Any] = field(default_factory=dict)
    text: str = ""
    status: int = 0
    error: str = ""


def make_folder(folder: Path) -> None:
    """Create the folder of ``--out``.

    Raises
    ------
    ConfigurationError
        If the folder cannot be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"--out = {str(folder)!r}: cannot be made ({error.strerror or error}); name a folder that can be written."
        ) from error
