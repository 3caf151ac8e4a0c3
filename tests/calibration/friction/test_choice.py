"""Model selection: bounded fits, presliding, harmonics, an offset for each recording, and real joints."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from calibration.data.files import Source
from calibration.data.joint_recording import JointRecording
from calibration.friction import MODELS, FitSettings, Motion, Travel, choose_model, fit_friction, joined
from calibration.identification import Wishes, identify, prediction_error, samples_of
from tests.calibration.hand_moved import KNEE, hand, measured

FRANKA = Path(__file__).parents[4] / "shared" / "data" / "franka_joint7" / "slow.csv"


def recording(
    seed: int, truth: dict[str, float], model: str, noise: float = 0.05, offset: float = 0.0, duration: float = 40.0
) -> JointRecording:
    """Return a recording with positions of a joint of known friction."""
    time, angle, velocity = hand(seed, duration)
    friction = MODELS[model].evaluate(truth, Motion(velocity, Travel.whole(angle), angle)) + offset
    friction = friction + noise * np.random.default_rng(seed + 1000).standard_normal(len(time))
    return JointRecording("knee", True, time, velocity, -friction, Source(f"{seed}.csv", "0" * 64), position=angle)


def test_presliding_is_chosen_where_friction_builds_up_after_reversals() -> None:
    truth = {"coulomb": 1.0, "viscosity": 3.0, "presliding": 0.6, "presliding_distance": 0.02}
    found = identify([recording(0, truth, "coulomb-viscous-presliding")], Wishes())
    assert found.choice.name == "coulomb-viscous-presliding"
    for name, value in truth.items():
        low, high = found.fit.intervals[name]
        assert abs(found.fit.values[name] - value) < 1.5 * (high - low)
    reasons = {one.name: one.reason for one in found.choice.candidates}
    assert reasons["coulomb-viscous-presliding"].startswith("chosen")
    assert {"viscous", "coulomb-viscous-asymmetric", "coulomb-viscous-offset"} <= reasons.keys()


def test_presliding_is_not_chosen_where_there_is_none() -> None:
    found = identify([recording(0, KNEE, "stribeck", noise=0.1)], Wishes())
    assert found.choice.name in {"stribeck", "stribeck-plateau"}
    assert any(name.endswith("-presliding") for name in found.choice.scores)


def test_a_torque_that_depends_on_the_angle_is_found_if_the_joint_turns_far_enough() -> None:
    harmonics = {"harmonic_1_cos": 0.4, "harmonic_1_sin": 0.0, "harmonic_2_cos": 0.0, "harmonic_2_sin": 0.3}
    truth = {"coulomb": 1.0, "viscosity": 3.0, "offset": 0.1} | harmonics
    samples = measured(truth, torque_noise=0.1, model="coulomb-viscous-offset-harmonics")
    choice = choose_model([samples])
    assert choice.name == "coulomb-viscous-offset-harmonics"
    for name, value in harmonics.items():
        assert choice.fit.values[name] == pytest.approx(value, abs=0.02)
    assert samples.angle is not None
    near = replace(samples, angle=0.05 * samples.angle)
    assert not any(name.endswith("harmonics") for name in choose_model([near]).scores)


def test_each_recording_has_an_offset_of_its_own() -> None:
    offsets = (-0.5, 0.1, 0.7)
    recordings = [recording(k, KNEE, "stribeck", 0.1, offset, 20.0) for k, offset in enumerate(offsets)]
    found = identify(recordings, Wishes("stribeck-offset"))
    for name, value in KNEE.items():
        low, high = found.fit.intervals[name]
        assert abs(found.fit.values[name] - value) < high - low
    facts = found.parameters().known_friction().facts
    assert facts["offset_torque_recordings_nm"] == pytest.approx(offsets, abs=0.02)
    assert facts["offset_torque_spread_nm"] == pytest.approx(np.std(offsets, ddof=1), abs=0.02)
    tied = identify(recordings, Wishes("stribeck-offset", settings=FitSettings(common_offset=True)))
    assert tied.fit.diagnostics.rms > 3.0 * found.fit.diagnostics.rms
    assert "offset_torque_spread_nm" not in tied.parameters().known_friction().facts


def test_asymmetric_levels_are_told_from_offsets_that_drift() -> None:
    """Levels that differ by direction are common to the recordings; the offsets are relative to their mean."""
    truth = {"coulomb_forward": 0.8, "coulomb_backward": 1.2, "viscosity_forward": 3.0, "viscosity_backward": 3.0}
    samples = [
        samples_of(recording(k, truth, "coulomb-viscous-asymmetric", 0.02, offset, 20.0), Wishes())
        for k, offset in enumerate((-0.3, 0.3))
    ]
    fit = fit_friction(joined(samples), "coulomb-viscous-asymmetric")
    assert fit.values["coulomb_forward"] == pytest.approx(0.8, abs=0.01)
    assert fit.values["coulomb_backward"] == pytest.approx(1.2, abs=0.01)
    assert fit.offset_deviations == pytest.approx((-0.3, 0.3), abs=0.01)


def test_the_offset_of_a_validation_recording_is_estimated() -> None:
    found = identify([recording(0, KNEE, "stribeck", 0.05)], Wishes("stribeck-offset"))
    other = samples_of(recording(1, KNEE, "stribeck", 0.05, offset=0.5), Wishes())
    error = prediction_error(found.parameters(), other)
    assert error.offset == pytest.approx(0.5, abs=0.02)
    assert error.relative > 5.0 * error.relative_own_offset


def test_a_model_is_not_chosen_if_another_explains_most_of_its_residual() -> None:
    """Falling friction: an unbounded Coulomb-viscous fit is no friction law, and viscosity alone explains nothing."""
    truth = {"coulomb": 0.3, "viscosity": -0.2, "offset": -0.2}
    samples = measured(truth, torque_noise=0.02, model="coulomb-viscous-offset")
    old = choose_model([samples], ["viscous", "coulomb-viscous-offset"], FitSettings(unbounded=True))
    assert old.name == "viscous"
    new = choose_model([samples], ["viscous", "coulomb-viscous-offset"])
    assert new.name == "coulomb-viscous-offset"
    assert new.fit.values["coulomb"] == pytest.approx(0.28, abs=0.02)
    assert new.candidates[0].reason == "the best model explains most of its residual"


@pytest.mark.parametrize("fall", [0.1, 0.2])
def test_a_coulomb_level_that_was_never_seen_is_doubted(fall: float) -> None:
    """Friction falls linearly up to the top speed, so its level at higher speed is an extrapolation."""
    time, angle, velocity = hand(3, 60.0)
    level = 0.4 - fall * np.abs(velocity) / float(np.abs(velocity).max())
    friction = np.sign(velocity) * level + 0.02 * np.random.default_rng(3).standard_normal(len(time))
    joint = JointRecording("knee", True, time, velocity, -friction, Source("k.csv", "0" * 64), position=angle)
    codes = {doubt.code for doubt in identify([joint], Wishes()).fit.doubts if doubt.spoils_intervals}
    assert codes & {"scale-at-limit", "still-falling"}


@pytest.mark.skipif(not FRANKA.exists(), reason="the recordings beside the repository are not here")
def test_the_last_joint_of_a_research_robot() -> None:
    """Friction that falls with speed, with an offset and hysteresis; a fit by hand gives 0.20 N m about -0.217 N m."""
    from calibration.data.reading import read_joint_recordings

    found = identify(read_joint_recordings(FRANKA), Wishes())
    assert 0.19 <= found.fit.values["coulomb"] <= 0.21
    assert -0.22 <= found.fit.values["offset"] <= -0.21
    assert found.fit.diagnostics.relative_rms <= 0.15
    assert found.choice.scores["viscous"] > 0.5
    low, high = found.fit.intervals["viscosity"]
    assert low == 0.0 < high


@pytest.mark.parametrize("seed", range(3))
def test_the_choice_without_positions_is_that_of_static_models(seed: int) -> None:
    time, _, velocity = hand(seed, 40.0)
    samples = replace(measured(KNEE, seed, 40.0, 0.1), travel=None, angle=None)
    assert len(samples.velocity) == len(time) and np.array_equal(samples.velocity, velocity)
    assert choose_model([samples]).name.startswith("stribeck")
