"""Clocks of an emulated bus: real time, or simulated time that advances only by waiting."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class BusTime(Protocol):
    """Clock with a waiting function."""

    def now(self) -> float:
        """Return the time [s]."""
        ...

    def wait_until(self, instant: float) -> None:
        """Return at `instant` [s] or later."""
        ...


class WallTime:
    """System's monotonic clock, shared by all processes."""

    def now(self) -> float:
        """Return the time [s]."""
        return time.monotonic()

    def wait_until(self, instant: float) -> None:
        """Sleep until `instant` [s]."""
        remaining = instant - time.monotonic()
        if remaining > 0.0:
            time.sleep(remaining)


class FreeTime:
    """Simulated time, which advances immediately when a thread waits: as fast as possible."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = 0.0

    def now(self) -> float:
        """Return the time [s]."""
        with self._lock:
            return self._now

    def wait_until(self, instant: float) -> None:
        """Advance the time to `instant` [s], unless it is already later."""
        with self._lock:
            self._now = max(self._now, instant)
