"""Communication thread of the service; the tick never waits for it and exchanges latest values only.

The service answers every message with one state, so that one thread handles both directions. A message is sent when a
new command arrives. Without a new command, the last one is repeated after a pause, to keep the samples current. The
thread does not wait for an answer before it sends the next message, but at most `MOST_OPEN` messages may be unanswered:
a service that stalls must not find a queue of old forces when it resumes. A zero force is never delayed. If no command
arrives within the watchdog's time, the force is set to zero.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from collections import deque

import numpy as np

from devices.common.guard import Guard
from devices.common.latch import Latch, Wake
from devices.inverse3.connection import Connection, ConnectionLost
from devices.inverse3.messages import MessageError, Vector3, find_reading, force_template
from haptics.errors import HapticError

MOST_OPEN = 2
"""Maximum number of unanswered messages; further forces are delayed."""

REST_PATIENCE = 0.5
"""Timeout of the answer to a zero force [s]."""

REMEDY = (
    "the service lets go of a force that is not renewed, its maker does not say after what time: let go of the handle, "
    "and switch the device off if it still pushes"
)

_GUARDIAN_GONE = (
    "the guardian process is gone: this process was silent for too long, so that it set the force to 0, or it was "
    "ended itself. If the handle still pushes, switch the device off; then start again."
)

_NONE: Vector3 = (0.0, 0.0, 0.0)
_WITHOUT_EVENTS = 1e-3
"""Polling interval on systems where no event can wake a thread that waits for a socket [s]."""


class Exchange:
    """Thread that exchanges forces for states until it is stopped or the device is lost.

    Parameters
    ----------
    connection : Connection
        Connection after set-up, without pending answers; used by this thread only, from `start` to `stop`.
    guard : Guard
        Guardian, which receives heartbeats.
    device_id : str
        Number of the device in the service.
    pause : float
        Time without a new command after which the last one is repeated [s].
    watchdog : float
        Age at which a command expires [s].
    reply_timeout : float
        Time without an answer after which the service counts as lost [s].

    Attributes
    ----------
    samples : Latch
        Request time of the latest state (`time.perf_counter`) [s], cursor position [m], force that the service
        reported, and force of the request [N]; three numbers each.
    forces : Latch
        Command along the service's axes [N], and its time (`time.perf_counter`) [s].
    wake : Wake
        Event that the tick sets after a new command.
    failure : str
        Reason of a failure, after which samples stop; empty otherwise.
    lost : (1,) float array
        Failure flag for the tick: 1 after a failure.
    """

    def __init__(
        self,
        connection: Connection,
        guard: Guard,
        device_id: str,
        *,
        pause: float,
        watchdog: float,
        reply_timeout: float,
    ) -> None:
        self.samples, self.forces, self.wake = Latch(10), Latch(4), Wake()
        self.failure, self.lost = "", np.zeros(1)
        self._connection, self._guard, self._device_id = connection, guard, device_id
        self._template = force_template(device_id)
        self._pause, self._watchdog, self._reply_timeout = pause, watchdog, reply_timeout
        self._open: deque[tuple[float, Vector3]] = deque()
        self._sent, self._last, self._commanded = time.perf_counter(), _NONE, 0.0
        self._ending = False
        self._thread = threading.Thread(target=self._run, name="haply service", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; the caller may then use the connection."""
        self._ending = True
        self.wake.call()
        if self._thread.is_alive():
            self._thread.join()

    def come_to_rest(self) -> bool:
        """Set the force to zero after the thread has ended; return True if the service has answered.

        Raises
        ------
        ConnectionLost, MessageError
            If the answer is invalid, or the device was removed.
        """
        self._send_force(time.perf_counter(), _NONE)
        latest = time.monotonic() + REST_PATIENCE
        while self._open and (remaining := latest - time.monotonic()) > 0.0:
            self._take_in(self._connection.receive(remaining))
        return not self._open

    def first_sample(self) -> None:
        """Exchange one zero force before the thread starts, so that a sample exists.

        Raises
        ------
        ConnectionLost, MessageError
            If the answer is missing or invalid.
        """
        if not self.come_to_rest():
            raise ConnectionLost(f"the service did not answer within {REST_PATIENCE:g} s")

    # --- thread -------------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._ending:
                self._once(self._wait())
        except Exception as error:  # report every kind of exception to the tick
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Set the failure message, and try to set the force to zero."""
        if not self._guard.beat():
            self.failure = _GUARDIAN_GONE
        elif isinstance(error, HapticError):
            self.failure = f"{error}; {REMEDY}."
        else:
            self.failure = f"the exchange with the service failed ({type(error).__name__}: {error}); report this."
        self.lost[0] = 1.0
        with contextlib.suppress(ConnectionLost):
            self._send_force(time.perf_counter(), _NONE)

    def _wait(self) -> bool:
        """Wait for a command, an answer, or the pause; return True if data has arrived."""
        event, line = self.wake.descriptor, self._connection.socket.fileno()
        if event < 0:
            return bool(select.select((line,), (), (), min(self._pause, _WITHOUT_EVENTS))[0])
        ready = select.select((event, line), (), (), self._pause)[0]
        if event in ready:
            os.eventfd_read(event)
        return line in ready

    def _once(self, answered: bool) -> None:
        """Process received answers, and send a message if due."""
        if not self._guard.beat():
            raise ConnectionLost("the guardian process is gone")
        if answered:
            trouble = self._take_in(self._connection.receive(0.0))
            if trouble:
                raise MessageError(f"the device {self._device_id} {trouble}")
        now = time.perf_counter()
        if self._open and now - self._open[0][0] > self._reply_timeout:
            raise ConnectionLost(f"the service did not answer within {self._reply_timeout:g} s")
        *force, commanded = self.forces.read()
        wanted: Vector3 = (force[0], force[1], force[2]) if now - commanded < self._watchdog else _NONE
        if self._is_due(wanted, commanded, now):
            self._commanded = commanded
            self._send_force(now, wanted)

    def _is_due(self, wanted: Vector3, commanded: float, now: float) -> bool:
        """Return True if a message is due."""
        if wanted == _NONE != self._last:
            return True
        if len(self._open) >= MOST_OPEN:
            return False
        return commanded > self._commanded or now - self._sent >= self._pause

    def _send_force(self, now: float, force: Vector3) -> None:
        self._open.append((now, force))
        self._sent, self._last = now, force
        self._connection.send((self._template % force).encode("ascii"))

    def _take_in(self, texts: list[str]) -> str:
        """Publish the state in the last answer; return the description of a device error, empty if none.

        Unsolicited messages are ignored.
        """
        answers = [(text, self._open.popleft()) for text in texts if self._open]
        if not answers:
            return ""
        text, (asked, told) = answers[-1]
        reading = find_reading(text, self._device_id)
        self.samples.publish(asked, *reading.position, *reading.force, *told)
        return reading.trouble
