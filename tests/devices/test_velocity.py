"""The shared velocity estimator."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.velocity import LONGEST_WINDOW, VelocityEstimator
from haptics.errors import ConfigurationError


def test_velocity_is_zero_until_there_are_two_samples():
    estimator = VelocityEstimator()
    np.testing.assert_array_equal(estimator.update(0.0, 1.0, 2.0), (0.0, 0.0))
    np.testing.assert_allclose(estimator.update(0.5, 2.0, 1.0), (2.0, -2.0))


@pytest.mark.parametrize("window", [1, 3, LONGEST_WINDOW])
def test_constant_velocity_is_found_exactly(window):
    estimator = VelocityEstimator(window)
    for k in range(3 * LONGEST_WINDOW):
        velocity = estimator.update(k * 1e-3, 0.2 * k * 1e-3, -0.1 * k * 1e-3)
        if k > 0:
            np.testing.assert_allclose(velocity, (0.2, -0.1), rtol=1e-9)


def test_missing_samples_do_not_distort_it():
    estimator = VelocityEstimator()
    for time in (0.0, 0.001, 0.002, 0.022, 0.023):
        velocity = estimator.update(time, 0.3 * time, 0.0)
    assert velocity[0] == pytest.approx(0.3)


def test_sample_with_the_same_or_an_older_time_is_ignored():
    estimator = VelocityEstimator()
    estimator.update(0.0, 0.0, 0.0)
    estimator.update(1.0, 1.0, 0.0)
    np.testing.assert_array_equal(estimator.update(1.0, 5.0, 0.0), (1.0, 0.0))
    np.testing.assert_array_equal(estimator.update(0.5, 5.0, 0.0), (1.0, 0.0))
    np.testing.assert_allclose(estimator.update(2.0, 3.0, 0.0), (2.0, 0.0))


def test_reset_forgets():
    estimator = VelocityEstimator()
    estimator.update(0.0, 0.0, 0.0)
    estimator.update(1.0, 1.0, 1.0)
    estimator.reset()
    np.testing.assert_array_equal(estimator.velocity, (0.0, 0.0))
    np.testing.assert_array_equal(estimator.update(0.0, 7.0, 7.0), (0.0, 0.0))


@given(
    window=st.integers(1, LONGEST_WINDOW),
    counts=st.lists(st.integers(-50, 50), min_size=2, max_size=200),
)
def test_window_is_the_difference_over_as_many_samples_as_there_are(window, counts):
    estimator = VelocityEstimator(window)
    positions = np.cumsum(counts) * 20e-6
    for k, position in enumerate(positions):
        velocity = estimator.update(k * 1e-3, position, 0.0)[0]
    span = min(window, len(positions) - 1)
    assert velocity == pytest.approx((positions[-1] - positions[-1 - span]) / (span * 1e-3), rel=1e-9, abs=1e-12)


@given(counts=st.lists(st.integers(-50, 50), min_size=2, max_size=100))
def test_backward_difference_adds_up_to_the_displacement(counts):
    estimator = VelocityEstimator()
    positions = np.cumsum(counts) * 20e-6
    travelled = sum(estimator.update(k * 1e-3, position, 0.0)[0] * 1e-3 for k, position in enumerate(positions))
    assert travelled == pytest.approx(positions[-1] - positions[0], abs=1e-12)


@pytest.mark.parametrize("window", [0, -1, LONGEST_WINDOW + 1, 1.5, True])
def test_impossible_window_is_refused(window):
    with pytest.raises(ConfigurationError, match="velocity_window"):
        VelocityEstimator(window)
