"""Text wrapped to the width of the terminal."""

from __future__ import annotations

import shutil
import textwrap

WIDEST = 110
"""Maximum number of characters in a line, regardless of the width of the terminal."""

_NARROWEST = 40


def columns() -> int:
    """Return the maximum length of a line; `WIDEST` if the width of the terminal is unknown."""
    return max(min(shutil.get_terminal_size((WIDEST, 24)).columns, WIDEST), _NARROWEST)


def wrapped(text: str, indent: int = 0, width: int | None = None) -> str:
    """Wrap `text` to lines of at most `width` characters. Words are never broken.

    Parameters
    ----------
    text : str
        Lines, each of which is wrapped separately and keeps its indentation.
    indent : int
        Indentation of the continuation lines.
    width : int, optional
        Line width; `columns` by default.
    """
    width = columns() if width is None else width
    return "\n".join(_folded(line, indent, width) for line in text.splitlines())


def _folded(line: str, indent: int, width: int) -> str:
    begin = line[: len(line) - len(line.lstrip())]
    return (
        line
        if len(line) <= width
        else textwrap.fill(
            line.lstrip(),
            width,
            initial_indent=begin,
            subsequent_indent=" " * max(indent, len(begin)),
            break_long_words=False,
            break_on_hyphens=False,
        )
    )
