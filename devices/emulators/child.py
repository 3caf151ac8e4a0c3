"""An emulator in a process of its own: it takes no time from its driver, and may live on when that is killed.

A module with a ``main`` that takes a table is started by `spawn`. It calls `settle_in` first, builds what the table
says, and calls `announce` with where it is reached, or `give_up` with what is wrong; then it serves until its standard
input ends, that is, until the one who started it has closed it or is gone.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from haptics.errors import ConfigurationError, DeviceOpenError
from haptics.servo.realtime.precedence import NICENESS, come_before_others

START = 180.0
"""How long it may take to start [s]: the first time it compiles."""

FAREWELL = 5.0
"""How long it may take to end [s]."""

_ROOT = Path(__file__).resolve().parents[2]
_PLACES = ("/", "ws://")
"""How a place begins at which an emulator is reached; all else that it says is a complaint."""

_WRONG = 2


@contextlib.contextmanager
def spawn(module: str, table: Mapping[str, Any], what: str, farewell: float = FAREWELL) -> Iterator[str]:
    """Run an emulator; give where it is reached, a path or an address.

    Meanwhile the calling thread, and those that it begins, leave one processor to the emulator, if there are two: else
    both may be put on one while another program has the other one.

    Parameters
    ----------
    module : str
        Where its ``main`` is.
    table : mapping
        What `main` is told.
    what : str
        Its name, for messages.
    farewell : float
        How long it may take to end [s].

    Raises
    ------
    ConfigurationError
        If it cannot be made of the table; says why.
    DeviceOpenError
        If the process does not start.
    """
    path = os.pathsep.join(part for part in (str(_ROOT), os.environ.get("PYTHONPATH", "")) if part)
    ours, its_own = _divided()
    with _kept_to(its_own):  # as a process inherits it
        process = subprocess.Popen(
            [sys.executable, "-m", module, json.dumps(table)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,  # what a terminal sends to the driver is not for it
        )
    with process, _kept_to(ours):
        try:
            yield _first_line(process, what)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(farewell)
            except subprocess.TimeoutExpired:
                process.kill()


def _divided() -> tuple[set[int], set[int]]:
    """Divide the processors of the calling thread: those that it keeps, and one for an emulator.

    Which one depends on the process, so that sessions at the same time do not all have their emulators on one. A thread
    that has only one processor keeps it, and the emulator has all others.
    """
    found = sorted(os.sched_getaffinity(0))
    if len(found) > 1:
        its_own = {found[os.getpid() % len(found)]}
        return set(found) - its_own, its_own
    return set(found), set(range(os.cpu_count() or 1)) - set(found) or set(found)


@contextlib.contextmanager
def _kept_to(processors: set[int]) -> Iterator[None]:
    """Keep the calling thread, and what it begins, to some processors, where that is allowed."""
    before = os.sched_getaffinity(0)
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, processors)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, before)


def _first_line(process: subprocess.Popen[bytes], what: str) -> str:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], START)
    line = process.stdout.readline().decode().strip() if ready else ""
    if not line:
        raise DeviceOpenError(f"the emulated {what} did not start.")
    if not line.startswith(_PLACES):
        raise ConfigurationError(line)
    return line


def settle_in() -> int:
    """Become a process that ends with its parent's pipe and not before, and that disturbs no real-time loop.

    It stands for a thing with a processor of its own: other work comes behind it, if that is allowed.

    Returns
    -------
    int
        Priority of the real-time loop that started it, 0 if that was none (`hurry`).
    """
    priority = os.sched_getparam(0).sched_priority
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    for thread in map(int, os.listdir("/proc/self/task")):  # libraries may have begun some
        with contextlib.suppress(OSError):  # it must not run with the priority of the loop that started it
            os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))
    come_first()
    return priority


def come_first() -> None:
    """Have the calling thread, those that it begins, and its session come before other programs, if that is allowed."""
    come_before_others()
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text(f"{NICENESS}")  # where sessions share the processors, not processes


def hurry(priority: int) -> None:
    """Have the calling thread come just behind the loop that started it, where that has a real-time `priority`.

    Nothing else of the process does: building, compiling and other threads must not keep that loop waiting.
    """
    if priority > 1:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority - 1))


def announce(place: str) -> None:
    """Say where the emulator is reached; everything has been built."""
    gc.collect()
    gc.freeze()  # else a collection goes through all that numba has loaded, and no answer comes for 50 ms
    sys.stdout.write(f"{place}\n")
    sys.stdout.flush()


def give_up(error: Exception) -> int:
    """Say what is wrong with the table; return the exit status."""
    sys.stdout.write(f"{error}\n")
    return _WRONG
