"""The two clocks a run can follow: real time (absolute deadlines), or simulated time (as fast as possible).

And waits for a driver's ``open``, which may take long: whoever cancels it must not wait for it.

Everything that moves in a run is a function of the *nominal* time ``tick * period``. A virtual device
that is told the time by one of these clocks therefore behaves identically at 1 kHz and as fast as the
machine can go, and two runs with the same seed give the same data bit for bit.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from haptics.errors import OpeningCancelled

SPIN = 50e-6
"""Busy-waiting before a deadline [s]: a timer's wake-up delay is of this size."""
_SLICE = 0.02
"""A cancel is noticed within this time [s]."""

_cancelled: ContextVar[Callable[[], bool] | None] = ContextVar("cancelled", default=None)
"""Tells whether the waits of this thread are cancelled; other threads have none."""


class Clock:
    """Counts ticks of a fixed period without waiting for them (simulated time).

    Parameters
    ----------
    period : float
        Nominal period of a tick [s].

    Attributes
    ----------
    origin_ns : (int, int)
        When it was started last: the system's monotonic clock, and the time since 1970 [ns]; zeros before.
    """

    def __init__(self, period: float) -> None:
        self.period = period
        self.tick = 0
        self.origin_ns = (0, 0)

    @property
    def time(self) -> float:
        """Nominal time of the current tick since the start of the run [s]."""
        return self.tick * self.period

    def start(self) -> None:
        """Make now the instant of tick 0."""
        self.tick = 0
        self.origin_ns = time.monotonic_ns(), time.time_ns()

    def elapsed(self) -> float:
        """Time since the start [s], as this clock sees it; for a simulated clock that is `time`."""
        return self.time

    def wait(self, tick: int) -> float:
        """Wait for the deadline of `tick`, make it the current one and return the lateness [s]."""
        self.tick = tick
        return 0.0


class WallClock(Clock):
    """Waits for absolute deadlines on the monotonic clock, so that lateness never accumulates.

    Parameters
    ----------
    period : float
        Nominal period of a tick [s].
    spin : float
        The last stretch before a deadline that is waited out awake [s].
    """

    def __init__(self, period: float, spin: float = SPIN) -> None:
        super().__init__(period)
        self._spin = spin
        self._origin = time.monotonic()

    @property
    def spin_ns(self) -> int:
        """Busy-waiting before a deadline [ns]."""
        return round(self._spin * 1e9)

    def start(self) -> None:
        """Make now the instant of tick 0."""
        super().start()
        self._origin = 1e-9 * self.origin_ns[0]

    def elapsed(self) -> float:
        """Measured time since the start [s]."""
        return time.monotonic() - self._origin

    def wait(self, tick: int) -> float:
        """Sleep until the deadline of `tick` (the last stretch of it awake) and return how late it is [s]."""
        deadline = self._origin + tick * self.period
        remaining = deadline - time.monotonic() - self._spin
        if remaining > 0.0:
            time.sleep(remaining)
        while (now := time.monotonic()) < deadline:
            pass
        self.tick = tick
        return now - deadline


# --- waits that can be cancelled --------------------------------------------------------------------------------------


@contextlib.contextmanager
def cancelled_by(check: Callable[[], bool]) -> Iterator[None]:
    """Let `check` cancel the waits of this thread that are made with `pause`."""
    token = _cancelled.set(check)
    try:
        yield
    finally:
        _cancelled.reset(token)


def go_on() -> None:
    """Return, or raise where the waits of this thread are cancelled: once, so that what has begun can be undone.

    To be called before anything is energised.

    Raises
    ------
    OpeningCancelled
        If they are.
    """
    check = _cancelled.get()
    if check is not None and check():
        _cancelled.set(None)
        raise OpeningCancelled("the device was not opened: the opening was cancelled.")


def pause(duration: float) -> None:
    """Wait for `duration` [s], in ``open`` of a driver in place of `time.sleep`.

    Raises
    ------
    OpeningCancelled
        As soon as the opening is cancelled.
    """
    until = time.monotonic() + duration
    go_on()
    while (left := until - time.monotonic()) > 0.0:
        time.sleep(min(left, _SLICE))
        go_on()
