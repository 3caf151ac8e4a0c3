"""Friction laws fitted to joints of known friction, the choice of a model, confidence intervals and doubts."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.data.joint_recording import JointRecording, Source
from calibration.fitting.intervals import cosines, memory_of
from calibration.friction import (
    DIMENSIONS,
    MODELS,
    FitSettings,
    Motion,
    Samples,
    Travel,
    choice,
    choose_model,
    fit_friction,
    joined,
)
from calibration.friction.fit import Problem
from calibration.identification import IdentificationOptions, identify, prediction_error, samples_of
from calibration.trials import FrictionScenario, friction_coverage, scenario_samples
from haptics import ConfigurationError
from tests.calibration.joints import DEGREE, KNEE, encoded, hand, measured

# --- fits of known laws -----------------------------------------------------------------------------------------------


EVERY = (
    KNEE
    | {"coulomb_forward": 0.7, "coulomb_backward": 1.0, "offset": 0.2, "presliding": 0.4}
    | {"viscosity_forward": 0.3 / DEGREE, "viscosity_backward": 0.36 / DEGREE, "presliding_distance": 0.8 * DEGREE}
    | {"harmonic_1_cos": 0.3, "harmonic_1_sin": -0.2, "harmonic_2_cos": 0.15, "harmonic_2_sin": 0.1}
)
HALF = np.linspace(0.1, 1.0, 1000)


def codes(fit, spoiling=False):
    return {doubt.code for doubt in fit.doubts if doubt.spoils_intervals or not spoiling}


def truth_of(model):
    truth = {name: EVERY[name] for name in MODELS[model].names}
    if MODELS[model].plateau:
        truth["static_forward"] = truth["coulomb"] + truth["viscosity"] * truth["stribeck_velocity"]
    return truth


@pytest.mark.parametrize("model", MODELS)
def test_every_model_finds_its_parameters_exactly_without_noise(model):
    fit = fit_friction(measured(truth_of(model), model=model), model)
    assert fit.values == pytest.approx(truth_of(model), rel=1e-9)
    assert set(fit.names) <= set(DIMENSIONS)
    assert not fit.doubts


@settings(max_examples=6)
@given(
    levels=st.tuples(st.floats(0.2, 2.0), st.floats(1.3, 3.0), st.floats(1.3, 3.0), st.floats(0.1, 2.0)),
    scale=st.floats(0.4, 4.0),
    unit=st.sampled_from((1.0, DEGREE, 1e-3)),
)
def test_any_stribeck_velocity_is_found_in_any_unit(levels, scale, unit):
    coulomb, forward, backward, viscosity = levels
    truth = {"coulomb": coulomb, "viscosity": viscosity / unit, "stribeck_velocity": scale * unit}
    truth |= {"static_forward": coulomb * forward, "static_backward": coulomb * backward}
    time, _, velocity = hand(0, 20.0)
    velocity = velocity / DEGREE * unit
    fit = fit_friction(Samples(time, velocity, MODELS["stribeck"].evaluate(truth, velocity)), "stribeck")
    assert fit.values == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize(("size", "coulomb", "viscosity"), [(10.0, 1.05, 0.287), (20.0, 0.96, 0.304)])
def test_a_coulomb_viscous_fit_agrees_with_figure_10(size, coulomb, viscosity):
    time = np.arange(0.0, 60.0, 0.01)
    velocity = size * DEGREE * np.sin(2.0 * np.pi * 0.2 * time)
    samples = Samples(time, velocity, MODELS["stribeck"].evaluate(KNEE, velocity))
    fit = fit_friction(samples, "coulomb-viscous")
    assert fit.values["coulomb"] == pytest.approx(coulomb, abs=0.02)
    assert fit.values["viscosity"] * DEGREE == pytest.approx(viscosity, abs=0.004)
    assert "misfit" in codes(fit)


@pytest.mark.parametrize(("viscosity", "scale"), [(0.31, 1.355), (0.69, 0.609)])
def test_a_plateau_starts_flat(viscosity, scale):
    model = MODELS["stribeck-plateau"]
    truth = KNEE | {"viscosity": viscosity / DEGREE, "stribeck_velocity": (1.27 - 0.85) / viscosity * DEGREE}
    fit = fit_friction(measured(truth), model)
    assert fit.values["stribeck_velocity"] / DEGREE == pytest.approx(scale, abs=1e-3)
    assert fit.values["static_forward"] == pytest.approx(1.27, rel=1e-9)
    assert model.slope(fit.values, np.array((1e-9,)))[0] == pytest.approx(0.0, abs=1e-6 * truth["viscosity"])
    # data that do not start flat are fitted by a law that does
    forced = fit_friction(measured(KNEE, torque_noise=0.1), model).values
    rise = forced["viscosity"] * forced["stribeck_velocity"]
    assert forced["static_forward"] - forced["coulomb"] == pytest.approx(rise, rel=1e-9)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_the_slope_is_the_derivative_and_the_levels_are_where_the_law_begins(model, side):
    truth, law = truth_of(model), MODELS[model]
    velocity, step = side * np.geomspace(0.01, 20.0, 40) * DEGREE, 1e-6 * DEGREE
    difference = law.evaluate(truth, velocity + step) - law.evaluate(truth, velocity - step)
    np.testing.assert_allclose(law.slope(truth, velocity), difference / (2.0 * step), rtol=1e-5, atol=1e-4)
    if law.scaled:
        name = "static_forward" if side > 0.0 else "static_backward"
        begin = law.evaluate(truth, np.array((side * 1e-9,)))[0] - truth.get("offset", 0.0)
        assert begin == pytest.approx(side * truth[name], abs=1e-6)


def test_levels_are_bounded_unless_settings_free_them():
    truth = {"coulomb": 0.5, "viscosity": 0.3 / DEGREE}
    samples = measured(truth, torque_noise=0.2, model="coulomb-viscous", duration=20.0)
    fit = fit_friction(samples, "stribeck")
    levels = fit.values["static_forward"], fit.values["static_backward"]
    assert min(levels) >= fit.values["coulomb"] - 1e-12 >= 0.0
    free = fit_friction(samples, "stribeck", FitSettings(unbounded=True))
    assert min(free.values["static_forward"], free.values["static_backward"]) < free.values["coulomb"]
    assert fit.values["viscosity"] == pytest.approx(truth["viscosity"], rel=0.05)
    falling = measured({"coulomb": 1.0, "viscosity": -0.5}, torque_noise=0.05, model="coulomb-viscous")
    fit = fit_friction(falling, "coulomb-viscous")
    low, high = fit.intervals["viscosity"]
    assert fit.values["viscosity"] == low == 0.0
    assert 0.0 < high < 0.5
    free = fit_friction(falling, "coulomb-viscous", FitSettings(unbounded=True))
    assert free.values["viscosity"] == pytest.approx(-0.5, abs=0.1)


@pytest.mark.parametrize("loss", ["huber", "tukey"])
def test_a_robust_fit_is_hardly_moved_by_wrong_samples(loss):
    clean = measured(KNEE, torque_noise=0.1)
    friction = clean.friction.copy()
    friction[::40] += 3.0
    spoilt = Samples(clean.time, clean.velocity, friction)
    plain, robust = fit_friction(spoilt, "stribeck"), fit_friction(spoilt, "stribeck", FitSettings(loss=loss))
    assert "outliers" in codes(plain)
    reference = fit_friction(clean, "stribeck")
    for name in ("coulomb", "static_forward", "static_backward"):
        assert abs(robust.values[name] - KNEE[name]) < 4.0 * robust.standard_errors[name] + 0.01
        assert robust.standard_errors[name] < 1.5 * reference.standard_errors[name]
    # a constant forward push looks like a level that differs between the directions
    assert abs(plain.values["static_forward"] - 1.27) > 2.0 * abs(robust.values["static_forward"] - 1.27)


def test_a_known_inertia_is_subtracted_and_an_unknown_one_found():
    time, _, velocity = hand(5, 60.0)
    acceleration = np.gradient(velocity, time)
    torque = -MODELS["stribeck"].evaluate(KNEE, velocity) - 0.4 * acceleration
    known = fit_friction(Samples.from_torque(time, velocity, torque, acceleration, 0.4), "stribeck")
    assert known.values == pytest.approx(KNEE, rel=1e-9)
    samples = Samples.from_torque(time, velocity, torque, acceleration)
    found = fit_friction(samples, "stribeck", FitSettings(fit_inertia=True))
    assert found.values == pytest.approx(KNEE | {"inertia": 0.4}, rel=1e-9)
    assert np.linalg.norm(found.error(samples)) < 1e-9 * np.linalg.norm(samples.friction)


@pytest.mark.parametrize("seed", range(3))
def test_a_joint_without_dry_friction_is_viscous(seed):
    """Models with levels explain it no better; a model with a negative level is not chosen."""
    truth = {"viscosity": 1.0 / DEGREE}
    samples = measured(truth, seed, duration=15.0, torque_noise=0.1, model="viscous")
    choice = choose_model([samples], ["viscous", "coulomb-viscous", "stribeck"])
    assert choice.name == "viscous"
    assert choice.fit.values == pytest.approx(truth, rel=0.01)
    negative = measured({"coulomb": -0.02, "viscosity": 1.0 / DEGREE}, seed, 15.0, model="coulomb-viscous")
    assert choose_model([negative], ["viscous", "coulomb-viscous"]).name == "viscous"


def test_rounding_does_not_decide_between_equal_models(monkeypatch):
    """A Coulomb level at its bound 0 leaves the viscous model, whose errors round up on some processors."""
    errors = choice._Comparison._errors

    def rounded(comparison, name, settings):
        return errors(comparison, name, settings) * (1.0 + 1e-12 * (name == "viscous"))

    monkeypatch.setattr(choice._Comparison, "_errors", rounded)
    negative = measured({"coulomb": -0.02, "viscosity": 1.0 / DEGREE}, 1, 15.0, model="coulomb-viscous")
    assert choose_model([negative], ["viscous", "coulomb-viscous"]).name == "viscous"


@pytest.mark.parametrize("seed", range(3))
def test_noise_on_the_positions_does_not_make_the_inertia_too_small(seed):
    """Twice differentiated noise biases least squares towards 0; an instrument for it removes the bias."""
    time = np.arange(0.0, 12.0, 1e-3)
    rates, sizes = 2.0 * np.pi * np.array((0.5, 12.0)), np.array((0.02, 2e-4))
    phases = np.multiply.outer(time, rates)
    angle, velocity = np.sin(phases) @ sizes, np.cos(phases) @ (sizes * rates)
    acceleration = -np.sin(phases) @ (sizes * rates**2)
    random = np.random.default_rng(seed)
    torque = -(0.2 * acceleration + 1.5 * velocity + 0.3 * np.sign(velocity)) + 0.01 * random.standard_normal(len(time))
    seen = np.round((angle + 5e-6 * random.standard_normal(len(time))) / 1e-5) * 1e-5
    samples = Samples.from_positions(time, seen, torque, cutoff=150.0)
    fit = fit_friction(samples, "coulomb-viscous", FitSettings(fit_inertia=True))
    plain = fit_friction(replace(samples, instrument=None), "coulomb-viscous", FitSettings(fit_inertia=True))
    assert plain.values["inertia"] < 0.19
    assert fit.values["inertia"] == pytest.approx(0.2, rel=0.01)


def test_friction_is_found_from_positions_alone():
    time, angle, velocity = hand(6, 60.0)
    torque = -MODELS["stribeck"].evaluate(KNEE, velocity)
    samples = Samples.from_positions(time, angle, torque, cutoff=10.0)
    fit = fit_friction(samples, "stribeck")
    assert fit.values == pytest.approx(KNEE, rel=2e-3)
    assert fit.excluded["edges"] == 2 * samples.edge > 0
    both = joined((samples, samples))
    assert len(both.time) == 2 * (len(time) - 2 * samples.edge)
    assert np.all(np.diff(both.time) > 0.0)
    np.testing.assert_array_equal(both.friction, np.tile(samples.friction[samples.inner], 2))


def test_samples_near_rest_are_excluded_and_counted():
    samples = measured(KNEE)
    slow = np.abs(samples.velocity) <= 0.5 * DEGREE
    sticking = Samples(samples.time, samples.velocity, np.where(slow, 0.0, samples.friction))
    fit = fit_friction(sticking, "stribeck", FitSettings(dead_band=0.5 * DEGREE))
    assert fit.values == pytest.approx(KNEE, rel=1e-9)
    assert fit.excluded["near zero velocity"] == slow.sum() > 0
    assert int(fit.kept.sum()) == len(fit.residual) == len(samples.time) - slow.sum()


def test_exact_motions_that_are_fast_or_in_random_order_are_fitted_exactly():
    time = 0.01 * np.arange(2000)
    like_noise = 12.0 * np.sin(50.0 * time) + 8.0 * np.sin(3.0 * time)
    for velocity in (like_noise * DEGREE, np.random.default_rng(0).uniform(-20.0, 20.0, 2000) * DEGREE):
        fit = fit_friction(Samples(time, velocity, MODELS["stribeck"].evaluate(KNEE, velocity)), "stribeck")
        assert fit.values == pytest.approx(KNEE, rel=1e-9)
    assert "velocity-noise-unseen" in codes(fit), "in random order"


def test_a_named_model_needs_no_comparison():
    """One way and back within one of the five blocks: nothing is left to fit without it, as a comparison needs."""
    velocity = np.zeros(1000)
    velocity[400:600] = np.concatenate((np.linspace(0.5, 9.0, 100), -np.linspace(0.5, 9.0, 100))) * DEGREE
    samples = Samples(np.arange(1000) * 0.01, velocity, MODELS["stribeck"].evaluate(KNEE, velocity))
    choice = choose_model([samples], ["stribeck"])
    assert choice.fit.values == pytest.approx(KNEE, rel=1e-9)
    assert np.isnan(choice.scores["stribeck"])
    with pytest.raises(ConfigurationError, match="name one"):
        choose_model([samples])


def spoilt(**changes):
    samples = measured(KNEE, duration=10.0)
    fields = {"time": samples.time, "velocity": samples.velocity, "friction": samples.friction}
    return Samples(**(fields | changes))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: spoilt(friction=np.full(1000, np.nan)), "friction is not finite in 1000 samples"),
        (lambda: fit_friction(spoilt(velocity=np.ones(1000)), "stribeck"), "constant"),
        (lambda: fit_friction(spoilt(velocity=HALF), "stribeck"), "backward"),
        (lambda: fit_friction(spoilt(velocity=-HALF), "stribeck"), "forward"),
        (lambda: fit_friction(spoilt(friction=np.zeros(1000)), "stribeck"), "nothing to explain"),
        (lambda: fit_friction(spoilt(friction=-measured(KNEE, duration=10.0).friction), "coulomb-viscous"), "its sign"),
        (lambda: spoilt(time=HALF[::-1]), "increase"),
        (lambda: spoilt(velocity_noise=-1.0), "velocity_noise"),
        (lambda: fit_friction(spoilt(edge=490), "stribeck"), "20 samples are faster"),
        (lambda: Samples.from_torque(HALF, HALF, HALF, inertia=1.0), "accelerations"),
        (lambda: fit_friction(spoilt(velocity=np.sign(HALF - 0.5)), "coulomb-viscous"), "move at more speeds"),
        (lambda: fit_friction(spoilt(), "stribek"), "Did you mean 'stribeck'"),
        (lambda: fit_friction(spoilt(), "stribeck", FitSettings(dead_band=1e3)), "dead band"),
        (lambda: fit_friction(spoilt(), "stribeck", FitSettings(fit_inertia=True)), "acceleration"),
        (lambda: FitSettings(loss="cauchy"), "loss"),
        (lambda: choose_model([]), "at least one recording"),
    ],
)
def test_samples_and_settings_that_cannot_be_fitted_are_refused(call, words):
    with pytest.raises(ConfigurationError, match=words):
        call()


# --- choice of a model ------------------------------------------------------------------------------------------------


def recording(seed, truth, model, noise=0.05, offset=0.0, duration=40.0):
    """Return a recording with positions of a joint of known friction."""
    time, angle, velocity = hand(seed, duration)
    friction = MODELS[model].evaluate(truth, Motion(velocity, Travel.whole(angle), angle)) + offset
    friction = friction + noise * np.random.default_rng(seed + 1000).standard_normal(len(time))
    return JointRecording("knee", True, time, velocity, -friction, Source(f"{seed}.csv", "0" * 64), position=angle)


def test_each_recording_has_its_offset():
    offsets = (-0.5, 0.1, 0.7)
    recordings = [recording(k, KNEE, "stribeck", 0.1, offset, 20.0) for k, offset in enumerate(offsets)]
    found = identify(recordings, IdentificationOptions("stribeck-offset"))
    for name, value in KNEE.items():
        low, high = found.fit.intervals[name]
        assert abs(found.fit.values[name] - value) < high - low
    facts = found.parameters().known_friction().facts
    assert facts["offset_torque_recordings_nm"] == pytest.approx(offsets, abs=0.02)
    assert facts["offset_torque_spread_nm"] == pytest.approx(np.std(offsets, ddof=1), abs=0.02)
    tied = identify(recordings, IdentificationOptions("stribeck-offset", settings=FitSettings(common_offset=True)))
    assert tied.fit.diagnostics.rms > 3.0 * found.fit.diagnostics.rms
    assert "offset_torque_spread_nm" not in tied.parameters().known_friction().facts


def test_asymmetric_levels_are_distinguished_from_drifting_offsets():
    """Levels that differ by direction are common to the recordings; the offsets are relative to their mean."""
    truth = {"coulomb_forward": 0.8, "coulomb_backward": 1.2, "viscosity_forward": 3.0, "viscosity_backward": 3.0}
    samples = [
        samples_of(recording(k, truth, "coulomb-viscous-asymmetric", 0.02, offset, 20.0), IdentificationOptions())
        for k, offset in enumerate((-0.3, 0.3))
    ]
    fit = fit_friction(joined(samples), "coulomb-viscous-asymmetric")
    assert fit.values["coulomb_forward"] == pytest.approx(0.8, abs=0.01)
    assert fit.values["coulomb_backward"] == pytest.approx(1.2, abs=0.01)
    assert fit.offset_deviations == pytest.approx((-0.3, 0.3), abs=0.01)


def test_the_offset_of_a_validation_recording_is_estimated():
    found = identify([recording(0, KNEE, "stribeck", 0.05)], IdentificationOptions("stribeck-offset"))
    other = samples_of(recording(1, KNEE, "stribeck", 0.05, offset=0.5), IdentificationOptions())
    error = prediction_error(found.parameters(), other)
    assert error.offset == pytest.approx(0.5, abs=0.02)
    assert error.relative > 5.0 * error.relative_own_offset


def test_a_model_is_not_chosen_if_another_explains_most_of_its_residual():
    """Falling friction: an unbounded Coulomb-viscous fit is no friction law, and viscosity alone explains nothing."""
    truth = {"coulomb": 0.3, "viscosity": -0.2, "offset": -0.2}
    samples = measured(truth, torque_noise=0.02, model="coulomb-viscous-offset")
    old = choose_model([samples], ["viscous", "coulomb-viscous-offset"], FitSettings(unbounded=True))
    assert old.name == "viscous"
    new = choose_model([samples], ["viscous", "coulomb-viscous-offset"])
    assert new.name == "coulomb-viscous-offset"
    assert new.fit.values["coulomb"] == pytest.approx(0.28, abs=0.02)
    assert new.candidates[0].reason == "the best model explains most of its residual"


# --- derivatives and doubts -------------------------------------------------------------------------------------------

SCALED = [name for name, model in MODELS.items() if model.scaled]


@pytest.mark.parametrize("physical", [False, True])
@pytest.mark.parametrize("name", SCALED)
def test_derivatives_agree_with_differences(name, physical):
    velocity = np.concatenate((-np.geomspace(1e-3, 2.0, 30), [0.0], np.geomspace(1e-3, 2.0, 30)))
    problem = Problem(MODELS[name], physical, Motion(velocity), np.cos(velocity))
    place = np.random.default_rng(4).uniform(0.5, 2.0, len(problem.names) - MODELS[name].plateau)
    place[-1] = 0.3
    steps = 1e-6 * np.eye(len(place))
    differences = [
        problem.evaluate(velocity, place + step) - problem.evaluate(velocity, place - step) for step in steps
    ]
    value, jacobian = problem.expanded(velocity, place)
    np.testing.assert_allclose(jacobian, np.column_stack(differences) / 2e-6, rtol=1e-7, atol=1e-8)
    np.testing.assert_array_equal(value, problem.evaluate(velocity, place))


def at_two_speeds(fast, ratio):
    """Return exact samples of Coulomb friction and viscosity at speeds between `fast` and a little less, both ways."""
    speeds = fast * np.linspace(1.0 - ratio, 1.0, 200)
    velocity = np.concatenate((speeds, -speeds))
    return Samples(0.01 * np.arange(400), velocity, 0.8 * np.sign(velocity) + 3.0 * velocity)


@pytest.mark.parametrize(("ratio", "doubted"), [(0.5, False), (0.025, False), (0.02, True), (0.005, True)])
def test_ill_conditioned_levels_are_doubted_from_a_condition_of_300_on(ratio, doubted):
    """Speeds within a part r of each other leave a condition of ``4 sqrt(3) (1 - r/2) / r``, the columns scaled."""
    fit = fit_friction(at_two_speeds(0.2, ratio), "coulomb-viscous")
    assert fit.condition == pytest.approx(4.0 * np.sqrt(3.0) * (1.0 - 0.5 * ratio) / ratio, rel=0.02)
    assert ("ill-conditioned" in codes(fit)) == doubted


# --- confidence intervals: their coverage, and the doubts where they do not hold --------------------------------------

NOISE = 0.2 * DEGREE


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
    return codes(fit_friction(joined(scenario_samples(scenario, seed)), scenario.model))


@pytest.mark.parametrize("seed", range(4))
def test_drifting_friction_is_doubted(seed):
    assert "drift" in trial_codes(FrictionScenario("drift", drift=0.2), seed)
    assert "drift" not in trial_codes(FrictionScenario("none"), seed)


@pytest.mark.parametrize("seed", range(2))
def test_a_stribeck_zone_inside_the_dead_band_is_doubted(seed):
    narrow = FrictionScenario("narrow", truth={"stribeck_velocity": 0.003}, model="coulomb-viscous")
    assert "dead-band-hides" in trial_codes(narrow, seed)
    choice = choose_model(scenario_samples(narrow, seed), ["coulomb-viscous", "stribeck"])
    assert choice.name != "coulomb-viscous" or "dead-band-hides" in codes(choice.fit)
    assert "dead-band-hides" not in trial_codes(FrictionScenario("wide"), seed)


def test_a_fall_by_chance_is_doubted():
    """The zone, at 0.25 % of the top speed, lies inside the dead band."""
    doubts = {"no-fall", "scale-at-limit"}
    assert doubts & trial_codes(FrictionScenario("very narrow", {"stribeck_velocity": 0.001}), 10)
    assert not doubts & trial_codes(FrictionScenario("plain"), 10)


def test_errors_with_a_long_memory_widen_the_intervals():
    rng = np.random.default_rng(0)
    shocks, errors = rng.standard_normal(20000), np.zeros(20000)
    for k in range(1, len(errors)):
        errors[k] = 0.97 * errors[k - 1] + shocks[k]
    assert memory_of(errors) == pytest.approx(-1.0 / np.log(0.97), rel=0.2)
    assert memory_of(shocks) == 0.0
    assert cosines(20000, memory_of(errors)) < 0.5 * cosines(20000)
    long = friction_coverage(FrictionScenario("memory", memory=0.97), 6)
    assert np.mean([list(one.values()) for one in long.held]) > 0.7


# --- two minima -------------------------------------------------------------------------------------------------------


# `two_minima.npz` is joint 1 of the virtual arm, which sticks and slips at slow strokes
# (`calibration.motions.arm`, 0.01 to 0.4 rad/s, without the first 1.7 mrad after a turn). The fifth digit of
# the cost decides which of its two minima is the lower one.
def test_both_minima_are_reported_and_covered_by_the_intervals():
    with np.load(Path(__file__).with_name("two_minima.npz")) as stored:
        columns = {name: stored[name].astype(float) for name in stored.files}
    samples = Samples.from_torque(
        1e-3 * columns["tick"],
        columns["velocity_rad_per_s"],
        columns["torque_nm"],
        1e-3 * columns["acceleration_mrad_per_s2"],
        velocity_noise=float(columns["velocity_noise_rad_per_s"]),
        instrument=1e-3 * columns["instrument_mrad_per_s2"],
    )
    fit = fit_friction(samples, "stribeck-asymmetric", FitSettings(fit_inertia=True))
    (doubt,) = [doubt for doubt in fit.doubts if doubt.code == "two-minima"]
    assert "0.0047" in doubt.message and "0.0158" in doubt.message
    for name, truth in (("static_forward", 11.55), ("static_backward", 10.45)):  # of `devices.arm.body.ArmBody`
        low, high = fit.intervals[name]
        assert low <= truth <= high
    low, high = fit.intervals["stribeck_velocity"]
    assert low < 0.0047 and high > 0.0158
    # an interval of the chosen minimum alone would not
    assert fit.values["stribeck_velocity"] + 2.5 * fit.standard_errors["stribeck_velocity"] < 0.0158
