"""Complete calibrations of emulated sticks and wheels with unusual firmware."""

from dataclasses import replace

import numpy as np
import pytest

from devices.emulators.pid.profiles.known import PROFILES
from haptics.errors import ConfigurationError
from tests.calibration.benches import attempt, bench, left_alone, near, truth_of
from tests.calibration.test_joystick import METRES, NEWTONS, WHEEL


@pytest.fixture(params=["latest", "turns"])
def summing(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PROFILES, request.param, replace(PROFILES["openffboard"], sums=request.param))
        yield request.param


def test_firmware_that_cannot_add_effects_is_calibrated_with_one_effect(summing, tmp_path):
    table = bench(summing)
    found = attempt(table, tmp_path / "run")
    own, truth = found.parameters, truth_of(table.stick)
    assert own.force.effects == 1 == found.facts["effects"]
    near(own.axes.counts_to_m, truth.axes.counts_to_m, 0.005)
    scale = np.linalg.norm(own.force.newton_to_level, 2) / np.linalg.norm(truth.force.newton_to_level, 2)
    near(own.force.newton_to_level, scale * np.array(truth.force.newton_to_level), 0.03)
    assert scale == pytest.approx(1.0, abs=0.06), "the stated force is that of the weaker axis, or of a whole effect"
    assert left_alone(table.stick)


def test_a_wheel_with_the_descriptor_of_a_stick_is_calibrated(tmp_path, monkeypatch):
    disguised = replace(PROFILES["openffboard"], handle=PROFILES[WHEEL].handle)
    monkeypatch.setitem(PROFILES, "disguised", disguised)
    own = attempt(bench("disguised"), tmp_path / "wheel").parameters
    near(own.axes.counts_to_m, disguised.truths()["axes"]["counts_to_m"], METRES)
    near(own.force.newton_to_level, disguised.truths()["force"]["newton_to_level"], NEWTONS)
    with pytest.raises(ConfigurationError, match="are those at"):
        attempt(bench("disguised"), tmp_path / "stick", rim_radius=None, travel_x=0.2, travel_y=0.16)
