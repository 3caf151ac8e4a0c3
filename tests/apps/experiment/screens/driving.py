"""An open screen of an experiment on a virtual display, and what it has said."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from apps.experiment.screens import ScreenSettings
from apps.experiment.screens.launch import open_participant
from apps.front_ends.front_end import FrontEnd
from apps.front_ends.messages import AskShown, SessionStarted, Shown
from tests.apps.screen import Screen

WINDOW = ScreenSettings(full_screen=False, width=1000, height=700)
WORKSPACE = ((-0.1, -0.08), (0.1, 0.08))


class Participant:
    """An open screen, and what it has said."""

    def __init__(self, front: FrontEnd, screen: Screen, pid: int) -> None:
        self.front, self.screen, self.pid = front, screen, pid
        self.said: list[Any] = []

    def until(self, condition: Callable[[list[Any]], bool], seconds: float = 30.0) -> list[Any]:
        """Wait until what has been said since the last call fulfils a condition, and return it."""
        end = time.monotonic() + seconds
        while not condition(self.said):
            assert time.monotonic() < end, self.said
            time.sleep(0.01)
            self.said += self.front.messages()
        said, self.said = self.said, []
        return said

    def until_shown(self) -> None:
        """Wait until its window is there."""
        self.front.send(AskShown())
        self.until(lambda said: Shown() in said)

    def focus(self) -> str:
        """Give it the keys and return the id of its window."""
        window = self.screen.window("haptics: participant")
        self.screen.xdotool("windowfocus", "--sync", window)
        return window


@contextmanager
def opened(screen: Screen, settings: ScreenSettings = WINDOW) -> Iterator[Participant]:
    display = os.environ.get("DISPLAY")
    os.environ["DISPLAY"] = screen.environment["DISPLAY"]  # what the process inherits
    before = {child.pid for child in multiprocessing.active_children()}
    try:
        front = open_participant(settings)
        (pid,) = {child.pid for child in multiprocessing.active_children()} - before
        participant = Participant(front, screen, pid or 0)
    finally:
        os.environ.pop("DISPLAY")
        if display is not None:
            os.environ["DISPLAY"] = display
    try:
        yield participant
    finally:
        participant.front.close()


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
