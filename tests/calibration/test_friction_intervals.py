"""Confidence intervals of friction fits: their coverage, and the doubts where they do not hold."""

from pathlib import Path

import numpy as np
import pytest

from calibration.fitting.intervals import cosines, memory_of
from calibration.fitting.regression import least_squares
from calibration.fitting.separable import separable_least_squares
from calibration.friction import MODELS, FitSettings, Samples, choose_model, fit_friction, joined
from calibration.friction.trials import SCENARIOS, Scenario, coverage, samples, table
from tests.calibration.hand_moved import DEGREE, KNEE, encoded, measured

# --- coverage ---------------------------------------------------------------------------------------------------------

NOISE = 0.2 * DEGREE


def codes(fit, spoiling=False):
    return {doubt.code for doubt in fit.doubts if doubt.spoils_intervals or not spoiling}


def shaken(seed, noise, stated, duration=60.0):
    """Return samples of the knee with errors of the velocity."""
    exact = measured(KNEE, seed, duration, torque_noise=0.1)
    return Samples(exact.time, exact.velocity + noise, exact.friction, velocity_noise=stated)


def white(seed, samples=6000):
    return NOISE * np.random.default_rng(seed + 2000).standard_normal(samples)


def test_white_velocity_noise_is_estimated_and_doubted():
    fit = fit_friction(shaken(0, white(0), None), "stribeck")
    assert fit.velocity_noise == pytest.approx(NOISE, rel=0.1)
    assert "velocity-noise" in codes(fit)
    narrow_band = fit_friction(shaken(0, white(0), NOISE), "stribeck", FitSettings(dead_band=NOISE))
    assert "velocity-noise" in codes(narrow_band, spoiling=True)
    for seed in range(5):
        assert codes(fit_friction(shaken(seed, 3.0 * white(seed), None), "stribeck"), spoiling=True)


@pytest.mark.parametrize("seed", range(4))
def test_a_good_recording_leaves_no_doubt(seed):
    assert not fit_friction(encoded(seed, 60.0, 1e-3 * DEGREE, 1e-3 * DEGREE, 0.1), "stribeck").doubts


def test_lasting_errors_are_doubted():
    clean = measured(KNEE, torque_noise=0.02)
    ripple = 0.1 * np.sin(2.0 * np.pi * 1.7 * clean.time + np.cumsum(0.1 * white(0)) / DEGREE)
    fit = fit_friction(Samples(clean.time, clean.velocity, clean.friction + ripple), "stribeck")
    assert "lasting-errors" in codes(fit, spoiling=True)


def test_static_levels_from_fast_motion_alone_are_doubted():
    samples = measured(KNEE, torque_noise=0.1)
    fast = np.abs(samples.velocity) > 4.0 * DEGREE
    part = Samples(samples.time[fast], samples.velocity[fast], samples.friction[fast], velocity_noise=0.0)
    assert codes(fit_friction(part, "stribeck"), spoiling=True)


def test_errors_grow_with_the_confidence_and_shrink_with_the_recording():

    def variances(seed, duration):
        fit = fit_friction(measured(KNEE, seed, duration, torque_noise=0.1), "stribeck")
        return [error**2 for error in fit.standard_errors.values()]

    samples = measured(KNEE, torque_noise=0.1)
    usual, sure = (fit_friction(samples, "stribeck", FitSettings(confidence=one)) for one in (0.95, 0.999))
    for name in KNEE:
        # Student's quantiles: 1.679 times as far with very many degrees of freedom, more with fewer
        assert 1.67 < np.ptp(sure.intervals[name]) / np.ptp(usual.intervals[name]) < 1.9
    errors = {duration: np.mean([variances(seed, duration) for seed in range(8)], axis=0) for duration in (15.0, 60.0)}
    # four times as long, a quarter of the variance; the mean of five parameters in 8 motions has a small error itself
    assert np.mean(errors[15.0] / errors[60.0]) == pytest.approx(4.0, rel=0.15)
    np.testing.assert_allclose(np.sqrt(np.diag(usual.covariance)), list(usual.standard_errors.values()))


# --- scenarios of the trials ------------------------------------------------------------------------------------------


def trial_codes(scenario, seed):
    return codes(fit_friction(joined(samples(scenario, seed)), scenario.model))


@pytest.mark.parametrize("seed", range(4))
def test_drifting_friction_is_doubted(seed):
    assert "drift" in trial_codes(Scenario("drift", drift=0.2), seed)
    assert "drift" not in trial_codes(Scenario("none"), seed)


@pytest.mark.parametrize("seed", range(2))
def test_a_stribeck_zone_inside_the_dead_band_is_doubted(seed):
    narrow = Scenario("narrow", truth={"stribeck_velocity": 0.003}, model="coulomb-viscous")
    assert "dead-band-hides" in trial_codes(narrow, seed)
    choice = choose_model(samples(narrow, seed), ["coulomb-viscous", "stribeck"])
    assert choice.name != "coulomb-viscous" or "dead-band-hides" in {doubt.code for doubt in choice.fit.doubts}
    assert "dead-band-hides" not in trial_codes(Scenario("wide"), seed)


def test_a_fall_by_chance_is_doubted():
    """The zone, at 0.25 % of the top speed, lies inside the dead band."""
    doubts = {"no-fall", "scale-at-limit"}
    assert doubts & trial_codes(Scenario("very narrow", {"stribeck_velocity": 0.001}), 10)
    assert not doubts & trial_codes(Scenario("plain"), 10)


def test_errors_with_a_long_memory_widen_the_intervals():
    rng = np.random.default_rng(0)
    shocks, errors = rng.standard_normal(20000), np.zeros(20000)
    for k in range(1, len(errors)):
        errors[k] = 0.97 * errors[k - 1] + shocks[k]
    assert memory_of(errors) == pytest.approx(-1.0 / np.log(0.97), rel=0.2)
    assert memory_of(shocks) == 0.0
    assert cosines(20000, memory_of(errors)) < 0.5 * cosines(20000)
    long = coverage(Scenario("memory", memory=0.97), 6)
    assert np.mean([list(one.values()) for one in long.held]) > 0.7


def test_the_table_has_a_line_for_each_scenario():
    lines = list(table(SCENARIOS[:1], 2))
    assert len(lines) == 3 and lines[2].startswith(f"| {SCENARIOS[0].name} | ")


# --- two minima -------------------------------------------------------------------------------------------------------

# `two_minima.npz` is joint 1 of the virtual arm, which sticks and slips at slow strokes
# (`calibration.motions.joint_motion`, 0.01 to 0.4 rad/s, without the first 1.7 mrad after a turn). The fifth digit of
# the cost decides which of its two minima is the lower one.
TRUTH = {"static_forward": 11.55, "static_backward": 10.45, "stribeck_velocity": 0.03, "inertia": 0.91467}
"""Parameters of `devices.arm.body.ArmBody`."""


def two_minima(every=slice(None)):
    with np.load(Path(__file__).with_name("two_minima.npz")) as stored:
        columns = {name: stored[name].astype(float) for name in stored.files}
    return Samples.from_torque(
        1e-3 * columns["tick"][every],
        columns["velocity_rad_per_s"][every],
        columns["torque_nm"][every],
        1e-3 * columns["acceleration_mrad_per_s2"][every],
        velocity_noise=float(columns["velocity_noise_rad_per_s"]),
        instrument=1e-3 * columns["instrument_mrad_per_s2"][every],
    )


@pytest.fixture(scope="module")
def fit():
    return fit_friction(two_minima(), "stribeck-asymmetric", FitSettings(fit_inertia=True))


def test_both_minima_are_reported_and_covered_by_the_intervals(fit):
    (doubt,) = [doubt for doubt in fit.doubts if doubt.code == "two-minima"]
    assert "0.0047" in doubt.message and "0.0158" in doubt.message
    for name in ("static_forward", "static_backward"):
        low, high = fit.intervals[name]
        assert low <= TRUTH[name] <= high
    low, high = fit.intervals["stribeck_velocity"]
    assert low < 0.0047 and high > 0.0158
    # an interval of the chosen minimum alone would not
    assert fit.values["stribeck_velocity"] + 2.5 * fit.standard_errors["stribeck_velocity"] < 0.0158


def test_the_lower_minimum_of_all_samples_is_found():
    """On every third sample, against the best of a fine grid: a start chosen on fewer lands in one or the other."""
    samples = two_minima(slice(0, None, 3))
    moving = np.abs(samples.velocity) > 0.004
    model, velocity, target = MODELS["stribeck-asymmetric"], samples.velocity[moving], samples.friction[moving]
    acceleration = np.asarray(samples.acceleration)[moving]

    def columns(scale):
        return np.column_stack((model.columns(velocity, float(scale[0])), acceleration))

    best = separable_least_squares(columns, target, np.geomspace(1.2e-3, 0.4, 12)[:, None])
    grid = np.geomspace(2e-3, 0.1, 40)
    costs = [float(np.sum(least_squares(columns(np.array([one])), target).residual ** 2)) for one in grid]
    assert best.linear.cost <= min(costs) * (1.0 + 1e-12)
    for other in best.others:
        assert other.linear.cost >= best.linear.cost
