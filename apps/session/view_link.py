"""The live view as seen from the session: a process of its own, a pipe, and nothing else."""

from __future__ import annotations

import multiprocessing
import os
import sys
from multiprocessing.connection import Connection
from typing import Any

from apps.session.messages import Quit
from haptics.process import without_signals


def why_no_window() -> str | None:
    """Return why no window can be shown here, with the remedy, or None if one can."""
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return "no display (neither DISPLAY nor WAYLAND_DISPLAY is set)"
    try:
        import PySide6.QtWidgets  # noqa: F401
    except ImportError as error:
        return f"Qt cannot be loaded ({error}); './run setup' names the missing system libraries"
    return None


class ViewLink:
    """Starts the view and talks to it; a view that dies or is closed never disturbs the run.

    Parameters
    ----------
    theme : str
        ``dark``, ``light`` or ``auto``.
    """

    def __init__(self, theme: str) -> None:
        from apps.view.process import main

        context = multiprocessing.get_context("spawn")
        self.connection: Connection
        self.connection, far_end = context.Pipe()
        self._process = context.Process(target=main, args=(far_end, theme), name="haptics view", daemon=True)
        with without_signals():
            self._process.start()
        far_end.close()
        self.open = True

    @property
    def gone(self) -> bool:
        """Whether the view has ended or died."""
        return not self.open

    def send(self, message: Any) -> None:
        """Send one message; without effect once the view is gone."""
        if self.open:
            try:
                self.connection.send(message)
            except OSError:
                self.open = False

    def messages(self) -> list[Any]:
        """Return what the view has said since the last call; afterwards `gone` tells whether it died."""
        received: list[Any] = []
        try:
            while self.open and self.connection.poll():
                received.append(self.connection.recv())
        except (EOFError, OSError):
            self.open = False
        return received

    def close(self) -> None:
        """Close the window and wait for its process."""
        self.send(Quit())
        self._process.join(5.0)
        if self._process.is_alive():
            self._process.kill()  # a frozen one would not hear anything else
            self._process.join()
        self.connection.close()
