"""Sequences of runs in simulated time, compiled if their devices allow it.

A single call of compiled code executes all runs. The overhead of a run is then only the creation of its records: no
trace is mapped, no warm-up is needed, and no tick involves Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.clock import Clock
from haptics.device import Device
from haptics.records import NEUTRAL
from haptics.servo.job import CONTROL
from haptics.servo.loop_kernels import OVER
from haptics.servo.offline.kernels import AGENDA, run_agenda
from haptics.servo.offline.runs import OfflineJob, require_duration, run_offline
from haptics.servo.servo import Servo
from haptics.servo.system_kernels import SCRATCH
from haptics.trace import Trace

ROWS_AT_ONCE = 32
"""Number of rows reduced at a time: few enough to fit into the first-level cache."""

_NO_ENTRY = (0, 0, 0, 0, 0, 0)


@dataclass(frozen=True)
class Reduced:
    """Result of a run that reached its end.

    Attributes
    ----------
    sums : structured scalar
        Record of its reduction.
    """

    sums: Any


@dataclass(frozen=True)
class Failed:
    """Result of a run that failed.

    Attributes
    ----------
    error : Exception
        Error in the job or of the device.
    """

    error: Exception


@dataclass(frozen=True)
class _Ready:
    """A run on an open device, with the records of its loop, rendering, device and reduction, each (1,)."""

    servo: Servo
    records: tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
    reduction: int
    sums: NDArray[Any]

    @property
    def entry(self) -> tuple[int, ...]:
        """Entry of the run in an agenda (`haptics.servo.offline.kernels.AGENDA`)."""
        loop, core, port = (record.ctypes.data for record in self.records)
        return loop, core, port, self.reduction, self.sums.ctypes.data, 0


def run_all(jobs: Sequence[OfflineJob]) -> list[Reduced | Failed]:
    """Execute runs in sequence and return their results in the same order.

    A failed run does not stop the others. Each result is bit-identical to the result of `run_offline`.

    Parameters
    ----------
    jobs : sequence of OfflineJob
        Runs to execute. All their records are in memory at the same time, about 20 kB each.
    """
    trace = Trace.private(ROWS_AT_ONCE)
    begun = [_begin(job, trace) for job in jobs]
    agenda = np.array([run.entry if isinstance(run, _Ready) else _NO_ENTRY for run in begun], AGENDA)
    try:
        run_agenda(agenda, trace.slots, NEUTRAL, trace.counter, np.zeros(1, CONTROL), np.zeros(SCRATCH, np.int64))
    finally:
        for run in begun:
            if isinstance(run, _Ready):
                run.servo.leave()
    return [_end(*each) for each in zip(jobs, begun, agenda["outcome"].tolist(), strict=True)]


def _begin(job: OfflineJob, trace: Trace) -> _Ready | Failed | None:
    """Create the records of a run; None if the run needs Python in every tick."""
    try:
        require_duration(job.duration)
        device, clock = job.made or _made(job)
        servo = Servo(device, job.program, trace, clock=clock, limits=job.limits)
        records = servo.ready(job.duration)
        if records is not None:
            return _Ready(servo, records, job.reduction.address, job.reduction.record(trace.slots))
        servo.leave()
    except Exception as error:  # any error of a user-defined device; the other runs continue
        return Failed(error)
    return None


def _made(job: OfflineJob) -> tuple[Device, Clock]:
    clock = Clock(job.program.period)
    return job.factory(clock), clock


def _end(job: OfflineJob, run: _Ready | Failed | None, outcome: int) -> Reduced | Failed:
    """Return the result of a run; a run that did not reach its end is repeated with `run_offline`.

    A failure in compiled code occurs again in the repetition, where it raises an error with tick and cause.
    """
    if isinstance(run, Failed):
        return run
    if isinstance(run, _Ready) and outcome == OVER:
        return Reduced(run.sums[0])
    try:
        return Reduced(
            run_offline(job.factory, job.program, job.duration, limits=job.limits, reduction=job.reduction).sums[0]
        )
    except Exception as error:
        return Failed(error)
