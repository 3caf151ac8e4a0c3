"""Runs in simulated time: a single run, a sequence, or parallel runs, each reduced to few numbers.

::

    def joystick(clock):
        return create_device("virtual-joystick", {"seed": 3}, clock=clock)

    run = run_offline(joystick, MasslessImpedance(Coulomb(4.0), 2000.0, 2.0), 10.0)
    run.metrics.stick_fraction

Devices with a port, such as the virtual ones, run without the interpreter, so that threads can use all processors. A
`Reduction` is a part (`haptics.jit`) ``(record, first, following)`` that processes every row in the compiled loop: it
adds the rows from index `first` to `following` (exclusive) to its record, which begins with `REDUCTION_FIELDS`, and
accesses each row with `row_of`. `run_all` executes many runs in a single call of compiled code. The overhead of a run
is then only the creation of its records: no trace is mapped, no warm-up is needed, and no tick involves Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.clock import Clock
from haptics.device import Device
from haptics.errors import ConfigurationError
from haptics.jit import address_of_part, call_part, inlined_kernel, kernel, record_at, run_part
from haptics.records import NEUTRAL, ROW, Rows, fields
from haptics.rendering.envelope import UNUSABLE, Limits
from haptics.rendering.kernels import CORE
from haptics.rendering.programs import Program
from haptics.servo.control import DeviceFactory
from haptics.servo.kernels import CONTINUE, CONTROL, LOOP, OVER, PORT, SCRATCH, begin_tick, execute_tick
from haptics.servo.servo import MAX_TICKS_PER_CALL, EndReason, Servo
from haptics.trace import Reader, Trace

# --- reductions -------------------------------------------------------------------------------------------------------

REDUCTION_FIELDS: list[tuple[Any, ...]] = [("slots", "<i8"), ("capacity", "<i8")]
"""First fields of the record of a reduction: address and number of the latest rows of the run."""

_SIZE = ROW.itemsize


@inlined_kernel
def row_of(s: Any, number: int) -> Any:
    """Return row `number` of the run whose reduction has the record `s`."""
    return record_at(s.slots + (number % s.capacity) * _SIZE, ROW)


@dataclass(frozen=True)
class Reduction:
    """Reduction of the rows of a run.

    Attributes
    ----------
    part : callable
        The kernel.
    start : (1,) structured array
        Initial record; the fields `REDUCTION_FIELDS` are set for each run.
    """

    part: Callable[..., None]
    start: NDArray[Any]

    @property
    def address(self) -> int:
        """Address of the part in this process; the part is compiled on first use."""
        return address_of_part(self.part, self.start.dtype)

    def record(self, slots: Rows) -> NDArray[Any]:
        """Return the initial record, (1,), of a run whose rows are written to `slots`."""
        record = self.start.copy()
        record["slots"], record["capacity"] = slots.ctypes.data, len(slots)
        return record


# --- standard metrics -------------------------------------------------------------------------------------------------

_SUMS = np.dtype(
    [
        *REDUCTION_FIELDS,
        *fields("<i8", "ticks sticking unusable status"),
        *fields("<f8", "force force_square force_max path energy_max"),
        ("last", "<f8", (2,)),
    ]
)


@dataclass(frozen=True)
class Metrics:
    """Summary of a run.

    Attributes
    ----------
    ticks : int
        Number of executed ticks.
    stick_fraction : float
        Fraction of ticks in which the contact was sticking.
    friction_mean, friction_rms, friction_max : float
        Norm of the friction force on the contact [N].
    path : float
        Path length of the end effector [m].
    injected_max : float
        Largest energy injected by the loop [J].
    unusable_ticks : int
        Number of ticks with the safe output because of an untrusted sample.
    flags : int
        All status bits that occurred (`haptics.records.Status`).
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


@kernel
def _add_rows(s: Any, first: float, following: float) -> None:
    """Add the rows from index `first` to `following` (exclusive)."""
    for number in range(int(first), int(following)):
        row = row_of(s, number)
        norm = math.hypot(row.friction_force[0], row.friction_force[1])
        s.force += norm
        s.force_square += norm * norm
        s.force_max = max(s.force_max, norm)
        if s.ticks > 0:
            s.path += math.hypot(row.position[0] - s.last[0], row.position[1] - s.last[1])
        s.last[0], s.last[1] = row.position[0], row.position[1]
        s.energy_max = max(s.energy_max, row.injected_energy)
        s.status |= row.status
        s.sticking += row.sticking
        if row.status & UNUSABLE != 0:
            s.unusable += 1
        s.ticks += 1


METRICS = Reduction(_add_rows, np.zeros(1, _SUMS))
"""Reduction for `metrics_of`."""


def metrics_of(sums: Any) -> Metrics:
    """Return the metrics of a run from the record of its reduction `METRICS`."""
    ticks = max(int(sums["ticks"]), 1)
    return Metrics(
        ticks=int(sums["ticks"]),
        stick_fraction=float(sums["sticking"]) / ticks,
        friction_mean=float(sums["force"]) / ticks,
        friction_rms=math.sqrt(float(sums["force_square"]) / ticks),
        friction_max=float(sums["force_max"]),
        path=float(sums["path"]),
        injected_max=float(sums["energy_max"]),
        unusable_ticks=int(sums["unusable"]),
        flags=int(sums["status"]),
    )


# --- single and parallel runs -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OfflineRun:
    """Result of a run in simulated time.

    Attributes
    ----------
    end : EndReason
        Reason for the end.
    sums : (1,) structured array
        Record of its reduction.
    rows : (n,) structured array or None
        All ticks (`haptics.records.ROW`), if requested.
    """

    end: EndReason
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
    clock, trace = Clock(program.period), Trace.private(2 * MAX_TICKS_PER_CALL)
    servo = Servo(factory(clock), program, trace, clock=clock, limits=limits)
    part, sums = reduction.address, reduction.record(trace.slots)
    reader, chunks, done = Reader(trace), list[Rows](), 0

    def reduce_rows() -> None:
        """Reduce, and optionally store, the new rows of the trace."""
        nonlocal done
        run_part(part, sums.ctypes.data, float(done), float(trace.count))
        done = trace.count
        if keep_rows:
            chunks.append(reader.read())

    end = servo.run(duration, between=reduce_rows)
    return OfflineRun(end, sums, np.concatenate(chunks) if keep_rows else None)


def require_duration(duration: float) -> None:
    """Raise `ConfigurationError` unless the duration is positive and finite."""
    if not 0.0 < duration < math.inf:
        raise ConfigurationError(f"duration = {duration!r}: must be a finite time greater than 0 s.")


BATCH = np.dtype([(name, "<i8") for name in ("loop", "core", "port", "reduction", "sums", "outcome")])
"""Entry of a run.

It contains the addresses of the run's records of dtype `LOOP`, `CORE` and `PORT`, of the part of its reduction and of
the reduction's record. ``outcome`` is the reason for the end of the run (`haptics.servo.kernels`). An entry of
zeros is skipped.
"""


@kernel
def run_batch(agenda: Rows, slots: Rows, neutral: Rows, count: Any, controls: Rows, scratch: Any) -> None:
    """Execute the runs in `agenda`, (m,) of dtype `BATCH`, in sequence; all devices must provide parts.

    The rows are written to `slots`, (n,), which are initialised with `neutral`, (1,), and passed to the reduction n at
    a time.
    """
    control = controls[0]
    for j in range(len(agenda)):
        entry = agenda[j]
        if entry.loop == 0:
            continue
        s, c, port = record_at(entry.loop, LOOP), record_at(entry.core, CORE), record_at(entry.port, PORT)
        for k in range(len(slots)):
            slots[k] = neutral[0]
        outcome = CONTINUE
        while outcome == CONTINUE:
            first = s.count
            for k in range(len(slots)):
                if s.tick >= s.last or not begin_tick(s, c, 0.0, 0):
                    outcome = OVER
                    break
                outcome = execute_tick(s, c, port, port, slots[k], count, control, scratch)
                if outcome != CONTINUE:
                    break
            call_part(entry.reduction, entry.sums, float(first), float(s.count))
        entry.outcome = outcome


# --- batches in one compiled call -------------------------------------------------------------------------------------

ROWS_AT_ONCE = 32
"""Number of rows reduced at a time: few enough to fit into the first-level cache."""


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
class _OpenRun:
    """A run on an open device, with the records of its loop, rendering, device and reduction, each (1,)."""

    servo: Servo
    records: tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
    reduction: int
    sums: NDArray[Any]


def run_all(jobs: Sequence[OfflineJob]) -> list[Reduced | Failed]:
    """Execute runs in sequence and return their results in the same order.

    A failed run does not stop the others. Each result is bit-identical to the result of `run_offline`.

    Parameters
    ----------
    jobs : sequence of OfflineJob
        Runs to execute. All their records are in memory at the same time, about 20 kB each.
    """
    trace = Trace.private(ROWS_AT_ONCE)
    begun = [_open_run(job, trace) for job in jobs]
    agenda = np.zeros(len(jobs), BATCH)
    for entry, run in zip(agenda, begun, strict=True):
        if isinstance(run, _OpenRun):
            entry["loop"], entry["core"], entry["port"] = (record.ctypes.data for record in run.records)
            entry["reduction"], entry["sums"] = run.reduction, run.sums.ctypes.data
    try:
        run_batch(agenda, trace.slots, NEUTRAL, trace.counter, np.zeros(1, CONTROL), np.zeros(SCRATCH, np.int64))
    finally:
        for run in begun:
            if isinstance(run, _OpenRun):
                run.servo.close()
    return [_result(*each) for each in zip(jobs, begun, agenda["outcome"].tolist(), strict=True)]


def _open_run(job: OfflineJob, trace: Trace) -> _OpenRun | Failed | None:
    """Create the records of a run; None if the run needs Python in every tick."""
    try:
        require_duration(job.duration)
        if job.made is None:
            clock = Clock(job.program.period)
            device = job.factory(clock)
        else:
            device, clock = job.made
        servo = Servo(device, job.program, trace, clock=clock, limits=job.limits)
        records = servo.open_compiled(job.duration)
        if records is not None:
            return _OpenRun(servo, records, job.reduction.address, job.reduction.record(trace.slots))
        servo.close()
    except Exception as error:  # any error of a user-defined device; the other runs continue
        return Failed(error)
    return None


def _result(job: OfflineJob, run: _OpenRun | Failed | None, outcome: int) -> Reduced | Failed:
    """Return the result of a run; a run that did not reach its end is repeated with `run_offline`.

    A failure in compiled code occurs again in the repetition, where it raises an error with tick and cause.
    """
    if isinstance(run, Failed):
        return run
    if isinstance(run, _OpenRun) and outcome == OVER:
        return Reduced(run.sums[0])
    try:
        return Reduced(
            run_offline(job.factory, job.program, job.duration, limits=job.limits, reduction=job.reduction).sums[0]
        )
    except Exception as error:
        return Failed(error)
