"""Fits that are linear but for a few unknowns, against truth and against a general solver."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import least_squares as scipy_least_squares

from calibration.fitting.separable import separable_least_squares
from haptics import ConfigurationError


def exponential(time: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    return lambda rates: np.column_stack([np.ones_like(time), *(np.exp(-time * rate) for rate in rates)])


@given(rate=st.floats(0.3, 30.0), level=st.floats(-5.0, 5.0), height=st.floats(0.1, 10.0))
def test_a_decay_is_found_exactly(rate: float, level: float, height: float) -> None:
    time = np.linspace(0.0, 5.0, 400)
    starts = np.geomspace(0.1, 100.0, 12)[:, None]
    fit = separable_least_squares(exponential(time), level + height * np.exp(-time * rate), starts)
    assert fit.converged
    assert fit.nonlinear[0] == pytest.approx(rate, rel=1e-9)
    np.testing.assert_allclose(fit.linear.coefficients, (level, height), rtol=1e-8, atol=1e-9)


def test_two_decays_in_noise_are_those_that_a_general_solver_finds() -> None:
    time = np.linspace(0.0, 5.0, 2000)
    rng = np.random.default_rng(6)
    target = 1.0 + 2.0 * np.exp(-time) - 3.0 * np.exp(-6.0 * time) + 0.02 * rng.standard_normal(2000)
    columns = exponential(time)
    fit = separable_least_squares(columns, target, np.array(((0.5, 10.0), (2.0, 20.0), (0.1, 5.0))))

    def residual(unknowns: np.ndarray) -> np.ndarray:
        return columns(unknowns[3:]) @ unknowns[:3] - target

    other = scipy_least_squares(residual, (1.0, 2.0, -3.0, 1.0, 6.0), xtol=1e-14, ftol=1e-14, gtol=1e-14, x_scale="jac")
    np.testing.assert_allclose(np.concatenate((fit.linear.coefficients, fit.nonlinear)), other.x, rtol=1e-4)
    np.testing.assert_allclose(fit.jacobian, other.jac, atol=1e-4)


def test_the_search_stays_within_its_starts() -> None:
    time = np.linspace(0.0, 5.0, 400)
    fit = separable_least_squares(exponential(time), np.exp(-time), np.array(((2.0,), (20.0,))))
    assert fit.nonlinear[0] == pytest.approx(2.0, rel=1e-9) and fit.converged


@pytest.mark.parametrize("loss", ["huber", "tukey"])
def test_a_robust_fit_finds_the_decay_that_most_samples_show(loss: str) -> None:
    time = np.linspace(0.0, 5.0, 1000)
    rng = np.random.default_rng(7)
    target = 1.0 + 2.0 * np.exp(-3.0 * time) + 0.01 * rng.standard_normal(1000)
    target[::15] += 5.0
    starts = np.geomspace(0.1, 100.0, 12)[:, None]
    plain, robust = (separable_least_squares(exponential(time), target, starts, loss=each) for each in ("square", loss))
    assert robust.nonlinear[0] == pytest.approx(3.0, rel=0.02)
    assert abs(plain.linear.coefficients[0] - 1.0) > 20.0 * abs(robust.linear.coefficients[0] - 1.0)


def test_bounds_on_the_linear_part_are_kept() -> None:
    time = np.linspace(0.0, 5.0, 400)
    target = -0.2 + np.exp(-2.0 * time)
    starts = np.geomspace(0.1, 100.0, 12)[:, None]
    fit = separable_least_squares(exponential(time), target, starts, lower=np.zeros(2))
    assert fit.linear.coefficients[0] == 0.0 and fit.converged
    others = [np.exp(-time * rate) for rate in np.linspace(0.5, 10.0, 400)]
    best = min(float(np.sum((target - max(0.0, other @ target / (other @ other)) * other) ** 2)) for other in others)
    assert fit.linear.cost <= best * (1.0 + 1e-9)


def test_starts_must_be_positive() -> None:
    with pytest.raises(ConfigurationError, match="greater than 0"):
        separable_least_squares(lambda _: np.ones((9, 1)), np.ones(9), np.zeros((1, 1)))


@pytest.mark.parametrize("seed", range(6))
def test_a_search_where_there_is_nothing_to_find_is_a_short_one(seed: int) -> None:
    time, asked = np.linspace(0.0, 5.0, 400), []
    target = 1.0 + 0.1 * time + np.random.default_rng(seed).standard_normal(400)

    def columns(rate: np.ndarray) -> np.ndarray:
        asked.append(float(rate[0]))
        return np.column_stack((np.ones_like(time), time, np.exp(-((rate[0] * time) ** 2))))

    fit = separable_least_squares(columns, target, np.geomspace(0.3, 100.0, 12)[:, None])
    assert fit.converged and all(other.converged for other in fit.others)
    assert len(asked) <= 12 + 60 * (1 + len(fit.others))
