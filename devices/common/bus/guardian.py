"""The guardian, a watchdog process: it acts when a driver has died, has fallen silent, or hands over to it.

``python -I -S guardian.py SOCKET SILENCE SCRIPT [WORD ...]``: SOCKET is an open socket to the driver, which may give
signs of life through it, and says goodbye when it has left nothing to do. If it dies, whatever of, the socket ends; if
it is stopped or hangs, the signs of life stay out for SILENCE [s]. In both cases the guardian does its duty and leaves.
A driver that comes back to life afterwards finds a note in its socket.

The duty is in SCRIPT, a file with a function ``prepare``: it takes the words, opens what it needs, and returns what is
to be done in the end, a function that returns the exit status.

This file and the scripts are run isolated from everything else: they may use the standard library only.
"""

from __future__ import annotations

import contextlib
import importlib.util
import math
import select
import signal
import socket
import sys
from collections.abc import Callable

READY = b"r"
ALIVE = b"."
GOODBYE = b"q"
TOOK_OVER = b"!"

SLICES = 5
"""Silence is so many parts of its length, each without a sign of life. A machine that stops altogether for a while, and
goes on, has been silent for one of them only."""


def watch(driver: socket.socket, silence: float) -> bool:
    """Wait until the driver says goodbye (true), or has died or been silent for `silence` [s] (false).

    Silence counts from the first sign of life on: before that the driver may have to wait for a person.
    """
    pause, quiet = None, 0
    while quiet < SLICES:
        ready, _, _ = select.select([driver], [], [], pause)
        quiet += 1
        if ready:
            pause, quiet = silence / SLICES if math.isfinite(silence) else None, 0
            try:
                signs = driver.recv(64)
            except OSError:
                return False
            if GOODBYE in signs:
                return True
            if not signs:
                return False
    return False


def duty(script: str, words: list[str]) -> Callable[[], int]:
    """Return what is to be done in the end."""
    spec = importlib.util.spec_from_file_location("duty", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    act: Callable[[], int] = module.prepare(words)
    return act


def main(arguments: list[str]) -> int:
    """Wait for the end of the driver, and do what there is to do then."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # meant for the driver, which then ends in order
        signal.signal(number, signal.SIG_IGN)
    driver = socket.socket(fileno=int(arguments[0]))
    act = duty(arguments[2], arguments[3:])
    with contextlib.suppress(OSError):  # it is dead already
        driver.send(READY)
    if watch(driver, float(arguments[1])):
        return 0
    with contextlib.suppress(OSError):
        driver.send(TOOK_OVER)
    try:
        return act()
    except OSError:
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
