"""Cyclictest of rt-tests: the accepted measure of how punctually a machine wakes a sleeping thread.

It sleeps until absolute deadlines in C and does nothing else. Here it prints every wake-up in nanoseconds
(``--verbose --nsecs``), which its histograms would round to microseconds and mix with the settling time.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from apps.bench.outcome import CannotMeasure
from haptics.servo.realtime.precedence import NICENESS

NAME = "cyclictest"

_LINE = re.compile(r"^\s*0:\s*(\d+):\s*(-?\d+)\s*$", re.MULTILINE)
"""Thread, cycle, lateness [ns]."""

_LOOK_EVERY, _ENDING = 0.1, 2.0
_PATIENCE = 60.0
"""It counts wake-ups, not seconds; this much longer than planned it may take [s]."""


def require() -> None:
    """Raise unless cyclictest is installed.

    Raises
    ------
    CannotMeasure
        Naming the remedy.
    """
    if not shutil.which(NAME):
        raise CannotMeasure("cyclictest, the reference, is not installed: apt-get install rt-tests")


def command(period: float, count: int, priority: int, cpu: int) -> list[str]:
    """Return the command for `count` wake-ups.

    Parameters
    ----------
    period : float
        Time between two deadlines [s]; cyclictest knows whole microseconds.
    count : int
        How many.
    priority : int
        Of the class SCHED_FIFO; 0 for SCHED_OTHER.
    cpu : int
        The processor that it stays on; -1 for any.
    """
    policy = ["--policy=fifo", f"--priority={priority}"] if priority else ["--policy=other"]
    affinity = [f"--affinity={cpu}"] if cpu >= 0 else []
    length = [f"--interval={round(period * 1e6)}", f"--loops={count}"]
    # In the ordinary class as nice as the servo; where that is refused, `nice` says so and goes on.
    before = [] if priority else ["nice", "-n", str(NICENESS)]
    return [*before, NAME, "--mlockall", "--verbose", "--nsecs", *policy, *affinity, *length]


def lateness(text: str, count: int) -> NDArray[np.float64]:
    """Return how late each of `count` wake-ups was, (count,) [s], from what cyclictest printed.

    Raises
    ------
    CannotMeasure
        If the text does not hold all of them in order.
    """
    found = np.array(_LINE.findall(text), np.int64).reshape(-1, 2)
    if len(found) != count or (found[:, 0] != np.arange(count)).any():
        raise CannotMeasure(
            f"cyclictest reported {len(found)} of {count} wake-ups, or not in order: run the benchmark again."
        )
    return np.asarray(found[:, 1] * 1e-9, np.float64)


def measure(arguments: list[str], output: Path, length: float, wait: Callable[[], None]) -> None:
    """Run cyclictest into the file `output`.

    Parameters
    ----------
    arguments : list of str
        See `command`.
    output : Path
        Where its words go.
    length : float
        How long it should take [s].
    wait : callable
        Called a few times a second; what it raises ends cyclictest.

    Raises
    ------
    CannotMeasure
        If cyclictest refuses (it does so to a user without the right to FIFO, whatever was asked for), or does not come
        to an end.
    """
    with (
        output.open("wb") as file,
        subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.PIPE) as process,
    ):
        try:
            words = _words(process, length + _PATIENCE, wait)
        finally:
            _end(process)
    if process.returncode:
        raise CannotMeasure(f"cyclictest failed: {_first_line(words)} (as: {' '.join(arguments)}).")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End `process` if it still runs; asked to end, it removes what it has put into shared memory."""
    process.terminate()
    try:
        process.wait(_ENDING)
    except subprocess.TimeoutExpired:
        process.kill()


def _words(process: subprocess.Popen[bytes], patience: float, wait: Callable[[], None]) -> bytes:
    """Wait for the end of `process` and return what it said on standard error."""
    for _ in range(round(patience / _LOOK_EVERY)):
        wait()
        try:
            words = process.communicate(timeout=_LOOK_EVERY)[1]
        except subprocess.TimeoutExpired:
            continue
        wait()  # Ctrl-C reaches cyclictest too, and then it ends before its time
        return words
    raise CannotMeasure(f"cyclictest did not end within {patience:.0f} s.")


def _first_line(words: bytes) -> str:
    lines = words.decode(errors="replace").strip().splitlines()
    return " ".join(lines[:2]) or "it gave no reason"
