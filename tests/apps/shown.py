"""A front end with a window of its own on a virtual screen, and what it has said."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from apps.front_ends.front_end import FrontEnd
from apps.front_ends.messages import AskShown, Shown
from tests.apps.screen import Screen


class OnScreen:
    """An open front end, and what it has said."""

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
        """Wait until its window is there, and has dealt with all that it was told before."""
        self.front.send(AskShown())
        self.until(lambda said: Shown() in said, 60.0)

    def focus(self, title: str) -> str:
        """Give the keys to the window whose title contains `title`, and return its id."""
        window = self.screen.window(title)
        self.screen.xdotool("windowfocus", "--sync", window)
        return window


@contextmanager
def on_screen(screen: Screen, opening: Callable[[], FrontEnd]) -> Iterator[OnScreen]:
    """Open a front end on a screen, and close it afterwards."""
    display = os.environ.get("DISPLAY")
    os.environ["DISPLAY"] = screen.environment["DISPLAY"]  # what the process inherits
    before = {child.pid for child in multiprocessing.active_children()}
    try:
        front = opening()
        (pid,) = {child.pid for child in multiprocessing.active_children()} - before
        shown = OnScreen(front, screen, pid or 0)
    finally:
        os.environ.pop("DISPLAY")
        if display is not None:
            os.environ["DISPLAY"] = display
    try:
        yield shown
    finally:
        shown.front.close()
