"""Jobs of a sweep: sessions reduced to their outcomes, in processes, in threads or on a Dask cluster."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from typing import Any

import numpy as np

from apps.settings.config import SessionConfig
from apps.shared.workers import workers
from apps.sweep.design import OUTCOMES, Function, Job, Sweep, bound_growth, load_function, numbers_of, outcomes_of
from apps.sweep.results import Results
from devices import create_device
from haptics.clock import Clock
from haptics.device import Device
from haptics.errors import ConfigurationError, HapticError
from haptics.jit import kernel
from haptics.rendering.envelope import UNUSABLE
from haptics.servo.offline import REDUCTION_FIELDS, Failed, OfflineJob, Reduction, row_of, run_all, run_offline

Result = dict[str, Any]

TOGETHER = 64
"""Number of sessions in one call of compiled code. Their records are in memory at the same time."""


def simulate_jobs(sweep: Sweep, jobs: Iterable[Job]) -> list[Result]:
    """Run jobs and return the outcomes of each, or its ``error``.

    A failed job does not stop the others.
    """
    found: list[Result] = []
    function, waiting = load_function(sweep.settings.function), list(jobs)
    while waiting:
        some, waiting = waiting[:TOGETHER], waiting[TOGETHER:]
        sessions: list[_Session | Failed] = []
        for job in some:
            try:
                sessions.append(_Session(sweep, job))
            except HapticError as error:
                sessions.append(Failed(error))
        if function is not None:
            found.extend(_with_rows(sweep, session, function) for session in sessions)
            continue
        ran = iter(run_all([session.run for session in sessions if isinstance(session, _Session)]))
        for session in sessions:
            if isinstance(session, Failed):
                found.append(_failure(session))
                continue
            ended = next(ran)
            if isinstance(ended, Failed):
                found.append(_failure(ended))
            else:
                found.append({"outcomes": session.outcomes(sweep, ended.sums)})
    return found


class _Session:
    """A session that is ready to run."""

    def __init__(self, sweep: Sweep, job: Job) -> None:
        self.config = config = sweep.config(job)
        settings, period = sweep.settings, 1.0 / config.session.rate
        factory = functools.partial(_device, config)
        sums = reduction(period, settings.settle)
        self.run = OfflineJob(factory, config.program, settings.duration, config.limits, sums, config.made)

    def outcomes(self, sweep: Sweep, sums: Any) -> dict[str, Any]:
        """Return the selected outcomes from the sums of the session."""
        wanted = sweep.settings.outcomes or OUTCOMES
        found = outcomes_of(sums, self.config, sweep.settings.buzz_limit)
        if "bound_growth_per_s" in wanted:
            found["bound_growth_per_s"] = bound_growth(self.config)
        return {name: found[name] for name in wanted}


def _device(config: SessionConfig, clock: Clock) -> Device:
    return create_device(config.device, config.device_settings, clock=clock)


def _with_rows(sweep: Sweep, session: _Session | Failed, function: Function) -> Result:
    """Run a session and apply the user-defined function to its rows.

    An exception of that function becomes the error of the job.
    """
    if isinstance(session, Failed):
        return _failure(session)
    job = session.run
    try:
        run = run_offline(
            job.factory, job.program, job.duration, limits=job.limits, reduction=job.reduction, keep_rows=True
        )
        assert run.rows is not None
        own = numbers_of(sweep.settings.function, function(run.rows))
    except Exception as error:
        return _failure(Failed(error))
    return {"outcomes": {**session.outcomes(sweep, run.sums[0]), **own}}


def _failure(failed: Failed) -> Result:
    error = failed.error
    return {"error": str(error) if isinstance(error, HapticError) else f"{type(error).__name__}: {error}"}


# --- sums over the ticks of a session -----------------------------------------------------------------------------

LOWEST_BUZZ = 10.0
"""Lower cut-off frequency of the buzz measure [Hz]."""

SUMS = np.dtype(
    [
        *REDUCTION_FIELDS,
        *((name, "<i8") for name in ("seen", "ticks", "sticking", "sliding", "unusable", "flags", "known", "rested")),
        *((name, "<f8") for name in ("decay", "settle")),
        *((name, "<f8", (2,)) for name in ("last_command", "high", "last_position", "last_proxy", "crept")),
        *((name, "<f8") for name in ("buzz", "rest_buzz", "slide", "slide_square", "friction_max", "command_max")),
        *((name, "<f8") for name in ("felt", "path", "speed_max", "energy_max", "aside")),
        *((name, "<f8") for name in ("t", "t_square")),
        *((name, "<f8", (2,)) for name in ("x", "x_t")),
    ]
)
"""Sums of a session.

``decay`` is the coefficient of the high-pass filter per tick. Ticks before ``settle`` [s] are not counted. ``crept`` is
the displacement of the proxy while the contact stuck [m], ``aside`` the sum of the angles between friction and sliding
[rad].
"""


def reduction(period: float, settle: float) -> Reduction:
    """Return the reduction of a session with a period of `period` [s], excluding the first `settle` [s]."""
    start = np.zeros(1, SUMS)
    start["decay"] = 1.0 / (1.0 + 2.0 * math.pi * LOWEST_BUZZ * period)
    start["settle"] = settle
    return Reduction(_add_rows, start)


@kernel
def _add_rows(s: Any, first: float, following: float) -> None:
    """Add the rows of a session from index `first` up to but not including `following`."""
    for number in range(int(first), int(following)):
        row = row_of(s, number)
        usable = row.status & UNUSABLE == 0
        for i in range(2):
            command = row.command[i] if usable else s.last_command[i]
            s.high[i] = s.decay * (s.high[i] + command - s.last_command[i]) if s.seen > 0 else 0.0
            s.last_command[i] = command
        s.seen += 1
        if row.time < s.settle:
            continue
        s.flags |= row.status
        if not usable:
            s.unusable += 1
            continue
        friction = math.hypot(row.friction_force[0], row.friction_force[1])
        square = s.high[0] ** 2 + s.high[1] ** 2
        s.buzz += square
        s.friction_max = max(s.friction_max, friction)
        s.command_max = max(s.command_max, math.hypot(row.command[0], row.command[1]))
        s.speed_max = max(s.speed_max, math.hypot(row.velocity[0], row.velocity[1]))
        s.energy_max = max(s.energy_max, row.injected_energy)
        if s.ticks > 0:
            s.path += math.hypot(row.position[0] - s.last_position[0], row.position[1] - s.last_position[1])
        for i in range(2):
            s.last_position[i] = row.position[i]
            s.x[i] += row.position[i]
            s.x_t[i] += row.position[i] * row.time
        s.t += row.time
        s.t_square += row.time**2
        s.ticks += 1
        for i in range(2):  # displacement of the proxy while the contact sticks in this tick and the last one
            if row.sticking != 0 and s.rested != 0:
                s.crept[i] += row.proxy[i] - s.last_proxy[i]
            s.last_proxy[i] = row.proxy[i]
        s.rested = 1 if row.sticking != 0 else 0
        if row.sticking != 0:
            s.sticking += 1
            s.rest_buzz += square
            continue
        s.sliding += 1
        s.slide += friction
        s.slide_square += friction * friction
        vx, vy, fx, fy = row.sliding_velocity[0], row.sliding_velocity[1], row.friction_force[0], row.friction_force[1]
        s.aside += math.atan2(abs(vx * fy - vy * fx), vx * fx + vy * fy)
        v = math.hypot(vx, vy)
        if v > 0.0 and not math.isnan(row.hand_force[0]):
            along = row.hand_force[0] * vx + row.hand_force[1] * vy
            s.known += 1
            s.felt += along / v


# --- workers ----------------------------------------------------------------------------------------------------------

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
