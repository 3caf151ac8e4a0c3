"""An open screen of an experiment on a virtual display, and what it has said."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from apps.experiment.screens import ScreenSettings
from apps.experiment.screens.launch import open_participant
from apps.front_ends.messages import SessionStarted
from tests.apps.screen import Screen
from tests.apps.shown import OnScreen, on_screen

WINDOW = ScreenSettings(full_screen=False, width=1000, height=700)
WORKSPACE = ((-0.1, -0.08), (0.1, 0.08))


def opened(screen: Screen, settings: ScreenSettings = WINDOW) -> AbstractContextManager[OnScreen]:
    """Open the participant's screen."""
    return on_screen(screen, lambda: open_participant(settings))


def started(trace: Path, mouse: bool = False, dead_man: str = "none") -> SessionStarted:
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
