"""Time that a test steps, for a driver and an emulated device whose threads are real: no scheduler has a say in it.

While nobody steps it, time follows the wall's clock, but only as far as this process itself gets on: a stall of the
machine counts as one step. What looks at the time sees the same instant until the next step.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from haptics.clock import Clock

STEP = 1e-3
"""Of the time, whoever steps it [s]."""

LOOK = 1e-4
"""Between two looks at whether the threads are done with a step [s], by the wall's clock."""

LOOKS = 300
"""So many looks a step takes at most: each of them leaves the machine to the threads, however busy it is."""

FEW = 30
"""So many where a fault may keep the threads from ever being done."""


class SteppedTime:
    """Follows the wall's clock, never faster and step by step, except where somebody else steps it."""

    def __init__(self) -> None:
        self._now = 1.0
        self._stepped = 0
        self._sleepers: dict[int, float] = {}
        self._over = threading.Event()

    def now(self) -> float:
        """Return the time [s]."""
        return self._now

    def wait_until(self, instant: float) -> None:
        """Return at `instant` [s] at the earliest."""
        self.await_until(instant)
        while self._now < instant and not self._over.is_set():
            time.sleep(LOOK)
        self.await_until(None)

    def await_until(self, instant: float | None) -> None:
        """Note until when [s] the calling thread does nothing; None if it goes on."""
        self._sleepers[threading.get_ident()] = -math.inf if instant is None else instant

    @property
    def awaited(self) -> bool:
        """Whether a thread does nothing for half a step at least."""
        return any(instant > self._now + 0.5 * STEP for instant in list(self._sleepers.values()))

    def sleep(self, duration: float) -> None:
        """Let at least `duration` [s] go by."""
        self.wait_until(self._now + duration)

    @contextlib.contextmanager
    def by_hand(self) -> Iterator[Callable[[], None]]:
        """Let the time stand still, and yield what lets a step go by."""
        self._stepped += 1
        try:
            yield self._step
        finally:
            self._stepped -= 1

    def _step(self) -> None:
        self._now += STEP

    def _run(self) -> None:
        while not self._over.is_set():
            time.sleep(STEP)
            if not self._stepped:
                self._step()

    @contextlib.contextmanager
    def seen_by(self, modules: Iterable[Any]) -> Iterator[None]:
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

    def __init__(self, period: float, source: SteppedTime, settle: Callable[[], None]) -> None:
        super().__init__(period)
        self._source, self._settle = source, settle
        self._origin = source.now()

    def start(self) -> None:
        super().start()
        self._origin = self._source.now()

    def elapsed(self) -> float:
        return self._source.now() - self._origin

    def wait(self, tick: int) -> float:
        super().wait(tick)
        with self._source.by_hand() as step:
            while self.elapsed() < self.time - 0.5 * STEP:
                step()
                self._settle()
        return max(self.elapsed() - self.time, 0.0)


def settle(done: Callable[[], bool], disturbed: Callable[[], bool]) -> None:
    """Wait until the threads are done with a step; for a few looks only while something is wrong with the wires."""
    looks = 0
    while not done() and looks < (FEW if disturbed() else LOOKS):
        looks += 1
        time.sleep(LOOK)
