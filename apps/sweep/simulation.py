"""Jobs of a sweep: complete sessions in simulated time, each reduced to its outcomes."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from apps.settings.config import SessionConfig
from apps.sweep.design import Job, Sweep
from apps.sweep.kernels import reduction
from apps.sweep.outcomes import OUTCOMES, Function, bound_growth, load_function, numbers_of, outcomes_of
from devices import create_device
from haptics.clock import Clock
from haptics.device import Device
from haptics.errors import HapticError
from haptics.servo.offline import Failed, OfflineJob, run_all, run_offline

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
        sessions = [_session(sweep, job) for job in some]
        if function is None:
            found.extend(_together(sweep, sessions))
        else:
            found.extend(_with_rows(sweep, session, function) for session in sessions)
    return found


class _Session:
    """A session that is ready to run."""

    def __init__(self, sweep: Sweep, job: Job) -> None:
        self.config = config = sweep.config(job)
        settings, period = sweep.settings, 1.0 / config.session.rate
        factory = functools.partial(_device, config)
        what = reduction(period, settings.settle)
        self.run = OfflineJob(factory, config.program, settings.duration, config.limits, what, config.made)

    def outcomes(self, sweep: Sweep, sums: Any) -> dict[str, Any]:
        """Return the selected outcomes from the sums of the session."""
        wanted = sweep.settings.outcomes or OUTCOMES
        found = outcomes_of(sums, self.config, sweep.settings.buzz_limit)
        if "bound_growth_per_s" in wanted:
            found["bound_growth_per_s"] = bound_growth(self.config)
        return {name: found[name] for name in wanted}


def _device(config: SessionConfig, clock: Clock) -> Device:
    return create_device(config.device, config.device_settings, clock=clock)


def _session(sweep: Sweep, job: Job) -> _Session | Failed:
    try:
        return _Session(sweep, job)
    except HapticError as error:
        return Failed(error)


def _together(sweep: Sweep, sessions: list[_Session | Failed]) -> list[Result]:
    """Run sessions without keeping rows."""
    ran = iter(run_all([session.run for session in sessions if isinstance(session, _Session)]))
    results: list[Result] = []
    for session in sessions:
        if isinstance(session, Failed):
            results.append(_failure(session))
            continue
        ended = next(ran)
        if isinstance(ended, Failed):
            results.append(_failure(ended))
        else:
            results.append({"outcomes": session.outcomes(sweep, ended.sums)})
    return results


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
