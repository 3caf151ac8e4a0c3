"""Progress before the first tick: kernels that are compiled, and the device that is opened."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from apps.session.progress import Progress

_EVERY = 0.5


class Preparation:
    """Says how far the preparation of a run is.

    Parameters
    ----------
    device : str
        Name of the device.
    progress : Progress
        The line on the terminal.
    tell : callable
        Takes a line for the person, once.
    show : callable
        Takes what is done at present, in words; empty when that is over.

    Attributes
    ----------
    opening : bool
        Whether the device may have been touched.
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

    def take(self, stage: str, facts: Any) -> None:
        """Take note of a message of the servo: ``compiling``, ``compiled``, ``opening`` or ``ready``."""
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
        """Bring what is shown up to date; to be called now and then."""
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
