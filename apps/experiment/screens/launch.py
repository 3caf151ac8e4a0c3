"""The screens as seen from an experiment."""

from __future__ import annotations

from apps.experiment.screens.experimenter.process import main as show_experimenter
from apps.experiment.screens.participant.process import main as show_participant
from apps.experiment.screens.settings import ScreenSettings
from apps.front_ends.front_end import FrontEnd, ProcessFrontEnd


def open_participant(settings: ScreenSettings) -> FrontEnd:
    """Open the participant's screen; where that fails it says `messages.Cannot` and is gone (`FrontEnd.open`)."""
    return ProcessFrontEnd(show_participant, (settings,), name="haptics participant")


def open_experimenter(theme: str = "auto") -> FrontEnd:
    """Open the experimenter's screen in a theme (``auto``, ``dark``, ``light``).

    `apps.view.launch.why_no_window` says beforehand whether Qt can show a window.
    """
    return ProcessFrontEnd(show_experimenter, (theme,), name="haptics experimenter", holds_key=False)
