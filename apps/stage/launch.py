"""The stage as seen from the session, and whether it can be shown at all."""

from __future__ import annotations

import os
import sys

from apps.front_ends.front_end import ProcessFrontEnd

_PATIENCE = 30.0
"""A display that has not let a window in for this long [s] cannot be used."""


def why_no_stage() -> str | None:
    """Return why no stage can be shown here, with the remedy, or None if one can.

    It is tried in a process of its own: what is loaded for it, and what fails in it, does not stay.
    """
    if sys.platform.startswith("linux") and not os.environ.get("DISPLAY"):
        return "no display (DISPLAY is not set; the stage needs X11, or XWayland)"
    from apps.doctor.child import NoAnswer, ask

    try:
        obstacle: str = ask("apps.stage.launch:reach_opengl", timeout=_PATIENCE)
    except NoAnswer as error:
        return f"the display {os.environ.get('DISPLAY', '')} cannot be used ({error})"
    return obstacle or None


def reach_opengl() -> str:
    """Open a window that is not shown; return why that fails, or nothing."""
    from apps.opengl.opening import open_window, why

    try:
        open_window("haptics", size=(64, 64), visible=False).close()
    except Exception as error:  # whatever the graphics libraries raise
        return why("the stage", error).removesuffix(".")
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
