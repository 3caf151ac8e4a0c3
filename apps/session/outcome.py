"""How a session went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from haptics.errors import HapticError


@dataclass(frozen=True)
class Outcome:
    """How a session went.

    Attributes
    ----------
    summary : dict
        The keys of the command's JSON output.
    reason : str
        ``completed``, ``stopped``, ``interrupted`` or ``fault``.
    fault : HapticError or None
        What went wrong, if anything did; the recording was kept.
    """

    summary: dict[str, Any]
    reason: str
    fault: HapticError | None = None
