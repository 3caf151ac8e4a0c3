"""Estimation: least squares, separable fits, covariances of correlated errors, intervals and prediction errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import least_squares as scipy_least_squares
from scipy.optimize import lsq_linear
from scipy.signal import lfilter

from calibration.fitting.intervals import (
    BLOCKS,
    PARTS,
    block_means,
    covariance_of_sum,
    degrees_of_freedom,
    elsewhere,
    estimate,
    folded,
    interval_with_bounds,
    paired,
    quantile,
)
from calibration.fitting.regression import blocks, least_squares, loss_slope, robust_weights, separable_least_squares

# --- least squares ----------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 300))
def test_bounded_least_squares_is_optimal_within_its_bounds(seed):
    rng = np.random.default_rng(seed)
    matrix, target = rng.standard_normal((80, 3)), rng.standard_normal(80)
    lower = np.array((0.0, -np.inf, 0.05))
    fit = least_squares(matrix, target, lower=lower)
    expected = lsq_linear(matrix, target, (lower, np.inf), tol=1e-12)
    assert np.all(fit.coefficients >= lower - 1e-12)
    assert fit.cost == pytest.approx(2.0 * expected.cost, rel=1e-6)


@pytest.mark.parametrize("loss", ["huber", "tukey"])
def test_the_slope_of_a_loss_is_the_derivative_of_weighted_residuals(loss):
    residual = np.random.default_rng(5).standard_normal(20001)
    shift = 1e-3
    # a common shift does not change the spread, which sets the scale of the weights
    before, after = (robust_weights(np.append(r, r), loss)[: len(r)] * r for r in (residual - shift, residual + shift))
    assert np.mean(after - before) / (2.0 * shift) == pytest.approx(loss_slope(residual, loss), abs=5e-3)


def test_blocks_judge_every_sample_once_with_a_gap():
    parts = blocks(103, 5, gap=7)
    assert np.array_equal(np.concatenate([judged for _, judged in parts]), np.arange(103))
    for fitted, judged in parts:
        assert np.abs(fitted[:, None] - judged).min() == 8
        assert np.all(np.diff(judged) == 1)


# --- separable fits ---------------------------------------------------------------------------------------------------

TIME = np.linspace(0.0, 5.0, 400)
STARTS = np.geomspace(0.1, 100.0, 12)[:, None]


def exponential(time):
    return lambda rates: np.column_stack([np.ones_like(time), *(np.exp(-time * rate) for rate in rates)])


def test_two_decays_in_noise_agree_with_a_general_solver():
    time = np.linspace(0.0, 5.0, 2000)
    noise = 0.02 * np.random.default_rng(6).standard_normal(2000)
    target = 1.0 + 2.0 * np.exp(-time) - 3.0 * np.exp(-6.0 * time) + noise
    columns = exponential(time)
    fit = separable_least_squares(columns, target, np.array(((0.5, 10.0), (2.0, 20.0), (0.1, 5.0))))

    def residual(unknowns):
        return columns(unknowns[3:]) @ unknowns[:3] - target

    other = scipy_least_squares(residual, (1.0, 2.0, -3.0, 1.0, 6.0), xtol=1e-14, ftol=1e-14, gtol=1e-14, x_scale="jac")
    np.testing.assert_allclose(np.concatenate((fit.linear.coefficients, fit.nonlinear)), other.x, rtol=1e-4)
    np.testing.assert_allclose(fit.jacobian, other.jac, atol=1e-4)


# --- covariances and intervals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.8, -0.5])
def test_correlated_neighbours_count_as_few(memory):
    noise = np.random.default_rng(0).standard_normal((3000, 40))
    estimates = np.diag(covariance_of_sum(lfilter((1.0,), (1.0, -memory), noise, axis=0)))
    # the sum of a first-order process of long memory: each shock counts 1/(1 - memory) times
    assert estimates.mean() == pytest.approx(3000.0 / (1.0 - memory) ** 2, rel=0.1)


@pytest.mark.parametrize("clusters", [6, 20, 3000])
def test_degrees_of_freedom_agree_with_the_scatter_of_the_variance(clusters):
    weights = np.zeros(3000)
    weights[np.linspace(0, 2999, clusters).astype(int)] = 1.0
    noise = np.random.default_rng(2).standard_normal((3000, 400))
    variances = np.diag(covariance_of_sum(weights[:, None] * noise))
    # a variance with n degrees of freedom scatters by sqrt(2/n)
    scatter = 2.0 / (variances.std() / variances.mean()) ** 2
    assert degrees_of_freedom(weights[:, None])[0] == pytest.approx(scatter, rel=0.25)


@pytest.mark.parametrize("degrees", [3.0, 12.5, 300.0])
def test_quantiles_are_those_of_student(degrees):
    assert quantile(0.95, np.array((degrees,)))[0] == pytest.approx(stats.t.ppf(0.975, degrees))


def test_errors_that_each_round_repeats_add_up():
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


def test_an_interval_respects_bounds():
    def interval(place, covariance, lower, direction, factor=2.0):
        return interval_with_bounds(*map(np.array, (place, covariance, lower, direction)), factor)

    far = interval((1.0, 2.0), [[4.0, 1.0], [1.0, 9.0]], (-np.inf, -np.inf), (1.0, 1.0))
    assert far == pytest.approx((3.0 - 2.0 * np.sqrt(15.0), 3.0 + 2.0 * np.sqrt(15.0)))
    at_bound = ((0.0, 5.0), [[1.0, -0.8], [-0.8, 1.0]], (0.0, -np.inf))
    assert interval(*at_bound, (1.0, 0.0), 1.96) == pytest.approx((0.0, 1.96))
    # the other parameter can only grow, this one falls with it; 0.6 of the uncertainty remains at the bound
    assert interval(*at_bound, (0.0, 1.0), 1.96) == pytest.approx((5.0 - 1.96, 5.0 + 1.96 * 0.6))
    known = ((3.0, 7.0), [[1.0, 0.0], [0.0, 0.0]], (0.0, 0.0))
    assert interval(*known, (1.0, 1.0)) == pytest.approx((8.0, 12.0))
    assert interval(*known, (0.0, 1.0)) == (7.0, 7.0)


def test_an_interval_of_a_fit_to_exact_data_is_its_estimate():
    """Its errors are rounding errors, and the bounds are many of them away."""
    random = np.random.default_rng(1)
    place, lower = random.uniform(1.0, 5.0, 4), np.array((0.0, -np.inf, 0.0, 0.0))
    for size in np.geomspace(1e-8, 1e-18, 11):
        root = size * random.standard_normal((4, 6))
        for direction in np.eye(4):
            ends = interval_with_bounds(place, root @ root.T, lower, direction, 2.0)
            assert ends == pytest.approx((direction @ place,) * 2, rel=1e-7, abs=20.0 * size)


# --- prediction errors ------------------------------------------------------------------------------------------------


def correlated(seed, samples=2000):
    """Return errors whose size changes slowly: a few times in a recording."""
    random = np.random.default_rng(seed)
    size = np.exp(0.7 * np.interp(np.arange(samples), np.linspace(0, samples, 9), random.standard_normal(9)))
    return size * random.standard_normal(samples)


def test_the_interval_holds_the_error_of_another_recording():
    """Intervals for independent blocks and an endless other recording miss it in half of the cases."""
    values, wide, narrow, ones = [], [], [], np.ones(2000)
    for seed in range(200):
        errors = correlated(seed) ** 2
        rms = float(np.sqrt(errors.mean()))
        wide.append(elsewhere(rms, 1.0, block_means(errors, PARTS), block_means(ones, PARTS), recordings=1))
        narrow.append(estimate(block_means(errors, BLOCKS), block_means(ones, BLOCKS)))
        values.append(wide[-1].value)
    others = np.roll(values, -1)
    held = [[one.low < other < one.high for one, other in zip(kind, others, strict=True)] for kind in (wide, narrow)]
    assert 0.9 <= np.mean(held[0]) <= 0.99
    assert np.mean(held[1]) < 0.75


def test_more_recordings_make_the_interval_narrower():
    parts, ones = block_means(correlated(1) ** 2, PARTS), np.ones(PARTS)
    one = elsewhere(1.0, 1.0, parts, ones, 1)
    four = elsewhere(1.0, 1.0, np.tile(parts, 4), np.ones(4 * PARTS), 4)
    assert 1.0 < four.high < one.high
    assert one.low * one.high == pytest.approx(1.0)
    assert elsewhere(0.0, 1.0, np.zeros(PARTS), np.ones(PARTS), 1).high == 0.0


def test_pairs_of_errors_are_compared_on_the_same_blocks():
    """The common part of the blocks cancels."""
    first = block_means(correlated(2) ** 2, BLOCKS)
    assert paired(0.25 * first, first) == pytest.approx((0.5, 0.5, 0.5))
    value, low, high = paired(first * np.linspace(0.5, 1.5, BLOCKS), first)
    assert low < value < high
