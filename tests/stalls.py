"""What kept a test from running in step with the wall's clock: a stall of the machine, its own threads, a crowd.

A test that guards a promise in wall-clock time (marker ``wall_clock``), or runs whole programs, can fail although
neither the program nor the test is wrong. Such a test is repeated as a whole, but only if one of these was the case
meanwhile; the summary of the run names each repetition, and why. Otherwise a failure is a failure.

- The machine stood still: a process that does nothing but wait was kept from running. Only this can be a reason not to
  judge a test at all, and only one that is marked.
- Its threads kept each other waiting: such a test often has driver and emulator in one process, where they take turns
  with the interpreter.
- There was a crowd: for a good part of the time processes waited for a processor (Linux: pressure stall information).
"""

from __future__ import annotations

import mmap
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic  # itself: some tests put another clock in its place

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


PAUSE = 0.005
"""Between two looks of a watcher at the clock [s]."""

LONGEST = 60.0
"""A watcher that has not looked for longer is dead [s]."""

_WATCHER = """
import mmap, os, select, struct, sys, time
path, index, processor, pause, least, size = sys.argv[1], *map(float, sys.argv[2:])
if processor >= 0:
    os.sched_setaffinity(0, {int(processor)})
with open(path, "r+b") as file:
    memory = mmap.mmap(file.fileno(), 0)
words, count, now = int(size), 0, time.monotonic()
base = 8 * words * int(index)
while not select.select([sys.stdin], [], [], pause)[0]:
    before, now = now, time.monotonic()
    late = now - before - pause
    if late > least:
        struct.pack_into("2d", memory, base + 8 + 16 * (count % (words // 2)), now, late)
        count += 1
    struct.pack_into("d", memory, base, now)
"""

_WORDS = 129
"""Of a watcher's memory: when it looked last, then a ring buffer of when a stall ended and how long it was."""


class StallWatcher:
    """Waiting processes, which leave in a file when they were kept waiting longer.

    One is free to run wherever there is room; the others stay each on one processor. A virtual machine may lose one of
    its processors for a while: what runs there stands still, and nothing else does.

    Attributes
    ----------
    path : str
        The file, for `Stalls`.
    """

    def __init__(self) -> None:
        pinned = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        places = (-1, *pinned)
        file, self.path = tempfile.mkstemp(prefix="haptics-stalls-")
        os.write(file, struct.pack("d", monotonic()).ljust(8 * _WORDS, b"\0") * len(places))
        os.close(file)
        self._processes = [_start(self.path, index, processor) for index, processor in enumerate(places)]

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.communicate()
        os.unlink(self.path)


def _start(path: str, index: int, processor: int) -> subprocess.Popen[bytes]:
    numbers = map(str, (index, processor, PAUSE, STALL, _WORDS))
    command = [sys.executable, "-S", "-E", "-c", _WATCHER, path, *numbers]
    return subprocess.Popen(command, stdin=subprocess.PIPE)


class Stalls:
    """What the watchers have left in their file.

    Parameters
    ----------
    path : str
        The file of a `StallWatcher`.
    """

    def __init__(self, path: str) -> None:
        with open(path, "r+b") as file:
            self._words = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)).cast("d")
        self._since = monotonic()

    def take(self) -> float:
        """Return the longest stall since the last call [s], be it over or not; 0 if there was none."""
        since, self._since = self._since, monotonic()
        return max(self._worst(base, since) for base in range(0, len(self._words), _WORDS))

    def _worst(self, base: int, since: float) -> float:
        looked, *ring = self._words[base : base + _WORDS]
        waiting = self._since - looked - PAUSE
        over = [late for when, late in zip(ring[::2], ring[1::2], strict=True) if when > since]
        return max([waiting if STALL < waiting < LONGEST else 0.0, *over])


class Meanwhile:
    """What keeps one test from running in step.

    Parameters
    ----------
    stalls : Stalls
        Nobody else may take them meanwhile.

    Attributes
    ----------
    stall : float
        For how long the machine stood still at most [s].
    kept_waiting : float
        For how long a thread had to wait for the interpreter at most [s].
    crowd : float
        Part of the time in which processes waited for a processor.
    """

    def __init__(self, stalls: Stalls) -> None:
        self._stalls, self._lateness = stalls, Lateness()
        stalls.take()
        self._looked = monotonic(), _waited()
        self.begin()

    def begin(self) -> None:
        """Forget what was until the last look, as a repetition is judged by itself."""
        self.stall = self.kept_waiting = self.crowd = 0.0
        self._began = self._looked

    def look(self) -> None:
        """Take note of what was the case until now."""
        self.stall = max(self.stall, self._stalls.take())
        self.kept_waiting = max(self.kept_waiting, self._lateness.take())
        self._looked = monotonic(), _waited()
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
