"""The tracker: what its velocities add up to, what it makes of a count, and what it is between."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.common.velocity import VelocityEstimator, VelocitySettings
from devices.common.velocity.tracker import LARGEST_MISS, REST_RATE, REST_ZONE
from haptics.elements.models import MasslessImpedance
from haptics.friction.laws import Coulomb
from tests.devices.common.test_velocity import COUNT, PERIOD, difference, encoded, estimates, wandering

MEMORY, GAIN = 1.25e-3, 0.3
"""The defaults."""


def tracker(resolution=COUNT, period=PERIOD, **changes):
    return VelocityEstimator(resolution, period, VelocitySettings("tracker", **changes))


def farthest(gain):
    """How far from the encoder the velocities may lead, apart from half a period of motion [counts]."""
    return LARGEST_MISS + (1.0 - gain) * REST_ZONE


@given(
    seed=st.integers(0, 10**6),
    step=st.sampled_from([0.2, 1.0, 5.0, 300.0]),
    gain=st.sampled_from([0.05, GAIN, 1.0]),
    uneven=st.booleans(),
)
@settings(max_examples=15, deadline=None)
def test_velocities_add_up_to_the_displacement_but_for_a_few_counts(seed, step, gain, uneven):
    path = wandering(400, seed, step)
    path = np.vstack([path, np.tile(path[-1], (40, 1))])  # at rest there is no lead
    generator = np.random.default_rng(seed)
    times = np.cumsum(generator.uniform(0.1e-3, 4e-3, 440)) if uneven else PERIOD * np.arange(440)
    velocities = estimates(tracker(velocity_rest_gain=gain), path, times)
    led = np.cumsum(velocities[1:] * np.diff(times)[:, None], axis=0)
    assert np.hypot(*(led - path[1:] + path[0])[-1]) <= farthest(gain) * COUNT


@pytest.mark.parametrize("gain", [GAIN, 1.0])
def test_they_do_so_however_long_it_takes(gain):
    tested, position, led = tracker(velocity_rest_gain=gain), np.zeros(2), np.zeros(2)
    generator = np.random.default_rng(1)
    steps = generator.integers(-3, 4, (20000, 2)) * COUNT
    for k, step in enumerate(steps):
        position += step
        velocity = tested.update(PERIOD * k, *position)
        led += PERIOD * velocity
        if k > 0:  # three counts a period at most: half a period of that is the lead
            assert np.hypot(*(led - position + steps[0])) <= (farthest(gain) + 1.5 * math.sqrt(2.0)) * COUNT


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.9])
def test_a_count_that_goes_forth_and_back_shrinks_to_the_gain_at_rest(share):
    """However long it stays on which side; what the lead adds on top decays within a few periods."""
    hold = max(round(share * 20), 1)
    side = np.tile(np.repeat([1.0, 0.0], (hold, 20 - hold)), 200)
    path = np.outer(side * COUNT, (0.0, 1.0))
    quiet, loud = estimates(tracker(), path)[1000:, 1], estimates(difference(), path)[1000:, 1]
    assert np.sqrt(np.mean(quiet**2)) < 0.33 * np.sqrt(np.mean(loud**2))
    assert abs(quiet.sum()) * PERIOD < COUNT
    plain = estimates(tracker(velocity_rest_gain=1.0), path)[1000:, 1]
    np.testing.assert_allclose(quiet, GAIN * plain, atol=0.02 * np.abs(plain).max())


def test_beyond_the_zone_of_rest_motion_is_passed_on_in_full():
    path = encoded(np.outer(np.repeat([0.0, 400e-6], 100), (0.6, 0.8)))
    led = np.cumsum(estimates(tracker(), path), axis=0) * PERIOD
    away = (led[150] @ (0.6, 0.8)) / COUNT
    assert 400e-6 / COUNT - farthest(GAIN) <= away <= 400e-6 / COUNT + 0.5
    assert led[99] == pytest.approx((0.0, 0.0))


def test_the_place_of_rest_follows_at_its_rate():
    path = np.outer(np.repeat([0.0, COUNT], (10, 1000)), (1.0, 0.0))
    led = np.cumsum(estimates(tracker(), path), axis=0)[:, 0] * PERIOD
    times = PERIOD * np.arange(1, 1001)
    expected = COUNT * (1.0 - (1.0 - GAIN) * np.exp(-REST_RATE * times))
    np.testing.assert_allclose(led[30:], expected[20:], atol=0.02 * COUNT)


def discounted_line(positions, fading):
    """Return end and slope of the line with the least sum of squared errors that count `fading` times less each."""
    count = len(positions)
    ages = PERIOD * np.arange(1 - count, 1)
    root = np.sqrt(fading ** np.arange(count - 1, -1, -1))
    columns = np.column_stack((np.ones(count), ages)) * root[:, None]
    (end, slope), *_ = np.linalg.lstsq(columns, positions * root, rcond=None)
    return end, slope


def test_it_tracks_by_discounted_least_squares():
    """Slow enough that the memory is the one at rest, and an encoder so coarse that nothing is out of reach."""
    fading, generator = math.exp(-PERIOD / MEMORY), np.random.default_rng(2)
    positions = 1e-9 * np.cumsum(generator.standard_normal(200))
    velocities = estimates(tracker(resolution=1.0, velocity_rest_gain=1.0), np.column_stack((positions, positions)))
    lines = [discounted_line(positions[: k + 1], fading) for k in range(150, 200)]
    ahead = np.array([end + 0.5 * PERIOD * slope for end, slope in lines])
    np.testing.assert_allclose(velocities[151:, 0], np.diff(ahead) / PERIOD, rtol=1e-4, atol=1e-9)


def turning(radius, speed, seconds=1.0):
    angle = speed / radius * PERIOD * np.arange(round(seconds / PERIOD))
    return radius * np.column_stack((np.cos(angle), np.sin(angle))), np.column_stack((-np.sin(angle), np.cos(angle)))


def friction_angles(tested, radius, speed):
    """Return the angles between the friction of model C on an encoder and the true motion on a circle [deg]."""
    path, along = turning(radius, speed)
    element = MasslessImpedance(Coulomb(4.0), stiffness=6000.0, damping=10.0)
    forces = np.array([element.step(velocity) for velocity in estimates(tested, encoded(path))])
    cross = along[:, 0] * forces[:, 1] - along[:, 1] * forces[:, 0]
    return np.degrees(np.arctan2(cross, np.sum(along * forces, axis=1)))[300:]


@pytest.mark.parametrize(("radius", "speed"), [(0.05, 0.2), (0.1, 0.1), (0.05, 0.1)])
def test_friction_on_a_circle_points_against_the_motion(radius, speed):
    """Apart from the lag of the spring that is dragged along; the mean is late by less than half a period of motion."""
    lag = math.degrees(math.asin(4.0 / 6000.0 / (radius * (1.0 + (speed / radius / 600.0) ** 2))))
    error = friction_angles(tracker(), radius, speed) + lag
    assert np.percentile(np.abs(error), 95.0) < 0.75
    assert abs(error.mean()) < 0.15
    raw = friction_angles(difference(), radius, speed) + lag
    assert np.percentile(np.abs(raw), 95.0) > 2.0 * np.percentile(np.abs(error), 95.0)


def test_a_hand_that_stops_dead_is_followed_at_once():
    stop = 300
    path = encoded(np.outer(PERIOD * np.minimum(np.arange(600), stop), (0.2, 0.1)))
    velocities = estimates(tracker(), path)
    assert np.hypot(*velocities[stop - 1]) == pytest.approx(math.hypot(0.2, 0.1), rel=0.1)
    led = np.cumsum(velocities, axis=0) * PERIOD - path
    assert np.hypot(*led[stop:].T).max() < (farthest(GAIN) + 0.5) * COUNT + 0.5 * PERIOD * math.hypot(0.2, 0.1)
    assert np.hypot(*velocities[stop + 30 :].T).max() < 0.01


def test_a_long_pause_between_samples_is_no_jolt():
    path, times = np.outer(np.arange(200), (2e-4, 0.0)), PERIOD * np.arange(200)
    times[100:] += 0.5
    path[100:] += (0.01, 0.0)
    velocities = estimates(tracker(), encoded(path), times)
    assert velocities[100, 0] == pytest.approx(0.0102 / 0.501, rel=0.02)
    assert velocities[:, 0].max() < 0.25
