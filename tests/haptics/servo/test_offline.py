"""Runs without a clock from Python: the rows of a servo, sums that agree with them, many side by side."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

import devices
from haptics import Coulomb, DeviceFault, MasslessImpedance, RigidAdmittance, Servo
from haptics.clock import Clock
from haptics.device import Device
from haptics.errors import ConfigurationError
from haptics.servo.loop import AT_ONCE, End
from haptics.servo.offline import OfflineJob, run_many, run_offline
from haptics.trace import Reader, Trace
from tests.haptics.doubles import BenchDevice
from tests.haptics.ported import PortedBench


def virtual(name: str, seed: int, clock: Clock) -> Device:
    return devices.create_device(name, {"seed": seed}, clock=clock)


def element() -> MasslessImpedance:
    return MasslessImpedance(Coulomb(3.0), 2000.0, 2.0)


def test_rows_are_those_of_a_servo_and_none_is_missing(tmp_path: Path) -> None:
    duration = 1e-3 * (3 * AT_ONCE + 17)
    run = run_offline(functools.partial(virtual, "virtual-joystick", 5), element(), duration, keep_rows=True)
    clock, trace = Clock(1e-3), Trace.create(tmp_path / "trace")
    Servo(virtual("virtual-joystick", 5, clock), element(), trace, clock=clock).run(duration)
    assert run.end is End.COMPLETED
    assert run.rows is not None
    rows = Reader(trace).read()
    assert len(run.rows) == len(rows) == 3 * AT_ONCE + 17
    assert run.rows.tobytes() == rows.tobytes()


@pytest.mark.parametrize("device", ["virtual-joystick", "virtual-arm", "plain"])
def test_metrics_agree_with_the_rows(device: str) -> None:
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


def test_a_device_without_a_port_loses_nothing_of_a_long_run() -> None:
    count = 5 * AT_ONCE + 17  # more than the trace holds
    run = run_offline(BenchDevice, element(), 1e-3 * count, keep_rows=True)
    assert run.rows is not None
    assert run.rows["tick"].tolist() == list(range(count))
    assert run.metrics.ticks == count
    assert run.metrics.path == pytest.approx(np.hypot(*np.diff(run.rows["position"], axis=0).T).sum())


def test_many_runs_come_out_as_each_alone_in_their_order() -> None:
    jobs = [OfflineJob(functools.partial(virtual, "virtual-joystick", seed), element(), 0.5) for seed in range(8)]
    together = run_many(jobs, workers=3)
    alone = [run_offline(job.factory, job.program, job.duration) for job in jobs]
    assert [run.metrics for run in together] == [run.metrics for run in alone]
    assert len({run.metrics.path for run in together}) == 8  # a seed each


def test_a_device_that_fails_says_so() -> None:
    with pytest.raises(DeviceFault, match="failed at tick 40"):
        run_offline(functools.partial(PortedBench, fail_at=40), element(), 1.0)
    jobs = [OfflineJob(functools.partial(PortedBench, fail_at=k), element(), 0.1) for k in (-1, 40)]
    with pytest.raises(DeviceFault, match="failed at tick 40"):
        run_many(jobs)


@pytest.mark.parametrize("duration", [0.0, -1.0, float("nan"), float("inf")])
def test_a_run_needs_an_end(duration: float) -> None:
    with pytest.raises(ConfigurationError, match="duration"):
        run_offline(BenchDevice, element(), duration)


def test_somebody_has_to_work() -> None:
    with pytest.raises(ConfigurationError, match="workers = 0"):
        run_many([], workers=0)
