"""What goes on beside a run: the recorder that moves the trace to the disk, and the watch over the servo."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from haptics.errors import DeviceFault, ServoLost
from haptics.recording import Recorder

RECORD_EVERY = 0.02
"""The recorder writes the trace to disk this often [s]: what a killed application can lose from its file."""

FROZEN = 3.0
"""A servo that has not executed a tick for this long [s] counts as lost."""


class Background(threading.Thread):
    """Moves the trace to the disk while the session does other things.

    Parameters
    ----------
    recorder : Recorder
        What to drain.
    on_error : callable
        Called once if the disk refuses: a run that cannot be recorded must not go on.

    Attributes
    ----------
    error : DeviceFault or None
        Why recording failed.
    """

    def __init__(self, recorder: Recorder, on_error: Callable[[], None]) -> None:
        super().__init__(name="haptics recorder", daemon=True)
        self._recorder = recorder
        self._on_error = on_error
        self._finished = threading.Event()
        self.error: DeviceFault | None = None

    def run(self) -> None:
        """Drain until told to finish."""
        while not self._finished.wait(RECORD_EVERY):
            self.drain()
            if self.error is not None:
                self._on_error()
                return

    def drain(self) -> None:
        """Record what the trace has gained since the last time."""
        try:
            self._recorder.drain()
        except OSError as error:
            self.error = DeviceFault(
                f"the recording could not be written ({error.strerror or error}): the run was stopped."
            )

    def finish(self) -> None:
        """Stop draining."""
        self._finished.set()
        self.join()


class FrozenWatch:
    """Notices a servo that has started to tick and then no longer does."""

    def __init__(self) -> None:
        self._ticks = 0
        self._since = time.monotonic()

    def look(self, ticks: int, *, started: bool) -> None:
        """Take the number of ticks executed so far; before the servo has `started` it may take its time.

        Raises
        ------
        ServoLost
            If there has been no tick for `FROZEN` seconds.
        """
        now = time.monotonic()
        if ticks != self._ticks or not started:
            self._ticks, self._since = ticks, now
        elif now - self._since > FROZEN:
            raise ServoLost(
                f"the servo process has not run for {FROZEN:g} s (it was stopped, or its device blocks) and was ended: "
                "its device watches over itself now."
            )
