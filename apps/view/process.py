"""Entry of the process that shows the live view."""

from __future__ import annotations

import gc
import os
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any


def main(connection: Connection[Any, Any], theme: str = "auto") -> None:
    """Show the live view until the session says `Quit`, the pipe ends or a person closes the window.

    Parameters
    ----------
    connection : Connection
        The view's end of a two-way pipe; speaks the classes of `apps.front_ends.messages`.
    theme : str
        ``dark``, ``light`` or ``auto``.
    """
    # Ctrl-C in the terminal reaches the whole group; the session decides what it means and says Quit.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["PYQTGRAPH_QT_LIB"] = "PySide6"
    try:
        from apps.view.link import Link
        from apps.view.qt import application, desktop_theme
        from apps.view.window import LiveWindow
    except ImportError as error:
        connection.close()
        sys.exit(f"The live view needs Qt and its system libraries: {error}; './run setup' names what is missing.")
    app = application()
    link = Link(connection)
    window = LiveWindow(link, desktop_theme(theme))
    window.show()
    # What has been built lives as long as the process: not looking at it again avoids pauses of tens of milliseconds.
    gc.collect()
    gc.freeze()
    app.exec()
    link.close()
