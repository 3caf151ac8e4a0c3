"""What goes on beside a run: the recorder that moves the trace to the disk, and a watchdog over the servo."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NoReturn

from haptics.errors import ServoLost
from haptics.recording.recorder import Recorder
from haptics.servo.process import ServoProcess

RECORD_EVERY = 0.02
"""The recorder writes the trace to disk this often [s]: what a killed application can lose from its file."""

RECORD_AT_ONCE = 5e-4
"""The same for a run without a clock [s], which waits for it."""

FROZEN = 1.0
"""A servo that has not executed a tick for this long [s] counts as lost."""


_ONE_LOOK = 0.05
"""What may have passed between two looks counts as this much at most [s]."""


class Background(threading.Thread):
    """Moves the trace to the disk while the session does other things.

    Parameters
    ----------
    recorder : Recorder
        What to drain.
    on_error : callable
        Called once with what the disk says if it refuses: a run that cannot be recorded must not go on.
    written : callable
        Called with the number of rows that are written, after every look.
    every : float
        Time between two looks [s].
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
        """Drain until told to finish, and once more then."""
        try:
            while not self._finished.wait(self._every):
                self._recorder.drain()
                self._written(self._recorder.count)
            self._recorder.drain()
        except OSError as error:
            self._on_error(error)

    def finish(self) -> None:
        """Record what there is by now, and stop."""
        self._finished.set()
        self.join()


class FrozenWatch:
    """A watchdog: notices a servo that was stopped, at once, or that has started to tick and then no longer does.

    Only time in which this process itself was awake counts: after a machine has slept, or a hypervisor has run
    something else, nobody can know yet whether the servo will go on.
    """

    def __init__(self) -> None:
        self._ticks = 0
        self._looked = time.monotonic()
        self._waited = 0.0

    def look(self, servo: ServoProcess, *, started: bool) -> None:
        """Look at the servo; before it has `started` it may take its time.

        Raises
        ------
        ServoLost
            If it was stopped, or there has been no tick for `FROZEN` seconds. It has been killed: what then becomes of
            its device is up to that device's own watchdog, and it cannot wake up and go on pushing.
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
