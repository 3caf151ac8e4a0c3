"""The live view as seen from the session: a process of its own, a pipe, and nothing else."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from apps.session.messages import AskShown, Quit, Shown
from haptics.process import without_signals

_PATIENCE = 20.0
"""A display that has not let a window in for this long [s] cannot be used."""

_LOOK_EVERY = 0.05
"""Who waits for the window looks up this often [s]."""


def why_no_window() -> str | None:
    """Return why no window can be shown here, with the remedy, or None if one can.

    It is tried in a process of its own: Qt aborts the process in which it cannot reach the display.
    """
    obstacle = obstacle_at_hand()
    if obstacle is not None:
        return obstacle
    from apps.doctor.child import NoAnswer, ask

    try:
        ask("apps.session.view_link:reach_display", timeout=_PATIENCE)
    except NoAnswer as error:
        display = os.environ.get("WAYLAND_DISPLAY") or os.environ.get("DISPLAY")
        return f"the display {display} cannot be used ({error}); 'haptics doctor' names the remedy"
    return None


def reach_display() -> None:
    """Connect to the display; ends the process, as Qt does, where that fails."""
    from PySide6.QtGui import QGuiApplication

    QGuiApplication(["haptics"])


def obstacle_at_hand() -> str | None:
    """Return what keeps a window from being shown as far as can be said without trying it, or None."""
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

    def await_window(self, patience: float, hurried: Callable[[], bool]) -> bool:
        """Wait until the window is there; what else the view says until then has no session to go to.

        Parameters
        ----------
        patience : float
            How long at most [s].
        hurried : callable
            Tells whether somebody wants to leave.

        Returns
        -------
        bool
            Whether it is.
        """
        self.send(AskShown())
        until = time.monotonic() + patience
        while self.open and time.monotonic() < until and not hurried():
            self.connection.poll(_LOOK_EVERY)
            if Shown() in self.messages():
                return self.open
        return False

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
