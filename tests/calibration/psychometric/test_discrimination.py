"""Just noticeable differences at stated proportions, points of equality, Weber fractions, the bias of order."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from calibration.psychometric import (
    Estimate,
    fit_psychometric,
    group_estimate,
    jnd,
    magnitude_exponent,
    mean_and_spread,
    order_bias,
    pse,
    spearman_karber,
    weber_fraction,
)


def test_one_observer_of_viscosity_gives_both_published_weber_fractions() -> None:
    # Jones, Hunter and Lafontaine 1997: 19 % at 71 % correct, 34 % at 84 %; both are w75 = 0.23
    reference, n = 64.0, 4000
    levels = reference * np.array([0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6])
    p = norm.cdf(0.6744897501960817 * levels / (0.23 * reference))
    fit = fit_psychometric(levels, np.round(n * p), np.full(7, n), guess=0.5, shape="dprime", lapse_prior=0.0)
    assert weber_fraction(fit, reference, 0.75).value == pytest.approx(0.23, abs=0.003)
    assert weber_fraction(fit, reference, 0.71).value == pytest.approx(0.19, abs=0.005)
    assert weber_fraction(fit, reference, 0.84).value == pytest.approx(0.34, abs=0.005)
    assert fit.exponent is not None
    assert fit.exponent.value == pytest.approx(1.0, abs=0.05)


def test_equality_and_difference_of_signed_levels() -> None:
    n, shift, deviation = 2000, 0.4, 1.5
    levels = np.arange(-4.0, 5.0)
    correct = np.round(n * (0.02 + 0.96 * norm.cdf((levels - shift) / deviation)))
    fit = fit_psychometric(levels, correct, np.full(9, n), guess="lapse")
    assert pse(fit).value == pytest.approx(shift, abs=0.05)
    assert jnd(fit, 0.75).value == pytest.approx(0.6745 * deviation, rel=0.04)
    assert jnd(fit, 0.84).value == pytest.approx(deviation * norm.ppf(0.84), rel=0.04)
    values = fit_psychometric(np.exp(levels / 4), correct, np.full(9, n), guess="lapse", scale="log")
    assert pse(values).value == pytest.approx(math.exp(shift / 4), rel=0.02)
    expected = math.exp((shift + 0.6745 * deviation) / 4) - math.exp(shift / 4)
    assert jnd(values, 0.75).value == pytest.approx(expected, rel=0.05)


def test_the_interval_of_the_reference_is_propagated() -> None:
    fit = fit_psychometric([0.1, 0.2, 0.4], [24, 31, 38], [40, 40, 40], guess=0.5, shape="dprime")
    exact = weber_fraction(fit, 2.0, 0.75)
    same = weber_fraction(fit, Estimate(2.0, 2.0, 2.0), 0.75)
    assert same.high == pytest.approx(exact.high)
    assert same.low == pytest.approx(exact.low)
    wide = weber_fraction(fit, Estimate(2.0, 1.2, 3.0), 0.75)
    assert wide.low < exact.low
    assert wide.high > exact.high
    assert wide.value == pytest.approx(exact.value)
    # independent relative errors add in quadrature: against a simulation of both
    rng = np.random.default_rng(2)
    a, b = np.exp(rng.normal(0.0, 0.1, 200_000)), np.exp(rng.normal(0.0, 0.2, 200_000))
    ends = [Estimate(1.0, math.exp(-1.96 * s), math.exp(1.96 * s)) for s in (0.1, 0.2)]
    ratio = ends[0].over(ends[1])
    assert np.quantile(a / b, [0.025, 0.975]) == pytest.approx([ratio.low, ratio.high], rel=0.02)


@pytest.mark.parametrize("bias", [-0.08, 0.0, 0.12])
def test_the_bias_of_order_is_found(bias: float) -> None:
    rng, n, deviation = np.random.default_rng(11), 1200, 0.3
    levels = rng.choice([0.0, 0.1, 0.2, 0.3, 0.5], n)
    interval = rng.integers(1, 3, n)
    step = np.where(interval == 2, levels, -levels)
    said_second = rng.random(n) < 0.01 + 0.98 * norm.cdf((step + bias) / deviation)
    found = order_bias(levels, interval, said_second == (interval == 2))
    assert found.level.low <= bias <= found.level.high
    assert found.level.high - found.level.low < 0.12
    assert np.sign(found.preference.value) == np.sign(bias) or bias == 0.0
    assert jnd(found.fit, 0.75).value == pytest.approx(0.6745 * deviation, rel=0.15)


def test_spearman_karber_is_the_mean_of_what_the_proportions_say() -> None:
    # by hand: 0, 1/4, 3/4, 1 at 1 ... 4: 1/4 (1.5) + 1/2 (2.5) + 1/4 (3.5)
    assert spearman_karber([1, 2, 3, 4], [0, 5, 15, 20], [20] * 4).value == pytest.approx(2.5)
    levels, n = np.linspace(-3.0, 5.0, 17), 500
    correct = np.round(n * norm.cdf((levels - 0.7) / 1.1))
    found = spearman_karber(levels, correct, np.full(17, n))
    assert found.value == pytest.approx(0.7, abs=0.02)
    fit = fit_psychometric(levels, correct, np.full(17, n), guess=0.0)
    assert found.value == pytest.approx(fit.threshold(0.5).value, abs=0.05)
    assert found.low <= found.value <= found.high
    assert found.high - found.low == pytest.approx(2 * 1.96 * np.sqrt(0.5 * 1.1 / np.sqrt(np.pi) / n), rel=0.15)
    guessed = spearman_karber(levels, np.round(n * (0.5 + 0.5 * correct / n)), np.full(17, n), guess=0.5)
    assert guessed.value == pytest.approx(0.7, abs=0.03)
    logs = spearman_karber(np.exp(levels), correct, np.full(17, n), scale="log")
    assert logs.value == pytest.approx(math.exp(found.value))


def test_the_exponent_of_magnitude_does_not_depend_on_the_numbers_people_like() -> None:
    rng = np.random.default_rng(5)
    stimuli = np.tile(np.repeat([0.5, 1.0, 2.0, 4.0], 5), 8)
    who = np.repeat(np.arange(8), 20)
    exponents, modulus = rng.normal(1.3, 0.1, 8), np.exp(rng.normal(2.0, 1.5, 8))
    numbers = modulus[who] * stimuli ** exponents[who] * np.exp(rng.normal(0.0, 0.1, len(who)))
    found = magnitude_exponent(stimuli, numbers, list(who))
    assert found.exponent.low <= 1.3 <= found.exponent.high
    assert found.exponent.value == pytest.approx(np.mean(exponents), abs=0.03)
    other = magnitude_exponent(stimuli, numbers * np.array([1.0, 10.0])[who % 2], list(who))
    assert other.exponent.value == pytest.approx(found.exponent.value)
    slope = np.polyfit(np.log(found.levels), np.log(found.means), 1)[0]
    assert slope == pytest.approx(found.exponent.value, abs=1e-9)  # the line goes through the normalised means
    spread = np.std([np.log(found.normalised[who == k]).mean() for k in range(8)])
    assert spread == pytest.approx(0.0, abs=1e-12)


def test_one_participants_exponent_has_the_interval_of_its_regression() -> None:
    rng, held = np.random.default_rng(9), 0
    stimuli = np.repeat([0.5, 1.0, 2.0, 4.0], 5)
    for _ in range(300):
        found = magnitude_exponent(stimuli, 10.0 * stimuli**0.8 * np.exp(rng.normal(0.0, 0.2, 20))).exponent
        held += found.low <= 0.8 <= found.high
    assert 0.92 <= held / 300 <= 0.98


def test_a_group_is_the_mean_of_logs_with_the_interval_of_t() -> None:
    values = np.array([0.08, 0.1, 0.13, 0.09])
    found = group_estimate([Estimate(v, v * 0.8, v * 1.25) for v in values])
    assert found.mean.value == pytest.approx(np.exp(np.log(values).mean()))
    reach = 3.182446 * np.log(values).std(ddof=1) / 2.0  # t of 3 degrees of freedom, any table
    assert found.mean.high == pytest.approx(found.mean.value * math.exp(reach), rel=1e-5)
    assert found.cv == pytest.approx(math.sqrt(math.exp(np.log(values).var(ddof=1)) - 1.0))
    assert 0.0 < found.cv_between < found.cv
    again = group_estimate([*(Estimate(v, v, v) for v in values), Estimate(0.4, 0.1, math.inf, 0.95, "above")])
    assert (again.count, again.bounds) == (4, 1)
    assert again.cv_between == pytest.approx(again.cv)
    alone = group_estimate([Estimate(0.1, 0.08, 0.13)])
    assert math.isnan(alone.cv)
    assert (alone.mean.low, alone.mean.high) == (0.0, math.inf)


def test_adjustments_have_a_mean_and_a_spread_whose_intervals_hold() -> None:
    rng, held = np.random.default_rng(4), np.zeros(2)
    for _ in range(400):
        mean, spread = mean_and_spread(list(rng.normal(2.0, 0.3, 9)))
        held += (mean.low <= 2.0 <= mean.high, spread.low <= 0.3 <= spread.high)
    assert (held / 400 >= 0.92).all()
    assert (held / 400 <= 0.98).all()
