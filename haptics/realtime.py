"""Asks the operating system for punctuality, and reports honestly what was granted.

Measured order of importance on Linux: the FIFO scheduling class and a processor kept out of deep idle states
(``/dev/cpu_dma_latency``), then timer slack; locked memory and a frozen garbage collector cost nothing and prevent rare
long pauses. Everything here degrades quietly: a run without permissions is a normal run whose certificate says so.
"""

from __future__ import annotations

import ctypes
import gc
import os
import platform
import struct
from dataclasses import asdict, dataclass
from typing import Any

PRIORITY = 80
_PR_SET_TIMERSLACK = 29
_MCL_CURRENT_AND_FUTURE = 3


@dataclass(frozen=True)
class RealTime:
    """What was granted.

    Attributes
    ----------
    scheduling : str
        ``fifo`` or ``other``.
    priority : int
        FIFO priority, 0 for ``other``.
    low_latency : bool
        Whether the processor is kept out of deep idle states.
    memory_locked : bool
        Whether pages cannot be swapped out.
    machine : str
        Kernel release and processor architecture.
    """

    scheduling: str
    priority: int
    low_latency: bool
    memory_locked: bool
    machine: str

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for a recording."""
        return asdict(self)


def enter() -> RealTime:
    """Make this process as punctual as it may be, for the rest of its life."""
    low_latency = _hold_low_latency()
    _libc_call("prctl", _PR_SET_TIMERSLACK, 1, 0, 0, 0)
    locked = _libc_call("mlockall", _MCL_CURRENT_AND_FUTURE)
    fifo = _enter_fifo()
    gc.collect()
    gc.freeze()
    gc.disable()
    return RealTime(
        scheduling="fifo" if fifo else "other",
        priority=PRIORITY if fifo else 0,
        low_latency=low_latency,
        memory_locked=locked,
        machine=f"{platform.system()} {platform.release()} {platform.machine()}",
    )


def _enter_fifo() -> bool:
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    except (AttributeError, OSError):
        return False
    return True


def _hold_low_latency() -> bool:
    """Ask for zero wake-up latency; the request lasts as long as the file stays open, that is, the process."""
    try:
        os.write(os.open("/dev/cpu_dma_latency", os.O_WRONLY), struct.pack("i", 0))
    except OSError:
        return False
    return True


def _libc_call(name: str, *arguments: int) -> bool:
    try:
        function = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):
        return False
    return bool(function(*(ctypes.c_ulong(value) for value in arguments)) == 0)
