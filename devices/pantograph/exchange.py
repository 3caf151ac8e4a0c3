"""Communication thread of the board; the tick never waits for it and exchanges latest values only.

The protocol is request and response, with torques and angles in one exchange, so that one thread handles both. An
exchange begins when a new command arrives. Without a new command, the last one is repeated after a pause, to keep the
samples current. If no command arrives within the watchdog's time, the torques are set to zero.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time

import numpy as np

from devices.common.guard import Guard
from devices.common.latch import Latch, Wake
from devices.pantograph.line import Line, Pair
from devices.pantograph.wire import WireError

ATTEMPTS = 3
"""Maximum number of attempts to resynchronise the board."""

REMEDY = (
    "its motors may still have their last torque: switch their supply off, then plug the board in and home it again"
)


class Exchange:
    """Thread that exchanges torques for angles until it is stopped or the board is lost.

    Parameters
    ----------
    line : Line
        Synchronised connection; used by this thread only, from `start` to `stop`.
    guard : Guard
        Guardian, which receives heartbeats.
    pause : float
        Time without a new command after which the last one is repeated [s].
    watchdog : float
        Age at which a command expires [s].
    resyncs : int
        Maximum number of resynchronisations.

    Attributes
    ----------
    samples : Latch
        Request time of the latest angles (`time.perf_counter`) [s], and the angles [degree].
    torques : Latch
        Command: torques of the left and the right motor [N m], and its time (`time.perf_counter`) [s].
    wake : Wake
        Event that the tick sets after a new command.
    failure : str
        Reason of a failure, after which samples stop; empty otherwise.
    lost : (1,) float array
        Failure flag for the tick: 1 after a failure.
    resyncs : int
        Number of resynchronisations.
    """

    def __init__(self, line: Line, guard: Guard, *, pause: float, watchdog: float, resyncs: int) -> None:
        self.samples, self.torques, self.wake = Latch(3), Latch(3), Wake()
        self.samples.publish(time.perf_counter(), *line.angles)
        self.failure, self.lost = "", np.zeros(1)
        self.resyncs = 0
        self._line, self._guard = line, guard
        self._pause, self._watchdog, self._most_resyncs = pause, watchdog, resyncs
        self._ending = False
        self._thread = threading.Thread(target=self._run, name="hapi board", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread after the current exchange; the caller may then use the line."""
        self._ending = True
        self.wake.call()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self._ending and not self.failure:
                self.wake.wait(self._pause)
                self._once()
        except Exception as error:  # report every kind of exception to the tick
            if self._alive():  # otherwise the guardian has taken over the port and caused the error
                self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Set the failure message, and try once more to set the torques to zero unless that has just failed."""
        if isinstance(error, WireError):
            self._give_up(f"{error}, and could not be resynchronised; {REMEDY}.")
            return
        if isinstance(error, OSError):
            self._give_up(f"the board is gone ({os.strerror(error.errno) if error.errno else error}); {REMEDY}.")
        else:
            self._give_up(f"the exchange with the board failed ({type(error).__name__}: {error}); report this.")
        with contextlib.suppress(OSError, WireError):  # sets the torques to 0 if the error was temporary
            self._line.resynchronise()

    def _give_up(self, failure: str) -> None:
        """Report to the tick that samples have stopped, with the reason."""
        self.failure = failure
        self.lost[0] = 1.0

    def _once(self) -> None:
        """Perform one exchange, or resynchronise the board."""
        if not self._alive():
            return
        asked = time.perf_counter()
        left, right, commanded = self.torques.read()
        torques: Pair = (left, right) if asked - commanded < self._watchdog else (0.0, 0.0)
        try:
            self.samples.publish(asked, *self._line.exchange(torques))
        except WireError as error:
            self.resyncs += 1
            self._resynchronise()  # also after the last allowed failure, because it sets the torques to zero
            if self.resyncs > self._most_resyncs and not self.failure:
                self._give_up(f"{error}, for the {self.resyncs}. time; check its cable, home the arms and start again.")

    def _resynchronise(self) -> None:
        for attempt in range(ATTEMPTS):
            if not self._alive():
                return
            try:
                self._line.resynchronise()
                return
            except WireError:
                if attempt == ATTEMPTS - 1:
                    raise

    def _alive(self) -> bool:
        """Send a heartbeat to the guardian; return False if the exchange must end."""
        if not self._guard.beat():
            self._give_up(
                "the guardian process is gone: this process was silent for too long, so that it set the torques to 0, "
                "or it was ended itself. If the motors still have a torque, switch their supply off; home the arms and "
                "start again."
            )
        return not self.failure
