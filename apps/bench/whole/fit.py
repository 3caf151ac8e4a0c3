"""Benchmark ``fit``: simulated participants with 60 trials of QUEST+ and a fit.

They are simulated as in ``haptics experiment power``. The reference of the ratio is the procedure without the fit,
measured in alternation.
"""

from __future__ import annotations

import functools
import os
import time
from dataclasses import replace

import numpy as np

from apps.bench.outcome import Outcome, Progress, table
from apps.bench.quest import own_session
from apps.bench.slices import compare, measure
from apps.bench.whole.tasks import in_words, measure_tasks
from apps.experiment.power.simulation import Arm, Study, simulate_people
from apps.shared.workers import workers

TITLE = "a simulated person with 60 trials of QUEST+ and a fit, as a ratio to 60 trials of QUEST+"

PORTION = 20
"""Participants in a task."""

PEOPLE, MILLIONS = 2000, 2_000_000
"""Participants of a typical and of a very large power analysis."""

_ROUNDS = 7
_WORKERS = (1, 2, 8, 32, 128)

_PROCEDURE = {"kind": "quest+", "trials": 60, "least_trials": 60, "minimum": 0.04, "maximum": 2.0}
STUDY = Study((Arm("2 N", "discrimination", "law.force", 2.0, 1, _PROCEDURE),), {"level": 1}, "weibull", 0.75, 1)


def simulate_portion(number: int) -> float:
    """Simulate the participants of a task and return the elapsed time [s]."""
    begun = time.perf_counter()
    found = simulate_people(replace(STUDY, seed=1 + number), 0, PORTION)
    if found.shape[0] != PORTION or not np.isfinite(found).any():
        raise RuntimeError("nobody's threshold was found")
    return time.perf_counter() - begun


def run(progress: Progress) -> Outcome:
    """Measure participants alone and on all processors, and extrapolate to large numbers."""
    progress(0.0, "one process")
    times = measure([functools.partial(simulate_people, STUDY, 0, 1), own_session], 20)
    ratio = compare(times[:, 0], times[:, 1])
    count = len(os.sched_getaffinity(0))
    progress(0.3, f"{count} processes")
    with workers("processes", count) as (executor, number):
        speed = measure_tasks(executor, number, simulate_portion, _ROUNDS)
    tasks = MILLIONS / PORTION
    plan = {str(each): speed.time(tasks, each) for each in _WORKERS}
    here = PEOPLE / PORTION * (speed.working + speed.overhead) / speed.speedup
    row = {
        "ms_per_person": speed.working / PORTION * 1e3,
        "ratio": ratio.median,
        "spread": ratio.spread,
        "overhead_ms_per_task": speed.overhead * 1e3,
        "speedup": speed.speedup,
    }
    heading = ("ms/person", "ratio", "spread", "overhead ms/task", f"speed-up of {number}")
    many = "\n".join(f"  on {each} workers: {in_words(seconds)}" for each, seconds in plan.items())
    text = (
        f"{table([heading, list(row.values())])}\n\n{PEOPLE} people on the {number} workers here: {in_words(here)}\n"
        f"{MILLIONS} people, if all workers were as fast as one here alone:\n{many}"
    )
    return Outcome({"rows": [row], "people": PEOPLE, "seconds": here, "two_million_seconds": plan}, text)
