"""Stepped time for a driver and an emulated device with real threads, independent of the scheduler.

Without a step, time follows the wall clock, but only as fast as this process runs: a stall of the machine counts as one
step. All readers see the same instant until the next step.
"""

import contextlib
import math
import threading
import time
from types import SimpleNamespace

import pytest

from haptics.clock import Clock

# Step of the time [s].
STEP = 1e-3

# Between two looks at whether the threads are done with a step [s], by the wall's clock.
LOOK = 1e-4

# So many looks a step takes at most: each of them leaves the machine to the threads, however busy it is.
LOOKS = 300

# So many where a fault may keep the threads from ever being done.
FEW = 30


class SteppedTime:
    """A clock that follows the wall clock at most, in steps, or is stepped by hand."""

    def __init__(self):
        self._now = 1.0
        self._stepped = 0
        self._sleepers = {}
        self._over = threading.Event()

    def now(self):
        """Return the time [s]."""
        return self._now

    def wait_until(self, instant):
        """Return at `instant` [s] at the earliest."""
        self.await_until(instant)
        while self._now < instant and not self._over.is_set():
            time.sleep(LOOK)
        self.await_until(None)

    def await_until(self, instant):
        """Record until when [s] the calling thread waits; None if it continues."""
        self._sleepers[threading.get_ident()] = -math.inf if instant is None else instant

    @property
    def awaited(self):
        """Whether a thread does nothing for half a step at least."""
        return any(instant > self._now + 0.5 * STEP for instant in list(self._sleepers.values()))

    def sleep(self, duration):
        """Wait for at least `duration` [s]."""
        self.wait_until(self._now + duration)

    @contextlib.contextmanager
    def by_hand(self):
        """Stop the clock and yield a function that advances it by one step."""
        self._stepped += 1
        try:
            yield self._step
        finally:
            self._stepped -= 1

    def _step(self):
        self._now += STEP

    def _run(self):
        while not self._over.is_set():
            time.sleep(STEP)
            if not self._stepped:
                self._step()

    @contextlib.contextmanager
    def seen_by(self, modules):
        """Let `modules` live by this time."""
        seen = SimpleNamespace(perf_counter=self.now, monotonic=self.now, sleep=self.sleep)
        with pytest.MonkeyPatch.context() as patch:
            for module in modules:
                patch.setattr(module, "time", seen)
            self._over.clear()
            thread = threading.Thread(target=self._run, name="stepped time", daemon=True)
            thread.start()
            try:
                yield
            finally:
                self._over.set()
                thread.join()


class SteppedClock(Clock):
    """A run's clock in such a time."""

    def __init__(self, period, source, settle):
        super().__init__(period)
        self._source, self._settle = source, settle
        self._origin = source.now()

    def start(self):
        super().start()
        self._origin = self._source.now()

    def elapsed(self):
        return self._source.now() - self._origin

    def wait(self, tick):
        super().wait(tick)
        with self._source.by_hand() as step:
            while self.elapsed() < self.time - 0.5 * STEP:
                step()
                self._settle()
        return max(self.elapsed() - self.time, 0.0)


def settle(done, disturbed):
    """Wait until the threads are done with a step; for a few looks only while something is wrong with the wires."""
    looks = 0
    while not done() and looks < (FEW if disturbed() else LOOKS):
        looks += 1
        time.sleep(LOOK)
