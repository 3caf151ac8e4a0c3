"""Monitoring of the memory usage of processes during a run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

_FILL_TIME = 30.0
"""Time after which the ring buffers of a run at 1 kHz have been filled once, so that all pages are in use [s]."""

_KIB = 1024.0


def resident_memory(pid: int) -> int | None:
    """Return the resident memory of a process [bytes].

    Return None if the process has ended or the system does not provide the value.
    """
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError, ValueError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


class Watch:
    """Periodic samples of the memory usage of a process.

    Parameters
    ----------
    pid : int
        Process.
    duration : float
        Planned duration of the run [s]. The warm-up takes a fifth of it, at most 30 s.
    every : float
        Time between two samples [s]; shorter in a short run.
    look : callable
        Takes the process and returns its memory [bytes] or None.
    """

    def __init__(
        self, pid: int, duration: float, every: float = 10.0, look: Callable[[int], int | None] = resident_memory
    ) -> None:
        self._pid = pid
        self._look = look
        self._every = min(every, duration / 20.0)
        self._next = min(_FILL_TIME, duration / 5.0)
        self._samples: list[tuple[float, int]] = []

    def at(self, time: float) -> None:
        """Take a sample if it is due at `time` since the start of the run [s]."""
        if time < self._next:
            return
        self._next = time + self._every
        memory = self._look(self._pid)
        if memory is not None:
            self._samples.append((time, memory))

    @property
    def growth(self) -> float | None:
        """Growth of the memory from the end of the warm-up to the last sample [KiB]; None without two samples."""
        if len(self._samples) < 2:
            return None
        return (self._samples[-1][1] - self._samples[0][1]) / _KIB

    def as_dict(self) -> dict[str, Any]:
        """Return the growth of the memory, its slope, and the number of samples.

        The keys are ``first_kib``, ``last_kib``, ``growth_kib``, ``slope_kib_per_min`` and ``samples``; only
        ``samples`` without two samples.
        """
        if self.growth is None:
            return {"samples": len(self._samples)}
        times, sizes = np.array(self._samples).T
        return {
            "first_kib": round(sizes[0] / _KIB),
            "last_kib": round(sizes[-1] / _KIB),
            "growth_kib": round(self.growth),
            "slope_kib_per_min": round(float(np.polyfit(times / 60.0, sizes / _KIB, 1)[0]), 3),
            "samples": len(sizes),
        }
