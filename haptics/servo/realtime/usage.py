"""Diagnostic counters for poor timing: resource usage, stolen time, and stopped processes."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_HALTED = (b"T", b"t")
"""Process states in /proc of stopped and traced processes."""


@dataclass(frozen=True)
class Usage:
    """Counters of this thread and of the machine, or their increase during a run.

    They help to explain poor timing.

    Attributes
    ----------
    elapsed_s : float
        Time on the monotonic clock [s].
    stolen_s : float or None
        Time in which the hypervisor ran other guests although this machine had work [s], summed over processors.
    involuntary_switches, voluntary_switches : int or None
        Number of preemptions by other threads, and number of voluntary sleeps.
    major_faults, minor_faults : int or None
        Number of page faults with and without disk access.
    """

    elapsed_s: float
    stolen_s: float | None
    involuntary_switches: int | None
    voluntary_switches: int | None
    major_faults: int | None
    minor_faults: int | None

    @classmethod
    def now(cls) -> Usage:
        """Return the present counters."""
        try:
            import resource

            used = resource.getrusage(resource.RUSAGE_THREAD)
        except (ImportError, AttributeError, ValueError, OSError):  # not on this system
            return cls(time.monotonic(), stolen_time(), None, None, None, None)
        return cls(time.monotonic(), stolen_time(), used.ru_nivcsw, used.ru_nvcsw, used.ru_majflt, used.ru_minflt)

    def until_now(self) -> dict[str, Any]:
        """Return the increase of each counter until now, for a recording."""
        return {
            name: None if now is None or then is None else round(now - then, 6)
            for (name, now), then in zip(asdict(Usage.now()).items(), asdict(self).values(), strict=True)
        }


def stolen_time() -> float | None:
    """Return the time stolen from this machine since its start [s], over all processors; None if unknown."""
    try:
        fields = Path("/proc/stat").read_text(encoding="ascii").split(maxsplit=9)
        return int(fields[8]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return None


class ProcessState:
    """State of another process of this machine; a query takes a few microseconds.

    Parameters
    ----------
    pid : int
        Process id.
    """

    def __init__(self, pid: int) -> None:
        try:
            self._file: int | None = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # no such process or no /proc: the caller must rely on other signs
            self._file = None

    @property
    def halted(self) -> bool:
        """Whether the process is stopped by a signal or a debugger; False after its end."""
        if self._file is None:
            return False
        try:
            return os.pread(self._file, 128, 0).rpartition(b")")[2][1:2] in _HALTED
        except OSError:  # the process has ended
            return False

    def close(self) -> None:
        """Close the status file of the process."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
