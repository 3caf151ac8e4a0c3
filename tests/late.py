"""How long a program was kept from running: a thread that does nothing but wake up knows."""

from __future__ import annotations

import threading
from time import monotonic, sleep  # themselves: some tests put another clock in their place, in the module

PAUSE = 5e-3
"""Between two looks at the clock [s]."""


class Lateness:
    """Wakes up every few milliseconds and keeps how late it was, at most."""

    def __init__(self, *, watch: bool = True) -> None:
        self._worst, self._last, self._over = 0.0, monotonic(), False
        if watch:
            threading.Thread(target=self._watch, name="lateness", daemon=True).start()

    def close(self) -> None:
        """Wake up no more."""
        self._over = True

    def take(self) -> float:
        """Return by how much it was late at most since the last call [s]."""
        worst, self._worst = self._worst, 0.0
        return worst

    def note(self, now: float) -> None:
        """Take note of having woken up at `now` [s]."""
        self._worst, self._last = max(self._worst, now - self._last - PAUSE), now

    def _watch(self) -> None:
        while not self._over:
            sleep(PAUSE)
            self.note(monotonic())
