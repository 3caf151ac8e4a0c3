"""Entry of the process that shows a Qt window on a session: the live view, or another window of the same kind."""

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
    """Show a window until the session says `Quit`, the pipe ends or a person closes it.

    Parameters
    ----------
    connection : Connection
        The window's end of a two-way pipe; speaks the classes of `apps.front_ends.messages` and those of its session.
    theme : str
        ``dark``, ``light`` or ``auto``.
    window : str
        ``module:Class`` of the window, which takes a link (`apps.front_ends.link.Link`) and a theme.
    """
    # Ctrl-C in the terminal reaches the whole group; the session decides what it means and says Quit.
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
    # What has been built lives as long as the process: not looking at it again avoids pauses of tens of milliseconds.
    gc.collect()
    gc.freeze()
    app.exec()
    link.close()
