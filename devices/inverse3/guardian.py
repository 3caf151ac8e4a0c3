"""Taking the force away when the driver cannot: the duty of its guardian (`devices.common.bus.guardian`).

The guardian holds the socket as well. When the driver has died or fallen silent, it sends the service a force of zero
over the very same connection, waits for the answer, and closes. Without it a stopped driver would leave the connection
open, and the service the last force, for a time that its maker does not state.

This file is run isolated from everything else: it may use the standard library only.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Callable

PATIENCE = 0.3
"""How long an answer is waited for [s]."""

_BLOCK = 65536


def come_to_rest(line: socket.socket, zero: bytes, goodbye: bytes) -> bool:
    """Send a force of zero, twice, and close; tell whether the service answered.

    Parameters
    ----------
    line : socket
        The driver's connection.
    zero, goodbye : bytes
        Frames: a force of zero, and a close.

    Raises
    ------
    OSError
        If the connection is gone.
    """
    line.settimeout(PATIENCE)
    while select.select((line,), (), (), 0.0)[0] and line.recv(_BLOCK):
        pass  # answers to the driver
    for _ in range(2):  # the second one counts where the service takes each for one message only
        line.sendall(zero)
    answered = bool(select.select((line,), (), (), PATIENCE)[0] and line.recv(_BLOCK))
    with contextlib.suppress(OSError):
        line.sendall(goodbye)
        _hang_up(line)
    return answered


def _hang_up(line: socket.socket) -> None:
    """Wait a moment for the service to close its side, so that nothing that was sent gets lost."""
    line.shutdown(socket.SHUT_WR)
    latest = time.monotonic() + PATIENCE
    while time.monotonic() < latest and line.recv(_BLOCK):
        pass


def prepare(words: list[str]) -> Callable[[], int]:
    """Return the guardian's duty; `words` are the open socket and the frames zero and goodbye (hex)."""
    line = socket.socket(fileno=int(words[0]))
    zero, goodbye = (bytes.fromhex(text) for text in words[1:3])
    return lambda: 0 if come_to_rest(line, zero, goodbye) else 1
