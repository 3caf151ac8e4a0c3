"""Which terms are taken, and what the model then says of other motions."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.fitting.block_fits import BlockFits
from calibration.fitting.prediction_error import relative_error
from calibration.fitting.regression import blocks
from calibration.terms.selection import SelectionSettings, select_terms
from calibration.terms.terms import Term, candidate_terms, dahl, make_term
from haptics.errors import ConfigurationError
from tests.calibration.simulated_joints import joint, motion, recorded


def names(model):
    return {term.name for term in model.terms}


# --- terms ------------------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(-2.0, 2.0), min_size=1, max_size=8), st.floats(0.01, 1.0))
def test_presliding_does_not_depend_on_how_finely_a_way_is_sampled(ends, length):
    ways = np.concatenate(([0.0], ends))
    fine = np.concatenate([np.linspace(a, b, 40, endpoint=False) for a, b in pairwise(ways)])
    assert dahl(np.append(fine, ways[-1]), length)[-1] == pytest.approx(dahl(ways, length)[-1], abs=1e-12)


@given(st.floats(1e-3, 0.1), st.floats(-1.0, 1.0))
def test_presliding_becomes_sliding_in_either_direction(length, start):
    way = np.concatenate((np.linspace(0.0, 20.0 * length, 500), np.linspace(20.0 * length, -20.0 * length, 500)))
    state = dahl(way, length, start)
    assert np.all(np.abs(state) <= 1.0)
    assert state[499] == pytest.approx(1.0, abs=1e-8)
    assert state[-1] == pytest.approx(-1.0, abs=1e-8)


def test_terms_of_signals_that_are_missing_are_not_offered():
    time, _, velocity, _ = motion()
    offered = {term.name for term in candidate_terms(recorded(time, velocity, velocity), (100.0,))}
    assert offered.isdisjoint({"load", "load_coulomb", "load_viscosity", "pose", "ripple"})
    assert {"coulomb", "presliding", "inertia", "rest"} <= offered


@pytest.mark.parametrize(
    ("name", "scale", "words"),
    [
        ("colomb", 1.0, "Did you mean 'coulomb'"),
        ("coulomb", None, "must be a number above 0"),
        ("load", 1.0, "no scale"),
    ],
)
def test_a_term_that_does_not_exist_is_said(name, scale, words):
    with pytest.raises(ConfigurationError, match=words):
        make_term(name, scale)


# --- fits over blocks -------------------------------------------------------------------------------------------------


def test_fits_without_a_block_are_those_of_least_squares_on_the_rest():
    random = np.random.default_rng(1)
    matrix, target = random.standard_normal((600, 5)) * [1.0, 1e3, 1e-4, 1.0, 7.0], random.standard_normal(600)
    fits = BlockFits(matrix, target, [400, 200], 5, 0.2)
    folds = [(start + fit, start + test) for start, n in ((0, 400), (400, 200)) for fit, test in blocks(n, 5, n // 25)]
    for number, (fit, test) in enumerate(folds):
        start, length = (0, 400) if number < 5 else (400, 200)
        others = np.setdiff1d(np.arange(600), np.arange(start, start + length))
        rows = np.concatenate((fit, others))
        expected = np.linalg.lstsq(matrix[rows][:, [0, 1, 2]], target[rows], rcond=None)[0]
        assert fits.left_out([0, 1, 2])[number] == pytest.approx(expected, rel=1e-6)
        left = target[test] - matrix[test][:, [0, 1, 2]] @ expected
        assert fits.errors([0, 1, 2])[number] == pytest.approx(np.mean(left**2), rel=1e-6)


def test_a_column_of_which_the_fit_sees_nothing_is_left_out_there():
    column = np.zeros(1000)
    column[:100] = 1.0
    fits = BlockFits(np.column_stack((np.ones(1000), column)), 3.0 + 5.0 * column, [1000], 10, 0.1)
    assert fits.left_out([0, 1])[0] == pytest.approx([3.0, 0.0], abs=1e-6)
    assert fits.coefficients([0, 1]) == pytest.approx([3.0, 5.0], rel=1e-6)


# --- selection --------------------------------------------------------------------------------------------------------


def test_the_terms_of_a_joint_are_found_and_no_others():
    seen = joint(inertia=-8.0)
    offered = (*candidate_terms(seen), make_term("presliding", 1e-3))
    model = select_terms(seen, offered).model
    assert names(model) == {"offset", "viscosity", "presliding", "inertia"}
    for name, value in (("offset", -15.0), ("viscosity", 60.0), ("presliding", 25.0), ("inertia", -8.0)):
        fitted = model.of(name)
        assert fitted.values[0] == pytest.approx(value, rel=0.05)
        assert fitted.low[0] < fitted.values[0] < fitted.high[0]


def test_a_model_without_noise_is_exact():
    seen = joint(noise=0.0, inertia=5.0)
    offered = (make_term("presliding", 1e-3), make_term("inertia"))
    time, position, velocity, acceleration = motion()
    friction = sum(
        share * term.matrix(seen)[:, 0]
        for share, term in ((-3.0, make_term("offset")), (60.0, make_term("viscosity")), (20.0, offered[0]))
    )
    exact = recorded(time, velocity, friction - 2.0 * acceleration, position, acceleration)
    model = select_terms(exact, offered).model
    found = {one.term.name: one.values[0] for one in model.fitted}
    assert found == pytest.approx({"offset": -3.0, "viscosity": 60.0, "presliding": 20.0, "inertia": -2.0}, rel=1e-9)
    assert model.error(exact).value < 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_terms_of_mere_chance_are_not_taken(seed):
    seen = joint(seed=seed)
    random = np.random.default_rng(seed)
    noise = random.standard_normal((30, len(seen)))
    chance = [
        Term(f"chance {number}", "friction", "force", lambda _, column=column: column)
        for number, column in enumerate(noise)
    ]
    assert names(select_terms(seen, [make_term("presliding", 1e-3), *chance]).model) == {
        "offset",
        "viscosity",
        "presliding",
    }


def test_what_pushes_along_is_no_friction():
    time, position, velocity, _ = motion()
    seen = recorded(time, velocity, 60.0 * velocity - 20.0 * np.tanh(velocity / 1e-3), position)
    assert "coulomb" not in names(select_terms(seen, [make_term("coulomb", 1e-3)]).model)


def test_the_model_predicts_another_motion():
    selection = select_terms(joint(inertia=-8.0))
    other = joint(seed=7, inertia=-8.0)
    plain = np.column_stack((np.ones(len(other)), other.velocity))
    left = other.friction - plain @ np.linalg.lstsq(plain, other.friction, rcond=None)[0]
    error = selection.model.error(other)
    assert error.rms < 2.5  # noise: 2
    assert error.rms < 0.3 * np.std(left)
    assert error.low < error.value < error.high


def test_more_recordings_tell_more():
    few = select_terms(joint(seed=1)).model.of("viscosity")
    many = select_terms([joint(seed=seed) for seed in (1, 2, 3, 4)]).model.of("viscosity")
    assert many.high[0] - many.low[0] < few.high[0] - few.low[0]
    assert many.low[0] < 60.0 < many.high[0]


@pytest.mark.parametrize(("recordings", "share"), [(1, 1 / 2), (2, 2 / 3), (4, 4 / 5)])
def test_what_happens_once_in_a_recording_is_trusted_by_how_often_it_was_seen(recordings, share):
    rest = make_term("rest", 0.05)
    seen = []
    for seed in range(recordings):
        plain = joint(seed=seed, sliding=0.0, noise=0.5)
        friction = plain.friction + 40.0 * rest.matrix(plain)[:, 0]
        seen.append(recorded(plain.time, plain.velocity, friction, plain.position, plain.acceleration))
    assert select_terms(seen, [rest]).model.of("rest").values[0] == pytest.approx(share * 40.0, rel=0.03)


def test_only_kinds_that_are_wished_are_taken_and_the_kinds_add_up():
    seen = joint(inertia=-8.0)
    assert "inertia" not in names(select_terms(seen, settings=SelectionSettings(kinds=("friction",))).model)
    model = select_terms(seen).model
    parts = model.predict(seen, ("friction",)) + model.predict(seen, ("inertia", "load", "drive"))
    assert np.allclose(parts, model.predict(seen), atol=1e-9)
    assert np.abs(model.predict(seen, ("inertia",))).max() > 1.0


def test_the_drives_answer_to_ripple_is_told_from_friction():
    plain = joint()
    ripple = 0.002 * np.sin(2.0 * np.pi * 90.0 * plain.time)
    seen = recorded(plain.time, plain.velocity + ripple, plain.friction - 5e4 * ripple, plain.position)
    model = select_terms(seen).model
    assert model.of("drive_reaction").values[0] == pytest.approx(5e4, rel=0.1)
    assert np.abs(model.predict(seen, ("friction",)) - (plain.friction))[200:-200].std() < 4.0


def test_the_interval_of_an_error_covers_that_of_long_recordings():
    time, _, velocity, _ = motion(duration=40.0)
    random = np.random.default_rng(3)
    slow = np.repeat(random.standard_normal(len(time) // 50), 50)  # errors alike for 0.2 s
    torque = 10.0 * np.sign(np.sin(time))
    error = relative_error(recorded(time, velocity, torque), torque + slow)
    assert error.low < 0.1 < error.high
    assert 0.02 < (error.high - error.low) / error.value < 0.5


@pytest.mark.parametrize(
    ("wish", "words"), [({"blocks": 2}, "blocks is 2"), ({"kinds": ("frictions",)}, 'kind "frictions" is not one of')]
)
def test_settings_that_make_no_sense_are_said(wish, words):
    with pytest.raises(ConfigurationError, match=words):
        SelectionSettings(**wish)


def test_no_recording_is_said():
    with pytest.raises(ConfigurationError, match="without a recording"):
        select_terms([])


def test_a_torque_of_nothing_is_said():
    seen = joint()
    nothing = recorded(seen.time, seen.velocity, np.zeros(len(seen)))
    with pytest.raises(ConfigurationError, match="nothing to explain"):
        select_terms(nothing)
    with pytest.raises(ConfigurationError, match="nothing to explain"):
        select_terms(seen).model.error(nothing)
