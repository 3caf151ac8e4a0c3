"""Whole runs without a clock, from Python: one, or many side by side in threads, each reduced to a few numbers.

::

    def joystick(clock):
        return create_device("virtual-joystick", {"seed": 3}, clock=clock)

    run = run_offline(joystick, MasslessImpedance(Coulomb(4.0), 2000.0, 2.0), 10.0)
    run.metrics.stick_fraction

A device with a port, as the virtual ones, runs without the interpreter: threads then use all processors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.clock import Clock
from haptics.errors import ConfigurationError
from haptics.jit import kernel
from haptics.records import Rows
from haptics.rendering.envelope import UNUSABLE, Limits
from haptics.rendering.programs import Program
from haptics.servo.job import DeviceFactory
from haptics.servo.loop import AT_ONCE, End
from haptics.servo.servo import Servo
from haptics.shared import SharedFile
from haptics.trace import Reader, Trace

_SUMS = np.dtype(
    [
        ("ticks", "<i8"),
        ("sticking", "<i8"),
        ("unusable", "<i8"),
        ("flags", "<i8"),
        ("force", "<f8"),
        ("force_square", "<f8"),
        ("force_max", "<f8"),
        ("path", "<f8"),
        ("energy_max", "<f8"),
        ("last", "<f8", (2,)),
    ]
)


@dataclass(frozen=True)
class Metrics:
    """What a run comes down to.

    Attributes
    ----------
    ticks : int
        Ticks executed.
    stick_fraction : float
        Share of them in which the contact was at rest.
    friction_mean, friction_rms, friction_max : float
        Norm of the friction force on the contact [N].
    path : float
        Way that the end effector went [m].
    injected_max : float
        Largest energy that the loop had injected [J].
    unusable_ticks : int
        Ticks with the safe output because no sample could be trusted.
    flags : int
        Every status bit that occurred (`haptics.records.Status`).
    """

    ticks: int
    stick_fraction: float
    friction_mean: float
    friction_rms: float
    friction_max: float
    path: float
    injected_max: float
    unusable_ticks: int
    flags: int


@dataclass(frozen=True)
class OfflineRun:
    """A run without a clock.

    Attributes
    ----------
    end : End
        Why it ended.
    metrics : Metrics
        What it comes down to.
    rows : (n,) structured array or None
        Every tick (`haptics.records.ROW`), where they were asked for.
    """

    end: End
    metrics: Metrics
    rows: Rows | None


@dataclass(frozen=True)
class OfflineJob:
    """What one of many runs is to do; see `run_offline` for each."""

    factory: DeviceFactory
    program: Program
    duration: float
    limits: Limits | None = None


@kernel
def _reduce(sums: Rows, slots: Rows, first: int, following: int) -> None:
    """Add the rows number `first` to `following` - 1 of a trace to `sums`."""
    s = sums[0]
    for k in range(first, following):
        row = slots[k % len(slots)]
        norm = math.hypot(row.friction_force[0], row.friction_force[1])
        s.force += norm
        s.force_square += norm * norm
        s.force_max = max(s.force_max, norm)
        if s.ticks > 0:
            s.path += math.hypot(row.position[0] - s.last[0], row.position[1] - s.last[1])
        s.last[0], s.last[1] = row.position[0], row.position[1]
        s.energy_max = max(s.energy_max, row.injected_energy)
        s.flags |= row.status
        s.sticking += row.sticking
        if row.status & UNUSABLE != 0:
            s.unusable += 1
        s.ticks += 1


def run_offline(
    factory: DeviceFactory,
    program: Program,
    duration: float,
    *,
    limits: Limits | None = None,
    keep_rows: bool = False,
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

    Raises
    ------
    ConfigurationError
        If the duration is not allowed, or program and device do not go together.
    DeviceFault
        If the device failed; it carries the last rows.
    """
    if not 0.0 < duration < math.inf:
        raise ConfigurationError(f"duration = {duration!r}: must be a finite time greater than 0 s.")
    clock, file = Clock(program.period), SharedFile("trace")
    try:
        trace = Trace.create(file.path, capacity=2 * AT_ONCE)
        servo = Servo(factory(clock), program, trace, clock=clock, limits=limits)
        taken = _Taken(trace, keep_rows)
        end = servo.run(duration, between=taken)
        taken()
    finally:
        file.close()
    return OfflineRun(end, taken.metrics, taken.rows)


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
        return run_offline(job.factory, job.program, job.duration, limits=job.limits)

    with ThreadPoolExecutor(workers, "haptics offline") as threads:
        return list(threads.map(run, jobs))


class _Taken:
    """Follows a run: called now and then, it takes in what the trace has gained."""

    def __init__(self, trace: Trace, keep_rows: bool) -> None:
        self._trace, self._done = trace, 0
        self._sums: NDArray[Any] = np.zeros(1, _SUMS)
        self._reader = Reader(trace) if keep_rows else None
        self._parts: list[Rows] = []

    def __call__(self) -> None:
        count = self._trace.count
        _reduce(self._sums, self._trace.slots, self._done, count)
        self._done = count
        if self._reader is not None:
            self._parts.append(self._reader.read())

    @property
    def rows(self) -> Rows | None:
        return np.concatenate(self._parts) if self._reader is not None else None

    @property
    def metrics(self) -> Metrics:
        s = self._sums[0]
        ticks = max(int(s["ticks"]), 1)
        return Metrics(
            ticks=int(s["ticks"]),
            stick_fraction=float(s["sticking"]) / ticks,
            friction_mean=float(s["force"]) / ticks,
            friction_rms=math.sqrt(float(s["force_square"]) / ticks),
            friction_max=float(s["force_max"]),
            path=float(s["path"]),
            injected_max=float(s["energy_max"]),
            unusable_ticks=int(s["unusable"]),
            flags=int(s["flags"]),
        )
