"""Least squares: against other solvers, and against data whose truth is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from calibration.fitting.regression import (
    blocks,
    least_squares,
    loss_slope,
    robust_least_squares,
    robust_weights,
)
from haptics import ConfigurationError


def data(seed: int, samples: int = 700, columns: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((samples, columns)) * 10.0 ** rng.uniform(-4, 4, columns)
    return matrix, rng.standard_normal(samples)


@given(seed=st.integers(0, 1000), samples=st.integers(5, 900))
def test_the_residual_is_orthogonal_to_every_column(seed: int, samples: int) -> None:
    matrix, target = data(seed, samples)
    weights = np.random.default_rng(seed).uniform(0.1, 2.0, samples)
    fit = least_squares(matrix, target, weights=weights)
    products = matrix.T @ (weights * fit.residual)
    assert np.all(np.abs(products) <= 1e-10 * np.linalg.norm(matrix, axis=0) * np.linalg.norm(target))
    assert fit.rank == 4


def test_a_weight_counts_as_repetitions() -> None:
    matrix, target = data(1, 60)
    times = np.random.default_rng(1).integers(0, 4, 60)
    weighted = least_squares(matrix, target, weights=times.astype(float))
    repeated = least_squares(np.repeat(matrix, times, axis=0), np.repeat(target, times))
    np.testing.assert_allclose(weighted.coefficients, repeated.coefficients, rtol=1e-10)


def test_the_condition_is_that_of_the_problem_and_not_of_its_units() -> None:
    matrix, target = data(2)
    usual = matrix / np.linalg.norm(matrix, axis=0)
    fit = least_squares(matrix, target)
    assert fit.condition == pytest.approx(np.linalg.cond(usual), rel=1e-9)
    assert least_squares(matrix * (1.0, 1e6, 1e-9, 3.0), target).condition == pytest.approx(fit.condition, rel=1e-6)


def test_columns_that_say_the_same_share_what_they_explain() -> None:
    matrix, target = data(3, 200, 1)
    fit = least_squares(np.column_stack((matrix, matrix)), target)
    assert fit.rank == 1 and fit.condition == np.inf
    assert fit.coefficients[0] == pytest.approx(fit.coefficients[1])
    assert fit.coefficients.sum() == pytest.approx(least_squares(matrix, target).coefficients[0])


@given(seed=st.integers(0, 300))
def test_bounds_are_kept_and_the_rest_is_as_good_as_it_can_be(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix, target = rng.standard_normal((80, 3)), rng.standard_normal(80)
    lower = np.array((0.0, -np.inf, 0.05))
    fit = least_squares(matrix, target, lower=lower)
    expected = lsq_linear(matrix, target, (lower, np.inf), tol=1e-12)
    assert np.all(fit.coefficients >= lower - 1e-12)
    assert fit.cost == pytest.approx(2.0 * expected.cost, rel=1e-6)


@pytest.mark.parametrize("loss", ["huber", "tukey"])
def test_a_few_wrong_samples_hardly_move_a_robust_fit(loss: str) -> None:
    rng = np.random.default_rng(4)
    matrix = np.column_stack((np.ones(500), np.linspace(-1.0, 1.0, 500)))
    target = matrix @ (1.0, 2.0) + 0.1 * rng.standard_normal(500)
    target[::20] += 20.0
    plain = least_squares(matrix, target).coefficients
    robust = robust_least_squares(matrix, target, loss=loss).coefficients
    assert abs(plain[0] - 1.0) > 0.9
    assert abs(robust[0] - 1.0) < 0.03
    assert robust[1] == pytest.approx(2.0, abs=0.05)


@pytest.mark.parametrize("loss", ["huber", "tukey"])
def test_the_slope_of_a_loss_is_the_derivative_of_weighted_residuals(loss: str) -> None:
    residual = np.random.default_rng(5).standard_normal(20001)
    shift = 1e-3
    # a common shift leaves the spread, hence the weights' scale, as it is
    before, after = (robust_weights(np.append(r, r), loss)[: len(r)] * r for r in (residual - shift, residual + shift))
    assert np.mean(after - before) / (2.0 * shift) == pytest.approx(loss_slope(residual, loss), abs=5e-3)


def test_blocks_judge_every_sample_once_and_keep_apart() -> None:
    parts = blocks(103, 5, gap=7)
    assert np.array_equal(np.concatenate([judged for _, judged in parts]), np.arange(103))
    for fitted, judged in parts:
        assert np.abs(fitted[:, None] - judged).min() == 8
        assert np.all(np.diff(judged) == 1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: least_squares(np.ones((3, 5)), np.ones(3)), "3 samples cannot tell 5 unknowns"),
        (lambda: least_squares(np.ones((9, 2)), np.ones(8)), "do not fit"),
        (lambda: least_squares(np.full((9, 2), np.nan), np.ones(9)), "not finite"),
        (lambda: least_squares(np.ones((9, 2)), np.ones(9), weights=-np.ones(9)), "weights"),
        (lambda: robust_weights(np.ones(9), "cauchy"), "cauchy"),
        (lambda: blocks(10, 1), "cannot be cut"),
    ],
)
def test_what_is_wrong_is_said(call: object, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        call()  # type: ignore[operator]
