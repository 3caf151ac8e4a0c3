"""The driver's handle on its guardian (`devices.pantograph.guardian`)."""

from __future__ import annotations

import contextlib
import select
import socket
import subprocess
import sys
import time

from devices.pantograph import guardian
from haptics.errors import DeviceOpenError

START = 10.0
"""How long the guardian may take to start, on a machine however busy [s]."""

FAREWELL = 2.0
"""How long it may take to leave [s]: when it has to act, a few times `guardian.PATIENCE`."""


class Guard:
    """A guardian process for an open port.

    Parameters
    ----------
    port : int
        File descriptor of the port, which the guardian shares.
    zero, setup : bytes
        Messages that take the torques away and that set the board up.
    silence : float
        After this long without a `beat` it acts [s]; counted from the first one on.

    Raises
    ------
    DeviceOpenError
        If it does not start.
    """

    def __init__(self, port: int, zero: bytes, setup: bytes, silence: float) -> None:
        self._pause = silence / (2 * guardian.SLICES)
        self._last = 0.0
        self._socket, far_end = socket.socketpair()
        with far_end:
            numbers = [str(port), str(far_end.fileno()), str(silence)]
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", guardian.__file__, *numbers, zero.hex(), setup.hex()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(port, far_end.fileno()),
                start_new_session=True,  # what a terminal sends to the driver is not for it
            )
        ready, _, _ = select.select([self._socket], [], [], START)
        if not ready or self._socket.recv(1) != guardian.READY:
            self._process.kill()
            self._leave()
            raise DeviceOpenError("the guardian of the serial port did not start: is the machine out of memory?")

    def beat(self) -> bool:
        """Give a sign of life; false if the guardian has taken over, or is gone itself: then nobody may go on."""
        try:
            self._socket.recv(1, socket.MSG_DONTWAIT)
            return False
        except BlockingIOError:
            pass
        except OSError:
            return False
        now = time.monotonic()
        if now - self._last >= self._pause:
            self._last = now
            with contextlib.suppress(OSError):
                self._socket.send(guardian.ALIVE, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        return True

    def dismiss(self, *, at_rest: bool) -> None:
        """Let the guardian go: with a goodbye if the board is at rest, else it tries to bring it there itself."""
        if at_rest:
            with contextlib.suppress(OSError):
                self._socket.send(guardian.GOODBYE, socket.MSG_NOSIGNAL)
        self._leave()

    def _leave(self) -> None:
        self._socket.close()
        try:
            self._process.wait(FAREWELL)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
