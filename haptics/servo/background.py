"""Background threads of a run: trace recorder and servo watchdog."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NoReturn

from haptics.errors import ServoLost
from haptics.recording.recorder import Recorder
from haptics.servo.process import ServoProcess

RECORD_EVERY = 0.02
"""Interval between writes of the trace to disk [s]; limits the data lost if the application is killed."""

RECORD_AT_ONCE = 5e-4
"""The same for a run in simulated time [s], which waits for the recorder."""

FROZEN = 1.0
"""Time without a tick after which a servo counts as lost [s]."""


_ONE_LOOK = 0.05
"""Upper bound of the time counted between two checks [s]."""


class Background(threading.Thread):
    """Thread that writes the trace to disk during a run.

    Parameters
    ----------
    recorder : Recorder
        Recorder to drain.
    on_error : callable
        Called once with the error if writing fails: a run that cannot be recorded must end.
    written : callable
        Called with the number of written rows after every write.
    every : float
        Interval between writes [s].
    """

    def __init__(
        self,
        recorder: Recorder,
        on_error: Callable[[OSError], None],
        written: Callable[[int], None] = lambda count: None,
        every: float = RECORD_EVERY,
    ) -> None:
        super().__init__(name="haptics recorder", daemon=True)
        self._written, self._every = written, every
        self._recorder = recorder
        self._on_error = on_error
        self._finished = threading.Event()

    def run(self) -> None:
        """Drain the recorder until `finish` is called, then once more."""
        try:
            while not self._finished.wait(self._every):
                self._recorder.drain()
                self._written(self._recorder.count)
            self._recorder.drain()
        except OSError as error:
            self._on_error(error)

    def finish(self) -> None:
        """Write the remaining rows and stop the thread."""
        self._finished.set()
        self.join()


class FrozenWatch:
    """Watchdog for a servo process that was stopped or no longer ticks.

    Only time in which this process was running counts: after the machine was suspended, or a hypervisor ran another
    guest, the servo may still continue.
    """

    def __init__(self) -> None:
        self._ticks = 0
        self._looked = time.monotonic()
        self._waited = 0.0

    def look(self, servo: ServoProcess, *, started: bool) -> None:
        """Check the servo; before it has `started`, the time without ticks is not limited.

        Raises
        ------
        ServoLost
            If the servo was stopped or has not ticked for `FROZEN` seconds. The process has been killed, so that it
            cannot resume and command the device; the device then depends on its own watchdog.
        """
        now, ticks = time.monotonic(), servo.trace.count
        if servo.halted:
            self._end(servo, "was stopped from outside")
        passed, self._looked = min(now - self._looked, _ONE_LOOK), now
        if ticks != self._ticks or not started:
            self._ticks, self._waited = ticks, 0.0
            return
        self._waited += passed
        if self._waited > FROZEN:
            self._end(servo, f"has not run for {FROZEN:g} s (its device blocks, or the machine was too busy)")

    @staticmethod
    def _end(servo: ServoProcess, what: str) -> NoReturn:
        servo.kill()
        raise ServoLost(f"the servo process {what} and was ended {servo.whereabouts}.")
