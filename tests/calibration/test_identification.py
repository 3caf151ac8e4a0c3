"""From a recording to parameters: smoothing, inertia, checks on other recordings, and whose mistake it was."""

from dataclasses import replace

import numpy as np
import pytest

from calibration.friction import FitSettings
from calibration.identification import Wishes, identify, relative_error, samples_of, smoothed
from calibration.parameters.parameters import Found, JointParameters
from haptics.errors import ConfigurationError
from tests.calibration.hand_moved import KNEE
from tests.calibration.measured import friction, idle

JOINT = JointParameters("knee", True, Found("stribeck", KNEE))


def test_the_law_itself_has_no_error() -> None:
    assert relative_error(JOINT, samples_of(idle(), Wishes())) < 1e-12


def test_the_error_is_relative_to_the_torque() -> None:
    twice = replace(idle(), effort=2.0 * idle().effort)
    assert relative_error(JOINT, samples_of(twice, Wishes())) == pytest.approx(0.5)


def test_samples_that_counted_as_rest_are_not_judged() -> None:
    knee = idle()
    slow = np.abs(knee.velocity) < 0.02
    wrong_at_rest = replace(knee, effort=np.where(slow, 50.0, knee.effort))
    band = JointParameters("knee", True, Found("stribeck", KNEE, facts={"dead_band_rad_per_s": 0.02}))
    assert relative_error(band, samples_of(wrong_at_rest, Wishes())) < 1e-12
    assert relative_error(JOINT, samples_of(wrong_at_rest, Wishes())) > 0.5


def test_an_inertia_that_is_known_is_taken_off_and_one_that_was_found_is_judged() -> None:
    knee = idle()
    assert knee.acceleration is not None
    heavy = replace(knee, effort=knee.effort - 3.0 * knee.acceleration)
    assert relative_error(JOINT, samples_of(heavy, Wishes(inertia=3.0))) < 1e-12
    assert relative_error(JOINT, samples_of(heavy, Wishes())) > 0.05
    with_inertia = JointParameters("knee", True, Found("stribeck", {**KNEE, "inertia": 3.0}))
    assert relative_error(with_inertia, samples_of(heavy, Wishes())) < 1e-12
    with pytest.raises(ConfigurationError, match="has no accelerations"):
        relative_error(with_inertia, samples_of(replace(heavy, acceleration=None), Wishes()))


def test_a_load_that_is_known_is_no_friction() -> None:
    knee = idle()
    load = 4.0 * np.cos(knee.position)
    loaded = replace(knee, effort=knee.effort - load, load=load)
    assert relative_error(JOINT, samples_of(loaded, Wishes())) < 1e-12
    assert relative_error(JOINT, samples_of(replace(loaded, load=None), Wishes())) > 0.1
    with pytest.raises(ConfigurationError, match="leave out --inertia"):
        samples_of(loaded, Wishes(inertia=1.0))


def test_smoothing_takes_noise_away_without_lag() -> None:
    knee = idle()
    noisy = replace(
        knee, velocity=knee.velocity + 0.01 * np.random.default_rng(0).standard_normal(len(knee)), position=None
    )
    smooth = smoothed(noisy, 4.0)
    inner = slice(100, -100)
    left = (smooth.velocity - knee.velocity)[inner]
    assert np.std(left) < 0.004
    assert smooth.acceleration is not None and knee.acceleration is not None
    assert np.corrcoef(smooth.acceleration[inner], knee.acceleration[inner])[0, 1] > 0.95
    assert smoothed(noisy, None) is noisy


@pytest.mark.parametrize("cutoff", [4.0, "auto"])
def test_velocities_that_were_smoothed_keep_word_of_their_noise(cutoff: float | str) -> None:
    knee = idle()
    noise = 0.005 * np.random.default_rng(0).standard_normal(len(knee))
    noisy = replace(knee, velocity=knee.velocity + noise, acceleration=None, position=None)
    samples = samples_of(noisy, Wishes(smooth=cutoff))
    left = (samples.velocity - knee.velocity)[samples.inner]
    assert samples.noise == pytest.approx(left.std(), rel=0.15)
    assert samples.edge > 0
    assert samples.acceleration is not None


@pytest.mark.parametrize("smooth", [3.0, "auto"])
def test_positions_alone_are_enough_for_the_velocity(smooth: float | str) -> None:
    knee = idle(0.05)
    blind = replace(knee, velocity=np.zeros(len(knee)), acceleration=None)
    found = identify([blind], Wishes("stribeck", smooth)).fit.values
    assert found["coulomb"] == pytest.approx(0.85, abs=0.05)
    assert found["static_backward"] == pytest.approx(1.95, abs=0.2)


def test_what_goes_into_the_file_says_how_it_was_found() -> None:
    found = identify([idle(0.1)], Wishes("stribeck", settings=FitSettings(dead_band=0.01))).parameters()
    facts = found.known_friction().facts
    assert found.dead_band == facts["dead_band_rad_per_s"] == 0.01
    assert facts["samples_used"] + facts["excluded_near_zero_velocity"] == facts["samples"] == 6000
    assert facts["residual_torque_rms_nm"] == pytest.approx(0.1, rel=0.05)
    np.testing.assert_allclose(found.friction_at(np.array([0.3])), friction(np.array([0.3])), rtol=0.01)


def test_a_recording_that_cannot_be_used_is_named() -> None:
    still = replace(idle(), velocity=np.full(6000, 0.2), position=None)
    with pytest.raises(ConfigurationError, match=r"knee\.csv, joint knee: the velocity is constant"):
        identify([still], Wishes())
    with pytest.raises(ConfigurationError, match="Did you mean 'stribeck'"):
        identify([idle()], Wishes("stribek"))
