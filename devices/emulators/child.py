"""Emulator in a separate process: it takes no computing time from its driver, and may outlive it.

`spawn` runs this module, whose `main` starts an emulator. The module of the emulator has a context manager
``emulator(table)`` that builds the device from a table and yields its address and a function that serves it until
standard input ends, because the parent process has closed it or has ended. The process starts in the ordinary
scheduling class, because imports and compilation are slow, and takes a real-time priority when it serves.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from haptics.errors import ConfigurationError, DeviceOpenError, HapticError
from haptics.servo.realtime import NICENESS, raise_precedence

START = 180.0
"""Timeout for the start [s], which includes compilation the first time."""

FAREWELL = 5.0
"""Timeout for the end, after which the process is killed [s]."""

PROMPT = 0.5
"""Time for which the end is waited for [s]; the application ends a servo process without ticks after 1 s."""

_ROOT = Path(__file__).resolve().parents[2]
_PLACES = ("/", "ws://")
"""Prefixes of an emulator's address; any other output is an error message."""


@contextlib.contextmanager
def spawn(module: str, table: Mapping[str, Any], name: str, farewell: float = FAREWELL) -> Iterator[str]:
    """Run an emulator; yield its address, a path or a URL.

    In the block, the calling thread and its child threads leave one processor to the emulator, if there are two.
    Otherwise the system might run both on one processor while another program occupies the other.

    Parameters
    ----------
    module : str
        Module of the emulator.
    table : mapping
        Argument of its ``emulator``.
    name : str
        Name of the device, for messages.
    farewell : float
        Timeout for the end [s].

    Raises
    ------
    ConfigurationError
        If the emulator cannot be built from the table, with the reason.
    DeviceOpenError
        If the process does not start.
    """
    path = os.pathsep.join(part for part in (str(_ROOT), os.environ.get("PYTHONPATH", "")) if part)
    # The emulator's processor depends on the process ID, so that simultaneous sessions use different ones. A thread
    # with only one processor keeps it, and the emulator gets all others.
    found = sorted(os.sched_getaffinity(0))
    if len(found) > 1:
        its_own = {found[os.getpid() % len(found)]}
        ours = set(found) - its_own
    else:
        ours, its_own = set(found), set(range(os.cpu_count() or 1)) - set(found) or set(found)
    priority = str(max(os.sched_getparam(0).sched_priority - 1, 0))

    def start() -> subprocess.Popen[bytes]:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
            os.sched_setaffinity(0, its_own)
        return subprocess.Popen(
            [sys.executable, "-m", "devices.emulators.child", module, json.dumps(table), priority],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,  # signals from a terminal to the driver must not reach it
        )

    # A process inherits scheduling class and processors from the thread that starts it. The caller may have a real-time
    # priority, which it could not give up and take again with the permissions of an ordinary user.
    with ThreadPoolExecutor(1) as executor:
        process = executor.submit(start).result()
    assert process.stdin is not None and process.stdout is not None
    with process.stdout, _affinity(ours):
        try:
            ready, _, _ = select.select([process.stdout], [], [], START)
            line = process.stdout.readline().decode().strip() if ready else ""
            if not line:
                raise DeviceOpenError(f"the emulated {name} did not start.")
            if not line.startswith(_PLACES):
                raise ConfigurationError(line)
            yield line
        finally:
            process.stdin.close()
            try:
                process.wait(PROMPT)
            except subprocess.TimeoutExpired:  # such as a device that waits for the guardian of its driver
                with contextlib.suppress(RuntimeError):  # no threads at interpreter shutdown
                    threading.Thread(target=_reap, args=(process, farewell), daemon=True).start()


def _reap(process: subprocess.Popen[bytes], farewell: float) -> None:
    """Wait for the end of the process, which is killed after `farewell` [s]."""
    try:
        process.wait(farewell)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextlib.contextmanager
def _affinity(processors: set[int]) -> Iterator[None]:
    """Set the processor affinity of the calling thread and its children within the block, where permitted."""
    before = os.sched_getaffinity(0)
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, processors)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, before)


# --- in the process of the emulator ----------------------------------------------------------------------------------


def main(module: str, table: dict[str, Any], priority: int) -> int:
    """Build an emulator, print its address or the error in `table`, and serve it; return the exit status.

    The process ignores termination signals: it ends only when its parent closes the pipe. The emulator represents a
    device with its own processor: it gets priority over other programs, where permitted, and serves with the real-time
    `priority`, 0 for none.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    raise_priority()
    with contextlib.ExitStack() as resources:
        try:
            address, serve = resources.enter_context(importlib.import_module(module).emulator(table))
        except HapticError as error:
            sys.stdout.write(f"{error}\n")
            return 2
        gc.collect()
        gc.freeze()  # otherwise a collection traverses all objects of numba, and the emulator does not reply for 50 ms
        sys.stdout.write(f"{address}\n")
        sys.stdout.flush()
        if priority:
            with contextlib.suppress(OSError):  # only this thread: other work must not delay the loop
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
        serve()
    return 0


def raise_priority() -> None:
    """Raise the priority of the calling thread, its child threads and its session, where permitted."""
    raise_precedence()
    with contextlib.suppress(OSError):
        # for systems that schedule sessions instead of processes
        Path("/proc/self/autogroup").write_text(f"{NICENESS}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])))
