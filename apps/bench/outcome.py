"""Result of a benchmark, and formatting of its tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from haptics.errors import ConfigurationError

Progress = Callable[[float, str], None]
"""Callback with the completed share, from 0 to 1, and the current measurement."""


class CannotMeasure(ConfigurationError):
    """A requirement of a benchmark is missing on this machine.

    The message contains the remedy.
    """


@dataclass(frozen=True)
class Outcome:
    """Result of a benchmark.

    Attributes
    ----------
    result : dict
        Result for ``--json``.
    text : str
        Result as text.
    error : str
        Reason why the figures are unreliable; empty if they are reliable.
    """

    result: dict[str, Any]
    text: str
    error: str = ""


def table(rows: Sequence[Sequence[object]]) -> str:
    """Format `rows` as text in columns: words aligned left, numbers right.

    The first row is the heading.
    """
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
    decimals = 2 - math.floor(math.log10(max(abs(value), 1e-9)))  # three digits, at most three decimals
    return f"{value:.{min(max(decimals, 0), 3)}f}"
