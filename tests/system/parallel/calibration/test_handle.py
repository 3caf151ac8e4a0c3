"""Identification of mass, centre and bias of a handle on arms."""

import math

import numpy as np
import pytest
from scipy import stats

from calibration.handle import BIASES, CENTRES, MASS, identify_handle
from calibration.motions import Mover
from calibration.motions.arm import PoseMeasurement, Poses
from devices.arm.sensors.force_sensor import STANDARD_GRAVITY
from haptics.errors import DeviceFault
from haptics.recording.recording import Recording
from haptics.recording.replay import verify
from tests.calibration.test_handle import BIAS, ERRORS, arm, deviations, mounted, mover, shown, truth, vertical
from tests.devices.arm.arm_rig import ArmHere
from tests.devices.arm.arm_rig import settings as arm_settings


@pytest.mark.parametrize("walk", [0.0, 0.005, 0.02])
def test_the_stated_errors_agree_with_the_deviations(walk):
    random, centre, size = np.random.default_rng(3), (0.01, -0.02, 0.05), np.array((1.0, 1.0, 1.0, 0.02, 0.02, 0.02))
    mounting, turns = mounted(0.3, centre, (10.0, 20.0, 30.0), STANDARD_GRAVITY), np.tile(np.linspace(-0.6, 0.6, 12), 2)
    off = []
    for _ in range(100):
        wandered = walk * np.cumsum(random.standard_normal((24, 6)), axis=0)
        errors = size * (0.01 * random.standard_normal((24, 6)) + wandered)
        true = truth(0.3, centre, np.array(BIAS) + size * wandered.mean(axis=0))
        found = identify_handle(shown(mounting, turns, errors))
        assert not found.unknown and not found.warnings
        off.append(list(deviations(found, true).values()))
    assert np.shape(off) == (100, 10)
    assert np.sqrt(np.mean(np.square(off), axis=0)) == pytest.approx(np.ones(10), abs=0.25)
    # all 1000 deviations together are beyond this limit in one of 1000 such tests
    assert np.abs(off).max() < stats.t.isf(0.5 * 1e-3 / np.size(off), 3 * len(turns) - 4)


FEW = Poses(columns=3, rows=2, rounds=1, settle=0.2, hold=0.1, speed=0.3)


@pytest.mark.parametrize(("kind", "asked"), [("parallel-link", FEW), ("parallel-link", Poses()), ("five-bar", Poses())])
def test_a_vertical_virtual_arm_gives_every_parameter(kind, asked, tmp_path):
    centre = (0.01, -0.02, 0.05)
    changes = vertical(centre, (0.0, 30.0, 20.0))
    changes["arm"]["kind"] = kind
    poses, source = PoseMeasurement(asked).run(mover(**changes), tmp_path / "poses")
    found = identify_handle(poses)
    assert not found.unknown and not found.warnings
    assert found.values[MASS] == pytest.approx(0.3, abs=0.01)
    assert [found.values[name] for name in CENTRES] == pytest.approx(centre, abs=2e-3)
    off = deviations(found, truth(0.3, centre))
    assert max(abs(off[name]) for name in (MASS, *CENTRES)) < ERRORS
    assert [found.values[name] for name in BIASES] == pytest.approx(BIAS, abs=0.05)  # the bias drifts
    recording = Recording(tmp_path / "poses")
    assert len(recording.rows) > asked.columns * asked.rows * asked.rounds * (asked.settle + asked.hold) / 1e-3
    assert verify(recording).mismatches == 0
    assert source.device == "virtual-arm virtual, seed 0"


def test_a_sensor_without_valid_samples_is_a_fault(tmp_path):
    def blind(more, clock):
        device = arm(clock)
        read = device.read

        def read_without_wrench():
            state = read()
            state.channels[4:10] = math.nan
            return state

        device.read = read_without_wrench
        return device

    with pytest.raises(DeviceFault, match=r"only 0 of 5\d measurements"):
        PoseMeasurement(Poses(2, 2, 1, 0.0, 0.05)).run(Mover(blind, live=False), tmp_path / "poses")
    assert (tmp_path / "poses").exists()


def test_a_horizontal_virtual_arm_gives_the_resting_wrench(tmp_path):
    poses, _ = PoseMeasurement(Poses(rounds=1)).run(mover(), tmp_path / "poses")
    found = identify_handle(poses)
    assert {MASS, *CENTRES} <= set(found.unknown)
    assert found.resting[2] == pytest.approx(BIAS[2] - 0.3 * STANDARD_GRAVITY, abs=0.05)
    assert found.values["bias_force_x_n"] == pytest.approx(BIAS[0], abs=0.05)


def test_the_driver_of_an_arm_gives_the_handle(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    centre = (0.0, 0.01, 0.05)
    own = vertical(centre) | {"half_width": 0.04, "half_height": 0.04}
    poses = Poses(columns=2, rows=2, rounds=1, hold=0.05, settle=0.05, speed=0.25)
    here = Mover(lambda more, clock: ArmHere(arm_settings(**own)), live=False, clock_of=lambda device: device.clock)
    found = identify_handle(PoseMeasurement(poses).run(here, tmp_path / "poses")[0])
    assert not found.unknown
    off = deviations(found, truth(0.3, centre))
    assert max(abs(off[name]) for name in (MASS, *CENTRES)) < 6.0
    assert found.values[MASS] == pytest.approx(0.3, abs=0.1)
