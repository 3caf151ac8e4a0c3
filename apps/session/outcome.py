"""Outcome of a session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from haptics.errors import HapticError


@dataclass(frozen=True)
class Outcome:
    """Outcome of a session.

    Attributes
    ----------
    summary : dict
        Summary with the keys of the command's JSON output.
    reason : str
        ``completed``, ``stopped``, ``interrupted`` or ``fault``.
    fault : HapticError or None
        Error that ended the run, if any; the recording is kept.
    """

    summary: dict[str, Any]
    reason: str
    fault: HapticError | None = None
