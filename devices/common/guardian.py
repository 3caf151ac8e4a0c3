"""Guardian process (watchdog) that acts when a driver dies, stops responding, or hands over to it.

Usage: ``python -I -S guardian.py SOCKET SILENCE SCRIPT [WORD ...]``. SOCKET is an open socket to the driver, which
sends heartbeats through it, and a goodbye when no action is required. If the driver dies for any reason, the socket is
closed, but only after the system has released the memory of the process, which takes 50 to 100 ms for a servo. Linux
shows earlier that a process is ending; the guardian looks for that whenever a heartbeat is late. If the driver is
stopped or hangs, the heartbeats are absent for SILENCE [s]. In all cases the guardian performs its duty and exits. A
driver that resumes afterwards finds a message in its socket.

SCRIPT is a file with a function ``prepare``, which takes the words, opens the resources that it needs, and returns the
duty, a function that returns the exit status.

This file and the scripts are run in isolated mode and may use only the standard library.
"""

from __future__ import annotations

import contextlib
import importlib.util
import math
import os
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
"""Number of intervals without heartbeat after which the driver counts as silent.

When the whole machine is suspended and resumes, only one of these intervals elapses.
"""


_ENDING = 0x4  # flag PF_EXITING of linux/sched.h


def is_ending(process: int) -> bool:
    """Return True if a process is ending, although it may still have its memory and its files."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return bool(int(file.read().rpartition(b")")[2].split()[6]) & _ENDING)
    except OSError:  # it has ended, or this system does not show it
        return False


def watch(driver: socket.socket, silence: float) -> bool:
    """Watch the driver, the parent process; return True after a goodbye, False if it died or was silent.

    The limit `silence` [s] is measured from the first heartbeat, because the driver may have to wait for a user before.
    """
    process = os.getppid()
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
        elif is_ending(process):
            return False
    return False


def main(arguments: list[str]) -> int:
    """Wait for the end of the driver and perform the duty if required."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # only the driver reacts to them
        signal.signal(number, signal.SIG_IGN)
    driver = socket.socket(fileno=int(arguments[0]))
    spec = importlib.util.spec_from_file_location("duty", arguments[2])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    act: Callable[[], int] = module.prepare(arguments[3:])
    with contextlib.suppress(OSError):  # the driver may be dead already
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
