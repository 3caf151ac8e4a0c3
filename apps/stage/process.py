"""Entry point of the process that shows the stage."""

from __future__ import annotations

import gc
import os
import signal
import sys
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from apps.front_ends.link import Link
from apps.opengl.opening import Size, open_window, unavailable_message
from apps.shared.theme import by_name

if TYPE_CHECKING:
    from apps.stage.window import StageWindow

SIZE: Size = (1280, 720)
"""Initial size of the window [pixel]; it can be resized, and F11 switches to full screen."""

_ONE_THREAD = {"LP_NUM_THREADS": "1"}
"""Software OpenGL uses one thread: more threads would disturb the servo and are not faster here."""


def main(connection: Connection[Any, Any], theme: str = "auto", size: Size = SIZE) -> None:
    """Show the stage until the session sends `Quit`, the pipe is closed, or the user closes the window.

    If no window can be opened, the process exits with a message on standard error, and the session continues.

    Parameters
    ----------
    connection : Connection
        The stage's end of a two-way pipe for the messages of `apps.front_ends.messages`.
    theme : str
        ``dark``, ``light`` or ``auto``. ``auto`` is dark, since the theme of the desktop cannot be read without Qt.
    size : (int, int)
        Size of the window [pixel].
    """
    stage = open_stage(connection, theme, size)
    stage.run()
    connection.close()


def open_stage(connection: Connection[Any, Any], theme: str, size: Size) -> StageWindow:
    """Open the stage in this process, or exit with a message on standard error; see `main`."""
    # Ctrl-C in the terminal reaches the whole process group. The session handles it and sends `Quit`.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.update(_ONE_THREAD)
    link = Link(connection)
    try:
        from apps.stage.window import StageWindow

        stage = StageWindow(link, open_window("haptics: stage", size=size), by_name(theme, desktop_is_dark=True))
    except Exception as error:  # graphics libraries raise various errors; the session continues
        link.close()
        sys.exit(f"haptics: {unavailable_message('the stage', error)}")
    # The present objects are kept until the process ends. Excluding them from collections avoids pauses.
    gc.collect()
    gc.freeze()
    return stage
