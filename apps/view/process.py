"""Entry point of the process that shows a Qt window on a session: the live view, or a similar window."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

LIVE = "apps.view.window:LiveWindow"


def main(connection: Connection[Any, Any], theme: str = "auto", window: str = LIVE) -> None:
    """Show a window until the session sends `Quit`, the pipe is closed, or the user closes the window.

    Parameters
    ----------
    connection : Connection
        The window's end of a two-way pipe for the messages of `apps.front_ends.messages` and of its session.
    theme : str
        ``dark``, ``light`` or ``auto``.
    window : str
        ``module:Class`` of the window, which takes a link (`apps.front_ends.link.Link`) and a theme.
    """
    # Ctrl-C in the terminal reaches the whole process group. The session handles it and sends `Quit`.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["PYQTGRAPH_QT_LIB"] = "PySide6"
    module, _, name = window.partition(":")
    try:
        from apps.front_ends.link import Link
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
