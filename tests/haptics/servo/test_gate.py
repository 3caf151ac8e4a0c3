"""The gate: from outside the output is let down and up again, as between two trials; a replay knows how far."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from haptics import CompliantAdmittance, Coulomb, InertialImpedance, MasslessImpedance, RigidAdmittance, Servo
from haptics.clock import Clock
from haptics.elements.models import Element
from haptics.records import Rows, Status
from haptics.rendering.rendering import Rendering
from haptics.servo.job import CONTROL
from haptics.servo.lane import Lane
from haptics.servo.loop import AT_ONCE
from haptics.servo.loop_kernels import GATE_TIME
from haptics.servo.supervision import Supervision
from haptics.servo.system_kernels import AVAILABLE
from haptics.trace import Trace
from tests.haptics.doubles import BenchDevice
from tests.haptics.ported import PlainBench, PortedBench

PERIOD = 1e-3
WAY = round(GATE_TIME / PERIOD)
CLOSE, OPEN = 200, 400
ELEMENTS: dict[str, Element] = {
    "A": RigidAdmittance(Coulomb(4.0), 2.0),
    "B": InertialImpedance(Coulomb(4.0), 0.1, 600.0, 5.0),
    "C": MasslessImpedance(Coulomb(4.0), 6000.0, 10.0),
    "D": CompliantAdmittance(Coulomb(4.0), 2.0, 6000.0, 10.0),
}
models = pytest.mark.parametrize("model", ELEMENTS)


def run(model: str, folder: Path) -> tuple[Servo, Rows]:
    """Close the gate at tick `CLOSE`, open it at `OPEN`."""
    clock, lane = Clock(PERIOD), Lane(folder / "control", CONTROL, create=True)

    def change(rendering: Rendering) -> None:
        lane.record["gate_closed"] = CLOSE <= clock.tick + 1 < OPEN  # it is looked at after the tick has begun

    device = BenchDevice(clock, ELEMENTS[model].causality)
    trace = Trace.create(folder / "trace")
    servo = Servo(device, ELEMENTS[model], trace, clock=clock, supervision=Supervision(lane), before_tick=change)
    servo.run(0.6)
    return servo, trace.since(0)


@models
def test_output_goes_down_and_up_along_a_cosine(model: str, tmp_path: Path) -> None:
    _, rows = run(model, tmp_path)
    gate = rows["gate"]
    first = int(np.flatnonzero(gate < 1.0)[0])
    assert first in {CLOSE - 1, CLOSE}
    way = 0.5 + 0.5 * np.cos(np.pi * np.arange(1, WAY + 1) / WAY)
    np.testing.assert_allclose(gate[first : first + WAY], way, atol=1e-12)
    last = int(np.flatnonzero(gate < 1.0)[-1])
    np.testing.assert_allclose(gate[last - WAY + 2 : last + 1], way[:-1][::-1], atol=1e-12)
    assert not gate[first + WAY : last - WAY + 1].any()
    assert (rows["status"][gate < 1.0] & Status.FADE != 0).all()


@models
def test_nothing_is_felt_behind_a_closed_gate(model: str, tmp_path: Path) -> None:
    _, rows = run(model, tmp_path)
    shut = rows[rows["gate"] == 0.0]
    assert len(shut) > 100
    if model in "BC":
        assert not shut["command"].any()
        forces = np.hypot(*rows["command"].T)
        assert forces[CLOSE - 10] == pytest.approx(4.0, rel=1e-2)
        assert np.abs(np.diff(forces[CLOSE - 10 : OPEN + 100])).max() < 4.0 * np.pi / 2 / WAY * 1.1
    else:
        assert (shut["command"] == shut["command"][0]).all()  # it holds
        speeds = np.hypot(*np.diff(rows["command"], axis=0).T) / PERIOD
        assert speeds[OPEN + 150] > 0.0
        assert np.abs(np.diff(speeds)).max() <= 1e3 * PERIOD * (1 + 1e-6)  # the device's largest acceleration


@models
def test_a_replay_comes_to_the_same_bits(model: str, tmp_path: Path) -> None:
    servo, rows = run(model, tmp_path)
    again = Rendering(ELEMENTS[model], servo.device.spec).again(rows)
    for name in ("command", "proxy", "displacement", "friction_force", "injected_energy", "gate"):
        np.testing.assert_array_equal(again[name], rows[name], err_msg=name)


@pytest.mark.skipif(not AVAILABLE, reason="the compiled loop is for Linux")
def test_both_loops_move_it_alike(tmp_path: Path) -> None:
    found: list[Any] = []
    for kind in (PortedBench, PlainBench):
        clock, lane = Clock(PERIOD), Lane(tmp_path / f"control-{kind.__name__}", CONTROL, create=True)
        trace = Trace.create(tmp_path / kind.__name__)
        lane.record["gate_closed"] = 1
        servo = Servo(kind(clock), ELEMENTS["C"], trace, clock=clock, supervision=Supervision(lane))
        servo.run(0.2)
        found.append(trace.since(0))
        assert len(found[-1]) < AT_ONCE
    for name in ("gate", "command", "status"):
        np.testing.assert_array_equal(found[0][name], found[1][name])
    assert not found[0]["gate"][WAY + 1 :].any()
