"""Zero torques for the board's motors, sent by the driver at its end or by its guardian (watchdog).

The guardian (`devices.common.guardian`) also holds the port. If the driver has died, hangs, or failed to do it
itself, the guardian sends zero torques, verifies that the board accepts them, and exits.

This file runs isolated from the project and may use the standard library only.
"""

from __future__ import annotations

import os
import select
import termios
import time
from collections.abc import Callable

REPLY_LENGTH = 9

RESET = bytes(2)
"""Message that clears the set-up of the board; torques remain unchanged."""

_COMPLETION = bytes(32)  # enough zeros to complete any message that the board is waiting for; surplus zeros are resets

SETTLING = 5e-3
"""Time that the board needs to process these zeros [s]."""

PATIENCE = 0.1
"""Timeout of an answer while the torques are set to zero [s]."""


def write_all(port: int, data: bytes) -> None:
    """Send `data`; a message is written in one piece if the port accepts it.

    Raises
    ------
    OSError
        If the port is lost, or accepts nothing for `PATIENCE`.
    """
    while data:
        _, ready, _ = select.select([], [port], [], PATIENCE)
        if not ready:
            raise TimeoutError("the port takes no data")
        data = data[os.write(port, data) :]


def read_up_to(port: int, length: int, patience: float) -> bytes:
    """Return `length` bytes from the port, or fewer if `patience` [s] elapses.

    Raises
    ------
    OSError
        If the port is lost.
    """
    data, deadline = b"", time.monotonic() + patience
    while len(data) < length:
        ready, _, _ = select.select([port], [], [], max(deadline - time.monotonic(), 0.0))
        if not ready:
            break
        part = os.read(port, length - len(data))
        if not part:
            raise OSError("the port is gone")
        data += part
    return data


def discard_input(port: int) -> None:
    """Discard pending input.

    Raises
    ------
    OSError
        If the port is lost.
    """
    try:
        termios.tcflush(port, termios.TCIFLUSH)
    except termios.error as error:
        raise OSError(*error.args) from error


def resynchronise(port: int, setup: bytes) -> None:
    """Complete any unfinished message of the board and set it up again. Raises `OSError`."""
    write_all(port, _COMPLETION)
    time.sleep(SETTLING)
    discard_input(port)
    write_all(port, setup)


def come_to_rest(port: int, zero: bytes, setup: bytes) -> bool:
    """Set the torques to zero and reset the board; return True if the board confirmed it.

    A board that has lost a byte may read the message `zero` as the end of another one and still answer, but it does not
    answer twice. Therefore two messages are sent. Without two answers the board is resynchronised first.

    Raises
    ------
    OSError
        If the port is lost.
    """
    discard_input(port)
    for attempt in range(3):
        if attempt:
            resynchronise(port, setup)
        for _ in range(2):
            write_all(port, zero)
            reply = read_up_to(port, REPLY_LENGTH, PATIENCE)
            if len(reply) < REPLY_LENGTH or reply[0] != zero[1]:
                break
        else:
            write_all(port, RESET)
            return True
    write_all(port, RESET)
    return False


def prepare(words: list[str]) -> Callable[[], int]:
    """Return the action of the guardian; `words` are the open port and the messages zero and setup (hex)."""
    port = int(words[0])
    zero, setup = (bytes.fromhex(text) for text in words[1:3])
    return lambda: 0 if come_to_rest(port, zero, setup) else 1
