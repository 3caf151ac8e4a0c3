"""The thread that talks to the service, so that a tick never waits for it: in both directions the latest value wins.

The service answers every message with one state, so one thread does both. A message goes out when there is a new
command; without one, the last is repeated at a pause, so that samples stay fresh. It does not wait for the answer
before it sends the next one, but no more than `MOST_OPEN` messages are without an answer: a service that stands still
for a while shall find no queue of old forces when it goes on. Taking the force away is never held back. When commands
stay out for longer than the watchdog's time, the force is taken away.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from collections import deque

import numpy as np

from devices.common.bus.guarding import Guard
from devices.common.latch import Latch
from devices.common.waking import Wake
from devices.inverse3.connection import Connection, ConnectionLost
from devices.inverse3.messages import MessageError, Vector3, find_reading, force_template
from haptics.errors import HapticError

MOST_OPEN = 2
"""Messages that may be without an answer before the next force is held back."""

REST_PATIENCE = 0.5
"""How long an answer is waited for when the force is taken away [s]."""

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
"""Where nothing can wake a thread that waits for a socket, it looks so often whether there is something to do [s]."""


class Exchange:
    """Keeps exchanging forces for states until it is stopped or the device is lost.

    Parameters
    ----------
    connection : Connection
        Set up, with no answer outstanding; this thread's own from `start` to `stop`.
    guard : Guard
        Gets signs of life.
    device_id : str
        What the service calls the device.
    pause : float
        How long to wait for a new command before the last one is repeated [s].
    watchdog : float
        Age from which on a command is no command any more [s].
    reply_timeout : float
        After this long without an answer the service counts as lost [s].

    Attributes
    ----------
    samples : Latch
        When the latest state was asked for (`time.perf_counter`) [s], where the cursor was [m], what force the service
        reported, and which one it was told when it was asked [N]; three numbers each.
    forces : Latch
        What the tick commands, along the service's axes [N], and when (`time.perf_counter`) [s].
    wake : Wake
        To be called when it has.
    failure : str
        Why there will be no more samples; empty while there will.
    lost : (1,) float array
        The same for the tick: 1 once there is a failure.
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
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; the connection is the caller's again."""
        self._ending = True
        self.wake.call()
        if self._thread.is_alive():
            self._thread.join()

    def come_to_rest(self) -> bool:
        """Take the force away, once the thread has ended; tell whether the service has answered that.

        Raises
        ------
        ConnectionLost, MessageError
            If it cannot be told, or the device is gone.
        """
        self._ask(time.perf_counter(), _NONE)
        latest = time.monotonic() + REST_PATIENCE
        while self._open and (remaining := latest - time.monotonic()) > 0.0:
            self._take_in(self._connection.receive(remaining))
        return not self._open

    def first_sample(self) -> None:
        """Ask once, without a force, before the thread starts: there is a sample then.

        Raises
        ------
        ConnectionLost, MessageError
            If there is no answer, or none that makes sense.
        """
        if not self.come_to_rest():
            raise ConnectionLost(f"the service did not answer within {REST_PATIENCE:g} s")

    # --- the thread --------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._ending:
                self._once(self._wait())
        except Exception as error:  # of whatever kind: the tick must hear of it
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Say why it cannot go on, and take the force away as far as that can still be done."""
        if not self._guard.beat():
            self.failure = _GUARDIAN_GONE
        elif isinstance(error, HapticError):
            self.failure = f"{error}; {REMEDY}."
        else:
            self.failure = f"the exchange with the service failed ({type(error).__name__}: {error}); report this."
        self.lost[0] = 1.0
        with contextlib.suppress(ConnectionLost):
            self._ask(time.perf_counter(), _NONE)

    def _wait(self) -> bool:
        """Wait for a command, an answer, or the pause; tell whether something has come in."""
        event, line = self.wake.descriptor, self._connection.socket.fileno()
        if event < 0:
            return bool(select.select((line,), (), (), min(self._pause, _WITHOUT_EVENTS))[0])
        ready = select.select((event, line), (), (), self._pause)[0]
        if event in ready:
            os.eventfd_read(event)
        return line in ready

    def _once(self, answered: bool) -> None:
        """Take what has come in, and send what is due."""
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
        if self._due(wanted, commanded, now):
            self._commanded = commanded
            self._ask(now, wanted)

    def _due(self, wanted: Vector3, commanded: float, now: float) -> bool:
        """Tell whether a message is to be sent."""
        if wanted == _NONE != self._last:
            return True
        if len(self._open) >= MOST_OPEN:
            return False
        return commanded > self._commanded or now - self._sent >= self._pause

    def _ask(self, now: float, force: Vector3) -> None:
        self._open.append((now, force))
        self._sent, self._last = now, force
        self._connection.send((self._template % force).encode("ascii"))

    def _take_in(self, texts: list[str]) -> str:
        """Publish the state in the last of some answers; return what is wrong with the device, if anything is.

        One to no message is left alone.
        """
        answers = [(text, self._open.popleft()) for text in texts if self._open]
        if not answers:
            return ""
        text, (asked, told) = answers[-1]
        reading = find_reading(text, self._device_id)
        self.samples.publish(asked, *reading.position, *reading.force, *told)
        return reading.trouble
