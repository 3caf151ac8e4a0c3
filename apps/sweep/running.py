"""Runs the jobs of a sweep side by side: in processes, in threads, or on a cluster of Dask's."""

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
"""Jobs go to a worker in batches that take about so long [s]: a message to a cluster takes milliseconds."""

_LARGEST_BATCH = 2000
_PER_WORKER = 2
"""Batches that wait for each worker: so many that none has to wait, and few enough for a sweep that is stopped."""

MOST_LOSSES = 5
"""So often workers may die before a sweep gives up."""

Batch = list[Job]
Progress = Callable[[int, int, int], None]
"""Takes how many jobs are done, how many have failed, and how many there are."""


def simulate_batch(sweep: Sweep, batch: Batch) -> tuple[float, list[Result]]:
    """Run some jobs one after the other; return how long that took [s], and their results."""
    begun = time.perf_counter()
    results = simulate_jobs(sweep, batch)
    return time.perf_counter() - begun, results


def run_sweep(sweep: Sweep, results: Results, kind: str, count: int, show: Progress) -> int:
    """Run all jobs that have no result yet with workers of a `kind` (`workers`); return how many have failed.

    Workers that are killed are replaced, and their jobs run again.

    Raises
    ------
    ConfigurationError
        If there are no such workers, or they die again and again.
    """
    for _ in range(MOST_LOSSES):
        if len(results.done) == sweep.count:
            return 0
        before = len(results.failures)
        with contextlib.suppress(BrokenExecutor), workers(kind, count) as (executor, number):
            return run_jobs(sweep, results, executor, number, show)
        del results.failures[before:]  # they are tried again
    raise ConfigurationError(
        f"the workers of the sweep have died {MOST_LOSSES} times, perhaps for want of memory: take fewer of them. "
        f"{len(results.done)} of {sweep.count} jobs are done and kept in {results.folder}."
    )


def run_jobs(sweep: Sweep, results: Results, executor: Executor, count: int, show: Progress) -> int:
    """Run all jobs that have no result yet; return how many have failed.

    The first batches have one job; from then on their length is what takes `BATCH_TIME`. A result is written down as
    soon as it is there.
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
    """Return how long the rest will take, from what was done since `begun` [s, monotonic]; empty before that."""
    new = done - before
    elapsed = time.monotonic() - begun
    if new < 5 or elapsed < 1.0:
        return ""
    rest = elapsed / new * (total - done)
    return f"about {rest:.0f} s left" if rest < 120.0 else f"about {rest / 60.0:.0f} min left"
