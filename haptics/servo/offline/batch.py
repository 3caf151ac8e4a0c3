"""Many runs one after the other, in one call of compiled code where their devices allow it.

What a run costs besides its ticks is then what it takes to put its records together: no trace is mapped, nothing is
warmed up, and Python has no part in a tick.
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
"""Rows that are reduced at once: few enough to stay in the processor's first cache."""

_NO_ENTRY = (0, 0, 0, 0, 0, 0)


@dataclass(frozen=True)
class Reduced:
    """A run that came to its end.

    Attributes
    ----------
    sums : structured scalar
        The record of its reduction.
    """

    sums: Any


@dataclass(frozen=True)
class Failed:
    """A run that did not.

    Attributes
    ----------
    error : Exception
        What is wrong with the job, or what the device said.
    """

    error: Exception


@dataclass(frozen=True)
class _Ready:
    """A run on an open device: the records of its loop, its rendering, its device and its reduction, each (1,)."""

    servo: Servo
    records: tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
    reduction: int
    sums: NDArray[Any]

    @property
    def entry(self) -> tuple[int, ...]:
        """What an agenda has of it (`haptics.servo.offline.kernels.AGENDA`)."""
        loop, core, port = (record.ctypes.data for record in self.records)
        return loop, core, port, self.reduction, self.sums.ctypes.data, 0


def run_all(jobs: Sequence[OfflineJob]) -> list[Reduced | Failed]:
    """Make runs one after the other and return what each comes down to, in their order; one that fails stops no other.

    The numbers are those that `run_offline` gives for each, to the last bit.

    Parameters
    ----------
    jobs : sequence of OfflineJob
        What to run. The records of all are in memory at the same time, about 20 kB each.
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
    """Put a run together; None where Python must have its part in every tick."""
    try:
        require_duration(job.duration)
        device, clock = job.made or _made(job)
        servo = Servo(device, job.program, trace, clock=clock, limits=job.limits)
        records = servo.ready(job.duration)
        if records is not None:
            return _Ready(servo, records, job.reduction.address, job.reduction.record(trace.slots))
        servo.leave()
    except Exception as error:  # of a device of one's own: whatever it is, the others go on
        return Failed(error)
    return None


def _made(job: OfflineJob) -> tuple[Device, Clock]:
    clock = Clock(job.program.period)
    return job.factory(clock), clock


def _end(job: OfflineJob, run: _Ready | Failed | None, outcome: int) -> Reduced | Failed:
    """Return what came of a run, which is made in the ordinary way if it was not made, or did not get to its end.

    What failed in compiled code fails again then, and says at which tick, and why.
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
