"""Derivatives of real order: exact weights, known derivatives, and the ring of the past."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray
from scipy.special import binom, gamma

from devices.arm.servo.fractional import weighted_past, weights
from haptics.errors import ConfigurationError

ORDERS = st.floats(-1.5, 1.5)


class FractionalDerivative:
    """The derivative of a real order of a sampled signal, by the product's weights and its ring of the past."""

    def __init__(self, order: float, period: float, terms: int) -> None:
        self.weights = weights(order, terms) * period**-order
        self.steady_gain = float(np.sum(self.weights))
        self.reset()

    def reset(self) -> None:
        self._past, self._now = np.zeros_like(self.weights), 0

    def __call__(self, samples: ArrayLike) -> NDArray[np.float64]:
        result = []
        for sample in np.atleast_1d(np.asarray(samples, np.float64)):
            result.append(weighted_past(self.weights, self._past, self._now, sample))
            self._now = (self._now + 1) % len(self.weights)
        return np.reshape(result, np.shape(samples))


@pytest.mark.parametrize("order", [Fraction(1, 2), Fraction(-1, 5), Fraction(1, 5), Fraction(7, 3), Fraction(-2)])
def test_weights_are_exact(order: Fraction) -> None:
    exact = [Fraction(1)]
    for k in range(1, 301):
        exact.append(exact[-1] * (k - 1 - order) / k)
    assert weights(float(order), 300) == pytest.approx([float(c) for c in exact], rel=1e-13)


@given(ORDERS)
def test_weights_are_binomial_coefficients_with_alternating_signs(order: float) -> None:
    k = np.arange(31)
    assert weights(order, 30) == pytest.approx((-1.0) ** k * binom(order, k), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("order", "expected"),
    [(0, [1, 0, 0, 0, 0]), (1, [1, -1, 0, 0, 0]), (2, [1, -2, 1, 0, 0]), (-1, [1, 1, 1, 1, 1]), (-2, [1, 2, 3, 4, 5])],
)
def test_whole_orders_are_differences_and_sums(order: int, expected: list[int]) -> None:
    assert weights(order, 4).tolist() == expected


@pytest.mark.parametrize(("order", "gain"), [(0.5, 0.1358), (-0.2, 1.9328), (0.2, 0.4851)])
def test_the_sum_begins_with_the_present_sample(order: float, gain: float) -> None:
    operator = FractionalDerivative(order, 1.0, 17)
    assert operator.steady_gain == pytest.approx(gain, abs=5e-5)
    assert operator.steady_gain == pytest.approx(gamma(18 - order) / (gamma(1 - order) * gamma(18)), rel=1e-12)
    assert operator(np.ones(40))[[0, -1]] == pytest.approx([1.0, gain], abs=5e-5)


def test_half_derivative_of_time() -> None:
    period = 0.5e-3
    time = period * np.arange(1001)
    found = FractionalDerivative(0.5, period, 1000)(time)
    assert found[-1] == pytest.approx(2.0 * np.sqrt(0.5 / np.pi), abs=3e-4)


@given(ORDERS, st.floats(1.0, 3.0))
def test_powers_of_time_have_their_known_derivatives(order: float, power: float) -> None:
    errors = []
    for count in (200, 400):
        time = np.linspace(0.0, 1.0, count + 1)
        found = FractionalDerivative(order, 1.0 / count, count)(time**power)
        errors.append(abs(found[-1] - gamma(power + 1.0) / gamma(power + 1.0 - order)))
    assert errors[1] <= 0.6 * errors[0] + 1e-9  # first order in the period
    assert errors[1] < 2e-2


@given(ORDERS, ORDERS, st.integers(0, 2**32 - 1))
def test_orders_add_up(first: float, second: float, seed: int) -> None:
    count = 60
    samples = np.random.default_rng(seed).standard_normal(count)
    one, other, both = (FractionalDerivative(order, 0.1, count) for order in (first, second, first + second))
    expected = both(samples)
    assert other(one(samples)) == pytest.approx(expected, abs=1e-9 * np.abs(expected).max() + 1e-12)


@given(st.integers(0, 9), st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=40), st.integers(1, 7))
def test_the_ring_forgets_and_pieces_make_the_whole(terms: int, samples: list[float], piece: int) -> None:
    operator = FractionalDerivative(0.7, 1.0, terms)
    whole = operator(samples)
    assert whole == pytest.approx(np.convolve(samples, weights(0.7, terms))[: len(samples)], abs=1e-12)
    operator.reset()
    pieces = [operator(samples[k : k + piece]) for k in range(0, len(samples), piece)]
    assert np.concatenate(pieces).tolist() == whole.tolist()
    operator.reset()
    assert [float(operator(sample)) for sample in samples] == whole.tolist()


@pytest.mark.parametrize(
    ("order", "terms", "message"),
    [
        (np.nan, 5, "order = nan: must be a number from -10 to 10"),
        (11.0, 5, "order = 11.0"),
        ("half", 5, "order = 'half'"),
        (0.5, -1, "terms = -1: must be a whole number from 0 to 1000000"),
        (0.5, 2.5, "terms = 2.5"),
    ],
)
def test_what_is_not_allowed(order: float, terms: int, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        weights(order, terms)
