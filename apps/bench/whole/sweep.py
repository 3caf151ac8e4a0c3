"""Benchmark ``sweep``: sessions of a sweep in one process and on all processors, alternately.

A task is the unit that ``haptics sweep`` sends to a worker: a batch of sessions of 2 s over stiffness and damping of
model C.
"""

from __future__ import annotations

import functools
import os
import time

import numpy as np

from apps.bench.outcome import Outcome, Progress, table
from apps.bench.slices import measure
from apps.bench.whole.tasks import in_words, measure_tasks
from apps.shared.workers import workers
from apps.sweep.design import Job, Sweep
from apps.sweep.settings import AxisSettings, SweepSettings
from apps.sweep.simulation import simulate_jobs

TITLE = "sessions of a sweep on all processors, as a ratio to one of them"

BATCH = 150
"""Sessions per task, about 0.3 s."""

MAP = 10_000
"""Sessions of a map of 100 x 100."""

_ROUNDS = 7

SWEEP = Sweep(
    SweepSettings(outcomes=("stable", "buzz")),
    (
        AxisSettings("element.stiffness", start=500.0, stop=50000.0, count=100, scale="log"),
        AxisSettings("element.damping", start=0.5, stop=100.0, count=100, scale="log"),
    ),
    {"session": {"model": "C"}, "device": {"name": "virtual-joystick"}},
)


def simulate_batch(batch: int, number: int) -> float:
    """Simulate a `batch` of sessions and return the elapsed time [s]."""
    begun = time.perf_counter()
    points = [{"element.stiffness": 500.0 + 7.0 * k, "element.damping": 2.0} for k in range(batch)]
    results = simulate_jobs(SWEEP, [Job(k, point, number * batch + k) for k, point in enumerate(points)])
    if not all("outcomes" in result for result in results):
        raise RuntimeError(f"a session of the benchmark failed: {results}")
    return time.perf_counter() - begun


def run(progress: Progress) -> Outcome:
    """Measure tasks, and extrapolate to a map."""
    count = len(os.sched_getaffinity(0))
    progress(0.0, "one processor")
    alone = float(np.median(measure([functools.partial(simulate_batch, BATCH, 0)], 5))) / BATCH
    progress(0.3, f"{count} processes")
    with workers("processes", count) as (executor, number):
        speed = measure_tasks(executor, number, functools.partial(simulate_batch, BATCH), _ROUNDS)
    row = {
        "workers": number,
        "cpu_ms_per_session": alone * 1e3,
        "ms_per_session": speed.working / BATCH * 1e3,
        "overhead_ms_per_task": speed.overhead * 1e3,
        "ratio": speed.speedup,
        "map_seconds": MAP / BATCH * (speed.working + speed.overhead) / speed.speedup,
    }
    heading = ("workers", "processor ms/session", "ms/session", "overhead ms/task", "speed-up", "s for 100 x 100")
    text = table([heading, list(row.values())])
    words = f"{in_words(MAP * alone)} of processor time, {in_words(row['map_seconds'])} here, without the start"
    return Outcome({"rows": [row]}, f"{text}\n\n100 x 100 sessions: {words}")
