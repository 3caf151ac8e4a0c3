"""The compiled loop equals the loop in Python to the last bit; live runs, and the gate that fades the output."""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

import numpy as np
import pytest

from haptics import Clock, Coulomb, DeviceFault, Servo, Stribeck, Trace, WallClock
from haptics.device import MAX_CHANNELS
from haptics.elements.models import MasslessImpedance, write_parameters
from haptics.records import Rows, Status
from haptics.rendering.envelope import Limits
from haptics.rendering.rendering import Rendering
from haptics.servo.control import Supervision
from haptics.servo.kernels import AVAILABLE, CONTROL, GATE_TIME, SETTINGS
from haptics.servo.servo import MAX_TICKS_PER_CALL, EndReason
from haptics.shared import Mailbox, SharedFile
from tests.haptics.changing import element_of
from tests.haptics.doubles import BenchDevice, PlainBench, PortedBench, ThreadedBench
from tests.haptics.strategies import Grip
from tests.haptics.strategies import make as make_element

on_linux = pytest.mark.skipif(not AVAILABLE, reason="the compiled loop is for Linux")


def make(model):
    return make_element(model, Stribeck(2.0, 4.0, 0.5), Grip(mass=2.0, stiffness=3000.0, damping=10.0))


class Done(NamedTuple):
    servo: Servo
    device: PortedBench
    rows: Rows
    fault: str


def run(kind, model, folder, duration=0.3, supervision=None, **changes):
    clock, element = Clock(1e-3), make(model)
    device = kind(clock, element.causality, **changes)
    trace = Trace.create(folder / f"{kind.__name__}-{model}")
    servo = Servo(device, element, trace, clock=clock, supervision=supervision)
    fault = ""
    try:
        servo.run(duration)
    except DeviceFault as error:
        fault = str(error)
    return Done(servo, device, servo.trace.since(0), fault)


def assert_same(compiled, plain):
    assert compiled.servo.compiled
    assert not plain.servo.compiled
    assert len(compiled.rows) == len(plain.rows)
    for name in compiled.rows.dtype.names or ():
        np.testing.assert_array_equal(compiled.rows[name], plain.rows[name], err_msg=name)
    np.testing.assert_array_equal(compiled.device.record["heard"], plain.device.record["heard"])
    assert compiled.fault == plain.fault
    assert compiled.device.closed == plain.device.closed == 1


@on_linux
@pytest.mark.parametrize("model", "ABCD")
def test_both_loops_record_the_same_bits(model, tmp_path):
    compiled = run(PortedBench, model, tmp_path)
    assert len(compiled.rows) == 300
    assert_same(compiled, run(PlainBench, model, tmp_path))


@on_linux
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"fail_at": 57}, "failed at tick 57: bench"),
        ({"stale_from": 41}, "since tick 46"),
        ({"dead_man": "button"}, ""),
    ],
)
def test_both_loops_end_alike(changes, words, tmp_path):
    compiled = run(PortedBench, "C", tmp_path, **changes)
    assert words in compiled.fault
    assert_same(compiled, run(PlainBench, "C", tmp_path, **changes))


@on_linux
def test_both_loops_record_the_declared_channels(tmp_path):
    channels = (("joint_angles", "rad", 2), ("temperature", "degC", 1))
    compiled = run(PortedBench, "C", tmp_path, channels=channels)
    assert_same(compiled, run(PlainBench, "C", tmp_path, channels=channels))
    expected = np.arange(1, 301)[:, None] + (0.0, 0.01, 0.02)
    np.testing.assert_allclose(compiled.rows["channels"][:, :3], expected, rtol=1e-15)
    assert np.isnan(compiled.rows["channels"][:, 3:]).all()


@on_linux
def test_offline_run_pauses_for_its_reader(tmp_path):
    clock = Clock(1e-3)
    trace = Trace.create(tmp_path / "trace")
    servo = Servo(PortedBench(clock), make("C"), trace, clock=clock)
    counts: list[int] = []
    servo.run(20.0, between=lambda: counts.append(trace.count))
    assert counts == [*range(MAX_TICKS_PER_CALL, 20_000, MAX_TICKS_PER_CALL), 20_000]


@pytest.fixture
def lanes(tmp_path):
    control, settings = SharedFile("control"), SharedFile("settings")
    yield Mailbox(control.path, CONTROL, create=True), Mailbox(settings.path, SETTINGS, create=True)
    control.close()
    settings.close()


def run_live(lanes, folder, action, **limits):
    """Run on the wall clock while another thread calls `action`."""
    clock = WallClock(1e-3)
    element = make("C")
    device = PortedBench(clock, element.causality)
    bounds = Limits.for_device(device.spec, dict(limits))
    servo = Servo(
        device, element, Trace.create(folder / "live"), clock=clock, limits=bounds, supervision=Supervision(*lanes)
    )
    servo.warm_up()
    other = threading.Thread(target=action, args=(servo.trace,))
    other.start()
    end = servo.run(10.0)
    other.join()
    assert servo.compiled
    return servo, end


def await_count(trace, count):
    until = time.monotonic() + 60.0
    while trace.count < count:
        assert time.monotonic() < until
        time.sleep(1e-3)


@on_linux
def test_live_run_takes_settings_and_a_stop_and_keeps_to_the_clock(lanes, tmp_path):
    control, lane = lanes

    def change(trace):
        for version in (1, 2, 3):
            await_count(trace, trace.count + 20)
            settings = np.zeros(1, SETTINGS)
            write_parameters(MasslessImpedance(Stribeck(0.5 * version, 1.0 * version, 0.5), 3000.0, 10.0), settings)
            settings["version"] = version
            lane.publish(settings[0])
        await_count(trace, trace.count + 20)
        control.record["stop"] = 1

    begun = time.monotonic()
    servo, end = run_live(lanes, tmp_path, change)
    taken, rows = time.monotonic() - begun, servo.trace.since(0)
    assert end is EndReason.STOPPED
    assert list(dict.fromkeys(rows["settings_version"].tolist())) == [0, 1, 2, 3]
    assert servo.noticed_ns > 0
    assert np.hypot(*rows["command"][-1]) < np.hypot(*rows["command"][-30])  # it faded out
    assert (np.diff(rows["tick"]) >= 1).all()
    np.testing.assert_allclose(rows["time"], 1e-3 * rows["tick"])
    assert rows["time"][-1] < taken
    assert (rows["period_error"] >= 0.0).all()
    assert (rows["tick_time"] >= rows["write_time"]).all()
    assert (rows["write_time"] > 0.0).all()


@on_linux
def test_live_run_obeys_the_dead_man_key(lanes, tmp_path):
    control, _ = lanes

    def hold(trace):
        await_count(trace, 30)
        for _ in range(50):
            control.record["key_ns"] = time.monotonic_ns()
            time.sleep(4e-3)
        await_count(trace, trace.count + 300)
        control.record["stop"] = 1

    servo, _ = run_live(lanes, tmp_path, hold, dead_man="key")
    forces = np.hypot(*servo.trace.since(0)["command"].T)
    assert not forces[:20].any()
    assert forces.max() > 1.0
    assert not forces[-1]


@on_linux
def test_sample_written_by_a_thread_is_never_torn(tmp_path):
    """Position, velocity and channels of each sample hold the same number."""
    clock = WallClock(1e-3)
    patient = {"max_sample_age": 10.0}  # a thread that does not get its turn is another matter
    device = ThreadedBench(clock, channels=(("everything", "1", MAX_CHANNELS),), **patient)
    servo = Servo(device, make("C"), Trace.create(tmp_path / "t"), clock=clock)
    servo.run(1.0)
    rows = servo.trace.since(0)
    assert servo.compiled
    np.testing.assert_array_equal(rows["position"][:, 0], rows["position"][:, 1])
    np.testing.assert_array_equal(rows["position"], rows["velocity"])
    np.testing.assert_array_equal(rows["channels"], np.repeat(rows["position"][:, :1], MAX_CHANNELS, axis=1))
    assert len(np.unique(rows["position"][:, 0])) > 50
    assert device.commands >= len(rows)


# --- gate


PERIOD = 1e-3
CLOSE, OPEN = 200, 400


def run_gate(model, folder):
    """Close the gate at tick `CLOSE`, open it at `OPEN`; return a new rendering of the same element and the rows."""
    clock, lane = Clock(PERIOD), Mailbox(folder / "control", CONTROL, create=True)
    element = element_of(model, Coulomb(4.0))

    def change(rendering):
        lane.record["gate_closed"] = CLOSE <= clock.tick + 1 < OPEN  # it is looked at after the tick has begun

    device, trace = BenchDevice(clock, element.causality), Trace.create(folder / "trace")
    Servo(device, element, trace, clock=clock, supervision=Supervision(lane), before_tick=change).run(0.6)
    return Rendering(element_of(model, Coulomb(4.0)), device.spec), trace.since(0)


@pytest.mark.parametrize("model", "ABCD")
def test_gate_fades_the_output_along_a_cosine_and_replays(model, tmp_path):
    rendering, rows = run_gate(model, tmp_path)
    gate, ticks = rows["gate"], round(GATE_TIME / PERIOD)
    first, last = np.flatnonzero(gate < 1.0)[[0, -1]]
    assert first in {CLOSE - 1, CLOSE}
    cosine = 0.5 + 0.5 * np.cos(np.pi * np.arange(1, ticks + 1) / ticks)
    np.testing.assert_allclose(gate[first : first + ticks], cosine, atol=1e-12)
    np.testing.assert_allclose(gate[last - ticks + 2 : last + 1], cosine[:-1][::-1], atol=1e-12)
    assert not gate[first + ticks : last - ticks + 1].any()
    assert (rows["status"][gate < 1.0] & Status.FADE != 0).all()
    shut = rows[gate == 0.0]
    assert len(shut) > 100
    if model in "BC":
        assert not shut["command"].any()
        forces = np.hypot(*rows["command"].T)
        assert forces[CLOSE - 10] == pytest.approx(4.0, rel=1e-2)
        assert np.abs(np.diff(forces[CLOSE - 10 : OPEN + 100])).max() < 4.0 * np.pi / 2 / ticks * 1.1
    else:
        assert (shut["command"] == shut["command"][0]).all()  # it holds
        speeds = np.hypot(*np.diff(rows["command"], axis=0).T) / PERIOD
        assert speeds[OPEN + 150] > 0.0
        assert np.abs(np.diff(speeds)).max() <= 1e3 * PERIOD * (1 + 1e-6)  # the device's largest acceleration
    again = rendering.recompute(rows)
    for name in ("command", "proxy", "displacement", "friction_force", "injected_energy", "gate"):
        np.testing.assert_array_equal(again[name], rows[name], err_msg=name)


@on_linux
def test_both_loops_move_the_gate_alike(tmp_path):
    lane = Mailbox(tmp_path / "control", CONTROL, create=True)
    lane.record["gate_closed"] = 1
    compiled, plain = (run(kind, "C", tmp_path, 0.2, Supervision(lane)) for kind in (PortedBench, PlainBench))
    assert_same(compiled, plain)
    assert not compiled.rows["gate"][round(GATE_TIME / PERIOD) + 1 :].any()
