"""What kept a test from running in step with the wall's clock: a stall of the machine, its own threads, a crowd.

A test that guards a promise in wall-clock time (marker ``wall_clock``) can fail although neither the program nor the
test is wrong. Such a test is repeated as a whole, but only if one of these was the case meanwhile; the summary of the
run names each repetition, and why. Otherwise a failure is a failure.

- The machine stood still: a process that does nothing but wait was kept from running. Only this can be a reason not to
  judge a test at all.
- Its threads kept each other waiting: such a test often has driver and emulator in one process, where they take turns
  with the interpreter.
- There was a crowd: for a good part of the time processes waited for a processor (Linux: pressure stall information).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.late import Lateness

STALL = 0.005
"""What a waiting process may be late on a machine that is not busy [s]."""

KEPT_WAITING = 0.01
"""What a thread may have to wait for the interpreter [s]: two of its switch intervals."""

CROWD = 0.25
"""Part of the time in which processes may wait for a processor on a machine that is not crowded."""

HOPELESS = 0.025
"""A test that fails every time, lately beside a stall of more than this [s], is skipped: nothing can be said of it."""

REPETITIONS = 2

PRESSURE = Path("/proc/pressure/cpu")


def excusing(error: BaseException | None) -> float:
    """Return the shortest stall that can be to blame for an error [s]: half of the time that was waited in vain."""
    waited = getattr(error, "timeout", None)  # of NeverCame, subprocess.TimeoutExpired
    return max(HOPELESS, 0.5 * waited) if isinstance(waited, float | int) else HOPELESS


_WATCHER = """
import os, select, sys, time
PAUSE, STALL, processor = 0.005, float(sys.argv[1]), int(sys.argv[2])
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


class Meanwhile:
    """What keeps one test from running in step.

    Parameters
    ----------
    watcher : StallWatcher
        Nobody else may ask it meanwhile.

    Attributes
    ----------
    stall : float
        For how long the machine stood still at most [s].
    kept_waiting : float
        For how long a thread had to wait for the interpreter at most [s].
    crowd : float
        Part of the time in which processes waited for a processor.
    """

    def __init__(self, watcher: StallWatcher) -> None:
        self._watcher, self._lateness = watcher, Lateness()
        watcher.take()
        self._looked = time.monotonic(), _waited()
        self.begin()

    def begin(self) -> None:
        """Forget what was until the last look, as a repetition is judged by itself."""
        self.stall = self.kept_waiting = self.crowd = 0.0
        self._began = self._looked

    def look(self) -> None:
        """Take note of what was the case until now."""
        self.stall = max(self.stall, self._watcher.take()[0])
        self.kept_waiting = max(self.kept_waiting, self._lateness.take())
        self._looked = time.monotonic(), _waited()
        duration, waited = (now - then for now, then in zip(self._looked, self._began, strict=True))
        self.crowd = waited / max(duration, 1e-3)

    def excuse(self) -> str:
        """Say why the test may be repeated; empty if it may not."""
        if self.stall > STALL:
            return f"a stall of {1e3 * self.stall:.0f} ms"
        if self.kept_waiting > KEPT_WAITING:
            return f"a thread had to wait for {1e3 * self.kept_waiting:.0f} ms"
        if self.crowd > CROWD:
            return f"processes waited for a processor {self.crowd:.0%} of the time"
        return ""

    def close(self) -> None:
        """Look no more."""
        self._lateness.close()


def _waited() -> float:
    """Return for how long processes of this machine have waited for a processor [s]; 0 where that is not known."""
    try:
        some = PRESSURE.read_text().partition("\n")[0]
    except OSError:
        return 0.0
    return 1e-6 * float(some.rpartition("=")[2])


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
