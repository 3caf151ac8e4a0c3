"""A line on the terminal that shows how far a command has come."""

from __future__ import annotations

import contextlib
import sys
from types import TracebackType
from typing import Self

_WIDTH = 24


class Line:
    """Keeps one line of standard error up to date; silent where that is not a terminal.

    As a context it removes the line at the end, whatever that is.
    """

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()

    def show(self, text: str) -> None:
        """Show `text` in place of what was there."""
        if self._shown:
            with contextlib.suppress(OSError):
                sys.stderr.write(f"\r\x1b[K{text}")
                sys.stderr.flush()

    def clear(self) -> None:
        """Remove the line."""
        self.show("")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.clear()


def bar(share: float) -> str:
    """Draw a bar of which a `share` from 0 to 1 is filled."""
    filled = round(_WIDTH * share)
    return f"[{'#' * filled}{'.' * (_WIDTH - filled)}]"
