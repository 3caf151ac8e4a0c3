"""Entry of the process that shows the stage."""

from __future__ import annotations

import gc
import os
import signal
import sys
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from apps.front_ends.link import Link
from apps.opengl.opening import Size, open_window, why
from apps.shared.theme import by_name

if TYPE_CHECKING:
    from apps.stage.window import StageWindow

SIZE: Size = (1280, 720)
"""Of the window at the start [pixel]; it can be made larger, and fill the screen with F11."""

_ONE_THREAD = {"LP_NUM_THREADS": "1"}
"""For OpenGL in software: threads on all processors would be in the way of the servo, and are not quicker here."""


def main(connection: Connection[Any, Any], theme: str = "auto", size: Size = SIZE) -> None:
    """Show the stage until the session says `Quit`, the pipe ends or a person closes the window.

    Where no window can be opened the process ends with a sentence on standard error, and the session goes on.

    Parameters
    ----------
    connection : Connection
        The stage's end of a two-way pipe; speaks the classes of `apps.front_ends.messages`.
    theme : str
        ``dark``, ``light`` or ``auto``, which is dark: nobody can ask the desktop without Qt.
    size : (int, int)
        Of the window [pixel].
    """
    stage = opened(connection, theme, size)
    stage.run()
    connection.close()


def opened(connection: Connection[Any, Any], theme: str, size: Size) -> StageWindow:
    """Open the stage in this process, or end it with a sentence on standard error; see `main`."""
    # Ctrl-C in the terminal reaches the whole group; the session decides what it means and says Quit.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.update(_ONE_THREAD)
    link = Link(connection)
    try:
        from apps.stage.window import StageWindow

        stage = StageWindow(link, open_window("haptics: stage", size=size), by_name(theme, desktop_is_dark=True))
    except Exception as error:  # whatever the graphics libraries raise: the session goes on without it
        link.close()
        sys.exit(f"haptics: {why('the stage', error)}")
    # What has been built lives as long as the process: not looking at it again avoids pauses.
    gc.collect()
    gc.freeze()
    return stage
