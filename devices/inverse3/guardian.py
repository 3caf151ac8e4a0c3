"""Guardian process that sets the force to zero when the driver has failed.

The guardian (`devices.common.guardian`) also holds the socket. When the driver has died or fallen silent, the
guardian sends the service a zero force over the same connection, waits for the answer, and closes. Otherwise a stopped
driver would keep the connection open and the service would keep the last force for a time that the manufacturer does
not state.

This file runs isolated from the project and may use the standard library only.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Callable

PATIENCE = 0.3
"""Timeout of an answer [s]."""

_BLOCK = 65536


def come_to_rest(line: socket.socket, zero: bytes, goodbye: bytes) -> bool:
    """Send a zero force twice and close; return True if the service answered.

    Parameters
    ----------
    line : socket
        Connection of the driver.
    zero, goodbye : bytes
        Frames with a zero force and a close.

    Raises
    ------
    OSError
        If the connection is lost.
    """
    line.settimeout(PATIENCE)
    while select.select((line,), (), (), 0.0)[0] and line.recv(_BLOCK):
        pass  # discard answers to the driver
    for _ in range(2):  # the second is needed if each command holds for one message only
        line.sendall(zero)
    answered = bool(select.select((line,), (), (), PATIENCE)[0] and line.recv(_BLOCK))
    with contextlib.suppress(OSError):
        line.sendall(goodbye)
        line.shutdown(socket.SHUT_WR)
        latest = time.monotonic() + PATIENCE
        while time.monotonic() < latest and line.recv(_BLOCK):  # until the service hangs up, so that no data is lost
            pass
    return answered


def prepare(words: list[str]) -> Callable[[], int]:
    """Return the action of the guardian; `words` are the socket and the frames zero and goodbye (hex)."""
    line = socket.socket(fileno=int(words[0]))
    zero, goodbye = (bytes.fromhex(text) for text in words[1:3])
    return lambda: 0 if come_to_rest(line, zero, goodbye) else 1
