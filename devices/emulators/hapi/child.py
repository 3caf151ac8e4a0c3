"""An emulated board in a process of its own, so that it takes no time from the one that drives it.

`spawn` starts it; run as a module it reads what to build from its argument, prints the name of its port and serves it
until its standard input ends, that is, until the one who started it has closed it or is gone.
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

from haptics.errors import ConfigurationError, DeviceOpenError, HapticError

START = 90.0
"""How long it may take to start [s]: the first time it compiles."""

FAREWELL = 5.0

_ROOT = Path(__file__).resolve().parents[3]
_WRONG = 2


@contextlib.contextmanager
def spawn(table: Mapping[str, Any]) -> Iterator[str]:
    """Run an emulated board; give the name of its port.

    Parameters
    ----------
    table : mapping
        Arguments of `devices.emulators.hapi.board.HapiBoard`.

    Raises
    ------
    ConfigurationError
        If the hand cannot be made of its settings.
    DeviceOpenError
        If the process does not start.
    """
    path = os.pathsep.join(part for part in (str(_ROOT), os.environ.get("PYTHONPATH", "")) if part)
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, json.dumps(table)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,  # what a terminal sends to the driver is not for it
    )
    with process:
        try:
            yield _first_line(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(FAREWELL)
            except subprocess.TimeoutExpired:
                process.kill()


def _first_line(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], START)
    line = process.stdout.readline().decode().strip() if ready else ""
    if not line:
        raise DeviceOpenError("the emulated board did not start.")
    if not line.startswith("/"):
        raise ConfigurationError(line)
    return line


def main(table: Mapping[str, Any]) -> int:
    """Build a board, print its port or what is wrong with `table`, and serve it until standard input ends."""
    from devices.emulators.hapi.board import HapiBoard

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # it ends with its parent's pipe, and not before
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(OSError):  # it is no part of the real-time loop, and must not run with its priority
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
    try:
        board = HapiBoard(**table)
    except HapticError as error:
        sys.stdout.write(f"{error}\n")
        return _WRONG
    gc.collect()
    gc.freeze()  # else a collection goes through all that numba has loaded, and no answer comes for 50 ms
    sys.stdout.write(f"{board.port}\n")
    sys.stdout.flush()
    board.serve(sys.stdin.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
