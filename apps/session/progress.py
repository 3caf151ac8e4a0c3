"""Progress line of a run on the terminal."""

from __future__ import annotations

import time

import numpy as np

from apps.shared.progress import Line
from haptics.trace import Ring

_EVERY = 0.2


class Progress:
    """Updates a progress line of the run, at most five times per second.

    Parameters
    ----------
    duration : float or None
        Planned duration of the run [s].
    """

    def __init__(self, duration: float | None) -> None:
        self._duration = duration
        self._line = Line()
        self._next = 0.0
        self._preparing = "preparing"

    def prepare(self, words: str) -> None:
        """Show the present activity before the first tick."""
        self._preparing = words
        self._line.show(words)

    def show(self, trace: Ring) -> None:
        """Show the progress of the run."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _EVERY
            self._line.show(self._text(trace))

    def _text(self, trace: Ring) -> str:
        newest = trace.since(trace.count - 1)
        if len(newest) == 0:
            return self._preparing
        row = newest[-1]
        done = f"{row['time']:.1f} s" + (f" of {self._duration:g} s" if self._duration else " (Ctrl-C ends the run)")
        friction = float(np.hypot(*row["friction_force"]))
        return f"{done}   friction {friction:5.2f} N   {'sticking' if row['sticking'] else 'slipping'}"

    def clear(self) -> None:
        """Remove the line."""
        self._line.clear()


class Quiet(Progress):
    """Progress without output, for runs whose progress is shown elsewhere."""

    def __init__(self) -> None:
        super().__init__(None)

    def prepare(self, words: str) -> None:
        """Do nothing."""

    def show(self, trace: Ring) -> None:
        """Do nothing."""
