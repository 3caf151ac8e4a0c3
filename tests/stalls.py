"""Did this machine stand still while a test ran? Processes that do nothing but wait know.

A test that guards a promise in wall-clock time (marker ``wall_clock``) can fail because the machine is busy: neither
the program nor the test is wrong then. Such a test is repeated as a whole, but only if one of these watchers was itself
kept from running meanwhile, and the summary of the run names each repetition. Without a stall a failure is a failure.
"""

from __future__ import annotations

import os
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
import os, select, sys, time
PAUSE, STALL, processor = 0.002, float(sys.argv[1]), int(sys.argv[2])
if processor >= 0:
    os.sched_setaffinity(0, {processor})
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
    """Waiting processes and their account of the times when they were kept waiting longer.

    One is free to run wherever there is room; the others stay each on one processor. A virtual machine may lose one of
    its processors for a while: what runs there stands still, and nothing else does.
    """

    def __init__(self) -> None:
        pinned = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        self._processes = [_start(processor) for processor in (-1, *pinned)]

    def take(self) -> tuple[float, int]:
        """Return the longest stall [s] and the number of stalls since the last call."""
        said = [_ask(process) for process in self._processes]
        return max(worst for worst, _ in said), sum(count for _, count in said)

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.communicate()


def _start(processor: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-S", "-E", "-c", _WATCHER, str(STALL), str(processor)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )


def _ask(process: subprocess.Popen[str]) -> tuple[float, int]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("?")
    process.stdin.flush()
    worst, count = process.stdout.readline().split()
    return float(worst), int(count)
