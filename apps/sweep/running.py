"""Parallel execution of the jobs of a sweep: in processes, in threads, or on a Dask cluster."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait

from apps.shared.workers import workers
from apps.sweep.design import Job, Sweep
from apps.sweep.results import Results
from apps.sweep.simulation import Result, simulate_jobs
from haptics.errors import ConfigurationError

BATCH_TIME = 0.3
"""Duration of a batch of jobs [s], long compared with the latency of a cluster (milliseconds)."""

_LARGEST_BATCH = 2000
_PER_WORKER = 2
"""Queued batches for each worker: enough to keep it busy, few enough to stop a sweep quickly."""

MOST_LOSSES = 5
"""Number of times that workers may die before the sweep is aborted."""

Batch = list[Job]
Progress = Callable[[int, int, int], None]
"""Callback with the numbers of completed, failed and all jobs."""


def simulate_batch(sweep: Sweep, batch: Batch) -> tuple[float, list[Result]]:
    """Run a batch of jobs sequentially.

    Return the elapsed time [s] and the results.
    """
    begun = time.perf_counter()
    results = simulate_jobs(sweep, batch)
    return time.perf_counter() - begun, results


def run_sweep(sweep: Sweep, results: Results, kind: str, count: int, show: Progress) -> int:
    """Run all jobs without a result on workers of a `kind`.

    Return the number of failed jobs. Workers that die are replaced, and their jobs are repeated.

    Raises
    ------
    ConfigurationError
        If the workers cannot be started, or die repeatedly.
    """
    for _ in range(MOST_LOSSES):
        if len(results.done) == sweep.count:
            return 0
        before = len(results.failures)
        with contextlib.suppress(BrokenExecutor), workers(kind, count) as (executor, number):
            return run_jobs(sweep, results, executor, number, show)
        del results.failures[before:]  # these jobs are repeated
    raise ConfigurationError(
        f"the workers of the sweep have died {MOST_LOSSES} times, perhaps for want of memory: take fewer of them. "
        f"{len(results.done)} of {sweep.count} jobs are done and kept in {results.folder}."
    )


def run_jobs(sweep: Sweep, results: Results, executor: Executor, count: int, show: Progress) -> int:
    """Run all jobs without a result on an executor.

    Return the number of failed jobs. The first batches contain one job. Later batches have the number of jobs that
    takes `BATCH_TIME`. Results are written as soon as they arrive.
    """
    left = (job for job in sweep.jobs() if not results.is_done(job))
    total, failed, size = sweep.count, 0, 1
    waiting: dict[Future[tuple[float, list[Result]]], Batch] = {}
    while True:
        while len(waiting) < _PER_WORKER * count and (batch := list(itertools.islice(left, size))):
            waiting[executor.submit(simulate_batch, sweep, batch)] = batch
        if not waiting:
            return failed
        ended, _ = wait(waiting, return_when=FIRST_COMPLETED)
        for future in ended:
            batch = waiting.pop(future)
            taken, found = future.result()
            for job, result in zip(batch, found, strict=True):
                results.add(job, result)
                failed += "error" in result
            size = min(max(round(len(batch) * BATCH_TIME / max(taken, 1e-4)), 1), _LARGEST_BATCH)
        show(len(results.done), failed, total)


def describe_time(begun: float, before: int, done: int, total: int) -> str:
    """Return the estimated remaining time as text, or an empty string if it is too early for an estimate.

    `begun` is the start of the run [s, monotonic], when `before` jobs were done.
    """
    new = done - before
    elapsed = time.monotonic() - begun
    if new < 5 or elapsed < 1.0:
        return ""
    rest = elapsed / new * (total - done)
    return f"about {rest:.0f} s left" if rest < 120.0 else f"about {rest / 60.0:.0f} min left"
