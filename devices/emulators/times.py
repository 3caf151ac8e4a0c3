"""The two times an emulated bus can follow: the wall's, or one of its own that only waiting moves on."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class BusTime(Protocol):
    """A clock that can be waited for."""

    def now(self) -> float:
        """Return the time [s]."""
        ...

    def wait_until(self, instant: float) -> None:
        """Return at `instant` [s] at the earliest."""
        ...


class WallTime:
    """The system's monotonic clock, shared by all processes."""

    def now(self) -> float:
        """Return the time [s]."""
        return time.monotonic()

    def wait_until(self, instant: float) -> None:
        """Sleep until `instant` [s]."""
        remaining = instant - time.monotonic()
        if remaining > 0.0:
            time.sleep(remaining)


class FreeTime:
    """A time that passes only when somebody waits, and then at once: as fast as the machine can."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = 0.0

    def now(self) -> float:
        """Return the time [s]."""
        with self._lock:
            return self._now

    def wait_until(self, instant: float) -> None:
        """Make it `instant` [s], unless it is later already."""
        with self._lock:
            self._now = max(self._now, instant)
