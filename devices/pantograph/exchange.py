"""The thread that talks to the board, so that a tick never waits for it: in both directions the latest value wins.

The protocol is question and answer, torques and angles in one exchange, so one thread does both. An exchange begins
when there is a new command; without one, the last is repeated at a pause, so that samples stay fresh. When commands
stay out for longer than the watchdog's time, the torques are taken away.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time

import numpy as np

from devices.common.bus.guarding import Guard
from devices.common.latch import Latch
from devices.common.waking import Wake
from devices.pantograph.line import Line, Pair
from devices.pantograph.wire import WireError

ATTEMPTS = 3
"""How often it is tried to bring the board back in step before it counts as dead."""

REMEDY = (
    "its motors may still have their last torque: switch their supply off, then plug the board in and home it again"
)


class Exchange:
    """Keeps exchanging torques for angles until it is stopped or the board is lost.

    Parameters
    ----------
    line : Line
        In step with its board; this thread's own from `start` to `stop`.
    guard : Guard
        Gets signs of life.
    pause : float
        How long to wait for a new command before the last one is repeated [s].
    watchdog : float
        Age from which on a command is no command any more [s].
    resyncs : int
        How often the board may get out of step.

    Attributes
    ----------
    samples : Latch
        When the latest angles were asked for (`time.perf_counter`) [s], and they themselves [degree].
    torques : Latch
        What the tick commands: torques of the left and the right motor [N m], and when (`time.perf_counter`) [s].
    wake : Wake
        To be called when it has.
    failure : str
        Why there will be no more samples; empty while there will.
    lost : (1,) float array
        The same for the tick: 1 once there is a failure.
    resyncs : int
        How often the board got out of step.
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
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the exchange that is going on; the line is the caller's again."""
        self._ending = True
        self.wake.call()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self._ending and not self.failure:
                self.wake.wait(self._pause)
                self._once()
        except Exception as error:  # of whatever kind: the tick must hear of it
            if self._alive():  # else the error is the guardian's doing: it has taken over the port
                self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Say why it cannot go on; unless that was tried in vain, once more take the torques away."""
        if isinstance(error, WireError):
            self._give_up(f"{error}, and could not be resynchronised; {REMEDY}.")
            return
        if isinstance(error, OSError):
            self._give_up(f"the board is gone ({os.strerror(error.errno) if error.errno else error}); {REMEDY}.")
        else:
            self._give_up(f"the exchange with the board failed ({type(error).__name__}: {error}); report this.")
        with contextlib.suppress(OSError, WireError):  # if the trouble has passed, this sets the torques to 0
            self._line.resynchronise()

    def _give_up(self, failure: str) -> None:
        """Let the tick know that there will be no more samples, and why."""
        self.failure = failure
        self.lost[0] = 1.0

    def _once(self) -> None:
        """Exchange once, or bring the board back in step."""
        if not self._alive():
            return
        asked = time.perf_counter()
        left, right, commanded = self.torques.read()
        torques: Pair = (left, right) if asked - commanded < self._watchdog else (0.0, 0.0)
        try:
            self.samples.publish(asked, *self._line.exchange(torques))
        except WireError as error:
            self.resyncs += 1
            self._resynchronise()  # the last time too: it takes the torques away
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
        """Give the guardian a sign of life; false if it will not have us go on."""
        if not self._guard.beat():
            self._give_up(
                "the guardian process is gone: this process was silent for too long, so that it set the torques to 0, "
                "or it was ended itself. If the motors still have a torque, switch their supply off; home the arms and "
                "start again."
            )
        return not self.failure
