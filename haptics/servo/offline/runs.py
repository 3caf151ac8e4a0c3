"""Runs in simulated time: a single run, optionally with its rows, or parallel runs in threads."""

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
    """Result of a run in simulated time.

    Attributes
    ----------
    end : End
        Reason for the end.
    sums : (1,) structured array
        Record of its reduction.
    rows : (n,) structured array or None
        All ticks (`haptics.records.ROW`), if requested.
    """

    end: End
    sums: NDArray[Any]
    rows: Rows | None

    @property
    def metrics(self) -> Metrics:
        """Standard metrics; valid only for the default reduction."""
        return metrics_of(self.sums[0])


@dataclass(frozen=True)
class OfflineJob:
    """Parameters of one of many runs; see `run_offline`.

    Attributes
    ----------
    made : (Device, Clock) or None
        Optional device from the factory, not yet opened, and its clock.
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
    """Run a program on a device in simulated time, as fast as possible.

    Parameters
    ----------
    factory : callable
        Creates the device, given the `haptics.clock.Clock` of the run; the device must be virtual and use this clock.
    program : Element or Motion
        Program to run. The state of elements is not changed.
    duration : float
        Duration of the run [s].
    limits : Limits, optional
        Limits of the envelope; by default the limits of the device.
    keep_rows : bool
        Whether to store all ticks, about 0.5 MB per second at 1 kHz.
    reduction : Reduction
        Reduction of the rows; by default the one for `Metrics`.

    Raises
    ------
    ConfigurationError
        If the duration is not valid, or program and device are not compatible.
    DeviceFault
        If the device failed; contains the last rows.
    """
    require_duration(duration)
    clock, trace = Clock(program.period), Trace.private(2 * AT_ONCE)
    servo = Servo(factory(clock), program, trace, clock=clock, limits=limits)
    taken = _Taken(trace, reduction, keep_rows)
    end = servo.run(duration, between=taken)
    taken()
    return OfflineRun(end, taken.sums, taken.rows)


def require_duration(duration: float) -> None:
    """Raise `ConfigurationError` unless the duration is positive and finite."""
    if not 0.0 < duration < math.inf:
        raise ConfigurationError(f"duration = {duration!r}: must be a finite time greater than 0 s.")


def run_many(jobs: Sequence[OfflineJob], workers: int = 2) -> list[OfflineRun]:
    """Run many programs in parallel, each on a separate device, and return the results in the same order.

    Parameters
    ----------
    jobs : sequence of OfflineJob
        Runs to execute. Different seeds must be set in their factories.
    workers : int
        Number of threads, at least 1.

    Raises
    ------
    ConfigurationError, DeviceFault
        Error of the first failed job; see `run_offline`.
    """
    if workers < 1:
        raise ConfigurationError(f"workers = {workers}: must be at least 1.")

    def run(job: OfflineJob) -> OfflineRun:
        return run_offline(job.factory, job.program, job.duration, limits=job.limits, reduction=job.reduction)

    with ThreadPoolExecutor(workers, "haptics offline") as threads:
        return list(threads.map(run, jobs))


class _Taken:
    """Callback during a run that reduces, and optionally stores, the new rows of the trace."""

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
