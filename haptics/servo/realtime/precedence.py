"""Precedence over other programs in the default scheduling class: niceness and short time slices.

Niceness increases the share of a processor. With a short time slice, the servo preempts a program with a longer
remaining slice when it wakes up (earliest eligible virtual deadline first, Linux 6.12 and later; earlier kernels ignore
it).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct

NICENESS = -10
"""Niceness of the servo without FIFO; gives nine times the processor share of a competing program."""

TIME_SLICE = 100e-6
"""Requested time slice [s]; the minimum of Linux."""

_SET_ATTRIBUTES = {"x86_64": 314, "aarch64": 274, "riscv64": 274}
"""System call number of sched_setattr, which some C libraries lack; sched_getattr is the next one."""

_ATTRIBUTES = struct.Struct("=IIQiIQQQ")
"""Size, policy, flags, niceness, priority, time slice [ns], and two fields for deadline scheduling."""


def come_before_others() -> None:
    """Raise the precedence of this thread and its future threads over other programs, if permitted.

    A thread in another scheduling class remains in that class.
    """
    with contextlib.suppress(AttributeError, OSError):
        os.setpriority(os.PRIO_PROCESS, 0, min(NICENESS, niceness()))
        if os.sched_getscheduler(0) == os.SCHED_OTHER:
            _ask_for_short_slices()


def _ask_for_short_slices() -> None:
    _system_call(0, _ATTRIBUTES.pack(_ATTRIBUTES.size, 0, 0, niceness(), 0, round(TIME_SLICE * 1e9), 0, 0), 0)


def niceness() -> int:
    """Return the niceness of this thread; 0 if the system does not support it."""
    try:
        return os.getpriority(os.PRIO_PROCESS, 0)
    except (AttributeError, OSError):  # not on this system
        return 0


def time_slice() -> float | None:
    """Return the time slice of this thread [s]; None if unknown or in a real-time class."""
    answer = ctypes.create_string_buffer(_ATTRIBUTES.size)
    if not _system_call(1, answer, _ATTRIBUTES.size, 0):
        return None
    return _ATTRIBUTES.unpack(answer.raw)[5] / 1e9 or None


def _system_call(which: int, *arguments: object) -> bool:
    """Call sched_setattr (0) or sched_getattr (1) for this thread; return True on success."""
    number = _SET_ATTRIBUTES.get(platform.machine()) if platform.system() == "Linux" else None
    if number is None:
        return False
    return bool(ctypes.CDLL(None).syscall(number + which, 0, *arguments) == 0)
