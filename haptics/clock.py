"""Clocks of a run, in real time or simulated time, and cancellable waits for drivers.

All motion in a run is a function of the *nominal* time ``tick * period``. A virtual device that gets its time from one
of these clocks therefore behaves identically in real time and in simulated time, and two runs with the same seed
produce bit-identical data.

Opening a device may take seconds. Drivers wait with `pause`, so that the caller can cancel the opening. A driver that
needs the person at the device, for homing, shows an instruction with `instruct`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from haptics.errors import OpeningCancelled

_SPIN = 50e-6  # duration of the busy wait before a deadline [s]; about the wake-up latency of a timer
_SLICE = 0.02  # longest delay until a cancellation is noticed [s]

# Function that returns True if the waits of this thread are cancelled; None in other threads.
_cancelled: ContextVar[Callable[[], bool] | None] = ContextVar("cancelled", default=None)


class Clock:
    """Count ticks of a fixed period without waiting for them (simulated time).

    Parameters
    ----------
    period : float
        Nominal period of a tick [s].

    Attributes
    ----------
    origin_ns : (int, int)
        Monotonic clock and time since 1970 at the last `start` [ns]; zeros before the first.
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
        """Set tick 0 to the present instant."""
        self.tick = 0
        self.origin_ns = time.monotonic_ns(), time.time_ns()

    def elapsed(self) -> float:
        """Return the time since the start [s]; for a simulated clock this is `time`."""
        return self.time

    def wait(self, tick: int) -> float:
        """Wait for the deadline of `tick`, make it the current tick and return the lateness [s]."""
        self.tick = tick
        return 0.0


class WallClock(Clock):
    """Wait for absolute deadlines on the monotonic clock, so that lateness does not accumulate.

    Parameters
    ----------
    period : float
        Nominal period of a tick [s].
    spin : float
        Duration of the busy wait before a deadline [s].

    Attributes
    ----------
    spin_ns : int
        Duration of the busy wait before a deadline [ns].
    """

    def __init__(self, period: float, spin: float = _SPIN) -> None:
        super().__init__(period)
        self.spin_ns = round(spin * 1e9)
        self._origin = time.monotonic()

    def start(self) -> None:
        """Set tick 0 to the present instant."""
        super().start()
        self._origin = 1e-9 * self.origin_ns[0]

    def elapsed(self) -> float:
        """Return the measured time since the start [s]."""
        return time.monotonic() - self._origin

    def wait(self, tick: int) -> float:
        """Sleep until shortly before the deadline of `tick`, busy-wait for it and return the lateness [s]."""
        deadline = self._origin + tick * self.period
        remaining = deadline - time.monotonic() - 1e-9 * self.spin_ns
        if remaining > 0.0:
            time.sleep(remaining)
        while (now := time.monotonic()) < deadline:
            pass
        self.tick = tick
        return now - deadline


# --- cancellable waits ------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def cancelled_by(check: Callable[[], bool]) -> Iterator[None]:
    """Cancel the waits of this thread that use `pause` as soon as `check` returns True."""
    token = _cancelled.set(check)
    try:
        yield
    finally:
        _cancelled.reset(token)


def raise_if_cancelled() -> None:
    """Raise `OpeningCancelled` if the waits of this thread are cancelled.

    Call it before any part of a device is energised. The error is raised only once, so that the cleanup that follows
    can use `pause` as well.

    Raises
    ------
    OpeningCancelled
        If the opening was cancelled.
    """
    check = _cancelled.get()
    if check is not None and check():
        _cancelled.set(None)
        raise OpeningCancelled("the device was not opened: the opening was cancelled.")


def pause(duration: float) -> None:
    """Wait for `duration` [s]; replaces `time.sleep` in ``open`` of a driver.

    Raises
    ------
    OpeningCancelled
        As soon as the opening is cancelled.
    """
    until = time.monotonic() + duration
    raise_if_cancelled()
    while (left := until - time.monotonic()) > 0.0:
        time.sleep(min(left, _SLICE))
        raise_if_cancelled()


# --- instructions -----------------------------------------------------------------------------------------------------

# Function that shows an instruction to the person at the device; None if there is none.
_instructed: ContextVar[Callable[[str], None] | None] = ContextVar("instructed", default=None)


@contextlib.contextmanager
def instructed_by(show: Callable[[str], None]) -> Iterator[None]:
    """Show the instructions of drivers that this thread opens by calling `show`."""
    token = _instructed.set(show)
    try:
        yield
    finally:
        _instructed.reset(token)


def instruct(words: str) -> bool:
    """Show an instruction to the person at a device that is being opened; an empty text when it is done.

    Return False if nothing shows instructions (`instructed_by`).
    """
    show = _instructed.get()
    if show is not None:
        show(words)
    return show is not None
