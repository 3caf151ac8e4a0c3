"""A front end with a window on a virtual screen, and its messages."""

from __future__ import annotations

import multiprocessing
import os
import time
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from apps.front_ends.messages import AskShown, Shown


class OnScreen:
    """An open front end and its messages."""

    def __init__(self, front, screen, pid):
        self.front, self.screen, self.pid = front, screen, pid
        self.said: list[Any] = []

    def until(self, condition, seconds=30.0):
        """Wait until the messages since the last call fulfil a condition, and return them."""
        end = time.monotonic() + seconds
        while not condition(self.said):
            assert time.monotonic() < end, self.said
            time.sleep(0.01)
            self.said += self.front.messages()
        said, self.said = self.said, []
        return said

    def until_shown(self):
        """Wait until the window is open and has handled all earlier messages."""
        self.front.send(AskShown())
        self.until(lambda said: Shown() in said, 60.0)

    def focus(self, title):
        """Focus the window whose title contains `title` and return its id."""
        window = self.screen.window(title)
        self.screen.xdotool("windowfocus", "--sync", window)
        return window


@contextmanager
def on_screen(screen, opening):
    """Open a front end on a screen, and close it afterwards."""
    before = {child.pid for child in multiprocessing.active_children()}
    with patch.dict(os.environ, DISPLAY=screen.environment["DISPLAY"]):  # inherited by the process
        front = opening()
    (pid,) = {child.pid for child in multiprocessing.active_children()} - before
    shown = OnScreen(front, screen, pid or 0)
    try:
        yield shown
    finally:
        shown.front.close()
