"""Complete calibrations of emulated sticks and wheels with unusual firmware."""

from dataclasses import replace

import numpy as np
import pytest

from devices.emulators.pid.profiles import PROFILES
from haptics.errors import ConfigurationError
from haptics.recording.recording import Recording
from haptics.recording.replay import verify
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


def test_the_parameters_of_a_wheel_are_found(tmp_path):
    """The other wheel is turned by the default of 90 degrees."""
    table = bench(WHEEL, turn=360.0)
    found = attempt(table, tmp_path / "run", turn=360.0)
    own, truth = found.parameters, truth_of(table.stick)
    near(own.axes.counts_to_m, truth.axes.counts_to_m, METRES)
    near(own.force.newton_to_level, truth.force.newton_to_level, NEWTONS)
    assert own.axes.centre_counts == pytest.approx((0.0, 0.0), abs=3.0)
    assert own.axes.workspace_max_m == pytest.approx(truth.axes.workspace_max_m, rel=0.01)
    assert own.axes.rim_radius_m == truth.axes.rim_radius_m
    assert own.handle.moving_mass_kg == pytest.approx(truth.handle.moving_mass_kg, rel=0.1)
    assert own.force.release_s == pytest.approx(0.2, abs=0.03)
    assert own.device == truth.device
    assert "a rim of 0.125 m radius" in own.provenance.method
    assert len({fields["block"] for fields in table.stick.received("constant")}) == 1, "one effect"
    assert left_alone(table.stick)
    assert np.abs(Recording(tmp_path / "run_pushes").rows["position"][:, 0]).max() < 0.1, "it is turned a little"
    assert verify(Recording(tmp_path / "run_pushes")).verdict == "ok"
