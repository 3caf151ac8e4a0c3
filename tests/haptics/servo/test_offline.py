"""Offline runs from Python: rows equal the rows of a servo, reductions agree with the rows, many runs side by side."""

import functools
from dataclasses import replace

import numpy as np
import pytest

import devices
from haptics import Clock, ConfigurationError, Coulomb, DeviceFault, MasslessImpedance, RigidAdmittance, Servo
from haptics.jit import kernel, record_at, run_part
from haptics.records import ROW
from haptics.servo.offline import (
    METRICS,
    REDUCTION_FIELDS,
    ROWS_AT_ONCE,
    Failed,
    OfflineJob,
    Reduced,
    Reduction,
    metrics_of,
    run_all,
    run_offline,
)
from haptics.servo.servo import MAX_TICKS_PER_CALL, EndReason
from haptics.trace import Reader, Trace
from tests.haptics.doubles import BenchDevice, PortedBench


def virtual(name, seed, clock):
    return devices.create_device(name, {"seed": seed}, clock=clock)


def element():
    return MasslessImpedance(Coulomb(3.0), 2000.0, 2.0)


def test_rows_equal_those_of_a_servo(tmp_path):
    duration = 1e-3 * (3 * MAX_TICKS_PER_CALL + 17)
    run = run_offline(functools.partial(virtual, "virtual-joystick", 5), element(), duration, keep_rows=True)
    clock, trace = Clock(1e-3), Trace.create(tmp_path / "trace")
    Servo(virtual("virtual-joystick", 5, clock), element(), trace, clock=clock).run(duration)
    assert run.end is EndReason.COMPLETED
    assert run.rows is not None
    rows = Reader(trace).read()
    assert len(run.rows) == len(rows) == 3 * MAX_TICKS_PER_CALL + 17
    assert run.rows.tobytes() == rows.tobytes()


@pytest.mark.parametrize("device", ["virtual-joystick", "virtual-arm", "plain"])
def test_metrics_agree_with_the_rows(device):
    make = BenchDevice if device == "plain" else functools.partial(virtual, device, 2)
    program = RigidAdmittance(Coulomb(3.0), 2.0) if device == "virtual-arm" else element()
    run = run_offline(make, program, 1.5, keep_rows=True)
    rows, found = run.rows, run.metrics
    assert rows is not None
    norms = np.hypot(*rows["friction_force"].T)
    assert found.ticks == len(rows) == 1500
    assert found.stick_fraction == pytest.approx(np.mean(rows["sticking"]))
    assert found.friction_mean == pytest.approx(norms.mean())
    assert found.friction_rms == pytest.approx(np.sqrt(np.mean(norms**2)))
    assert found.friction_max == norms.max()
    assert found.path == pytest.approx(np.hypot(*np.diff(rows["position"], axis=0).T).sum())
    assert found.injected_max == rows["injected_energy"].max()
    assert found.flags == np.bitwise_or.reduce(rows["status"])
    assert found.unusable_ticks == 0


def test_device_without_a_port_keeps_all_rows():
    count = 5 * MAX_TICKS_PER_CALL + 17  # more than the trace holds
    run = run_offline(BenchDevice, element(), 1e-3 * count, keep_rows=True)
    assert run.rows is not None
    assert run.rows["tick"].tolist() == list(range(count))
    assert run.metrics.ticks == count
    assert run.metrics.path == pytest.approx(np.hypot(*np.diff(run.rows["position"], axis=0).T).sum())


def test_device_fault_is_raised():
    with pytest.raises(DeviceFault, match="failed at tick 40"):
        run_offline(functools.partial(PortedBench, fail_at=40), element(), 1.0)


@pytest.mark.parametrize("duration", [0.0, -1.0, float("nan"), float("inf")])
def test_invalid_duration_is_refused(duration):
    with pytest.raises(ConfigurationError, match="duration"):
        run_offline(BenchDevice, element(), duration)


# --- many in one call -------------------------------------------------------------------------------------------------


WORD = np.dtype([("value", "<i8")])
WORDS = ROW.itemsize // 8
HASH = np.dtype([*REDUCTION_FIELDS, ("hash", "<i8")])


@kernel
def add_bytes(s, first, following):
    """Add every word of the rows to a hash that knows their order."""
    for number in range(int(first), int(following)):
        place = s.slots + (number % s.capacity) * 8 * WORDS
        for k in range(WORDS):
            s.hash = 31 * s.hash + record_at(place + 8 * k, WORD).value


BYTES = Reduction(add_bytes, np.zeros(1, HASH))


def hash_of(rows):
    """Return the same of rows that are there as a whole."""
    record = BYTES.record(np.ascontiguousarray(rows))
    run_part(BYTES.address, record.ctypes.data, 0.0, float(len(rows)))
    return int(record["hash"][0])


def test_batch_equals_single_runs_to_the_last_bit():
    """Devices, programs, rates and lengths differ from run to run; so do the rows that a device leaves alone."""
    arm, stick = "virtual-arm", "virtual-joystick"
    jobs = [
        OfflineJob(functools.partial(virtual, stick, 1), element(), 0.7),
        OfflineJob(functools.partial(virtual, arm, 2), RigidAdmittance(Coulomb(3.0), 2.0), 0.4),
        OfflineJob(functools.partial(virtual, stick, 3), MasslessImpedance(Coulomb(2.0), 900.0, 1.0, 5e-4), 1e-3 * 333),
        OfflineJob(BenchDevice, element(), 0.2),  # in Python
        OfflineJob(functools.partial(virtual, stick, 1), element(), 0.7),
    ]
    # One start record per job: the sums of the runs must stay separate.
    together = run_all([replace(job, reduction=Reduction(METRICS.part, METRICS.start.copy())) for job in jobs])
    for job, found in zip(jobs, together, strict=True):
        assert isinstance(found, Reduced)
        alone = run_offline(job.factory, job.program, job.duration)
        assert metrics_of(found.sums) == alone.metrics
    assert metrics_of(together[0].sums) == metrics_of(together[4].sums)


@pytest.mark.parametrize("ticks", [1, ROWS_AT_ONCE - 1, ROWS_AT_ONCE, ROWS_AT_ONCE + 1, 10 * ROWS_AT_ONCE])
def test_every_row_is_reduced_once(ticks):
    job = OfflineJob(functools.partial(virtual, "virtual-joystick", 4), element(), 1e-3 * ticks)
    (found,) = run_all([job])
    assert isinstance(found, Reduced)
    assert int(found.sums["ticks"]) == ticks


def test_batch_makes_each_run_once():
    clocks = []

    def factory(clock):
        clocks.append(clock)
        return virtual("virtual-joystick", 4, clock)

    run_all([OfflineJob(factory, element(), 0.1)] * 3)
    assert len(clocks) == 3


def test_batch_reduces_the_rows_of_a_recorded_run():
    """The hash of all row bytes computed in the loop equals the hash of the kept rows."""
    job = OfflineJob(functools.partial(virtual, "virtual-joystick", 6), element(), 1.0, reduction=BYTES)
    (found,) = run_all([job])
    rows = run_offline(job.factory, job.program, 1.0, keep_rows=True).rows
    assert isinstance(found, Reduced)
    assert rows is not None
    assert int(found.sums["hash"]) == hash_of(rows)
    rows["command"][700, 0] = np.nextafter(rows["command"][700, 0], 1.0)
    assert int(found.sums["hash"]) != hash_of(rows)


def test_failed_run_of_a_batch_stops_no_other():
    good = OfflineJob(functools.partial(virtual, "virtual-joystick", 1), element(), 0.3)
    jobs = [
        good,
        OfflineJob(functools.partial(PortedBench, stale_from=25), element(), 0.3),
        OfflineJob(functools.partial(virtual, "virtual-arm", 1), element(), 0.1),
        replace(good, duration=-1.0),
        good,
    ]
    found = run_all(jobs)
    assert [type(each) for each in found] == [Reduced, Failed, Failed, Failed, Reduced]
    for job, each in zip(jobs[1:4], found[1:4], strict=True):
        with pytest.raises((DeviceFault, ConfigurationError)) as alone:
            run_offline(job.factory, job.program, job.duration)
        assert str(each.error) == str(alone.value)
    assert metrics_of(found[0].sums) == metrics_of(found[4].sums)
