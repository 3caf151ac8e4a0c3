"""The compiled loop equals the loop in Python to the last bit; the gate fades the output."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from haptics import Clock, Coulomb, DeviceFault, Servo, Stribeck, Trace
from haptics.records import Rows, Status
from haptics.rendering.rendering import Rendering
from haptics.servo.control import Supervision
from haptics.servo.kernels import AVAILABLE, CONTROL, GATE_TIME
from haptics.servo.servo import MAX_TICKS_PER_CALL
from haptics.shared import Mailbox
from tests.haptics.changing import element_of
from tests.haptics.doubles import BenchDevice, PlainBench, PortedBench
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
