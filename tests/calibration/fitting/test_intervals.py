"""Covariances of correlated sums against those of a process whose covariance is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.signal import lfilter

from calibration.fitting.intervals import (
    covariance_of_sum,
    degrees_of_freedom,
    folded,
    interval_with_bounds,
    quantile,
)


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.8, -0.5])
def test_neighbours_that_err_alike_count_as_few(memory: float) -> None:
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((3000, 40))
    rows = lfilter((1.0,), (1.0, -memory), noise, axis=0)
    estimates = np.diag(covariance_of_sum(rows))
    # the sum of a first-order process of long memory: each shock counts 1/(1 - memory) times
    assert estimates.mean() == pytest.approx(3000.0 / (1.0 - memory) ** 2, rel=0.1)


def test_what_goes_together_is_seen() -> None:
    rng = np.random.default_rng(1)
    mixing = np.array(((1.0, 0.0, 0.0), (0.8, 0.6, 0.0), (-0.5, 0.2, 1.0)))
    found = covariance_of_sum(rng.standard_normal((20000, 3)) @ mixing.T) / 20000.0
    np.testing.assert_allclose(found, mixing @ mixing.T, atol=0.2)


@given(count=st.integers(40, 400), seed=st.integers(0, 100))
def test_it_is_the_mean_of_projections_on_slow_cosines(count: int, seed: int) -> None:
    rows = np.random.default_rng(seed).standard_normal((count, 2))
    # a constant is no cosine of theirs
    np.testing.assert_allclose(covariance_of_sum(rows), covariance_of_sum(rows + 5.0), rtol=1e-8, atol=1e-8)
    slowest = np.sqrt(2.0) * np.cos(np.pi * (np.arange(count) + 0.5) / count)
    one = covariance_of_sum(slowest[:, None])[0, 0]
    fast = covariance_of_sum(np.cos(np.pi * (count // 2 + 2) * (np.arange(count) + 0.5) / count)[:, None])[0, 0]
    assert one > 0.0 and fast < 1e-9 * one


@pytest.mark.parametrize("clusters", [6, 20, 3000])
def test_degrees_of_freedom_are_those_of_the_variance_that_is_estimated(clusters: int) -> None:
    rng = np.random.default_rng(2)
    weights = np.zeros(3000)
    weights[np.linspace(0, 2999, clusters).astype(int)] = 1.0
    variances = np.diag(covariance_of_sum(weights[:, None] * rng.standard_normal((3000, 400))))
    # a variance with n degrees of freedom scatters by sqrt(2/n)
    scatter = 2.0 / (variances.std() / variances.mean()) ** 2
    assert degrees_of_freedom(weights[:, None])[0] == pytest.approx(scatter, rel=0.25)


@pytest.mark.parametrize("degrees", [3.0, 12.5, 300.0])
def test_quantiles_are_students(degrees: float) -> None:
    assert quantile(0.95, np.array((degrees,)))[0] == pytest.approx(stats.t.ppf(0.975, degrees))


def test_errors_that_each_round_repeats_add_up() -> None:
    random = np.random.default_rng(0)
    same = np.tile(random.standard_normal((400, 40)), (3, 1))
    rounds = (400, 400, 400)
    truth = 3.0**2 * 400.0
    assert np.diag(covariance_of_sum(folded(same, rounds))).mean() == pytest.approx(truth, rel=0.1)
    assert np.diag(covariance_of_sum(same)).mean() < 0.9 * truth
    other = random.standard_normal((1200, 40))
    assert np.diag(covariance_of_sum(folded(other, rounds))).mean() == pytest.approx(1200.0, rel=0.1)
    np.testing.assert_array_equal(folded(same[:1199], (400, 400, 399))[-1], 2.0 * same[399])
    np.testing.assert_array_equal(folded(same, ()), same)


def test_bounds_far_away_leave_an_interval_as_it_is() -> None:
    covariance = np.array([[4.0, 1.0], [1.0, 9.0]])
    interval = interval_with_bounds(np.array([1.0, 2.0]), covariance, np.full(2, -np.inf), np.array([1.0, 1.0]), 2.0)
    assert interval == pytest.approx((3.0 - 2.0 * np.sqrt(15.0), 3.0 + 2.0 * np.sqrt(15.0)))


def test_a_parameter_at_its_bound_has_a_one_sided_interval_and_widens_others_on_one_side() -> None:
    covariance = np.array([[1.0, -0.8], [-0.8, 1.0]])
    place, lower = np.array([0.0, 5.0]), np.array([0.0, -np.inf])
    assert interval_with_bounds(place, covariance, lower, np.array([1.0, 0.0]), 1.96) == pytest.approx((0.0, 1.96))
    low, high = interval_with_bounds(place, covariance, lower, np.array([0.0, 1.0]), 1.96)
    assert low == pytest.approx(5.0 - 1.96)  # the other parameter grows, this one falls with it
    assert high == pytest.approx(5.0 + 1.96 * 0.6)  # what remains of the uncertainty with the other one at its bound


def test_a_parameter_of_no_variance_stays() -> None:
    covariance = np.diag([1.0, 0.0])
    lower = np.zeros(2)
    interval = interval_with_bounds(np.array([3.0, 7.0]), covariance, lower, np.array([1.0, 1.0]), 2.0)
    assert interval == pytest.approx((8.0, 12.0))
    assert interval_with_bounds(np.array([3.0, 7.0]), covariance, lower, np.array([0.0, 1.0]), 2.0) == (7.0, 7.0)
