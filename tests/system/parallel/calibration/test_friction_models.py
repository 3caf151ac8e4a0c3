"""Choice of the friction model of a joint, from simulated and recorded motion."""

from dataclasses import replace

import numpy as np
import pytest

from calibration.data.joint_recording import JointRecording, Source
from calibration.friction import choose_model
from calibration.identification import IdentificationOptions, identify
from tests.calibration.joints import KNEE, hand, measured
from tests.calibration.test_friction import recording, truth_of
from tests.processes import ROOT

CANDIDATES = ("coulomb-viscous", "stribeck", "stribeck-offset", "stribeck-gaussian")


@pytest.mark.parametrize("truth", CANDIDATES)
@pytest.mark.parametrize("recordings", [1, 3])
def test_the_model_that_made_the_data_is_chosen(truth, recordings):
    duration = 60.0 / recordings
    made = [measured(truth_of(truth), seed, duration, torque_noise=0.1, model=truth) for seed in range(recordings)]
    choice = choose_model(made, CANDIDATES)
    assert choice.name == truth
    assert choice.fit.values == pytest.approx(truth_of(truth), rel=0.2)
    assert choice.scores[truth] < 1.01 * min(choice.scores.values())


FRANKA = ROOT.parent / "shared" / "data" / "franka_joint7" / "slow.csv"


def test_presliding_is_chosen_where_friction_builds_up_after_reversals():
    truth = {"coulomb": 1.0, "viscosity": 3.0, "presliding": 0.6, "presliding_distance": 0.02}
    found = identify([recording(0, truth, "coulomb-viscous-presliding")], IdentificationOptions())
    assert found.choice.name == "coulomb-viscous-presliding"
    for name, value in truth.items():
        low, high = found.fit.intervals[name]
        assert abs(found.fit.values[name] - value) < 1.5 * (high - low)
    reasons = {one.name: one.reason for one in found.choice.candidates}
    assert reasons["coulomb-viscous-presliding"].startswith("chosen")
    assert {"viscous", "coulomb-viscous-asymmetric", "coulomb-viscous-offset"} <= reasons.keys()


def test_presliding_is_not_chosen_for_a_joint_without_it():
    found = identify([recording(0, KNEE, "stribeck", noise=0.1)], IdentificationOptions())
    assert found.choice.name in {"stribeck", "stribeck-plateau"}
    assert any(name.endswith("-presliding") for name in found.choice.scores)


def test_a_torque_that_depends_on_the_angle_is_found_if_the_joint_turns_far_enough():
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


@pytest.mark.parametrize("fall", [0.1, 0.2])
def test_an_extrapolated_coulomb_level_is_doubted(fall):
    """Friction falls linearly up to the top speed, so its level at higher speed is an extrapolation."""
    time, angle, velocity = hand(3, 60.0)
    level = 0.4 - fall * np.abs(velocity) / float(np.abs(velocity).max())
    friction = np.sign(velocity) * level + 0.02 * np.random.default_rng(3).standard_normal(len(time))
    joint = JointRecording("knee", True, time, velocity, -friction, Source("k.csv", "0" * 64), position=angle)
    codes = {doubt.code for doubt in identify([joint], IdentificationOptions()).fit.doubts if doubt.spoils_intervals}
    assert codes & {"scale-at-limit", "still-falling"}


@pytest.mark.skipif(not FRANKA.exists(), reason="the recordings beside the repository are not here")
def test_the_last_joint_of_a_research_robot():
    """Friction that falls with speed, with an offset and hysteresis; a fit by hand gives 0.20 N m about -0.217 N m."""
    from calibration.data.reading import read_joint_recordings

    found = identify(read_joint_recordings(FRANKA), IdentificationOptions())
    assert 0.19 <= found.fit.values["coulomb"] <= 0.21
    assert -0.22 <= found.fit.values["offset"] <= -0.21
    assert found.fit.diagnostics.relative_rms <= 0.15
    assert found.choice.scores["viscous"] > 0.5
    low, high = found.fit.intervals["viscosity"]
    assert low == 0.0 < high
