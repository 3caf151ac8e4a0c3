"""What a command answers: a result for programs, words for people, an exit status."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from haptics.errors import ConfigurationError


@dataclass(frozen=True)
class Answer:
    """What a command answers.

    Attributes
    ----------
    result : dict
        For ``--json``.
    text : str
        The same for people.
    status : int
        Exit status.
    error : str
        What went wrong, for standard error.
    """

    result: dict[str, Any] = field(default_factory=dict)
    text: str = ""
    status: int = 0
    error: str = ""


def make_folder(folder: Path) -> None:
    """Make the folder of ``--out``.

    Raises
    ------
    ConfigurationError
        If that cannot be done.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"--out = {str(folder)!r}: cannot be made ({error.strerror or error}); name a folder that can be written."
        ) from error
