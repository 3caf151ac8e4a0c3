"""Memory that processes have in use, watched during a run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

_FILL_TIME = 30.0
"""By then the rings of a run at 1 kHz have been filled once, so that all of their pages are in use [s]."""

_KIB = 1024.0


def resident_memory(pid: int) -> int | None:
    """Return how much memory a process has in use [bytes]; None once it is gone, or where the system does not say."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError, ValueError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


class Watch:
    """Notes from time to time how much memory a process has in use.

    Parameters
    ----------
    pid : int
        The process.
    duration : float
        Planned length of the run [s]; a fifth of a short one is time to warm up, 30 s of a long one.
    every : float
        Time between two looks [s]; shorter in a short run.
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
        """Look, if that is due at `time` since the start of the run [s]."""
        if time < self._next:
            return
        self._next = time + self._every
        memory = self._look(self._pid)
        if memory is not None:
            self._samples.append((time, memory))

    @property
    def growth(self) -> float | None:
        """How much more memory was in use at the end than after the warm-up [KiB]; None if that was never seen."""
        if len(self._samples) < 2:
            return None
        return (self._samples[-1][1] - self._samples[0][1]) / _KIB

    def as_dict(self) -> dict[str, Any]:
        """Return ``first_kib``, ``last_kib``, ``growth_kib``, ``slope_kib_per_min`` and the number of ``samples``."""
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
