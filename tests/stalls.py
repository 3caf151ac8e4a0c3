"""Did this machine stand still while a test ran? A second process that does nothing but wait knows.

A test that guards a promise in wall-clock time (marker ``wall_clock``) can fail because the machine is busy: neither
the program nor the test is wrong then. Such a test is repeated as a whole, but only if this watcher was itself kept
from running meanwhile, and the summary of the run names each repetition. Without a stall a failure is a failure.
"""

from __future__ import annotations

import subprocess
import sys

STALL = 0.005
"""What a waiting process may be late on a machine that is not busy [s]."""
HOPELESS = 0.025
"""A test that fails every time, lately beside a stall of more than this [s], is skipped: nothing can be said of it."""

REPETITIONS = 2


def excusing(error: BaseException | None) -> float:
    """Return the shortest stall that can be to blame for an error [s]: half of the time that was waited in vain."""
    waited = getattr(error, "timeout", None)  # of NeverCame, subprocess.TimeoutExpired
    return max(HOPELESS, 0.5 * waited) if isinstance(waited, float | int) else HOPELESS


_WATCHER = """
import select, sys, time
PAUSE, STALL = 0.002, float(sys.argv[1])
worst, count, now = 0.0, 0, time.monotonic()
while True:
    asked = select.select([sys.stdin], [], [], PAUSE)[0]
    before, now = now, time.monotonic()
    late = now - before - PAUSE
    if late > STALL:
        worst, count = max(worst, late), count + 1
    if asked:
        if not sys.stdin.buffer.read1(1):
            break
        sys.stdout.write(f"{worst} {count}\\n")
        sys.stdout.flush()
        worst, count = 0.0, 0
"""


class StallWatcher:
    """A waiting process and its account of the times when it was kept waiting longer."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-E", "-c", _WATCHER, str(STALL)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def take(self) -> tuple[float, int]:
        """Return the longest stall [s] and the number of stalls since the last call."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("?")
        self._process.stdin.flush()
        worst, count = self._process.stdout.readline().split()
        return float(worst), int(count)

    def close(self) -> None:
        """End the process."""
        self._process.communicate()
