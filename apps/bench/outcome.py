"""What a benchmark returns, and how its tables are written."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from haptics.errors import ConfigurationError

Progress = Callable[[float, str], None]
"""Takes the share that is done, from 0 to 1, and what is being measured now."""


class CannotMeasure(ConfigurationError):
    """Something that a benchmark needs is missing on this machine; the message names the remedy."""


@dataclass(frozen=True)
class Outcome:
    """What a benchmark returns.

    Attributes
    ----------
    result : dict
        For ``--json``.
    text : str
        The same for people.
    error : str
        Why the figures cannot be trusted; empty if they can.
    """

    result: dict[str, Any]
    text: str
    error: str = ""


def table(rows: Sequence[Sequence[object]]) -> str:
    """Return `rows`, the first with the headings, as text in columns: words to the left, numbers to the right."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    words = [all(isinstance(row[i], str) for row in rows) for i in range(len(widths))]
    lines = []
    for row in cells:
        aligned = (cell.ljust(w) if left else cell.rjust(w) for cell, w, left in zip(row, widths, words, strict=True))
        lines.append("  ".join(aligned).rstrip())
    return "\n".join(lines)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    decimals = 2 - math.floor(math.log10(max(abs(value), 1e-9)))  # three digits, but none beyond the third decimal
    return f"{value:.{min(max(decimals, 0), 3)}f}"
