"""Velocity estimators of the drivers."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import devices
from devices.common.settings import ESTIMATORS, LONGEST_FIT, LONGEST_WINDOW, VelocitySettings, velocity_lag
from devices.common.velocity import LARGEST_MISS, REST_RATE, REST_ZONE, VelocityEstimator
from haptics.clock import Clock
from haptics.elements.models import MasslessImpedance
from haptics.errors import ConfigurationError
from haptics.friction.laws import Coulomb

COUNT, PERIOD = 20e-6, 1e-3
# Those that find a velocity exactly if the positions are exact.
CONTINUOUS = tuple(name for name in ESTIMATORS if name != "level-crossing")


def estimator(name, resolution=COUNT, period=PERIOD, **changes):
    return VelocityEstimator(resolution, period, VelocitySettings(velocity_estimator=name, **changes))


def along_x(positions):
    return np.column_stack((positions, np.zeros(len(positions))))


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
def test_velocity_is_zero_before_two_samples_and_after_a_reset(name):
    tested, path = estimator(name), wandering(200, seed=7)
    first = estimates(estimator(name), path)
    np.testing.assert_array_equal(tested.velocity, (0.0, 0.0))
    np.testing.assert_array_equal(tested.update(0.0, 1.0, 2.0), (0.0, 0.0))
    assert (np.abs(tested.update(1e-3, 1.001, 1.999)) > 0.0).all()
    tested.reset()
    np.testing.assert_array_equal(tested.velocity, (0.0, 0.0))
    np.testing.assert_array_equal(estimates(tested, path), first)


@pytest.mark.parametrize("name", CONTINUOUS)
@given(seed=st.integers(0, 1000), speed=st.floats(-0.5, 0.5))
@settings(max_examples=5, deadline=None)
def test_constant_velocity_is_exact_at_uneven_times(name, seed, speed):
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
def test_velocity_decays_at_rest(name):
    moving = encoded(np.outer(PERIOD * np.arange(200), (0.15, -0.08)))
    path = np.vstack([moving, np.tile(moving[-1], (3000, 1))])
    velocities = np.abs(estimates(estimator(name), path)[200:]).max(axis=1)
    if name == "level-crossing":  # no count arrived since
        assert (velocities <= COUNT / (PERIOD * np.arange(1, 3001)) * (1.0 + 1e-9)).all()
    else:
        assert velocities[-1] < 1e-9
        assert (velocities[400:] < 6.0 * COUNT).all()  # the tracker's place of rest is still on its way, 0.2 s long


@pytest.mark.parametrize("name", ESTIMATORS)
def test_velocity_is_independent_of_offset_axes_and_time_origin(name):
    path = wandering(600, seed=3)
    plain = estimates(estimator(name), path)
    np.testing.assert_allclose(estimates(estimator(name), path + np.array((1.28, -0.64))), plain, atol=1e-7)
    quarter_turn = estimates(estimator(name), path @ ((0.0, 1.0), (-1.0, 0.0)))
    np.testing.assert_allclose(quarter_turn, plain @ ((0.0, 1.0), (-1.0, 0.0)), atol=1e-12)
    late = estimates(estimator(name), path, PERIOD * np.arange(600) + 1000.0)
    np.testing.assert_allclose(late, plain, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_repeated_and_nan_samples_are_ignored(name):
    disturbed, path, times = estimator(name), wandering(60, seed=6), PERIOD * np.arange(60)
    before = estimates(disturbed, path[:30])[-1]
    for time, x in ((times[29], 5.0), (0.01, 5.0), (0.5, math.nan), (0.5, math.inf), (math.nan, 0.0), (math.inf, 0.0)):
        np.testing.assert_array_equal(disturbed.update(time, x, 0.0), before)
    after = estimates(disturbed, path[30:], times[30:])
    np.testing.assert_array_equal(after, estimates(estimator(name), path)[30:])


@pytest.mark.parametrize("name", ESTIMATORS)
def test_missing_samples_have_no_lasting_effect(name):
    kept = np.ones(600, dtype=bool)
    kept[200:220] = False
    path, times = np.outer(PERIOD * np.arange(600), (0.3, 0.1)), PERIOD * np.arange(600)
    gap = estimates(estimator(name), encoded(path)[kept], times[kept])
    assert np.isfinite(gap).all()
    np.testing.assert_allclose(gap[200], (0.3, 0.1), rtol=0.2)
    np.testing.assert_allclose(gap[-300:].mean(axis=0), (0.3, 0.1), rtol=2e-3)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_exact_positions_need_no_resolution(name):
    times = PERIOD * np.arange(400)
    wave = np.outer(np.sin(20.0 * times), (0.01, 0.02))
    truth = np.outer(20.0 * np.cos(20.0 * times), (0.01, 0.02))
    velocities = estimates(estimator(name, resolution=0.0), wave)
    np.testing.assert_allclose(velocities[40:], truth[40:], atol=0.006)


# --- the settings -------------------------------------------------------------------------------------------------


def test_unsuitable_settings_are_rejected():
    for window in (0, -1, LONGEST_WINDOW + 1, 1.5, True):
        with pytest.raises(ConfigurationError, match="velocity_window"):
            VelocitySettings("difference", window)
    for name in ESTIMATORS[1:]:
        with pytest.raises(ConfigurationError, match=rf"velocity_window = 4: only .*difference.*'{name}'"):
            VelocitySettings(name, 4)
    with pytest.raises(ConfigurationError, match=r"velocity_estimator = 'magic': must be one of difference, .*tracker"):
        VelocitySettings("magic")
    with pytest.raises(ConfigurationError, match="level-crossing"):
        estimator("level-crossing", resolution=0.0)


@pytest.mark.parametrize("count", [1e-6, 20e-6, 100e-6])
@pytest.mark.parametrize(
    ("name", "changes"), [("difference", {}), ("difference", {"velocity_window": 7}), ("kalman", {})]
)
def test_lag_matches_a_velocity_ramp(name, changes, count):
    speed, tested = 0.2, estimator(name, resolution=count, **changes)
    path = np.outer(PERIOD * np.maximum(np.arange(-1000, 1000), 0), (speed, 0.0))
    behind = path[-1, 0] - estimates(tested, path)[:, 0].sum() * PERIOD
    lag = velocity_lag(VelocitySettings(name, **changes), count, PERIOD)
    assert lag == pytest.approx(max(behind / speed, 0.0), abs=1e-9)


# --- the difference -----------------------------------------------------------------------------------------------


@given(window=st.integers(1, LONGEST_WINDOW), counts=st.lists(st.integers(-50, 50), min_size=2, max_size=200))
def test_difference_uses_the_window(window, counts):
    positions = np.cumsum(counts) * COUNT
    velocity = estimates(estimator("difference", velocity_window=window), along_x(positions))[-1, 0]
    span = min(window, len(positions) - 1)
    assert velocity == pytest.approx((positions[-1] - positions[-1 - span]) / (span * PERIOD), rel=1e-9, abs=1e-12)


# --- adaptive windows ---------------------------------------------------------------------------------------------


def line_through(ends, times, positions):
    """Return the slope of the line, and whether all samples are within a count of it."""
    ages, offsets = times - times[-1], positions - positions[-1]
    slope, last = (offsets[0] / ages[0], 0.0) if ends else np.polyfit(ages, offsets, 1)
    return slope, np.abs(offsets - last - slope * ages).max() <= 1.000001 * COUNT


def longest_fit(ends, times, positions):
    slope = (positions[-1] - positions[-2]) / (times[-1] - times[-2])
    for count in range(2, min(len(positions) - 1, LONGEST_FIT) + 1):
        candidate, fits = line_through(ends, times[-1 - count :], positions[-1 - count :])
        if not fits:
            break
        slope = candidate
    return slope


@pytest.mark.parametrize("name", ["end-fit", "best-fit"])
@given(seed=st.integers(0, 10**6), step=st.sampled_from([0.1, 0.5, 3.0]))
@settings(max_examples=5, deadline=None)
def test_adaptive_window_is_the_longest_that_a_line_fits(name, seed, step):
    path = wandering(80, seed, step)
    times = np.cumsum(np.random.default_rng(seed).uniform(0.5e-3, 2e-3, 80))
    velocities = estimates(estimator(name), path, times)
    for k in (1, 2, 10, 40, 79):
        for i in range(2):
            expected = longest_fit(name == "end-fit", times[: k + 1], path[: k + 1, i])
            assert velocities[k, i] == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", ["end-fit", "best-fit", "level-crossing"])
def test_adaptive_estimators_accumulate_an_error(name):
    cycle = np.repeat([0.0, 1.0, 2.0, 3.0, 2.0, 1.0], (10, 1, 1, 10, 6, 6))
    path = along_x(COUNT * np.tile(cycle, 100))
    led = estimates(estimator(name), path)[:, 0].sum() * PERIOD
    kept = estimates(estimator("tracker"), path)[:, 0].sum() * PERIOD
    assert abs(led) > 20.0 * COUNT
    assert abs(kept) < 3.0 * COUNT


# --- Kalman -------------------------------------------------------------------------------------------------------


def matrix_filter(times, positions, acceleration, memory):
    """Return the velocities of the filter in its textbook form, with Joseph's update."""
    intensity, H, R = acceleration**2 * memory, np.array([[1.0, 0.0]]), COUNT**2 / 12.0
    state, P, velocities = np.array([positions[0], 0.0]), np.diag([R, 1.0]), [0.0]
    for T, measured in zip(np.diff(times), positions[1:], strict=True):
        F = np.array([[1.0, T], [0.0, 1.0]])
        state, P = F @ state, F @ P @ F.T + intensity * np.array([[T**3 / 3.0, T**2 / 2.0], [T**2 / 2.0, T]])
        gain = P @ H.T / (H @ P @ H.T + R)
        state = state + gain[:, 0] * (measured - state[0])
        keep = np.eye(2) - gain @ H
        P = keep @ P @ keep.T + R * gain @ gain.T
        velocities.append(state[1])
    return np.array(velocities)


def test_kalman_matches_the_textbook_filter():
    path, times = wandering(300, seed=1), np.cumsum(np.random.default_rng(1).uniform(0.5e-3, 2e-3, 300))
    velocities = estimates(estimator("kalman", velocity_acceleration=8.0, velocity_memory=3e-3), path, times)
    for i in range(2):
        expected = matrix_filter(times, path[:, i], 8.0, 3e-3)
        np.testing.assert_allclose(velocities[:, i], expected, rtol=1e-6, atol=1e-8)


# --- level crossings ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("speed", [0.0004, 0.003, 0.017])
def test_level_crossing_times_a_slow_motion(speed):
    """An edge is timed to a period: over n periods between two edges the velocity is off by 1/n at most."""
    path = encoded(along_x(speed * PERIOD * np.arange(4000)))
    velocities = estimates(estimator("level-crossing"), path)[:, 0]
    second = np.flatnonzero(np.diff(path[:, 0]))[1] + 1
    between = COUNT / (speed * PERIOD)
    assert np.abs(velocities[second:] / speed - 1.0).max() <= 1.0 / (math.ceil(between) - 1.0) + 1e-6


def test_level_crossing_ignores_a_toggling_count():
    generator = np.random.default_rng(2)
    path = along_x(COUNT * np.repeat(np.tile([0.0, 1.0], 100), generator.integers(1, 20, 200)))
    velocities = estimates(estimator("level-crossing"), path)[:, 0]
    first_return = np.flatnonzero(np.diff(path[:, 0]))[1] + 1
    np.testing.assert_allclose(velocities[first_return:], 0.0, atol=1e-9)


# --- tracker ----------------------------------------------------------------------------------------------------------


# The defaults.
MEMORY, GAIN = 1.25e-3, 0.3


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
def test_tracker_velocities_sum_to_the_displacement(seed, step, gain, uneven):
    path = wandering(400, seed, step)
    path = np.vstack([path, np.tile(path[-1], (40, 1))])  # at rest there is no lead
    generator = np.random.default_rng(seed)
    times = np.cumsum(generator.uniform(0.1e-3, 4e-3, 440)) if uneven else PERIOD * np.arange(440)
    velocities = estimates(estimator("tracker", velocity_rest_gain=gain), path, times)
    led = np.cumsum(velocities[1:] * np.diff(times)[:, None], axis=0)
    assert np.hypot(*(led - path[1:] + path[0])[-1]) <= farthest(gain) * COUNT


@pytest.mark.parametrize("gain", [GAIN, 1.0])
def test_tracker_error_stays_bounded_over_long_times(gain):
    tested, position, led = estimator("tracker", velocity_rest_gain=gain), np.zeros(2), np.zeros(2)
    generator = np.random.default_rng(1)
    steps = generator.integers(-3, 4, (20000, 2)) * COUNT
    for k, step in enumerate(steps):
        position += step
        velocity = tested.update(PERIOD * k, *position)
        led += PERIOD * velocity
        if k > 0:  # three counts a period at most: half a period of that is the lead
            assert np.hypot(*(led - position + steps[0])) <= (farthest(gain) + 1.5 * math.sqrt(2.0)) * COUNT


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.9])
def test_tracker_attenuates_a_toggling_count(share):
    hold = max(round(share * 20), 1)
    side = np.tile(np.repeat([1.0, 0.0], (hold, 20 - hold)), 200)
    path = np.outer(side * COUNT, (0.0, 1.0))
    quiet, loud = estimates(estimator("tracker"), path)[1000:, 1], estimates(estimator("difference"), path)[1000:, 1]
    assert np.sqrt(np.mean(quiet**2)) < 0.33 * np.sqrt(np.mean(loud**2))
    assert abs(quiet.sum()) * PERIOD < COUNT
    plain = estimates(estimator("tracker", velocity_rest_gain=1.0), path)[1000:, 1]
    np.testing.assert_allclose(quiet, GAIN * plain, atol=0.02 * np.abs(plain).max())


def test_tracker_passes_motion_beyond_the_rest_zone():
    path = encoded(np.outer(np.repeat([0.0, 400e-6], 100), (0.6, 0.8)))
    led = np.cumsum(estimates(estimator("tracker"), path), axis=0) * PERIOD
    away = (led[150] @ (0.6, 0.8)) / COUNT
    assert 400e-6 / COUNT - farthest(GAIN) <= away <= 400e-6 / COUNT + 0.5
    assert led[99] == pytest.approx((0.0, 0.0))


def test_tracker_rest_position_follows_at_its_rate():
    path = along_x(np.repeat([0.0, COUNT], (10, 1000)))
    led = np.cumsum(estimates(estimator("tracker"), path), axis=0)[:, 0] * PERIOD
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


def test_tracker_is_discounted_least_squares():
    """Slow enough that the memory is the one at rest, and an encoder so coarse that nothing is out of reach."""
    fading, generator = math.exp(-PERIOD / MEMORY), np.random.default_rng(2)
    positions = 1e-9 * np.cumsum(generator.standard_normal(200))
    velocities = estimates(estimator("tracker", resolution=1.0, velocity_rest_gain=1.0), along_x(positions))
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
def test_friction_on_a_circle_opposes_the_motion(radius, speed):
    """Apart from the lag of the spring that is dragged along; the mean is late by less than half a period of motion."""
    lag = math.degrees(math.asin(4.0 / 6000.0 / (radius * (1.0 + (speed / radius / 600.0) ** 2))))
    error = friction_angles(estimator("tracker"), radius, speed) + lag
    assert np.percentile(np.abs(error), 95.0) < 0.75
    assert abs(error.mean()) < 0.15
    raw = friction_angles(estimator("difference"), radius, speed) + lag
    assert np.percentile(np.abs(raw), 95.0) > 2.0 * np.percentile(np.abs(error), 95.0)


def test_tracker_follows_an_abrupt_stop():
    stop = 300
    path = encoded(np.outer(PERIOD * np.minimum(np.arange(600), stop), (0.2, 0.1)))
    velocities = estimates(estimator("tracker"), path)
    assert np.hypot(*velocities[stop - 1]) == pytest.approx(math.hypot(0.2, 0.1), rel=0.1)
    led = np.cumsum(velocities, axis=0) * PERIOD - path
    assert np.hypot(*led[stop:].T).max() < (farthest(GAIN) + 0.5) * COUNT + 0.5 * PERIOD * math.hypot(0.2, 0.1)
    assert np.hypot(*velocities[stop + 30 :].T).max() < 0.01


def test_tracker_handles_a_long_pause():
    path, times = np.outer(np.arange(200), (2e-4, 0.0)), PERIOD * np.arange(200)
    times[100:] += 0.5
    path[100:] += (0.01, 0.0)
    velocities = estimates(estimator("tracker"), encoded(path), times)
    assert velocities[100, 0] == pytest.approx(0.0102 / 0.501, rel=0.02)
    assert velocities[:, 0].max() < 0.25


# --- rendered friction ------------------------------------------------------------------------------------------------


LETS_GO = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
STIFFNESS, MASS = 6000.0, 0.2


def holds_still(damping):
    """A hand that does nothing but damp."""
    rest = {"rest": 60.0, "rest_force": 0.0, "rest_grip": 1.0, "tremor": 0.0}
    return {"name": "minimum-jerk", "points": [[0, 0], [0, 0]], "stiffness": 0.0, "damping": damping, **rest}


HANDS = {"none": LETS_GO, "light": holds_still(2.0), "firm": holds_still(8.0)}


def rendered(device, clock, element, ticks):
    """Render `element` and return the true position and the force, (ticks, 2) each."""
    positions, forces = np.zeros((2, ticks, 2))
    for tick in range(ticks):
        force = element.step(device.read().velocity)
        device.write(-force)
        positions[tick], forces[tick] = device.handle, force
        clock.wait(clock.tick + 1)
    return positions, forces


def after_a_kick(damping, hand, rate=1000.0, ticks=1500, **settings):
    """Return how far the handle still goes forth and back at the end [m], having swung through 0.1 mm or so."""
    clock = Clock(1.0 / rate)
    device = devices.open_device("virtual-joystick", {"hand": hand, **settings}, clock=clock)
    device._record["handle_velocity"][0] = 0.02, 0.01
    element = MasslessImpedance(Coulomb(4.0), STIFFNESS, damping, 1.0 / rate)
    positions, _ = rendered(device, clock, element, ticks)
    return np.ptp(positions[-300:], axis=0).max()


@pytest.mark.parametrize("hand", HANDS)
@pytest.mark.parametrize("damping", [10.0, 2.0 * math.sqrt(STIFFNESS * MASS)])
@pytest.mark.parametrize("rate", [500.0, 1000.0, 2000.0])
def test_default_joystick_settles_with_every_hand(hand, damping, rate):
    """With the usual coupling and with one that is critically damped, to a few counts of 10 um; at 1 kHz to one."""
    counts = 6.0 if rate == 500.0 else 1.3
    assert after_a_kick(damping, HANDS[hand], rate, mass=MASS) < counts * 10e-6


def test_tracker_needs_less_damping_than_a_difference_and_settles_with_much():
    """From 5.5 N s/m on for the difference, from 3 for the tracker, by the eigenvalues of the loop while it sticks."""
    chosen = {"velocity_estimator": "difference"}
    assert after_a_kick(4.0, LETS_GO, **chosen) > 300e-6
    assert after_a_kick(6.5, LETS_GO, **chosen) < 100e-6
    assert after_a_kick(4.0, LETS_GO) < 100e-6
    assert after_a_kick(2.0, LETS_GO) > 300e-6
    for high in (100.0, 160.0):
        assert after_a_kick(high, LETS_GO) < 30e-6


def held(name, damping, resolution):
    """Push with 2 N for 5 s; return drift [m/s], buzz [N rms] and the mean force [N] of the last 4."""
    clock = Clock(1e-3)
    hand = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0], [0.2, 1.47, 1.29], [9.0, 1.47, 1.29]]}
    own = {"mass": 0.25, "damping": 1.0 + damping, "resolution": resolution, "velocity_estimator": name}
    device = devices.open_device("virtual-joystick", {"hand": hand, **own}, clock=clock)
    element = MasslessImpedance(Coulomb(4.0), STIFFNESS, 10.0)
    positions, forces = (rows[1000:] for rows in rendered(device, clock, element, 5000))
    drift = np.hypot(*np.polyfit(1e-3 * np.arange(4000), positions, 1)[0])
    spectrum = np.fft.rfft(forces, axis=0)
    spectrum[np.fft.rfftfreq(4000, 1e-3) < 10.0] = 0.0
    buzz = math.sqrt(np.mean(np.sum(np.fft.irfft(spectrum, 4000, axis=0) ** 2, axis=1)))
    return drift, buzz, forces.mean(axis=0)


@pytest.mark.parametrize("damping", [2.0, 8.0])
@pytest.mark.parametrize("resolution", [5e-6, 20e-6])
def test_held_handle_neither_creeps_nor_oscillates(damping, resolution):
    drift, buzz, force = held("tracker", damping, resolution)
    assert drift < 1e-6
    assert buzz < 2500.0 * resolution  # 0.05 N at 20 um
    np.testing.assert_allclose(force, (1.47, 1.29), atol=2e-3)


@pytest.mark.parametrize("device_name", ["virtual-joystick", "virtual-arm"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_works_on_a_device(device_name, name):
    clock = Clock(1e-3)
    fine = {"resolution": 1e-6} if device_name == "virtual-joystick" else {"arm": {"encoder_counts": 2**15}}
    own = {"hand": {"name": "minimum-jerk"}, "velocity_estimator": name, **fine}
    device = devices.open_device(device_name, own, clock=clock)
    start, errors = np.array(device.hand.start), []
    for tick in range(600):
        velocity = device.read().velocity.copy()
        device.write((0.5 + 0.5 * np.cos(np.pi * tick / 600)) * start)  # next to no force, or a way for the arm to go
        errors.append(velocity - device.handle_velocity)
        clock.wait(tick + 1)
    assert np.abs(errors[20:]).max() < 0.03
