"""The screen of a participant on a virtual display."""

from apps.experiment.screens.launch import open_participant
from apps.experiment.settings import ScreenSettings
from apps.front_ends.messages import SessionStarted
from tests.apps.shown import on_screen

WINDOW = ScreenSettings(full_screen=False, width=1000, height=700)
WORKSPACE = ((-0.1, -0.08), (0.1, 0.08))


def opened(screen, settings=WINDOW):
    """Open the participant's screen."""
    return on_screen(screen, lambda: open_participant(settings))


def started(trace, mouse=False, dead_man="none"):
    """Return the message with which a block begins."""
    return SessionStarted(
        trace=str(trace),
        recording="",
        device="virtual-joystick",
        model="C",
        causality="impedance",
        rate_hz=1000.0,
        hand="mouse",
        workspace=WORKSPACE,
        parameters=(),
        choices={},
        hands=(),
        mouse=mouse,
        force_scale=4.0,
        dead_man=dead_man,
    )
