"""Runs without a clock: one, with its rows where they are wanted, or many side by side in threads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.clock import Clock
from haptics.device import Device
from haptics.errors import ConfigurationError
from haptics.parts import run_part
from haptics.records import Rows
from haptics.rendering.envelope import Limits
from haptics.rendering.programs import Program
from haptics.servo.job import DeviceFactory
from haptics.servo.loop import AT_ONCE, End
from haptics.servo.offline.metrics import METRICS, Metrics, metrics_of
from haptics.servo.offline.reduction import Reduction
from haptics.servo.servo import Servo
from haptics.trace import Reader, Trace


@dataclass(frozen=True)
class OfflineRun:
    """A run without a clock.

    Attributes
    ----------
    end : End
        Why it ended.
    sums : (1,) structured array
        The record of its reduction.
    rows : (n,) structured array or None
        Every tick (`haptics.records.ROW`), where they were asked for.
    """

    end: End
    sums: NDArray[Any]
    rows: Rows | None

    @property
    def metrics(self) -> Metrics:
        """What it comes down to, if no other reduction was asked for."""
        return metrics_of(self.sums[0])


@dataclass(frozen=True)
class OfflineJob:
    """What one of many runs is to do; see `run_offline` for each.

    Attributes
    ----------
    made : (Device, Clock) or None
        A device from the factory that nobody has opened yet, and its clock, where they are there already.
    """

    factory: DeviceFactory
    program: Program
    duration: float
    limits: Limits | None = None
    reduction: Reduction = METRICS
    made: tuple[Device, Clock] | None = None


def run_offline(
    factory: DeviceFactory,
    program: Program,
    duration: float,
    *,
    limits: Limits | None = None,
    keep_rows: bool = False,
    reduction: Reduction = METRICS,
) -> OfflineRun:
    """Run a program on a device as fast as the machine can.

    Parameters
    ----------
    factory : callable
        Takes the `haptics.clock.Clock` of the run and returns the device: a virtual one, whose time is that clock's.
    program : Element or Motion
        What is run. Elements are left as they are.
    duration : float
        Length of the run [s].
    limits : Limits, optional
        The envelope; the device's own limits by default.
    keep_rows : bool
        Whether every tick is kept, about 0.5 MB for each second at 1 kHz.
    reduction : Reduction
        What else is kept; by default what `Metrics` are made of.

    Raises
    ------
    ConfigurationError
        If the duration is not allowed, or program and device do not go together.
    DeviceFault
        If the device failed; it carries the last rows.
    """
    require_duration(duration)
    clock, trace = Clock(program.period), Trace.private(2 * AT_ONCE)
    servo = Servo(factory(clock), program, trace, clock=clock, limits=limits)
    taken = _Taken(trace, reduction, keep_rows)
    end = servo.run(duration, between=taken)
    taken()
    return OfflineRun(end, taken.sums, taken.rows)


def require_duration(duration: float) -> None:
    """Refuse a run without an end."""
    if not 0.0 < duration < math.inf:
        raise ConfigurationError(f"duration = {duration!r}: must be a finite time greater than 0 s.")


def run_many(jobs: Sequence[OfflineJob], workers: int = 2) -> list[OfflineRun]:
    """Run many programs side by side, each on a device of its own, and return what each comes down to, in their order.

    Parameters
    ----------
    jobs : sequence of OfflineJob
        What to run; a seed of its own is a matter of each one's factory.
    workers : int
        Threads, at least 1.

    Raises
    ------
    ConfigurationError, DeviceFault
        What the first job that failed said; see `run_offline`.
    """
    if workers < 1:
        raise ConfigurationError(f"workers = {workers}: must be at least 1.")

    def run(job: OfflineJob) -> OfflineRun:
        return run_offline(job.factory, job.program, job.duration, limits=job.limits, reduction=job.reduction)

    with ThreadPoolExecutor(workers, "haptics offline") as threads:
        return list(threads.map(run, jobs))


class _Taken:
    """Follows a run: called now and then, it takes in what the trace has gained."""

    def __init__(self, trace: Trace, reduction: Reduction, keep_rows: bool) -> None:
        self._trace, self._done = trace, 0
        self._address = reduction.address
        self.sums = reduction.record(trace.slots)
        self._reader = Reader(trace) if keep_rows else None
        self._parts: list[Rows] = []

    def __call__(self) -> None:
        count = self._trace.count
        run_part(self._address, self.sums.ctypes.data, float(self._done), float(count))
        self._done = count
        if self._reader is not None:
            self._parts.append(self._reader.read())

    @property
    def rows(self) -> Rows | None:
        return np.concatenate(self._parts) if self._reader is not None else None
