"""System calls of the compiled loop: clock, sleep, events and process states.

The kernels call the C library of Linux. On other systems, and without compilation, the loop in Python is used instead.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np
from numba import types

from haptics.jit import COMPILED, kernel

AVAILABLE = COMPILED and sys.platform == "linux"
"""Whether these kernels are available."""

SCRATCH = 32
"""Size of the int64 buffer for results of system calls."""

_CLOCK_MONOTONIC = 1
_TIMER_ABSTIME = 1
_BILLION = 1_000_000_000

_LOST = np.frombuffer(b"TtZXx", np.uint8)
"""States of stopped, traced and ended processes."""
_EXITING = 0x4
"""Kernel flag of a thread that is exiting."""
_SPACE, _BRACKET, _ZERO = ord(" "), ord(")"), ord("0")

_clock_gettime = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.intp))
_clock_nanosleep = types.ExternalFunction(
    "clock_nanosleep", types.int32(types.int32, types.int32, types.intp, types.intp)
)
_getppid = types.ExternalFunction("getppid", types.int32())
_pread = types.ExternalFunction("pread", types.intp(types.int32, types.intp, types.intp, types.intp))
_write = types.ExternalFunction("write", types.intp(types.int32, types.intp, types.intp))

if COMPILED:

    @kernel
    def monotonic_ns(scratch: Any) -> int:
        """Return the time of the monotonic clock [ns]."""
        _clock_gettime(_CLOCK_MONOTONIC, scratch.ctypes.data)
        return int(scratch[0] * _BILLION + scratch[1])

    @kernel
    def parent_process() -> int:
        """Return the process id of the parent process."""
        return int(_getppid())

    @kernel
    def _read_file(descriptor: int, scratch: Any) -> int:
        """Read the beginning of a file; return the number of bytes, negative on error."""
        return int(_pread(descriptor, scratch.ctypes.data, 8 * SCRATCH, 0))

else:

    def monotonic_ns(scratch: Any) -> int:
        """Return the time of the monotonic clock [ns]."""
        return time.monotonic_ns()

    def parent_process() -> int:
        """Return the process id of the parent process."""
        return os.getppid()

    def _read_file(descriptor: int, scratch: Any) -> int:
        """Read the beginning of a file; return the number of bytes, negative on error."""
        try:
            return os.preadv(descriptor, [scratch.view(np.uint8).data], 0)
        except OSError:
            return -1


@kernel
def sleep_until(deadline: int, scratch: Any) -> None:
    """Sleep until `deadline` on the monotonic clock [ns] or until a signal arrives."""
    scratch[0], scratch[1] = deadline // _BILLION, deadline % _BILLION
    _clock_nanosleep(_CLOCK_MONOTONIC, _TIMER_ABSTIME, scratch.ctypes.data, 0)


@kernel
def raise_event(descriptor: int, scratch: Any) -> None:
    """Signal an event (``eventfd(2)``) to its waiting thread."""
    scratch[0] = 1
    _write(descriptor, scratch.ctypes.data, 8)


@kernel
def process_is_lost(status_file: int, scratch: Any) -> bool:
    """Return True if a process was stopped, is exiting, or has ended.

    `status_file` is its open file ``/proc/PID/stat``. The third field is the state, the ninth contains the kernel flags
    of the main thread. Parent, children and pipes are notified only after the last thread has ended and the memory is
    freed, which takes tens of milliseconds.
    """
    length = _read_file(status_file, scratch)
    if length < 0:
        return True  # the process has ended
    text = scratch.view(np.uint8)
    at = length - 1
    while at > 0 and text[at] != _BRACKET:
        at -= 1
    if at == 0 or at + 2 >= length:
        return False
    state = text[at + 2]
    for letter in _LOST:
        if state == letter:
            return True
    at += 2
    for _ in range(6):  # from field 3 to field 9
        while at < length and text[at] != _SPACE:
            at += 1
        at += 1
    flags = 0
    while at < length and text[at] != _SPACE:
        flags = 10 * flags + int(text[at]) - _ZERO
        at += 1
    return flags & _EXITING != 0
