"""Bringing the board's motors to rest: by the driver at its end, by its guardian (watchdog) when the driver cannot.

The guardian (`devices.common.bus.guardian`) holds the port as well. When the driver has died, hangs, or could not do it
itself, it sends zero torques, makes sure that the board takes them, and leaves.

This file is run isolated from everything else: it may use the standard library only.
"""

from __future__ import annotations

import os
import select
import termios
import time
from collections.abc import Callable

REPLY_LENGTH = 9

RESET = bytes(2)
"""Makes the board forget what was set up; torques stay as they are."""

COMPLETION = bytes(32)
"""Zeros enough to complete whatever message the board is waiting for; what is left of them are resets."""

SETTLING = 5e-3
"""Time in which the board is through with `COMPLETION` [s]."""

PATIENCE = 0.1
"""How long an answer is waited for while the board is brought to rest [s]."""


def write_all(port: int, data: bytes) -> None:
    """Send `data`; a message goes out in one piece if the port takes it.

    Raises
    ------
    OSError
        If the port is gone, or takes nothing for `PATIENCE`.
    """
    while data:
        _, ready, _ = select.select([], [port], [], PATIENCE)
        if not ready:
            raise TimeoutError("the port takes no data")
        data = data[os.write(port, data) :]


def read_up_to(port: int, length: int, patience: float) -> bytes:
    """Return `length` bytes from the port, or what has come of them within `patience` [s].

    Raises
    ------
    OSError
        If the port is gone.
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


def forget_input(port: int) -> None:
    """Drop what has come in so far.

    Raises
    ------
    OSError
        If the port is gone.
    """
    try:
        termios.tcflush(port, termios.TCIFLUSH)
    except termios.error as error:
        raise OSError(*error.args) from error


def resynchronise(port: int, setup: bytes) -> None:
    """Bring a board in whatever state to the beginning of a message, and set it up anew. Raises `OSError`."""
    write_all(port, COMPLETION)
    time.sleep(SETTLING)
    forget_input(port)
    write_all(port, setup)


def come_to_rest(port: int, zero: bytes, setup: bytes) -> bool:
    """Take the torques away and reset the board; tell whether it confirmed that.

    A board that has lost a byte may take the message `zero` for the end of another one and answer all the same, but it
    does not answer twice: hence two of them. Without two answers it is brought back in step first.

    Raises
    ------
    OSError
        If the port is gone.
    """
    forget_input(port)
    for attempt in range(3):
        if attempt:
            resynchronise(port, setup)
        if _confirmed(port, zero) and _confirmed(port, zero):
            write_all(port, RESET)
            return True
    write_all(port, RESET)
    return False


def _confirmed(port: int, zero: bytes) -> bool:
    write_all(port, zero)
    reply = read_up_to(port, REPLY_LENGTH, PATIENCE)
    return len(reply) == REPLY_LENGTH and reply[0] == zero[1]


def prepare(words: list[str]) -> Callable[[], int]:
    """Return the guardian's duty; `words` are the open port and the messages zero and setup (hex)."""
    port = int(words[0])
    zero, setup = (bytes.fromhex(text) for text in words[1:3])
    return lambda: 0 if come_to_rest(port, zero, setup) else 1
