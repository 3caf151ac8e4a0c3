"""Text and progress lines on the terminal."""

from __future__ import annotations

import contextlib
import shutil
import sys
import textwrap
from typing import Self

WIDEST = 110
"""Maximum number of characters in a line, regardless of the width of the terminal."""

_NARROWEST = 40
_BAR_WIDTH = 24


def wrapped(text: str, indent: int = 0, width: int | None = None) -> str:
    """Wrap `text` to lines of at most `width` characters. Words are never broken.

    Parameters
    ----------
    text : str
        Lines, each of which is wrapped separately and keeps its indentation.
    indent : int
        Indentation of the continuation lines.
    width : int, optional
        Line width; by default that of the terminal, between 40 and `WIDEST`.
    """
    if width is None:
        width = max(min(shutil.get_terminal_size((WIDEST, 24)).columns, WIDEST), _NARROWEST)
    lines = []
    for line in text.splitlines():
        if len(line) <= width:
            lines.append(line)
            continue
        begin = line[: len(line) - len(line.lstrip())]
        following = " " * max(indent, len(begin))
        folded = textwrap.fill(
            line.lstrip(),
            width,
            initial_indent=begin,
            subsequent_indent=following,
            break_long_words=False,
            break_on_hyphens=False,
        )
        lines.append(folded)
    return "\n".join(lines)


def print_status(line: str) -> None:
    """Print one line for the user to standard error; standard output is reserved for results."""
    with contextlib.suppress(OSError):  # a closed or full stream must not disturb a run
        print(wrapped(line, 2) if sys.stderr.isatty() else line, file=sys.stderr, flush=True)


class Line:
    """Updates one line of standard error; does nothing if that is not a terminal.

    As a context manager, it removes the line on exit.
    """

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()

    def show(self, text: str) -> None:
        """Replace the line by `text`."""
        if self._shown:
            with contextlib.suppress(OSError):
                sys.stderr.write(f"\r\x1b[K{text}")
                sys.stderr.flush()

    def clear(self) -> None:
        """Remove the line."""
        self.show("")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.clear()


def bar(share: float) -> str:
    """Format a progress bar with a filled `share` from 0 to 1."""
    filled = round(_BAR_WIDTH * share)
    return f"[{'#' * filled}{'.' * (_BAR_WIDTH - filled)}]"
