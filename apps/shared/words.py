"""Text for people: wrapped to the width of the terminal that shows it."""

from __future__ import annotations

import shutil
import textwrap

WIDEST = 110
"""No line of text is longer than this many characters, however wide the terminal is."""

_NARROWEST = 40


def columns() -> int:
    """Return how many characters a line may have; `WIDEST` where nobody knows the width of the terminal."""
    return max(min(shutil.get_terminal_size((WIDEST, 24)).columns, WIDEST), _NARROWEST)


def wrapped(text: str, indent: int = 0, width: int | None = None) -> str:
    """Return `text` in lines of at most `width` characters; words are never broken.

    Parameters
    ----------
    text : str
        Lines, each of which is wrapped by itself; what one begins with is kept.
    indent : int
        Spaces before what follows the first line of each.
    width : int, optional
        `columns` by default.
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
