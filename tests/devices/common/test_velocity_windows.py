"""Adaptive windows, Kalman's filter and level crossings against independent computations of the same."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import solve_discrete_are

from devices.common.velocity import VelocityEstimator, VelocitySettings
from devices.common.velocity.settings import LONGEST_FIT
from tests.devices.common.test_velocity import COUNT, PERIOD, encoded, estimates, estimator, wandering


def column(positions):
    return np.column_stack((positions, np.zeros(len(positions))))


# --- adaptive windows ---------------------------------------------------------------------------------------------


def line_through(ends, times, positions):
    """Return the slope of the line, and whether all samples are within a count of it."""
    if ends:
        slope = (positions[-1] - positions[0]) / (times[-1] - times[0])
        line = positions[-1] + slope * (times - times[-1])
    else:
        slope, offset = np.polyfit(times - times[-1], positions - positions[-1], 1)
        line = positions[-1] + offset + slope * (times - times[-1])
    return slope, np.abs(positions - line).max() <= 1.000001 * COUNT


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
def test_window_is_the_longest_that_a_line_fits(name, seed, step):
    path = wandering(80, seed, step)
    times = np.cumsum(np.random.default_rng(seed).uniform(0.5e-3, 2e-3, 80))
    velocities = estimates(estimator(name), path, times)
    for k in (1, 2, 10, 40, 79):
        for i in range(2):
            expected = longest_fit(name == "end-fit", times[: k + 1], path[: k + 1, i])
            assert velocities[k, i] == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", ["end-fit", "best-fit"])
def test_slow_motion_is_found_to_a_fraction_of_a_count_per_period(name):
    """A backward difference shows 20 mm/s or nothing."""
    path = encoded(column(0.005 * PERIOD * np.arange(400)))
    velocities = estimates(estimator(name), path)[100:, 0]
    assert np.abs(velocities - 0.005).max() < 0.15 * COUNT / PERIOD


@pytest.mark.parametrize("name", ["end-fit", "best-fit", "level-crossing"])
def test_what_adapts_need_not_add_up(name):
    """Three counts forth in three periods and back in eighteen, over and over: the hand is where it was."""
    cycle = np.repeat([0.0, 1.0, 2.0, 3.0, 2.0, 1.0], (10, 1, 1, 10, 6, 6))
    path = column(COUNT * np.tile(cycle, 100))
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


def test_kalman_is_the_textbook_filter():
    path, times = wandering(300, seed=1), np.cumsum(np.random.default_rng(1).uniform(0.5e-3, 2e-3, 300))
    velocities = estimates(estimator("kalman", velocity_acceleration=8.0, velocity_memory=3e-3), path, times)
    for i in range(2):
        expected = matrix_filter(times, path[:, i], 8.0, 3e-3)
        np.testing.assert_allclose(velocities[:, i], expected, rtol=1e-6, atol=1e-8)


def test_kalman_settles_to_the_gain_of_the_riccati_equation():
    T, S, R = PERIOD, 15.0**2 * 1.25e-3, COUNT**2 / 12.0
    F, Q = np.array([[1.0, T], [0.0, 1.0]]), S * np.array([[T**3 / 3.0, T**2 / 2.0], [T**2 / 2.0, T]])
    H = np.array([[1.0, 0.0]])
    P = solve_discrete_are(F.T, H.T, Q, [[R]])
    gain = P[1, 0] / (P[0, 0] + R)
    step = estimates(estimator("kalman"), column(np.repeat([0.0, 1.0], 500)))
    assert step[500, 0] == pytest.approx(gain, rel=1e-9)


# --- level crossings ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("speed", [0.0004, 0.003, 0.017])
def test_crossings_time_a_slow_motion(speed):
    """An edge is timed to a period: over n periods between two edges the velocity is off by 1/n at most."""
    path = encoded(column(speed * PERIOD * np.arange(4000)))
    velocities = estimates(estimator("level-crossing"), path)[:, 0]
    second = np.flatnonzero(np.diff(path[:, 0]))[1] + 1
    between = COUNT / (speed * PERIOD)
    assert np.abs(velocities[second:] / speed - 1.0).max() <= 1.0 / (math.ceil(between) - 1.0) + 1e-6


def test_a_count_that_goes_forth_and_back_is_no_motion():
    generator = np.random.default_rng(2)
    path = column(COUNT * np.repeat(np.tile([0.0, 1.0], 100), generator.integers(1, 20, 200)))
    tested = VelocityEstimator(COUNT, PERIOD, VelocitySettings("level-crossing"))
    velocities = estimates(tested, path)[:, 0]
    first_return = np.flatnonzero(np.diff(path[:, 0]))[1] + 1
    np.testing.assert_allclose(velocities[first_return:], 0.0, atol=1e-9)


def test_velocity_decays_while_no_edge_comes():
    path = column(np.concatenate([COUNT * np.arange(10), np.full(500, 9.0 * COUNT)]))
    velocities = estimates(estimator("level-crossing"), path)[9:, 0]
    np.testing.assert_allclose(velocities[1:], COUNT / (PERIOD * np.arange(1, 501)), rtol=1e-9)
