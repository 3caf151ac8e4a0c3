"""Cyclictest of rt-tests, the standard measure of wake-up latency.

It is a C program that sleeps until absolute deadlines and does nothing else. It prints every wake-up in nanoseconds
(``--verbose --nsecs``), because its histograms are rounded to microseconds and include the settling time.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from apps.bench.outcome import CannotMeasure
from haptics.servo.realtime import NICENESS

NAME = "cyclictest"

_LINE = re.compile(r"^\s*0:\s*(\d+):\s*(-?\d+)\s*$", re.MULTILINE)
"""Thread, cycle, latency [ns]."""

_LOOK_EVERY, _ENDING = 0.1, 2.0
_PATIENCE = 60.0
"""Tolerance of the planned duration [s], because cyclictest counts wake-ups instead of seconds."""


def require() -> None:
    """Check that cyclictest is installed.

    Raises
    ------
    CannotMeasure
        If it is missing. The message contains the remedy.
    """
    if not shutil.which(NAME):
        raise CannotMeasure("cyclictest, the reference, is not installed: apt-get install rt-tests")


def command(period: float, count: int, priority: int, cpu: int) -> list[str]:
    """Return the command line for `count` wake-ups.

    Parameters
    ----------
    period : float
        Time between two deadlines [s]; cyclictest supports whole microseconds.
    count : int
        Number of wake-ups.
    priority : int
        Priority in the class SCHED_FIFO; 0 for SCHED_OTHER.
    cpu : int
        Processor affinity; -1 for any processor.
    """
    policy = ["--policy=fifo", f"--priority={priority}"] if priority else ["--policy=other"]
    affinity = [f"--affinity={cpu}"] if cpu >= 0 else []
    length = [f"--interval={round(period * 1e6)}", f"--loops={count}"]
    # Without FIFO, use the nice value of the servo. If permission is denied, `nice` prints a warning and continues.
    before = [] if priority else ["nice", "-n", str(NICENESS)]
    return [*before, NAME, "--mlockall", "--verbose", "--nsecs", *policy, *affinity, *length]


def lateness(text: str, count: int) -> NDArray[np.float64]:
    """Parse the latencies of `count` wake-ups, (count,) [s], from the output of cyclictest.

    Raises
    ------
    CannotMeasure
        If the text does not contain all wake-ups in order.
    """
    found = np.array(_LINE.findall(text), np.int64).reshape(-1, 2)
    if len(found) != count or (found[:, 0] != np.arange(count)).any():
        raise CannotMeasure(
            f"cyclictest reported {len(found)} of {count} wake-ups, or not in order: run the benchmark again."
        )
    return np.asarray(found[:, 1] * 1e-9, np.float64)


def measure(arguments: list[str], output: Path, length: float, wait: Callable[[], None]) -> None:
    """Run cyclictest and write its output to the file `output`.

    Parameters
    ----------
    arguments : list of str
        See `command`.
    output : Path
        Output file.
    length : float
        Planned duration [s].
    wait : callable
        Called several times per second. An exception in it ends cyclictest.

    Raises
    ------
    CannotMeasure
        If cyclictest does not end, or refuses to run. It refuses without the permission for FIFO, even if only
        SCHED_OTHER was requested.
    """
    words = None
    with (
        output.open("wb") as file,
        subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.PIPE) as process,
    ):
        try:
            for _ in range(round((length + _PATIENCE) / _LOOK_EVERY)):
                wait()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    words = process.communicate(timeout=_LOOK_EVERY)[1]
                    break
            wait()  # Ctrl-C also reaches cyclictest, which then ends early
        finally:
            process.terminate()  # on SIGTERM it removes its shared memory
            try:
                process.wait(_ENDING)
            except subprocess.TimeoutExpired:
                process.kill()
    if words is None:
        raise CannotMeasure(f"cyclictest did not end within {length + _PATIENCE:.0f} s.")
    if process.returncode:
        reason = " ".join(words.decode(errors="replace").strip().splitlines()[:2]) or "it gave no reason"
        raise CannotMeasure(f"cyclictest failed: {reason} (as: {' '.join(arguments)}).")
