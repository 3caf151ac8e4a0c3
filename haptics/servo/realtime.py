"""Real-time operation: requests to the operating system, granted resources and resource usage.

Measured order of importance on Linux: FIFO scheduling and a processor kept out of deep idle states
(``/dev/cpu_dma_latency``); then, without FIFO, niceness with short time slices or a dedicated processor; then timer
slack. Locked memory and a frozen garbage collector cost nothing and prevent rare long pauses. Refused requests are not
errors: the run continues, and its certificate reports the granted resources.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import platform
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from haptics.errors import ConfigurationError
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
        doc=(
            "scheduling class of the servo process; auto: FIFO if permitted, fifo: FIFO is required, other: "
            "ordinary class, with niceness -10 if permitted"
        ),
    )
    priority: int = bounded(80, minimum=1, maximum=98, doc="FIFO priority")
    cpu: int = bounded(-1, minimum=-1, maximum=4095, doc="processor of the servo; -1: any")
    spin: float = bounded(
        50e-6,
        minimum=0.0,
        maximum=1e-3,
        unit="s",
        doc="time before a deadline during which the servo polls the clock instead of sleeping",
    )

    def __post_init__(self) -> None:
        check(self, "servo")
        if self.cpu >= 0 and self.cpu not in _processors():
            usable = ", ".join(map(str, _processors())) or "unknown"
            raise ConfigurationError(
                f"servo.cpu = {self.cpu}: this process may use the processors {usable}, or -1 for any."
            )


def request_real_time(settings: RealTimeSettings | None = None) -> dict[str, Any]:
    """Apply the real-time settings to this process permanently, as far as permitted.

    Returns
    -------
    dict
        The granted resources, for a recording. ``scheduling``: ``fifo`` or ``other``; ``priority``: FIFO priority, 0
        for ``other``; ``niceness``: usually 0, negative if the servo has precedence over other programs;
        ``time_slice``: time slice in the default class [s], None if unknown, or with FIFO; ``low_latency``: whether the
        processor is kept out of deep idle states; ``memory_locked``: whether pages cannot be swapped out;
        ``processors`` on which the servo may run; ``machine``: operating system, kernel release and architecture;
        ``processor``: model name.

    Raises
    ------
    ConfigurationError
        If FIFO scheduling is required but not permitted.
    """
    settings = settings or RealTimeSettings()
    try:  # zero wake-up latency; the request holds until the file is closed at the end of the process
        os.write(os.open("/dev/cpu_dma_latency", os.O_WRONLY), struct.pack("i", 0))
        low_latency = True
    except OSError:
        low_latency = False
    _libc_call("prctl", _PR_SET_TIMERSLACK, 1, 0, 0, 0)
    locked = _libc_call("mlockall", _MCL_CURRENT_AND_FUTURE)
    gc.collect()  # before the priority is raised, because it takes 50 ms, in which another servo could not run
    gc.freeze()
    gc.disable()
    if settings.cpu >= 0:
        os.sched_setaffinity(0, {settings.cpu})
    fifo = False
    if settings.scheduling != "other":
        with contextlib.suppress(AttributeError, OSError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(settings.priority))
            fifo = True
    if settings.scheduling == "fifo" and not fifo:
        raise ConfigurationError(
            "servo.scheduling = 'fifo': this user may not use it; run 'haptics doctor' to see how to allow it, or "
            "choose 'auto'."
        )
    if not fifo:
        raise_precedence()
    return _granted(settings.priority if fifo else 0, low_latency, locked)


def without_requests() -> dict[str, Any]:
    """Return the resources of a run without real-time requests; see `request_real_time`."""
    return _granted(0, low_latency=False, locked=False)


def _granted(priority: int, low_latency: bool, locked: bool) -> dict[str, Any]:
    processor = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        processor = names[0] if names else processor
    return {
        "scheduling": "fifo" if priority else "other",
        "priority": priority,
        "niceness": niceness(),
        "time_slice": time_slice(),
        "low_latency": low_latency,
        "memory_locked": locked,
        "processors": ", ".join(map(str, _processors())) or "unknown",
        "machine": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": processor,
    }


# --- system calls -----------------------------------------------------------------------------------------------------


def _processors() -> list[int]:
    try:
        return sorted(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        return []


def _libc_call(name: str, *arguments: int) -> bool:
    try:
        function = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):
        return False
    return bool(function(*(ctypes.c_ulong(value) for value in arguments)) == 0)


# --- precedence in the default scheduling class -----------------------------------------------------------------------

NICENESS = -10
"""Niceness of the servo without FIFO; gives nine times the processor share of a competing program."""

TIME_SLICE = 100e-6
"""Requested time slice [s]; the minimum of Linux."""

# System call number of sched_setattr, which some C libraries lack; sched_getattr is the next one.
_SET_ATTRIBUTES = {"x86_64": 314, "aarch64": 274, "riscv64": 274}

# Size, policy, flags, niceness, priority, time slice [ns], and two fields for deadline scheduling.
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")


def raise_precedence() -> None:
    """Raise the precedence of this thread and its future threads over other programs, if permitted.

    A thread in another scheduling class remains in that class.
    """
    with contextlib.suppress(AttributeError, OSError):
        os.setpriority(os.PRIO_PROCESS, 0, min(NICENESS, niceness()))
        if os.sched_getscheduler(0) == os.SCHED_OTHER:
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


# --- usage -----------------------------------------------------------------------------------------------------------


def usage() -> dict[str, Any]:
    """Return counters of this thread and of the machine, which help to explain poor timing; None if unknown.

    Returns
    -------
    dict
        ``elapsed_s``: monotonic clock [s]; ``stolen_s``: time in which the hypervisor ran other guests although this
        machine had work [s], summed over processors; ``involuntary_switches`` by other threads, ``voluntary_switches``;
        ``major_faults``, ``minor_faults``: page faults with and without disk access.
    """
    names = ("involuntary_switches", "voluntary_switches", "major_faults", "minor_faults")
    counts: tuple[int | None, ...] = (None,) * 4
    with contextlib.suppress(ImportError, AttributeError, ValueError, OSError):  # not on this system
        import resource

        used = resource.getrusage(resource.RUSAGE_THREAD)
        counts = used.ru_nivcsw, used.ru_nvcsw, used.ru_majflt, used.ru_minflt
    return {"elapsed_s": time.monotonic(), "stolen_s": stolen_time(), **dict(zip(names, counts, strict=True))}


def usage_since(before: dict[str, Any]) -> dict[str, Any]:
    """Return the increase of each counter of `usage` since `before`, for a recording."""
    return {
        name: None if now is None or before[name] is None else round(now - before[name], 6)
        for name, now in usage().items()
    }


def stolen_time() -> float | None:
    """Return the time stolen from this machine since its start [s], over all processors; None if unknown."""
    try:
        fields = Path("/proc/stat").read_text(encoding="ascii").split(maxsplit=9)
        return int(fields[8]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return None
