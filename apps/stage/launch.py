"""Front end of the stage for the session, and a test whether it can be shown."""

from __future__ import annotations

import os
import sys

from apps.front_ends.front_end import ProcessFrontEnd

_PATIENCE = 30.0
"""Timeout for opening a window on the display [s]."""


def stage_obstacle() -> str | None:
    """Return the reason why no stage can be shown here, with a remedy, or None if one can.

    The test runs in a separate process, so that loaded libraries and failures do not affect this one.
    """
    if sys.platform.startswith("linux") and not os.environ.get("DISPLAY"):
        return "no display (DISPLAY is not set; the stage needs X11, or XWayland)"
    from apps.doctor.child import NoAnswer, call_in_child

    try:
        obstacle: str = call_in_child("apps.stage.launch:reach_opengl", timeout=_PATIENCE)
    except NoAnswer as error:
        return f"the display {os.environ.get('DISPLAY', '')} cannot be used ({error})"
    return obstacle or None


def reach_opengl() -> str:
    """Open a hidden window; return the reason if that fails, else an empty string."""
    from apps.opengl.opening import open_window, unavailable_message

    try:
        open_window("haptics", size=(64, 64), visible=False).close()
    except Exception as error:  # the graphics libraries raise various exceptions
        return unavailable_message("the stage", error).removesuffix(".")
    return ""


class StageLink(ProcessFrontEnd):
    """The stage (`apps.stage.process`).

    Parameters
    ----------
    theme : str
        ``dark``, ``light`` or ``auto``.
    """

    def __init__(self, theme: str) -> None:
        from apps.stage.process import main

        super().__init__(main, (theme,), name="haptics stage")
