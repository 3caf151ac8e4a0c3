"""The simulated force sensor: what goes through it, what it shows, and the way back, which is that of a real one."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.arm.sensors.mounting import Mounting, SensorSettings, turn
from devices.virtual.wrench import (
    WRENCH,
    WrenchSettings,
    fill_wrench,
    hand_force,
    measure_wrench,
    tare_wrench,
    true_wrench,
)
from haptics.errors import ConfigurationError
from haptics.jit import kernel

PERFECT = {"noise": 0.0, "torque_noise": 0.0, "drift": 0.0, "torque_drift": 0.0, "bias": (0.0,) * 6}
PERFECT |= {"resolution": 0.0, "torque_resolution": 0.0}

numbers = st.floats(-20.0, 20.0)
angles = st.floats(-math.pi, math.pi)
places = st.tuples(*[st.floats(-0.1, 0.1)] * 3)
turns = st.tuples(*[st.floats(-180.0, 180.0)] * 3)


@kernel
def _pass_through(records, angle, seen_angle, fx, fy, ax, ay, period, results):
    s = records[0]
    for k in range(len(results)):
        true_wrench(s, angle, fx, fy, ax, ay)
        measure_wrench(s, period)
        results[k, 0], results[k, 1] = hand_force(s, seen_angle)


def sensor(mass=0.0, tilt=0.0, seed=0, **settings):
    record = np.zeros(1, WRENCH)
    fill_wrench(record, WrenchSettings(**settings), mass, tilt, seed)
    return record


def seen(record, count=1, *, angle=0.3, force=(0.0, 0.0), acceleration=(0.0, 0.0), period=1e-3):
    results = np.zeros((count, 2))
    _pass_through(record, angle, angle, *force, *acceleration, period, results)
    return results


@given(numbers, numbers, angles, places, turns, st.floats(0.0, 2.0), st.floats(0.0, 9.8))
def test_a_perfect_sensor_shows_the_hand_less_what_the_handle_takes_to_be_moved(x, y, angle, centre, turned, m, tilt):
    record = sensor(m, tilt, rotation=turned, handle_centre=centre, range=1e3, torque_range=1e3, **PERFECT)
    felt = seen(record, angle=angle, force=(x, y), acceleration=(y, -x))[0]
    np.testing.assert_allclose(felt, (x - m * y, y + m * x), atol=1e-12)


@given(numbers, numbers, angles, places, turns, st.floats(0.0, 2.0), st.floats(0.0, 9.8), st.integers(0, 99))
def test_the_way_back_is_the_one_of_a_real_sensor(x, y, angle, centre, turned, mass, tilt, seed):
    record = sensor(mass, tilt, seed, rotation=turned, handle_centre=centre)
    tare_wrench(record, 20, 1e-3, 0.0)
    ours = seen(record, angle=angle, force=(x, y))[0]
    down = -math.sqrt(9.80665**2 - tilt**2)
    settings = SensorSettings(rotation=turned, handle_mass=mass, handle_centre=centre, gravity=(0.0, -tilt, down))
    mounting = Mounting(settings)
    mounting.record["offset"] = record["offset"]
    theirs = mounting.hand(record["shown"][0], turn(2, angle))
    np.testing.assert_allclose(ours, theirs[:2], atol=1e-9)


@given(numbers, numbers, angles, places, turns)
def test_the_hand_pulls_at_the_handle_so_that_torques_tell_where(x, y, angle, centre, turned):
    record = sensor(rotation=turned, handle_centre=centre, range=1e3, **PERFECT)
    seen(record, angle=angle, force=(x, y))
    force, torque = record["truth"][0].reshape(2, 3)
    np.testing.assert_allclose(torque, np.cross(centre, force), atol=1e-12)
    assert np.linalg.norm(force) == pytest.approx(math.hypot(x, y), abs=1e-12)


def test_noise_is_white_and_bias_is_what_is_left_without_a_tare():
    record = sensor(seed=3, resolution=0.0, drift=0.0)
    error = seen(record, 20_000, angle=0.0, force=(5.0, 3.0)) - (5.0, 3.0) - (2.0, -1.0)
    count = len(error)
    assert np.abs(error.mean(axis=0)).max() < 5.0 * 0.05 / math.sqrt(count)
    np.testing.assert_allclose(error.std(axis=0), 0.05, rtol=0.03)
    normal = error / 0.05
    for lag in (1, 2, 10):
        assert np.abs((normal[lag:] * normal[:-lag]).mean(axis=0)).max() < 5.0 / math.sqrt(count)
    assert abs((normal[:, 0] * normal[:, 1]).mean()) < 5.0 / math.sqrt(count)


def test_the_bias_turns_with_the_sensor_and_a_tare_takes_it_away():
    quiet = PERFECT | {"bias": (2.0, -1.0, 3.0, 0.0, 0.0, 0.0)}
    record = sensor(0.4, 3.0, **quiet)
    np.testing.assert_allclose(seen(record, angle=math.pi / 2.0)[0], (1.0, 2.0), atol=1e-12)
    tare_wrench(record, 10, 1e-3, 0.0)
    np.testing.assert_allclose(seen(record, angle=2.0)[0], 0.0, atol=1e-12)


def test_a_tare_is_as_good_as_the_mean_of_its_measurements():
    left = []
    for seed in range(200):
        record = sensor(seed=seed, drift=0.0, resolution=0.0)
        tare_wrench(record, 100, 1e-3, 0.0)
        left.append(record["offset"][0, :2] - (2.0, -1.0))
    np.testing.assert_allclose(np.std(left, axis=0), 0.05 / math.sqrt(100), rtol=0.2)


def test_the_drift_is_a_random_walk():
    walks = []
    for seed in range(200):
        record = sensor(seed=seed, **(PERFECT | {"drift": 0.1}))
        walks.append(seen(record, 40, period=0.1)[[9, 39]])
    walks = np.array(walks)
    np.testing.assert_allclose(walks[:, 0].std(axis=0), 0.1, rtol=0.2)
    np.testing.assert_allclose(walks[:, 1].std(axis=0), 0.2, rtol=0.2)


def test_it_shows_steps_up_to_its_range():
    record = sensor(**(PERFECT | {"resolution": 0.5}))
    np.testing.assert_array_equal(seen(record, angle=0.0, force=(80.0, -80.0))[0], (50.0, -50.0))
    np.testing.assert_array_equal(seen(record, angle=0.0, force=(3.3, -7.8))[0], (3.5, -8.0))


def test_equal_seeds_are_equal():
    first, second, other = (seen(sensor(seed=seed), 5) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert (first != other).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"range": 0.0}, r"device\.sensor\.range = 0\.0: must be .*greater than 0 N"),
        ({"bias": (1.0, 2.0)}, r"device\.sensor\.bias = \(1\.0, 2\.0\): must be 6 finite numbers"),
        ({"rotation": (1.0, 2.0, math.nan)}, r"device\.sensor\.rotation"),
        ({"handle_centre": 3.0}, r"device\.sensor\.handle_centre = 3\.0"),
        ({"bias": ("a",) * 6}, r"device\.sensor\.bias"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        WrenchSettings(**settings)
