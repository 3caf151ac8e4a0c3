"""How long work takes on many workers: what was measured of a task here, and what follows from it elsewhere."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

Task = Callable[[int], float]
"""Takes its number, and returns how long it worked [s]; it can be sent to another process."""


@dataclass(frozen=True)
class Speed:
    """What was measured of tasks on a pool of workers.

    Attributes
    ----------
    working : float
        Time that a task works, alone on the machine [s].
    overhead : float
        What it takes besides: to be sent, taken up, and answered [s].
    speedup : float
        How many times sooner as many tasks as there are workers are done when all work than when one does.
    """

    working: float
    overhead: float
    speedup: float

    def time(self, tasks: float, workers: int) -> float:
        """Return how long `tasks` would take on `workers` [s]; one process hands them all out, one after the other."""
        return max(math.ceil(tasks / workers) * (self.working + self.overhead), tasks * self.overhead)


def measure_tasks(executor: Executor, workers: int, task: Task, rounds: int) -> Speed:
    """Measure tasks one at a time and on all workers, in turns; the medians of all rounds count."""
    list(executor.map(task, range(4 * workers)))  # every worker has compiled what it needs
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
    """Return a time as a person says it."""
    units: Sequence[tuple[float, str]] = ((86400.0, "days"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))
    for size, unit in units:
        if seconds >= 2.0 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.2f} s"
