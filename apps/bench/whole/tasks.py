"""Time of tasks on a pool of workers: measurement, and extrapolation to other numbers of workers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

Task = Callable[[int], float]
"""Takes the number of the task and returns its working time [s]. It must be picklable."""


@dataclass(frozen=True)
class Speed:
    """Measured speed of tasks on a pool of workers.

    Attributes
    ----------
    working : float
        Working time of a task, alone on the machine [s].
    overhead : float
        Additional time to send a task, start it and return its result [s].
    speedup : float
        Ratio of the serial to the parallel time of one task per worker.
    """

    working: float
    overhead: float
    speedup: float

    def time(self, tasks: float, workers: int) -> float:
        """Return the time of `tasks` on `workers` [s].

        One process submits them sequentially.
        """
        return max(math.ceil(tasks / workers) * (self.working + self.overhead), tasks * self.overhead)


def measure_tasks(executor: Executor, workers: int, task: Task, rounds: int) -> Speed:
    """Measure tasks serially and on all workers, alternately; return medians over all rounds."""
    list(executor.map(task, range(4 * workers)))  # warm-up: every worker compiles the kernels
    working, overhead, ratio = [], [], []
    for _ in range(rounds):
        begun, inside = time.perf_counter(), []
        for number in range(workers):
            inside.append(executor.submit(task, number).result())
        serial = time.perf_counter() - begun
        begun = time.perf_counter()
        list(executor.map(task, range(workers)))
        ratio.append(serial / (time.perf_counter() - begun))
        working.append(sum(inside) / workers)
        overhead.append(max(serial - sum(inside), 0.0) / workers)
    return Speed(float(np.median(working)), float(np.median(overhead)), float(np.median(ratio)))


def in_words(seconds: float) -> str:
    """Format a duration with a suitable unit."""
    units: Sequence[tuple[float, str]] = ((86400.0, "days"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))
    for size, unit in units:
        if seconds >= 2.0 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.2f} s"
