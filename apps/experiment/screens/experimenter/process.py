"""Entry of the process that shows the experimenter's screen."""

from __future__ import annotations

import gc
import os
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any


def main(connection: Connection[Any, Any], theme: str = "auto") -> None:
    """Show the experimenter's screen until the session says `Quit` or a person closes the window.

    Parameters
    ----------
    connection : Connection
        The screen's end of a two-way pipe; speaks the classes of `apps.experiment.screens.messages`.
    theme : str
        ``dark``, ``light`` or ``auto``.
    """
    # Ctrl-C in the terminal reaches the whole group; the session decides what it means and says Quit.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["PYQTGRAPH_QT_LIB"] = "PySide6"
    try:
        from apps.experiment.screens.experimenter.window import ExperimenterWindow
        from apps.view.link import Link
        from apps.view.qt import application, desktop_theme
    except ImportError as error:
        connection.close()
        sys.exit(f"The experimenter's screen needs Qt and its libraries: {error}; './run setup' names what is missing.")
    app = application()
    link = Link(connection)
    window = ExperimenterWindow(link, desktop_theme(theme))
    window.show()
    gc.collect()
    gc.freeze()
    app.exec()
    link.close()
