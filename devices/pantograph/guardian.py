"""A second process that holds the board's port and brings the motors to rest when the driver no longer can.

It is started by the driver with two open files: the port, and a socket to the driver. The driver gives a sign of life
every now and then, and says goodbye when it has brought the board to rest itself. If it dies, whatever of, the socket
ends; if it is stopped or hangs, the signs of life stay out. In both cases the guardian sends zero torques, makes sure
that the board takes them, and leaves. A driver that comes back to life afterwards finds a note in its socket.

This file is run by itself, isolated from everything else: it may use the standard library only.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import termios
import time

READY = b"r"
ALIVE = b"."
GOODBYE = b"q"
TOOK_OVER = b"!"

REPLY_LENGTH = 9

RESET = bytes(2)
"""Makes the board forget what was set up; torques stay as they are."""

COMPLETION = bytes(32)
"""Zeros enough to complete whatever message the board is waiting for; what is left of them are resets."""

SETTLING = 5e-3
"""Time in which the board is through with `COMPLETION` [s]."""

PATIENCE = 0.1
"""How long an answer is waited for while the board is brought to rest [s]."""

SLICES = 5
"""Silence is so many parts of its length, each without a sign of life. A machine that stops altogether for a while, and
goes on, has been silent for one of them only."""


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


def watch(driver: socket.socket, silence: float) -> bool:
    """Wait until the driver says goodbye (true), or has died or been silent for `silence` [s] (false).

    Silence counts from the first sign of life on: before that the driver homes the arms, without any torque.
    """
    pause, quiet = None, 0
    while quiet < SLICES:
        ready, _, _ = select.select([driver], [], [], pause)
        quiet += 1
        if ready:
            pause, quiet = silence / SLICES, 0
            try:
                signs = driver.recv(64)
            except OSError:
                return False
            if GOODBYE in signs:
                return True
            if not signs:
                return False
    return False


def main(arguments: list[str]) -> int:
    """Guard the port; arguments: port, socket (open files), silence [s], the messages zero and setup (hex)."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # meant for the driver, which then ends in order
        signal.signal(number, signal.SIG_IGN)
    port = int(arguments[0])
    driver = socket.socket(fileno=int(arguments[1]))
    silence = float(arguments[2])
    zero, setup = (bytes.fromhex(text) for text in arguments[3:5])
    driver.send(READY)
    if watch(driver, silence):
        return 0
    with contextlib.suppress(OSError):
        driver.send(TOOK_OVER)
    try:
        return 0 if come_to_rest(port, zero, setup) else 1
    except OSError:
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
