"""Long computations for the topic of tests/calibration/test_handle.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibration.handle import CENTRES, MASS, identify_handle
from calibration.motions import Mover
from calibration.motions.poses import Poses, measure_wrenches
from devices.arm.sensors.mounting import STANDARD_GRAVITY
from tests.calibration.test_handle import BIAS, deviations, mover, truth, vertical
from tests.devices.arm.arm_rig import ArmHere, settings


def test_a_virtual_arm_in_a_horizontal_plane_tells_what_it_shows_at_rest(tmp_path: Path) -> None:
    poses, _ = measure_wrenches(mover(), Poses(rounds=1), tmp_path / "poses")
    found = identify_handle(poses)
    assert {MASS, *CENTRES} <= set(found.unknown)
    assert found.resting[2] == pytest.approx(BIAS[2] - 0.3 * STANDARD_GRAVITY, abs=0.05)
    assert found.values["bias_force_x_n"] == pytest.approx(BIAS[0], abs=0.05)


def test_the_driver_of_a_real_arm_tells_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    centre = (0.0, 0.01, 0.05)
    own = vertical(centre) | {"half_width": 0.04, "half_height": 0.04}
    poses = Poses(columns=2, rows=2, rounds=1, hold=0.05, settle=0.05, speed=0.25)
    here = Mover(lambda more, clock: ArmHere(settings(**own)), live=False, clock_of=lambda device: device.clock)
    found = identify_handle(measure_wrenches(here, poses, tmp_path / "poses")[0])
    assert not found.unknown
    off = deviations(found, truth(0.3, centre))
    assert max(abs(off[name]) for name in (MASS, *CENTRES)) < 6.0
    assert found.values[MASS] == pytest.approx(0.3, abs=0.1)
