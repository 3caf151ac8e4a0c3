"""Friction from recordings of joints whose friction is known."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.fitting.regression import least_squares
from calibration.friction import (
    DIMENSIONS,
    MODELS,
    FitSettings,
    FrictionModel,
    Samples,
    choose_model,
    fit_friction,
    joined,
)
from haptics import ConfigurationError
from tests.calibration.hand_moved import DEGREE, KNEE, TABLE_1, hand, joint, measured

EVERY = KNEE | {
    "coulomb_forward": 0.7,
    "coulomb_backward": 1.0,
    "viscosity_forward": 0.3 / DEGREE,
    "viscosity_backward": 0.36 / DEGREE,
    "offset": 0.2,
    "presliding": 0.4,
    "presliding_distance": 0.8 * DEGREE,
    "harmonic_1_cos": 0.3,
    "harmonic_1_sin": -0.2,
    "harmonic_2_cos": 0.15,
    "harmonic_2_sin": 0.1,
}


HALF = np.linspace(0.1, 1.0, 1000)


def truth_of(model: str) -> dict[str, float]:
    truth = {name: EVERY[name] for name in MODELS[model].names}
    if MODELS[model].plateau:
        truth["static_forward"] = truth["coulomb"] + truth["viscosity"] * truth["stribeck_velocity"]
    return truth


@pytest.mark.parametrize("model", MODELS)
def test_without_noise_every_model_finds_its_parameters_exactly(model: str) -> None:
    fit = fit_friction(measured(truth_of(model), model=model), model)
    assert fit.values == pytest.approx(truth_of(model), rel=1e-9)
    assert set(fit.names) <= set(DIMENSIONS)
    assert not fit.doubts


@settings(max_examples=6)
@given(
    coulomb=st.floats(0.2, 2.0),
    forward=st.floats(1.3, 3.0),
    backward=st.floats(1.3, 3.0),
    viscosity=st.floats(0.1, 2.0),
    scale=st.floats(0.4, 4.0),
    unit=st.sampled_from((1.0, DEGREE, 1e-3)),
)
def test_the_stribeck_velocity_is_found_whatever_it_is_and_in_any_unit(
    coulomb: float, forward: float, backward: float, viscosity: float, scale: float, unit: float
) -> None:
    truth = {
        "coulomb": coulomb,
        "viscosity": viscosity / unit,
        "static_forward": coulomb * forward,
        "static_backward": coulomb * backward,
        "stribeck_velocity": scale * unit,
    }
    time, _, velocity = hand(0, 20.0)
    velocity = velocity / DEGREE * unit
    fit = fit_friction(Samples(time, velocity, MODELS["stribeck"].evaluate(truth, velocity)), "stribeck")
    assert fit.values == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("name", TABLE_1)
def test_the_joints_of_table_1_are_found_within_four_standard_errors(name: str) -> None:
    truth = joint(name)
    fit = fit_friction(measured(truth, seed=3, torque_noise=0.1), "stribeck")
    for parameter, value in truth.items():
        assert abs(fit.values[parameter] - value) < 4.0 * fit.standard_errors[parameter]
    assert fit.standard_errors["coulomb"] < 0.01
    assert fit.standard_errors["viscosity"] < 0.001 / DEGREE
    assert max(fit.standard_errors[f"static_{side}"] for side in ("forward", "backward")) < 0.03
    assert fit.diagnostics.rms == pytest.approx(0.1, rel=0.05)


def printed(speed: np.ndarray, viscous: np.ndarray, sign: float) -> np.ndarray:
    """Return the columns of (30) and (31), with the sign that the factor of Kc is printed with and the viscous one."""
    fall = np.exp(-np.abs(speed))
    return np.column_stack((np.sign(speed) * (1.0 + sign * fall), viscous, fall * (speed > 0.0), -fall * (speed < 0.0)))


def test_the_regressor_as_it_is_printed_finds_something_else() -> None:
    """(30) and (31) have a wrong sign in the factor of Kc, and (28) makes the viscous column even."""
    truth = joint("knee") | {"viscosity": KNEE["viscosity"]}
    samples = measured(truth)
    speed = samples.velocity / DEGREE
    right = least_squares(printed(speed, speed, -1.0), samples.friction)
    np.testing.assert_allclose(right.coefficients, (0.85, 0.31, 1.27, 1.95), rtol=1e-9)
    # with the printed sign static levels come out lower by twice the Coulomb level, one of them negative
    wrong = least_squares(printed(speed, speed, 1.0), samples.friction)
    np.testing.assert_allclose(wrong.coefficients, (0.85, 0.31, 1.27 - 1.7, 1.95 - 1.7), rtol=1e-9)
    # with the printed ramp there is no viscosity any more, and what is left is as large as the Coulomb level
    ramp = least_squares(printed(speed, np.abs(speed), -1.0), samples.friction)
    assert abs(ramp.coefficients[1]) < 0.03
    assert np.sqrt(np.mean(ramp.residual**2)) > 0.5


@pytest.mark.parametrize(("amplitude", "coulomb", "viscosity"), [(10.0, 1.05, 0.287), (20.0, 0.96, 0.304)])
def test_without_stribeck_the_knee_looks_as_in_figure_10(amplitude: float, coulomb: float, viscosity: float) -> None:
    time = np.arange(0.0, 60.0, 0.01)
    velocity = amplitude * DEGREE * np.sin(2.0 * np.pi * 0.2 * time)
    samples = Samples(time, velocity, MODELS["stribeck"].evaluate(KNEE, velocity))
    fit = fit_friction(samples, "coulomb-viscous")
    assert fit.values["coulomb"] == pytest.approx(coulomb, abs=0.02)
    assert fit.values["viscosity"] * DEGREE == pytest.approx(viscosity, abs=0.004)
    assert "misfit" in {doubt.code for doubt in fit.doubts}


@pytest.mark.parametrize(("viscosity", "scale"), [(0.31, 1.355), (0.69, 0.609)])
def test_a_plateau_starts_flat(viscosity: float, scale: float) -> None:
    model = MODELS["stribeck-plateau"]
    truth = KNEE | {"viscosity": viscosity / DEGREE, "stribeck_velocity": (1.27 - 0.85) / viscosity * DEGREE}
    fit = fit_friction(measured(truth), model)
    assert fit.values["stribeck_velocity"] / DEGREE == pytest.approx(scale, abs=1e-3)
    assert fit.values["static_forward"] == pytest.approx(1.27, rel=1e-9)
    assert model.slope(fit.values, np.array((1e-9,)))[0] == pytest.approx(0.0, abs=1e-6 * truth["viscosity"])
    # nothing but the law itself decides: data that do not start flat are fitted by a law that does
    forced = fit_friction(measured(KNEE, torque_noise=0.1), model).values
    assert forced["static_forward"] - forced["coulomb"] == pytest.approx(
        forced["viscosity"] * forced["stribeck_velocity"], rel=1e-9
    )


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_the_slope_is_the_derivative_and_the_levels_are_where_the_law_begins(model: str, side: float) -> None:
    truth, law = truth_of(model), MODELS[model]
    velocity, step = side * np.geomspace(0.01, 20.0, 40) * DEGREE, 1e-6 * DEGREE
    difference = law.evaluate(truth, velocity + step) - law.evaluate(truth, velocity - step)
    np.testing.assert_allclose(law.slope(truth, velocity), difference / (2.0 * step), rtol=1e-5, atol=1e-4)
    if law.scaled:
        name = "static_forward" if side > 0.0 else "static_backward"
        begin = law.evaluate(truth, np.array((side * 1e-9,)))[0] - truth.get("offset", 0.0)
        assert begin == pytest.approx(side * truth[name], abs=1e-6)


def test_levels_are_bounded_unless_asked_otherwise() -> None:
    truth = {"coulomb": 0.5, "viscosity": 0.3 / DEGREE}
    samples = measured(truth, torque_noise=0.2, model="coulomb-viscous", duration=20.0)
    fit = fit_friction(samples, "stribeck")
    levels = fit.values["static_forward"], fit.values["static_backward"]
    assert min(levels) >= fit.values["coulomb"] - 1e-12 >= 0.0
    free = fit_friction(samples, "stribeck", FitSettings(unbounded=True))
    assert min(free.values["static_forward"], free.values["static_backward"]) < free.values["coulomb"]
    assert fit.values["viscosity"] == pytest.approx(truth["viscosity"], rel=0.05)


def test_falling_friction_has_no_negative_viscosity_and_a_one_sided_interval() -> None:
    samples = measured({"coulomb": 1.0, "viscosity": -0.5}, torque_noise=0.05, model="coulomb-viscous")
    fit = fit_friction(samples, "coulomb-viscous")
    low, high = fit.intervals["viscosity"]
    assert fit.values["viscosity"] == low == 0.0
    assert 0.0 < high < 0.5
    free = fit_friction(samples, "coulomb-viscous", FitSettings(unbounded=True))
    assert free.values["viscosity"] == pytest.approx(-0.5, abs=0.1)


@pytest.mark.parametrize("loss", ["huber", "tukey"])
def test_wrong_samples_do_not_spoil_a_robust_fit(loss: str) -> None:
    clean = measured(KNEE, torque_noise=0.1)
    friction = clean.friction.copy()
    friction[::40] += 3.0
    spoilt = Samples(clean.time, clean.velocity, friction)
    plain, robust = fit_friction(spoilt, "stribeck"), fit_friction(spoilt, "stribeck", FitSettings(loss=loss))
    assert "outliers" in {doubt.code for doubt in plain.doubts}
    reference = fit_friction(clean, "stribeck")
    for name in ("coulomb", "static_forward", "static_backward"):
        assert abs(robust.values[name] - KNEE[name]) < 4.0 * robust.standard_errors[name] + 0.01
        assert robust.standard_errors[name] < 1.5 * reference.standard_errors[name]
    # what pushes always forward looks like a level that differs from side to side
    assert abs(plain.values["static_forward"] - 1.27) > 2.0 * abs(robust.values["static_forward"] - 1.27)


def test_weights_choose_what_is_fitted() -> None:
    samples = measured(KNEE, torque_noise=0.1, duration=40.0)
    first = np.arange(len(samples.time)) < 2000
    weighted = Samples(samples.time, samples.velocity, samples.friction, weights=first.astype(float))
    part = Samples(samples.time[first], samples.velocity[first], samples.friction[first])
    one, other = (fit_friction(each, "stribeck", FitSettings(dead_band=0.3 * DEGREE)) for each in (weighted, part))
    assert one.values == pytest.approx(other.values, rel=1e-2)
    # What an orthogonal factorisation of so many rows may round (Higham 2002, theorem 19.4): other rows, another BLAS.
    rounding = len(samples.time) * np.finfo(float).eps * one.condition
    assert rounding < 1e-11
    assert one.uncorrected == pytest.approx(other.uncorrected, rel=rounding)


def test_inertia_is_taken_off_or_found() -> None:
    time, _, velocity = hand(5, 60.0)
    acceleration = np.gradient(velocity, time)
    torque = -MODELS["stribeck"].evaluate(KNEE, velocity) - 0.4 * acceleration
    known = fit_friction(Samples.from_torque(time, velocity, torque, acceleration, 0.4), "stribeck")
    assert known.values == pytest.approx(KNEE, rel=1e-9)
    found = fit_friction(
        Samples.from_torque(time, velocity, torque, acceleration), "stribeck", FitSettings(fit_inertia=True)
    )
    assert found.values == pytest.approx(KNEE | {"inertia": 0.4}, rel=1e-9)
    assert found.relative_error(Samples.from_torque(time, velocity, torque, acceleration)) < 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_a_joint_without_dry_friction_is_viscous(seed: int) -> None:
    """Models with levels explain it no better; those that come out with a negative one are no choice at all."""
    truth = {"viscosity": 1.0 / DEGREE}
    samples = measured(truth, seed, duration=15.0, torque_noise=0.1, model="viscous")
    choice = choose_model([samples], ["viscous", "coulomb-viscous", "stribeck"])
    assert choice.name == "viscous"
    assert choice.fit.values == pytest.approx(truth, rel=0.01)
    negative = measured({"coulomb": -0.02, "viscosity": 1.0 / DEGREE}, seed, 15.0, model="coulomb-viscous")
    assert choose_model([negative], ["viscous", "coulomb-viscous"]).name == "viscous"


@pytest.mark.parametrize("seed", range(3))
def test_noise_on_the_positions_does_not_make_the_inertia_too_small(seed: int) -> None:
    """Twice differentiated noise pulls least squares towards 0; an instrument for the acceleration does not let it."""
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


def test_positions_alone_will_do() -> None:
    time, angle, velocity = hand(6, 60.0)
    samples = Samples.from_positions(time, angle, -MODELS["stribeck"].evaluate(KNEE, velocity), cutoff=10.0)
    fit = fit_friction(samples, "stribeck")
    assert fit.values == pytest.approx(KNEE, rel=2e-3)
    assert fit.excluded["edges"] == 2 * samples.edge > 0


def test_velocities_that_are_noisy_are_smoothed_and_their_noise_is_known() -> None:
    time, _, velocity = hand(8, 60.0)
    noise = 0.3 * DEGREE * np.random.default_rng(8).standard_normal(len(time))
    torque = -MODELS["stribeck"].evaluate(KNEE, velocity)
    samples = Samples.from_noisy_velocity(time, velocity + noise, torque, cutoff=4.0)
    left = (samples.velocity - velocity)[samples.inner]
    assert samples.noise == pytest.approx(left.std(), rel=0.1)
    assert samples.noise < 0.35 * noise.std()
    fit = fit_friction(samples, "stribeck")
    assert all(abs(fit.values[name] - KNEE[name]) < 4.0 * fit.standard_errors[name] for name in KNEE)


def test_samples_near_rest_are_left_out_and_counted() -> None:
    samples = measured(KNEE)
    friction = np.where(np.abs(samples.velocity) < 0.5 * DEGREE, 0.0, samples.friction)
    sticking = Samples(samples.time, samples.velocity, friction)
    fit = fit_friction(sticking, "stribeck", FitSettings(dead_band=0.5 * DEGREE))
    assert fit.values == pytest.approx(KNEE, rel=1e-9)
    slow = int(np.sum(np.abs(samples.velocity) <= 0.5 * DEGREE))
    assert fit.excluded["near zero velocity"] == slow > 0
    assert int(fit.kept.sum()) == len(fit.residual) == len(samples.time) - slow


def test_the_error_on_another_recording_is_that_of_its_noise() -> None:
    fit = fit_friction(measured(KNEE, seed=1, torque_noise=0.1), "stribeck")
    other = measured(KNEE, seed=2, torque_noise=0.1)
    moving = np.abs(other.velocity) > fit.dead_band
    expected = 0.1 / np.sqrt(np.mean(other.friction[moving] ** 2))
    assert fit.relative_error(other) == pytest.approx(expected, rel=0.05)


def test_a_recording_in_one_direction_can_be_judged() -> None:
    fit = fit_friction(measured(KNEE), "stribeck")
    velocity = np.linspace(1.0, 10.0, 200) * DEGREE
    assert fit.relative_error(Samples(HALF[:200], velocity, MODELS["stribeck"].evaluate(KNEE, velocity))) < 1e-9


@pytest.mark.parametrize("truth", ["coulomb-viscous", "stribeck", "stribeck-offset", "stribeck-gaussian"])
@pytest.mark.parametrize("recordings", [1, 3])
def test_the_model_that_made_the_data_is_chosen(truth: str, recordings: int) -> None:
    made = [
        measured(truth_of(truth), seed=seed, duration=60.0 / recordings, torque_noise=0.1, model=truth)
        for seed in range(recordings)
    ]
    candidates = ("coulomb-viscous", "stribeck", "stribeck-offset", "stribeck-gaussian")
    choice = choose_model(made, candidates)
    assert choice.name == truth
    assert choice.fit.values == pytest.approx(truth_of(truth), rel=0.2)
    assert choice.scores[truth] < 1.01 * min(choice.scores.values())


def test_motion_so_fast_that_it_looks_like_noise_does_no_harm() -> None:
    time = np.arange(0.0, 20.0, 0.01)
    velocity = (12.0 * np.sin(50.0 * time) + 8.0 * np.sin(3.0 * time)) * DEGREE
    samples = Samples(time, velocity, MODELS["stribeck"].evaluate(KNEE, velocity))
    assert samples.noise > 0.01 * DEGREE
    assert fit_friction(samples, "stribeck").values == pytest.approx(KNEE, rel=1e-9)


def test_samples_in_any_order_are_fitted_and_doubted() -> None:
    velocity = np.random.default_rng(0).uniform(-20.0, 20.0, 2000) * DEGREE
    samples = Samples(0.01 * np.arange(2000), velocity, MODELS["stribeck"].evaluate(KNEE, velocity))
    fit = fit_friction(samples, "stribeck")
    assert fit.values == pytest.approx(KNEE, rel=1e-9)
    assert "velocity-noise-unseen" in {doubt.code for doubt in fit.doubts}


def test_a_model_by_name_needs_no_comparison() -> None:
    """One way, then back: no block can be fitted without another, which matters to a comparison only."""
    velocity = np.concatenate((np.linspace(0.5, 9.0, 500), -np.linspace(0.5, 9.0, 500))) * DEGREE
    samples = Samples(np.arange(1000) * 0.01, velocity, MODELS["stribeck"].evaluate(KNEE, velocity))
    choice = choose_model([samples], ["stribeck"], folds=2)
    assert choice.fit.values == pytest.approx(KNEE, rel=1e-9)
    assert np.isnan(choice.scores["stribeck"])
    with pytest.raises(ConfigurationError, match="name one"):
        choose_model([samples], folds=2)


def test_recordings_are_joined_without_their_edges() -> None:
    time, angle, velocity = hand(7, 20.0)
    torque = -MODELS["stribeck"].evaluate(KNEE, velocity)
    one = Samples.from_positions(time, angle, torque, cutoff=5.0)
    both = joined((one, one))
    assert len(both.time) == 2 * (len(time) - 2 * one.edge)
    assert np.all(np.diff(both.time) > 0.0)
    np.testing.assert_array_equal(both.friction, np.tile(one.friction[one.inner], 2))


DRIVEN = measured(KNEE, duration=10.0).friction


def spoilt(**changes: object) -> Samples:
    samples = measured(KNEE, duration=10.0)
    fields = {"time": samples.time, "velocity": samples.velocity, "friction": samples.friction}
    return Samples(**(fields | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: spoilt(friction=np.full(1000, np.nan)), "friction is not finite in 1000 samples"),
        (lambda: fit_friction(spoilt(velocity=np.ones(1000)), "stribeck"), "constant"),
        (lambda: fit_friction(spoilt(velocity=np.zeros(1000)), "stribeck"), "constant"),
        (lambda: fit_friction(spoilt(velocity=HALF), "stribeck"), "backward"),
        (lambda: fit_friction(spoilt(velocity=-HALF), "stribeck"), "forward"),
        (lambda: fit_friction(spoilt(friction=np.zeros(1000)), "stribeck"), "nothing to explain"),
        (lambda: fit_friction(spoilt(friction=-DRIVEN), "coulomb-viscous", FitSettings()), "its sign"),
        (lambda: spoilt(time=HALF[::-1]), "increase"),
        (lambda: spoilt(velocity=np.ones(7)), "velocity has the shape"),
        (lambda: spoilt(weights=-np.ones(1000)), "weights"),
        (lambda: spoilt(velocity_noise=-1.0), "velocity_noise"),
        (lambda: spoilt(edge=498), "4 samples"),
        (lambda: fit_friction(spoilt(edge=490), "stribeck"), "20 samples are faster"),
        (lambda: Samples.from_torque(HALF, HALF, HALF, inertia=1.0), "accelerations"),
        (lambda: fit_friction(spoilt(velocity=np.sign(HALF - 0.5)), "coulomb-viscous"), "move at more speeds"),
        (lambda: fit_friction(spoilt(), "stribek"), "Did you mean 'stribeck'"),
        (lambda: fit_friction(spoilt(), "stribeck", FitSettings(dead_band=1e3)), "dead band"),
        (lambda: fit_friction(spoilt(), "stribeck", FitSettings(fit_inertia=True)), "acceleration"),
        (lambda: FitSettings(dead_band=-1.0), "dead_band"),
        (lambda: FitSettings(loss="cauchy"), "loss"),
        (lambda: FrictionModel("none", plateau=True), "plateau"),
        (lambda: FrictionModel(asymmetric_coulomb=True, offset=True), "tell them apart"),
        (lambda: choose_model([]), "at least one recording"),
    ],
)
def test_what_is_wrong_is_said(call: object, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        call()  # type: ignore[operator]
