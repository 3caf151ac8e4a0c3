"""Progress line on the terminal."""

from __future__ import annotations

import contextlib
import sys
from types import TracebackType
from typing import Self

_WIDTH = 24


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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.clear()


def bar(share: float) -> str:
    """Format a progress bar with a filled `share` from 0 to 1."""
    filled = round(_WIDTH * share)
    return f"[{'#' * filled}{'.' * (_WIDTH - filled)}]"
