"""The live view as a front end: a test whether windows can be shown, its start, and the process of a Qt window."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from apps.front_ends.front_end import Link, ProcessFrontEnd

LIVE = "apps.view.window:LiveWindow"

_TIMEOUT = 20.0
"""Timeout for connecting to the display [s]."""


def window_obstacle() -> str | None:
    """Return the reason why no window can be shown here, with a remedy, or None if one can.

    The test runs in a separate process, because Qt aborts a process that cannot reach the display.
    """
    obstacle = obstacle_at_hand()
    if obstacle is not None:
        return obstacle
    from apps.doctor.child import NoAnswer, call_in_child

    try:
        call_in_child("apps.view.launch:reach_display", timeout=_TIMEOUT)
    except NoAnswer as error:
        display = os.environ.get("WAYLAND_DISPLAY") or os.environ.get("DISPLAY")
        return f"the display {display} cannot be used ({error}); 'haptics doctor' names the remedy"
    return None


def reach_display() -> None:
    """Connect to the display. Qt aborts the process if that fails."""
    from PySide6.QtGui import QGuiApplication

    QGuiApplication(["haptics"])


def obstacle_at_hand() -> str | None:
    """Return an obstacle to showing a window that is found without contacting the display, or None."""
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return "no display (neither DISPLAY nor WAYLAND_DISPLAY is set)"
    try:
        import PySide6.QtWidgets  # noqa: F401
    except ImportError as error:
        return f"Qt cannot be loaded ({error}); './run setup' names the missing system libraries"
    return None


def start_view(theme: str) -> ProcessFrontEnd:
    """Start the process of the live view in a theme: ``dark``, ``light`` or ``auto``."""
    return ProcessFrontEnd(main, (theme,), name="haptics view")


def main(connection: Connection[Any, Any], theme: str = "auto", window: str = LIVE) -> None:
    """Show a window until the session sends `Quit`, the pipe is closed, or the user closes the window.

    Parameters
    ----------
    connection : Connection
        The window's end of a two-way pipe for the messages of `apps.front_ends.messages` and of its session.
    theme : str
        ``dark``, ``light`` or ``auto``.
    window : str
        ``module:Class`` of the window, which takes a link (`apps.front_ends.front_end.Link`) and a theme.
    """
    # Ctrl-C in the terminal reaches the whole process group. The session handles it and sends `Quit`.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["PYQTGRAPH_QT_LIB"] = "PySide6"
    module, _, name = window.partition(":")
    try:
        from apps.view.qt import application, desktop_theme

        build = getattr(importlib.import_module(module), name)
    except ImportError as error:
        connection.close()
        sys.exit(f"The window needs Qt and its system libraries: {error}; './run setup' names what is missing.")
    app = application()
    link = Link(connection)
    shown = build(link, desktop_theme(theme))
    shown.show()
    # The present objects are kept until the process ends. Excluding them from collections avoids pauses of tens of
    # milliseconds.
    gc.collect()
    gc.freeze()
    app.exec()
    link.close()
