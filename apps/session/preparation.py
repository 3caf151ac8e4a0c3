"""Progress before the first tick: compilation of kernels and opening of the device."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from apps.session.progress import Progress

_EVERY = 0.5


class Preparation:
    """Reports the progress of the preparation of a run.

    Parameters
    ----------
    device : str
        Name of the device.
    progress : Progress
        Progress line on the terminal.
    tell : callable
        Receives lines for the user that are printed once.
    show : callable
        Receives the present activity; empty when the preparation is complete.

    Attributes
    ----------
    opening : bool
        Whether opening of the device has begun, so that it may have been accessed.
    """

    def __init__(
        self, device: str, progress: Progress, tell: Callable[[str], None], show: Callable[[str], None]
    ) -> None:
        self._device = device
        self._progress = progress
        self._tell = tell
        self._show = show
        self._began = time.monotonic()
        self._next = 0.0
        self._kernels: tuple[int, int] | None = None
        self.opening = False

    def handle_message(self, stage: str, facts: Any) -> None:
        """Handle a progress message of the servo: ``compiling``, ``compiled``, ``opening`` or ``ready``."""
        if stage == "ready":
            self._next = float("inf")
            self._show("")
            return
        if stage == "compiling":
            if self._kernels is None:
                self._progress.clear()
                self._tell("compiling kernels, which takes a minute or two; the next run reuses them")
            self._kernels = facts
        elif stage == "opening":
            self.opening = True
        self._next = 0.0
        self.refresh()

    def refresh(self) -> None:
        """Update the display. Must be called periodically."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _EVERY
        words = self._words(now - self._began)
        if words:
            self._progress.prepare(words)
            self._show(words)

    def _words(self, seconds: float) -> str:
        if self.opening:
            return f"opening {self._device} ({seconds:.0f} s)"
        if self._kernels is None:
            return ""
        number, about = self._kernels
        return f"compiling kernel {number} of about {about} ({seconds:.0f} s; only the first time)"
