"""Puts the servo before other programs in the ordinary scheduling class: niceness, and short time slices.

Niceness gives it a larger share of a processor than others have. A short time slice has it run at once when it wakes,
in place of another program that has not used its own up (earliest eligible virtual deadline first, Linux 6.12 and
later; kernels before that take no notice).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct

NICENESS = -10
"""Where the servo has no FIFO: nine times the share of a program that works beside it."""

TIME_SLICE = 100e-6
"""For how long it asks to run at a time [s]; the least that Linux knows."""

_SET_ATTRIBUTES = {"x86_64": 314, "aarch64": 274, "riscv64": 274}
"""Number of the system call sched_setattr, which not every C library has; sched_getattr is the next."""

_ATTRIBUTES = struct.Struct("=IIQiIQQQ")
"""Size, policy, flags, niceness, priority, time slice [ns], and two that are for deadlines."""


def come_before_others() -> None:
    """Have this thread, and those that it begins, run before and more often than others, where that is allowed.

    A thread that somebody has put into another scheduling class stays in it.
    """
    with contextlib.suppress(AttributeError, OSError):
        os.setpriority(os.PRIO_PROCESS, 0, min(NICENESS, niceness()))
        if os.sched_getscheduler(0) == os.SCHED_OTHER:
            _ask_for_short_slices()


def _ask_for_short_slices() -> None:
    _system_call(0, _ATTRIBUTES.pack(_ATTRIBUTES.size, 0, 0, niceness(), 0, round(TIME_SLICE * 1e9), 0, 0), 0)


def niceness() -> int:
    """Return the niceness of this thread; 0 where there is none."""
    try:
        return os.getpriority(os.PRIO_PROCESS, 0)
    except (AttributeError, OSError):  # not on this system
        return 0


def time_slice() -> float | None:
    """Return for how long this thread runs at a time [s] if others wait; None if unknown, or in a real-time class."""
    answer = ctypes.create_string_buffer(_ATTRIBUTES.size)
    if not _system_call(1, answer, _ATTRIBUTES.size, 0):
        return None
    return _ATTRIBUTES.unpack(answer.raw)[5] / 1e9 or None


def _system_call(which: int, *arguments: object) -> bool:
    """Call sched_setattr (0) or sched_getattr (1) for this thread; whether that succeeded."""
    number = _SET_ATTRIBUTES.get(platform.machine()) if platform.system() == "Linux" else None
    if number is None:
        return False
    return bool(ctypes.CDLL(None).syscall(number + which, 0, *arguments) == 0)
