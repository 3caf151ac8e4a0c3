"""Interface of a driver to its guardian, a watchdog process (`devices.common.guardian`)."""

from __future__ import annotations

import contextlib
import math
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

from devices.common import guardian
from haptics.errors import DeviceOpenError

START = 10.0
"""Timeout of the start of the guardian on a busy machine [s]."""

FAREWELL = 2.0
"""Timeout of the exit of a dismissed guardian [s]."""


class Guard:
    """Guardian process of a driver.

    Parameters
    ----------
    charge : str
        Name of the guarded device in messages.
    script : str
        File that defines the duty.
    words : sequence of str
        Arguments of the duty.
    files : sequence of int
        File descriptors that the guardian inherits.
    silence : float
        Time without a `beat` after which the guardian acts [s], measured from the first one; infinite to disable.

    Raises
    ------
    DeviceOpenError
        If the process does not start.
    """

    def __init__(
        self, charge: str, script: str, words: Sequence[str], *, files: Sequence[int] = (), silence: float = math.inf
    ) -> None:
        self._pause = silence / (2 * guardian.SLICES)
        self._last = -math.inf
        try:
            self._socket, far_end = socket.socketpair()
            end = far_end.fileno()
            with far_end, contextlib.ExitStack() as on_error:
                on_error.callback(self._socket.close)
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", guardian.__file__, str(end), str(silence), script, *words],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=(*files, end),
                    start_new_session=True,  # protect it from signals that a terminal sends to the driver
                )
                on_error.pop_all()
        except OSError as error:
            raise DeviceOpenError(
                f"the guardian of {charge} did not start ({error.strerror or error}): close other programs first."
            ) from error
        try:
            ready = bool(select.select([self._socket], [], [], START)[0]) and self._socket.recv(1) == guardian.READY
        except OSError:
            ready = False
        if not ready:
            self._process.kill()
            self.hand_over(FAREWELL)
            raise DeviceOpenError(f"the guardian of {charge} did not start: is the machine out of memory?")

    def beat(self) -> bool:
        """Send a heartbeat; return False if the guardian has taken over or exited, and the driver must stop."""
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

    def dismiss(self) -> None:
        """Stop the guardian without performing its duty."""
        with contextlib.suppress(OSError):
            self._socket.send(guardian.GOODBYE, socket.MSG_NOSIGNAL)
        self.hand_over(FAREWELL)

    def hand_over(self, patience: float) -> None:
        """Close the socket so that the guardian performs its duty; wait at most `patience` [s] for its exit."""
        self._socket.close()
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(RuntimeError):  # no threads at interpreter shutdown
                threading.Thread(target=self._process.wait, name="guardian's end", daemon=True).start()
