"""The emulated arm, held by something while a hand pushes: what the envelope makes of it, over drive and sensor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from devices.emulators.odrive.axis import IDLE
from haptics import CompliantAdmittance, Coulomb, Element, RigidAdmittance, Servo
from haptics.errors import DeviceFault
from haptics.records import Status
from haptics.rendering.envelope import UNUSABLE
from haptics.trace import Trace
from tests.devices.arm.arm_rig import ArmHere, let_go_by, opened
from tests.devices.arm.odrive_rig import states

PUSHED = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0], [0.3, 20.0, 0.0]]}
ELEMENTS: dict[str, Element] = {
    "A": RigidAdmittance(Coulomb(6.0), 2.0),
    "D": CompliantAdmittance(Coulomb(6.0), 2.0, 20_000.0, 400.0),
}


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def hold(arm: ArmHere, held: bool = True) -> None:
    with arm.board.lock:
        arm.plant.held = held


def servo(arm: ArmHere, model: str, folder: Path) -> tuple[Servo, Trace]:
    trace = Trace.create(folder / "trace", capacity=4096)
    return Servo(arm, ELEMENTS[model], trace, clock=arm.clock), trace


@pytest.mark.parametrize("model", ELEMENTS)
def test_a_blocked_arm_ends_the_run_with_loose_motors_and_does_not_jump(model: str, tmp_path: Path) -> None:
    with opened(hand=PUSHED) as arm:
        run, trace = servo(arm, model, tmp_path)
        hold(arm)
        with pytest.raises(DeviceFault, match=r"arm failed at tick \d+: it does not follow: since tick"):
            run.run(2.0)
        rows = trace.since(0)
        flagged = (rows["status"] & Status.FOLLOWING_ERROR) != 0
        assert flagged[-1]
        latest = rows["status"][rows["tick"] >= rows["tick"][-1] - 100]  # fewer than 101 rows where ticks were skipped
        assert (latest & UNUSABLE != 0).all()  # on a busy machine a sample may be old besides
        ahead = np.hypot(*(rows["command"] - rows["position"]).T)
        assert 0.02 < np.nanmax(ahead) < 0.021
        assert states(arm.board) == [IDLE, IDLE]
        let_go_by(arm, 0.2)  # the gears unwind
        before = arm.plant.handle
        hold(arm, held=False)
        let_go_by(arm, 0.5)
        assert np.hypot(*(arm.plant.handle - before)) < 1e-3


def test_an_arm_that_is_not_watched_runs_to_the_edge_of_its_workspace(tmp_path: Path) -> None:
    """This is what the rule is for."""
    with opened(hand=PUSHED, max_following_error=1000.0) as arm:
        run, trace = servo(arm, "A", tmp_path)
        hold(arm)
        run.run(1.2)
        rows = trace.since(0)
        assert not (rows["status"] & Status.FOLLOWING_ERROR).any()
        assert rows["command"][-1, 0] - rows["position"][-1, 0] > 0.15


def test_an_arm_that_nothing_holds_is_followed_by_nobody_s_fault(tmp_path: Path) -> None:
    with opened(hand={"name": "scripted-force", "script": [[0.0, 0.0, 0.0], [0.1, 12.0, 0.0]]}) as arm:
        run, trace = servo(arm, "A", tmp_path)
        run.run(0.5)
        rows = trace.since(0)
        assert rows["position"][-1, 0] - rows["position"][0, 0] > 0.05
        assert not (rows["status"] & Status.FOLLOWING_ERROR).any()
        assert np.nanmax(np.hypot(*(rows["command"] - rows["position"]).T)) < 0.01
