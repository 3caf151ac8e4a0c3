"""A driver's handle on its guardian, a watchdog process (`devices.common.bus.guardian`)."""

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

from devices.common.bus import guardian
from haptics.errors import DeviceOpenError

START = 10.0
"""How long the guardian may take to start, on a machine however busy [s]."""

FAREWELL = 2.0
"""How long it is waited for when it has nothing to do [s]."""


class Guard:
    """A guardian process.

    Parameters
    ----------
    charge : str
        What it guards, for messages.
    script : str
        File with its duty.
    words : sequence of str
        What the duty is told.
    files : sequence of int
        Open files that the guardian shares.
    silence : float
        After this long without a `beat` it acts [s], counted from the first one on; never if infinite.

    Raises
    ------
    DeviceOpenError
        If it does not start.
    """

    def __init__(
        self, charge: str, script: str, words: Sequence[str], *, files: Sequence[int] = (), silence: float = math.inf
    ) -> None:
        self._pause = silence / (2 * guardian.SLICES)
        self._last = -math.inf
        try:
            self._socket, self._process = _start(silence, script, words, files)
        except OSError as error:
            raise DeviceOpenError(
                f"the guardian of {charge} did not start ({error.strerror or error}): close other programs first."
            ) from error
        if not self._is_ready():
            self._process.kill()
            self.hand_over(FAREWELL)
            raise DeviceOpenError(f"the guardian of {charge} did not start: is the machine out of memory?")

    def _is_ready(self) -> bool:
        """Wait until it says that it is ready; false if it does not, or is gone."""
        try:
            ready, _, _ = select.select([self._socket], [], [], START)
            return bool(ready) and self._socket.recv(1) == guardian.READY
        except OSError:
            return False

    def beat(self) -> bool:
        """Send a heartbeat; false if the guardian has taken over, or is gone itself: then nobody may go on."""
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
        """Let the guardian go: there is nothing left to do."""
        with contextlib.suppress(OSError):
            self._socket.send(guardian.GOODBYE, socket.MSG_NOSIGNAL)
        self.hand_over(FAREWELL)

    def hand_over(self, patience: float) -> None:
        """Let the guardian do its duty; it is waited for at most `patience` [s], and ends by itself."""
        self._socket.close()
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(RuntimeError):  # this process is ending: the system takes note of the other's end
                threading.Thread(target=self._process.wait, name="guardian's end", daemon=True).start()


def _start(
    silence: float, script: str, words: Sequence[str], files: Sequence[int]
) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """Start the process; return the near end of its socket, and itself. Raises `OSError`."""
    near_end, far_end = socket.socketpair()
    with far_end:
        try:
            return near_end, subprocess.Popen(
                [sys.executable, "-I", "-S", guardian.__file__, str(far_end.fileno()), str(silence), script, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(*files, far_end.fileno()),
                start_new_session=True,  # what a terminal sends to the driver is not for it
            )
        except OSError:
            near_end.close()
            raise
