"""Counters that explain a bad figure: what a run used, what was stolen from the machine, whether a process stands."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_HALTED = (b"T", b"t")
"""States of a process, as /proc names them, in which it could go on but does not: stopped, traced."""


@dataclass(frozen=True)
class Usage:
    """What explains a bad figure: counters of this thread and of the machine, or their growth during a run.

    Attributes
    ----------
    elapsed_s : float
        Time on the monotonic clock [s].
    stolen_s : float or None
        Time in which the hypervisor ran something else although this machine had work [s], summed over processors.
    involuntary_switches, voluntary_switches : int or None
        How often the thread was interrupted by another one, and how often it went to sleep.
    major_faults, minor_faults : int or None
        How often it waited for a page from the disk, or for an empty one.
    """

    elapsed_s: float
    stolen_s: float | None
    involuntary_switches: int | None
    voluntary_switches: int | None
    major_faults: int | None
    minor_faults: int | None

    @classmethod
    def now(cls) -> Usage:
        """Read the counters as they are."""
        try:
            import resource

            used = resource.getrusage(resource.RUSAGE_THREAD)
        except (ImportError, AttributeError, ValueError, OSError):  # not on this system
            return cls(time.monotonic(), stolen_time(), None, None, None, None)
        return cls(time.monotonic(), stolen_time(), used.ru_nivcsw, used.ru_nvcsw, used.ru_majflt, used.ru_minflt)

    def until_now(self) -> dict[str, Any]:
        """Return how much each counter has grown since, for a recording."""
        return {
            name: None if now is None or then is None else round(now - then, 6)
            for (name, now), then in zip(asdict(Usage.now()).items(), asdict(self).values(), strict=True)
        }


def stolen_time() -> float | None:
    """Return the time stolen from this machine since it started [s], all processors together; None if unknown."""
    try:
        fields = Path("/proc/stat").read_text(encoding="ascii").split(maxsplit=9)
        return int(fields[8]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return None


class ProcessState:
    """Looks at another process of this machine; a few microseconds a look.

    Parameters
    ----------
    pid : int
        The process.
    """

    def __init__(self, pid: int) -> None:
        try:
            self._file: int | None = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # no such process, or no such file system: who asks must rely on other signs
            self._file = None

    @property
    def halted(self) -> bool:
        """Whether the process was stopped, by a signal or a debugger; one that has ended is told by other signs."""
        if self._file is None:
            return False
        try:
            return os.pread(self._file, 128, 0).rpartition(b")")[2][1:2] in _HALTED
        except OSError:  # there was such a process, and there is none any more
            return False

    def close(self) -> None:
        """Stop looking."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
