"""The stage as a front end: a test whether it can be shown, its start by the session, and its process."""

from __future__ import annotations

import gc
import os
import signal
import sys
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from apps.front_ends.front_end import Link, ProcessFrontEnd
from apps.opengl.window import Size, open_window, unavailable_message
from apps.shared.theme import by_name

if TYPE_CHECKING:
    from apps.stage.window import StageWindow

SIZE: Size = (1280, 720)
"""Initial size of the window [pixel]; it can be resized, and F11 switches to full screen."""

_TIMEOUT = 30.0
"""Timeout for opening a window on the display [s]."""


def stage_obstacle() -> str | None:
    """Return the reason why no stage can be shown here, with a remedy, or None if one can.

    The test runs in a separate process, so that loaded libraries and failures do not affect this one.
    """
    if sys.platform.startswith("linux") and not os.environ.get("DISPLAY"):
        return "no display (DISPLAY is not set; the stage needs X11, or XWayland)"
    from apps.doctor.child import NoAnswer, call_in_child

    try:
        obstacle: str = call_in_child("apps.stage.launch:reach_opengl", timeout=_TIMEOUT)
    except NoAnswer as error:
        return f"the display {os.environ.get('DISPLAY', '')} cannot be used ({error})"
    return obstacle or None


def reach_opengl() -> str:
    """Open a hidden window; return the reason if that fails, else an empty string."""
    try:
        open_window("haptics", size=(64, 64), visible=False).close()
    except Exception as error:  # the graphics libraries raise various exceptions
        return unavailable_message("the stage", error).removesuffix(".")
    return ""


def start_stage(theme: str) -> ProcessFrontEnd:
    """Start the process of the stage in a theme: ``dark``, ``light`` or ``auto``."""
    return ProcessFrontEnd(main, (theme,), name="haptics stage")


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
    # More threads of software OpenGL would disturb the servo and are not faster here.
    os.environ["LP_NUM_THREADS"] = "1"
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
