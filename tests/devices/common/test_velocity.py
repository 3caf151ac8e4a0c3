"""What every velocity estimator must do, whichever it is; and the difference."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.common.velocity import (
    ESTIMATORS,
    LONGEST_WINDOW,
    VELOCITY,
    VelocityEstimator,
    VelocitySettings,
    fill_velocity,
    prepare_velocity,
    update_velocity,
    velocity_lag,
)
from haptics.errors import ConfigurationError
from haptics.jit import kernel

COUNT, PERIOD = 20e-6, 1e-3
CONTINUOUS = tuple(name for name in ESTIMATORS if name != "level-crossing")
"""Those that find a velocity exactly if the positions are exact."""


def estimator(name, resolution=COUNT, period=PERIOD, **changes):
    return VelocityEstimator(resolution, period, VelocitySettings(velocity_estimator=name, **changes))


def difference(window=1):
    return VelocityEstimator(COUNT, PERIOD, VelocitySettings("difference", window))


def encoded(path, resolution=COUNT):
    return resolution * np.floor(np.asarray(path) / resolution + 0.5)


def estimates(tested, path, times=None):
    """Return the velocities along `path`, (n, 2) [m]; every millisecond if no times are given."""
    times = PERIOD * np.arange(len(path)) if times is None else times
    return np.array([tested.update(t, x, y).copy() for t, (x, y) in zip(times, path, strict=True)])


def wandering(count, seed, step=3.0):
    """Return a path that rests, creeps and runs, on the grid of the encoder, (n, 2) [m]."""
    generator = np.random.default_rng(seed)
    steps = step * generator.standard_normal((count, 2)) * (np.sin(np.arange(count) / 40.0)[:, None] > 0.0)
    return encoded(COUNT * np.cumsum(steps, axis=0))


# --- every estimator ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ESTIMATORS)
def test_velocity_is_zero_until_there_are_two_samples(name):
    tested = estimator(name)
    np.testing.assert_array_equal(tested.velocity, (0.0, 0.0))
    np.testing.assert_array_equal(tested.update(0.0, 1.0, 2.0), (0.0, 0.0))
    assert (np.abs(tested.update(1e-3, 1.001, 1.999)) > 0.0).all()


@pytest.mark.parametrize("name", CONTINUOUS)
@given(seed=st.integers(0, 1000), speed=st.floats(-0.5, 0.5))
@settings(max_examples=5, deadline=None)
def test_constant_velocity_is_found_exactly_at_uneven_times(name, seed, speed):
    times = np.cumsum(np.random.default_rng(seed).uniform(0.2e-3, 3e-3, 1500))
    velocities = estimates(estimator(name), np.outer(times, (speed, -0.3)), times)
    np.testing.assert_allclose(velocities[-100:], [(speed, -0.3)] * 100, atol=1e-9)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("speed", [0.003, 0.02, 0.2])
def test_encoded_motion_has_the_right_mean_velocity(name, speed):
    path = encoded(np.outer(PERIOD * np.arange(2000), (speed, 0.0)))
    velocities = estimates(estimator(name), path)[1000:]
    assert velocities[:, 0].mean() == pytest.approx(speed, abs=1.5 * COUNT, rel=3e-3)  # one second: a count and a half
    np.testing.assert_array_equal(velocities[:, 1], np.zeros(1000))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_velocity_dies_away_at_rest(name):
    moving = encoded(np.outer(PERIOD * np.arange(200), (0.15, -0.08)))
    path = np.vstack([moving, np.tile(moving[-1], (3000, 1))])
    velocities = np.abs(estimates(estimator(name), path)[200:]).max(axis=1)
    if name == "level-crossing":  # all that is known: no count came in the meantime
        assert (velocities <= COUNT / (PERIOD * np.arange(1, 3001)) * (1.0 + 1e-9)).all()
    else:
        assert velocities[-1] < 1e-9
        assert (velocities[400:] < 6.0 * COUNT).all()  # the tracker's place of rest is still on its way, 0.2 s long


@pytest.mark.parametrize("name", ESTIMATORS)
def test_place_and_direction_of_the_axes_do_not_matter(name):
    path = wandering(600, seed=3)
    plain = estimates(estimator(name), path)
    np.testing.assert_allclose(estimates(estimator(name), path + np.array((1.28, -0.64))), plain, atol=1e-7)
    quarter_turn = estimates(estimator(name), path @ ((0.0, 1.0), (-1.0, 0.0)))
    np.testing.assert_allclose(quarter_turn, plain @ ((0.0, 1.0), (-1.0, 0.0)), atol=1e-12)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_coarser_encoder_on_a_larger_hand_gives_the_same_picture(name):
    path = wandering(600, seed=4)
    small = estimates(estimator(name), path)
    tested = estimator(name, resolution=4.0 * COUNT, velocity_acceleration=60.0)
    if name == "kalman":  # it begins with a velocity it does not know, of 1 m/s: a scale of its own
        np.testing.assert_allclose(estimates(tested, 4.0 * path)[100:], 4.0 * small[100:], atol=1e-9)
    else:
        np.testing.assert_allclose(estimates(tested, 4.0 * path), 4.0 * small, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_time_is_relative(name):
    path, times = wandering(300, seed=5), PERIOD * np.arange(300)
    late = estimates(estimator(name), path, times + 1000.0)
    np.testing.assert_allclose(late, estimates(estimator(name), path, times), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_sample_without_a_new_time_or_without_a_number_is_ignored(name):
    disturbed, path, times = estimator(name), wandering(60, seed=6), PERIOD * np.arange(60)
    before = estimates(disturbed, path[:30])[-1]
    for time, x in ((times[29], 5.0), (0.01, 5.0), (0.5, math.nan), (0.5, math.inf), (math.nan, 0.0), (math.inf, 0.0)):
        np.testing.assert_array_equal(disturbed.update(time, x, 0.0), before)
    after = estimates(disturbed, path[30:], times[30:])
    np.testing.assert_array_equal(after, estimates(estimator(name), path)[30:])


@pytest.mark.parametrize("name", ESTIMATORS)
def test_missing_samples_do_not_last(name):
    kept = np.ones(600, dtype=bool)
    kept[200:220] = False
    path, times = np.outer(PERIOD * np.arange(600), (0.3, 0.1)), PERIOD * np.arange(600)
    gap = estimates(estimator(name), encoded(path)[kept], times[kept])
    assert np.isfinite(gap).all()
    np.testing.assert_allclose(gap[200], (0.3, 0.1), rtol=0.2)
    np.testing.assert_allclose(gap[-300:].mean(axis=0), (0.3, 0.1), rtol=2e-3)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_reset_forgets(name):
    tested, path = estimator(name), wandering(200, seed=7)
    first = estimates(tested, path)
    tested.reset()
    np.testing.assert_array_equal(tested.velocity, (0.0, 0.0))
    np.testing.assert_array_equal(estimates(tested, path), first)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_perfect_positions_need_no_resolution(name):
    times = PERIOD * np.arange(400)
    wave = np.outer(np.sin(20.0 * times), (0.01, 0.02))
    truth = np.outer(20.0 * np.cos(20.0 * times), (0.01, 0.02))
    velocities = estimates(estimator(name, resolution=0.0), wave)
    np.testing.assert_allclose(velocities[40:], truth[40:], atol=0.006)


@kernel
def _update(record, time, x, y):
    update_velocity(record[0].estimator, time, x, y)


def test_kernel_of_a_device_gives_the_same_as_the_class():
    dtype = np.dtype([("own", "<f8"), ("estimator", VELOCITY)])
    path = wandering(100, seed=8)
    for name in ESTIMATORS:
        record = np.zeros(1, dtype)
        fill_velocity(record["estimator"], VelocitySettings(name), COUNT, PERIOD)
        prepare_velocity(record["estimator"])
        for k, (x, y) in enumerate(path):
            _update(record, PERIOD * k, x, y)
        np.testing.assert_array_equal(record["estimator"]["velocity"][0], estimates(estimator(name), path)[-1])


# --- the settings -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [0, -1, LONGEST_WINDOW + 1, 1.5, True])
def test_impossible_window_is_refused(window):
    with pytest.raises(ConfigurationError, match="velocity_window"):
        VelocitySettings("difference", window)


@pytest.mark.parametrize("name", ESTIMATORS[1:])
def test_window_of_another_estimator_is_refused(name):
    with pytest.raises(ConfigurationError, match=rf"velocity_window = 4: only .*difference.*'{name}'"):
        VelocitySettings(name, 4)


def test_unknown_estimator_is_refused_with_those_there_are():
    with pytest.raises(ConfigurationError, match=r"velocity_estimator = 'magic': must be one of difference, .*tracker"):
        VelocitySettings("magic")


def test_crossings_need_an_encoder():
    with pytest.raises(ConfigurationError, match="level-crossing"):
        estimator("level-crossing", resolution=0.0)


@pytest.mark.parametrize("count", [1e-6, 20e-6, 100e-6])
@pytest.mark.parametrize(
    ("name", "changes"), [("difference", {}), ("difference", {"velocity_window": 7}), ("kalman", {})]
)
def test_lag_is_how_much_sooner_a_hand_got_where_the_velocities_of_a_ramp_lead(name, changes, count):
    speed, tested = 0.2, estimator(name, resolution=count, **changes)
    path = np.outer(PERIOD * np.maximum(np.arange(-1000, 1000), 0), (speed, 0.0))
    behind = path[-1, 0] - estimates(tested, path)[:, 0].sum() * PERIOD
    lag = velocity_lag(VelocitySettings(name, **changes), count, PERIOD)
    assert lag == pytest.approx(max(behind / speed, 0.0), abs=1e-9)


# --- the difference -----------------------------------------------------------------------------------------------


@given(
    window=st.integers(1, LONGEST_WINDOW),
    counts=st.lists(st.integers(-50, 50), min_size=2, max_size=200),
)
def test_window_is_the_difference_over_as_many_samples_as_there_are(window, counts):
    positions = np.cumsum(counts) * COUNT
    velocity = estimates(difference(window), np.column_stack((positions, 0.0 * positions)))[-1, 0]
    span = min(window, len(positions) - 1)
    assert velocity == pytest.approx((positions[-1] - positions[-1 - span]) / (span * PERIOD), rel=1e-9, abs=1e-12)


@given(counts=st.lists(st.integers(-50, 50), min_size=2, max_size=100))
def test_backward_difference_adds_up_to_the_displacement(counts):
    positions = np.cumsum(counts) * COUNT
    velocities = estimates(difference(), np.column_stack((positions, 0.0 * positions)))
    assert velocities[:, 0].sum() * PERIOD == pytest.approx(positions[-1] - positions[0], abs=1e-12)
