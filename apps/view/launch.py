"""Front end of the live view for the session, and a test whether it can be shown."""

from __future__ import annotations

import os
import sys

from apps.front_ends.front_end import ProcessFrontEnd

_PATIENCE = 20.0
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
        call_in_child("apps.view.launch:reach_display", timeout=_PATIENCE)
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


class ViewLink(ProcessFrontEnd):
    """The live view (`apps.view.process`).

    Parameters
    ----------
    theme : str
        ``dark``, ``light`` or ``auto``.
    """

    def __init__(self, theme: str) -> None:
        from apps.view.process import main

        super().__init__(main, (theme,), name="haptics view")
