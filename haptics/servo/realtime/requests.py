"""Real-time requests to the operating system, and a report of the granted resources.

Measured order of importance on Linux: FIFO scheduling and a processor kept out of deep idle states
(``/dev/cpu_dma_latency``); then, without FIFO, niceness with short time slices (`precedence`) or a dedicated processor;
then timer slack. Locked memory and a frozen garbage collector cost nothing and prevent rare long pauses. Refused
requests are not errors: the run continues, and its certificate reports the granted resources.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import platform
import struct
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from haptics.errors import ConfigurationError
from haptics.servo.realtime.precedence import come_before_others, niceness, time_slice
from haptics.settings import bounded, check, choice, documented

_PR_SET_TIMERSLACK = 29
_MCL_CURRENT_AND_FUTURE = 3


@documented
@dataclass(frozen=True)
class RealTimeSettings:
    """Requests of the servo to the operating system."""

    scheduling: str = choice(
        "auto",
        ("auto", "fifo", "other"),
        doc="scheduling class of the servo process; auto: FIFO if it is granted, fifo: FIFO or no run, other: the "
        "ordinary class, before other programs where that is granted",
    )
    priority: int = bounded(80, minimum=1, maximum=98, doc="FIFO priority")
    cpu: int = bounded(-1, minimum=-1, maximum=4095, doc="processor that the servo stays on; -1: any")
    spin: float = bounded(
        50e-6, minimum=0.0, maximum=1e-3, unit="s", doc="the last stretch before a deadline that is waited out awake"
    )

    def __post_init__(self) -> None:
        check(self, "servo")
        if self.cpu >= 0 and self.cpu not in _processors():
            raise ConfigurationError(
                f"servo.cpu = {self.cpu}: this process may use the processors {_listed(_processors())}, or -1 for any."
            )


@dataclass(frozen=True)
class RealTime:
    """Granted resources.

    Attributes
    ----------
    scheduling : str
        ``fifo`` or ``other``.
    priority : int
        FIFO priority, 0 for ``other``.
    niceness : int
        Niceness of the servo in the default class: usually 0, negative if it has precedence over other programs.
    time_slice : float or None
        Time slice of the servo in the default class [s]; None if unknown, or with FIFO.
    low_latency : bool
        Whether the processor is kept out of deep idle states.
    memory_locked : bool
        Whether pages cannot be swapped out.
    processors : str
        Processors on which the servo may run.
    machine : str
        Operating system, kernel release and processor architecture.
    processor : str
        Model name of the processor.
    """

    scheduling: str
    priority: int
    niceness: int
    time_slice: float | None
    low_latency: bool
    memory_locked: bool
    processors: str
    machine: str
    processor: str

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for a recording."""
        return asdict(self)


def enter(settings: RealTimeSettings | None = None) -> RealTime:
    """Apply the real-time settings to this process permanently, as far as permitted.

    Raises
    ------
    ConfigurationError
        If FIFO scheduling is required but not permitted.
    """
    settings = settings or RealTimeSettings()
    low_latency = _hold_low_latency()
    _libc_call("prctl", _PR_SET_TIMERSLACK, 1, 0, 0, 0)
    locked = _libc_call("mlockall", _MCL_CURRENT_AND_FUTURE)
    if settings.cpu >= 0:
        os.sched_setaffinity(0, {settings.cpu})
    fifo = settings.scheduling != "other" and _enter_fifo(settings.priority)
    if settings.scheduling == "fifo" and not fifo:
        raise ConfigurationError(
            "servo.scheduling = 'fifo': this user may not use it; run 'haptics doctor' to see how to allow it, or "
            "choose 'auto'."
        )
    if not fifo:
        come_before_others()
    gc.collect()
    gc.freeze()
    gc.disable()
    return _granted(settings.priority if fifo else 0, low_latency, locked)


def granted_nothing() -> RealTime:
    """Return the resources of a run without real-time requests."""
    return _granted(0, low_latency=False, locked=False)


def _granted(priority: int, low_latency: bool, locked: bool) -> RealTime:
    return RealTime(
        scheduling="fifo" if priority else "other",
        priority=priority,
        niceness=niceness(),
        time_slice=time_slice(),
        low_latency=low_latency,
        memory_locked=locked,
        processors=_listed(_processors()),
        machine=f"{platform.system()} {platform.release()} {platform.machine()}",
        processor=_processor_name(),
    )


# --- system calls -----------------------------------------------------------------------------------------------------


def _processors() -> list[int]:
    try:
        return sorted(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        return []


def _listed(processors: list[int]) -> str:
    return ", ".join(map(str, processors)) or "unknown"


def _processor_name() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _enter_fifo(priority: int) -> bool:
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except (AttributeError, OSError):
        return False
    return True


def _hold_low_latency() -> bool:
    """Request zero wake-up latency; the request holds until the file is closed at the end of the process."""
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
