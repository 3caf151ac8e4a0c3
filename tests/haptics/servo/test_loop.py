"""The compiled loop does what the loop in Python does, tick by tick and to the last bit."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from haptics import (
    CompliantAdmittance,
    DeviceFault,
    InertialImpedance,
    MasslessImpedance,
    RigidAdmittance,
    Servo,
    Stribeck,
)
from haptics.clock import Clock, WallClock
from haptics.device import MOST_CHANNELS
from haptics.elements.models import Element, write_parameters
from haptics.records import Rows
from haptics.rendering.envelope import Limits
from haptics.servo.job import CONTROL
from haptics.servo.lane import Lane
from haptics.servo.loop import AT_ONCE, End
from haptics.servo.supervision import SETTINGS, Supervision
from haptics.servo.system_kernels import AVAILABLE
from haptics.shared import SharedFile
from haptics.trace import Trace
from tests.haptics.ported import PlainBench, PortedBench, ThreadedBench

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="the compiled loop is for Linux")


def make(model: str) -> Element:
    law = Stribeck(2.0, 4.0, 0.5)
    elements: dict[str, Element] = {
        "A": RigidAdmittance(law, 2.0),
        "B": InertialImpedance(law, 0.1, 600.0, 5.0),
        "C": MasslessImpedance(law, 3000.0, 10.0),
        "D": CompliantAdmittance(law, 2.0, 3000.0, 10.0),
    }
    return elements[model]


class Done(NamedTuple):
    servo: Servo
    device: PortedBench
    rows: Rows
    fault: str


def run(kind: type[PortedBench], model: str, folder: Path, duration: float = 0.3, **changes: object) -> Done:
    clock, element = Clock(1e-3), make(model)
    device = kind(clock, element.causality, **changes)  # type: ignore[arg-type]
    servo = Servo(device, element, Trace.create(folder / f"{kind.__name__}-{model}"), clock=clock)
    fault = ""
    try:
        servo.run(duration)
    except DeviceFault as error:
        fault = str(error)
    return Done(servo, device, servo.trace.since(0), fault)


def assert_same(compiled: Done, plain: Done) -> None:
    assert compiled.servo.compiled
    assert not plain.servo.compiled
    assert len(compiled.rows) == len(plain.rows)
    for name in compiled.rows.dtype.names or ():
        np.testing.assert_array_equal(compiled.rows[name], plain.rows[name], err_msg=name)
    np.testing.assert_array_equal(compiled.device.record["heard"], plain.device.record["heard"])
    assert compiled.fault == plain.fault
    assert compiled.device.closed == plain.device.closed == 1


@pytest.mark.parametrize("model", "ABCD")
def test_both_loops_record_the_same_bits_and_command_the_same(model: str, tmp_path: Path) -> None:
    compiled = run(PortedBench, model, tmp_path)
    assert len(compiled.rows) == 300
    assert_same(compiled, run(PlainBench, model, tmp_path))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"fail_at": 57}, "failed at tick 57: bench"),
        ({"stale_from": 41}, "since tick 46"),
        ({"dead_man": "button"}, ""),
    ],
)
def test_both_loops_end_alike(changes: dict[str, object], words: str, tmp_path: Path) -> None:
    compiled = run(PortedBench, "C", tmp_path, **changes)
    assert words in compiled.fault
    assert_same(compiled, run(PlainBench, "C", tmp_path, **changes))


def test_both_loops_record_the_channels_that_were_declared(tmp_path: Path) -> None:
    channels = (("joint_angles", "rad", 2), ("temperature", "degC", 1))
    compiled = run(PortedBench, "C", tmp_path, channels=channels)
    assert_same(compiled, run(PlainBench, "C", tmp_path, channels=channels))
    expected = np.arange(1, 301)[:, None] + (0.0, 0.01, 0.02)
    np.testing.assert_allclose(compiled.rows["channels"][:, :3], expected, rtol=1e-15)
    assert np.isnan(compiled.rows["channels"][:, 3:]).all()


def test_who_follows_a_run_without_a_clock_can_keep_up(tmp_path: Path) -> None:
    clock = Clock(1e-3)
    trace = Trace.create(tmp_path / "trace")
    servo = Servo(PortedBench(clock), make("C"), trace, clock=clock)
    counts: list[int] = []
    servo.run(20.0, between=lambda: counts.append(trace.count))
    assert counts == [*range(AT_ONCE, 20_000, AT_ONCE), 20_000]


@pytest.fixture
def told(tmp_path: Path) -> Iterator[tuple[Lane, Lane]]:
    control, settings = SharedFile("control"), SharedFile("settings")
    yield Lane(control.path, CONTROL, create=True), Lane(settings.path, SETTINGS, create=True)
    control.close()
    settings.close()


def live(
    told: tuple[Lane, Lane], folder: Path, meanwhile: object, model: str = "C", **limits: object
) -> tuple[Servo, End]:
    """Run on the wall's clock, with somebody who does something `meanwhile` in another thread."""
    clock = WallClock(1e-3)
    element = make("C")
    device = PortedBench(clock, element.causality)
    bounds = Limits.of(device.spec, dict(limits))  # type: ignore[arg-type]
    servo = Servo(
        device, element, Trace.create(folder / "live"), clock=clock, limits=bounds, supervision=Supervision(*told)
    )
    servo.warm_up()
    other = threading.Thread(target=meanwhile, args=(servo.trace,))  # type: ignore[arg-type]
    other.start()
    end = servo.run(10.0)
    other.join()
    assert servo.compiled
    return servo, end


def await_count(trace: Trace, count: int) -> None:
    until = time.monotonic() + 60.0
    while trace.count < count:
        assert time.monotonic() < until
        time.sleep(1e-3)


def test_a_live_run_hears_settings_and_a_stop_while_python_does_something_else(
    told: tuple[Lane, Lane], tmp_path: Path
) -> None:
    control, lane = told

    def change(trace: Trace) -> None:
        for version in (1, 2, 3):
            await_count(trace, trace.count + 20)
            settings = np.zeros(1, SETTINGS)
            write_parameters(MasslessImpedance(Stribeck(0.5 * version, 1.0 * version, 0.5), 3000.0, 10.0), settings)
            settings["version"] = version
            lane.publish(settings[0])
        await_count(trace, trace.count + 20)
        control.record["stop"] = 1

    servo, end = live(told, tmp_path, change)
    rows = servo.trace.since(0)
    assert end is End.STOPPED
    assert list(dict.fromkeys(rows["settings_version"].tolist())) == [0, 1, 2, 3]
    assert servo.noticed_ns > 0
    assert np.hypot(*rows["command"][-1]) < np.hypot(*rows["command"][-30])  # it faded out
    assert (np.diff(rows["tick"]) >= 1).all()
    np.testing.assert_allclose(rows["time"], 1e-3 * rows["tick"])


def test_a_live_run_keeps_to_the_clock(told: tuple[Lane, Lane], tmp_path: Path) -> None:
    def stop(trace: Trace) -> None:
        time.sleep(0.3)
        told[0].record["stop"] = 1

    begun = time.monotonic()
    servo, _ = live(told, tmp_path, stop)
    taken = time.monotonic() - begun
    rows = servo.trace.since(0)
    assert rows["tick"][-1] * 1e-3 < taken
    assert (rows["period_error"] >= 0.0).all()
    assert (rows["tick_time"] >= rows["write_time"]).all()
    assert (rows["write_time"] > 0.0).all()


def test_the_key_of_the_dead_man_is_looked_at(told: tuple[Lane, Lane], tmp_path: Path) -> None:
    control, _ = told

    def hold(trace: Trace) -> None:
        await_count(trace, 30)
        for _ in range(50):
            control.record["key_ns"] = time.monotonic_ns()
            time.sleep(4e-3)
        await_count(trace, trace.count + 300)
        control.record["stop"] = 1

    servo, _ = live(told, tmp_path, hold, dead_man="key")
    forces = np.hypot(*servo.trace.since(0)["command"].T)
    assert not forces[:20].any()
    assert forces.max() > 1.0
    assert not forces[-1]


def test_a_sample_that_a_thread_writes_is_never_torn(tmp_path: Path) -> None:
    """Position, velocity and channels of a sample tell the same number here; half of one sample would not."""
    clock = WallClock(1e-3)
    patient = {"max_sample_age": 10.0}  # a thread that does not get its turn is another matter
    device = ThreadedBench(clock, channels=(("everything", "1", MOST_CHANNELS),), **patient)
    servo = Servo(device, make("C"), Trace.create(tmp_path / "t"), clock=clock)
    servo.run(1.0)
    rows = servo.trace.since(0)
    assert servo.compiled
    np.testing.assert_array_equal(rows["position"][:, 0], rows["position"][:, 1])
    np.testing.assert_array_equal(rows["position"], rows["velocity"])
    np.testing.assert_array_equal(rows["channels"], np.repeat(rows["position"][:, :1], MOST_CHANNELS, axis=1))
    assert len(np.unique(rows["position"][:, 0])) > 50
    assert device.commands >= len(rows)


def test_a_process_that_has_another_parent_was_deserted(told: tuple[Lane, Lane], tmp_path: Path) -> None:
    clock = WallClock(1e-3)
    supervision = Supervision(*told, application=2**22 + 1)
    servo = Servo(PortedBench(clock), make("C"), Trace.create(tmp_path / "t"), clock=clock, supervision=supervision)
    assert servo.run(5.0) is End.APPLICATION_LOST
