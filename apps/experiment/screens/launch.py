"""Opening of the two screens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apps.experiment.screens.settings import ScreenSettings

if TYPE_CHECKING:
    from apps.front_ends.front_end import FrontEnd

EXPERIMENTER = "apps.experiment.screens.experimenter.window:ExperimenterWindow"
"""Class of the experimenter's window."""


def open_participant(settings: ScreenSettings) -> FrontEnd:
    """Open the participant's screen.

    A failure is reported by `messages.Cannot` (`FrontEnd.open`).
    """
    from apps.experiment.screens.participant.process import main
    from apps.front_ends.front_end import ProcessFrontEnd

    return ProcessFrontEnd(main, (settings,), name="haptics participant")


def open_experimenter(theme: str = "auto") -> FrontEnd:
    """Open the experimenter's screen in a theme (``auto``, ``dark`` or ``light``).

    Use `apps.view.launch.window_obstacle` to check first whether Qt can show a window.
    """
    from apps.front_ends.front_end import ProcessFrontEnd
    from apps.view.process import main

    return ProcessFrontEnd(main, (theme, EXPERIMENTER), name="haptics experimenter", holds_key=False)
