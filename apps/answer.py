"""What a command answers: a result for programs, words for people, an exit status."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


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
