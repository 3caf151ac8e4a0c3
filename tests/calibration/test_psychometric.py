"""Psychometric functions: fits against independent programs, thresholds, differences, groups and invalid answers."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import optimize, special
from scipy.stats import norm

from calibration.psychometric import (
    Estimate,
    RatePrior,
    WidthPrior,
    detectability,
    fit_psychometric,
    group_estimate,
    impedance_differences,
    jnd,
    magnitude_exponent,
    mean_and_spread,
    order_bias,
    proportion,
    pse,
    psychometric_tables,
    spearman_karber,
    weber_fraction,
)
from calibration.psychometric.shapes import SHAPES
from haptics.errors import ConfigurationError

# --- independent fits -------------------------------------------------------------------------------------------------

LEVELS = [0.05, 0.1, 0.15, 0.2, 0.3, 0.45]
DATA: dict[str, tuple[list[float], list[int], list[int]]] = {
    "30 a level": (LEVELS, [16, 20, 22, 23, 27, 30], [30] * 6),
    "200 a level": (LEVELS, [109, 128, 146, 160, 183, 196], [200] * 6),
    "uneven": (LEVELS, [9, 41, 38, 12, 45, 19], [18, 66, 52, 15, 49, 20]),
}
SIGNED = ([-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0], [2, 5, 10, 22, 31, 36, 39], [40] * 7)
GOLDEN = json.loads(Path(__file__).with_name("psychometric_oracles.json").read_text(encoding="utf-8"))
"""Results of SweetSpot 1.15.1 and Psychofit 1.0.0; the entry ``sources`` names their calls."""
PLAIN = WidthPrior(1.0, 3.0)
"""A prior so wide that the maximum of the posterior is nearly the maximum of the likelihood."""
FLAT = RatePrior(1.0, 1.0, 0.3)


@pytest.mark.parametrize("name", DATA)
def test_the_posterior_agrees_with_sweetspot(name):
    golden = GOLDEN["sweetspot"][name]
    prior = WidthPrior(2.6, 0.6)  # of the golden numbers
    fit = fit_psychometric(*DATA[name], guess=0.5, shape="logistic", scale="log", lapse_prior=0.02, width_prior=prior)
    found = fit.threshold(0.75)
    step = math.log(golden["high"] / golden["low"]) / 60.0  # approximate step of both grids
    for key, own in (("low", found.low), ("threshold", found.value), ("high", found.high)):
        assert math.log(own / golden[key]) == pytest.approx(0.0, abs=1.5 * step), key
    assert math.log(fit.threshold(0.75, kind="mean").value / golden["mean"]) == pytest.approx(0.0, abs=1.5 * step)
    assert fit.slope.value == pytest.approx(golden["slope"], rel=0.02)


@pytest.mark.parametrize("name", DATA)
def test_the_most_likely_weibull_function_agrees_with_psychofit(name):
    golden = GOLDEN["psychofit"][name]
    fit = fit_psychometric(*DATA[name], guess=0.5, shape="weibull", lapse_prior=FLAT, width_prior=PLAIN)
    u, width, (lapse, *_) = fit.posterior.best
    du, dw = np.diff(fit.posterior.thresholds[:2])[0], np.diff(np.log(fit.posterior.widths[:2]))[0]
    assert u == pytest.approx(math.log(golden["threshold"]), abs=3.0 * du)
    exponent = fit.posterior.shape.exponent_span / width
    assert math.log(exponent) == pytest.approx(math.log(golden["exponent"]), abs=3.0 * dw)
    assert lapse == pytest.approx(golden["lapse"], abs=0.02)


def test_signed_levels_with_equal_lapses_agree_with_psychofit():
    golden = GOLDEN["psychofit_erf"]
    fit = fit_psychometric(*SIGNED, guess="lapse", lapse_prior=FLAT, width_prior=WidthPrior(5.0, 3.0))
    middle = fit.threshold(0.5, kind="map")
    assert middle.value == pytest.approx(golden["threshold"], abs=0.1 * (middle.high - middle.low))
    deviation = fit.threshold(float(norm.cdf(1.0)), kind="map").value - middle.value
    assert deviation == pytest.approx(golden["deviation"], rel=0.1)


CORES = {
    "phi": norm.cdf,
    "logistic": special.expit,
    "weibull": lambda t: -np.expm1(-np.exp(np.minimum(t, 50.0))),
    "dprime": lambda t: 2.0 * norm.cdf(np.exp(np.minimum(t, 50.0))) - 1.0,
}


def scipy_fit(data, core, scale, lapse):
    """Most likely function with a guess rate of 1/2 by Nelder and Mead, from several starts."""
    half = float(optimize.brentq(lambda t: CORES[core](t) - 0.5, -2.0, 2.0, xtol=1e-14))
    steepness = float(CORES[core](half + 1e-6) - CORES[core](half - 1e-6)) / 2e-6
    levels, correct, total = (np.asarray(column, dtype=float) for column in data)
    u = np.log(levels) if scale == "log" else levels

    def cost(x):
        p = 0.5 + (0.5 - lapse) * CORES[core](np.exp(x[1]) * (u - x[0]) + half)
        p = np.clip(p, 1e-12, 1 - 1e-12)
        return -float(np.sum(correct * np.log(p) + (total - correct) * np.log1p(-p)))

    starts = [(m, k) for m in np.quantile(u, [0.3, 0.5, 0.7]) for k in (0.0, 1.0, 3.0)]
    options = {"maxiter": 4000, "xatol": 1e-9, "fatol": 1e-11}
    best = min((optimize.minimize(cost, s, method="Nelder-Mead", options=options) for s in starts), key=lambda r: r.fun)
    m, k = best.x
    threshold = float(np.exp(m) if scale == "log" else m)
    return {"threshold": threshold, "slope": float(np.exp(k) * steepness), "cost": float(best.fun)}


@pytest.mark.parametrize(("shape", "scale"), [(s, "log") for s in SHAPES] + [("phi", "linear"), ("logistic", "linear")])
def test_the_best_cell_agrees_with_an_independent_optimiser(shape, scale):
    data = DATA["200 a level"]
    fit = fit_psychometric(*data, guess=0.5, shape=shape, scale=scale, lapse_prior=0.01, width_prior=PLAIN)
    golden = scipy_fit(data, shape, scale, 0.01)
    u, width, _ = fit.posterior.best
    du, dw = np.diff(fit.posterior.thresholds[:2])[0], np.diff(np.log(fit.posterior.widths[:2]))[0]
    assert u == pytest.approx(math.log(golden["threshold"]) if scale == "log" else golden["threshold"], abs=2.0 * du)
    slope = fit.posterior.shape.steepness / width
    assert math.log(slope / golden["slope"]) == pytest.approx(0.0, abs=2.0 * dw)
    right, total = np.asarray(data[1]), np.asarray(data[2])
    p = right / total  # of the saturated model
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = right * np.log(p) + np.where(p < 1.0, (total - right) * np.log1p(-p), 0.0)
    assert fit.deviance == pytest.approx(2.0 * (golden["cost"] + float(np.sum(terms))), abs=0.3)


# --- properties of every fit ------------------------------------------------------------------------------------------


@given(
    rows=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=6),
    kind=st.sampled_from([("phi", "linear"), ("weibull", "log"), ("dprime", "log")]),
    guess=st.sampled_from([0.0, 0.5, "lapse"]),
    share=st.floats(0.51, 0.99),
)
def test_every_interval_is_finite_and_contains_its_estimate(rows, kind, guess, share):
    assume(any(map(max, rows)))
    levels, correct, total = 0.1 * np.arange(1, len(rows) + 1), [*map(min, rows)], [*map(max, rows)]
    fit = fit_psychometric(levels, correct, total, guess=guess, shape=kind[0], scale=kind[1], lapse_prior=0.0)
    for which in ("median", "mean", "map"):
        for probability in (0.68, 0.95):
            found = fit.threshold(share, probability, which)
            assert found.low <= found.value <= found.high
    assert fit.slope.low <= fit.slope.value <= fit.slope.high
    assert math.isfinite(fit.deviance) and 0.0 < fit.deviance_p <= 1.0
    curve = fit.curve()
    assert np.isfinite(curve.high).all()
    assert (curve.low <= curve.middle).all() and (curve.middle <= curve.high).all()
    assert (np.diff(curve.middle) >= 0.0).all()


def test_a_threshold_beyond_the_levels_is_a_bound_and_noted():
    above, below, flat = (
        fit_psychometric([0.1, 0.2, 0.3], correct, [20, 20, 20], guess=0.5, shape="dprime")
        for correct in ([10, 11, 9], [20, 20, 20], [10, 10, 10])
    )
    found = above.threshold(0.75)
    assert (found.bound, found.value, found.high) == ("above", pytest.approx(0.3), math.inf)
    assert found.text().startswith("more than 0.3 (")
    assert found.as_dict()["high"] is None
    found = below.threshold(0.75)
    assert (found.bound, found.value, found.low) == ("below", pytest.approx(0.1), 0.0)
    assert any("far above the tested levels" in note for note in flat.notes)
    one = fit_psychometric([0.2], [15], [20], guess=0.5, shape="dprime").threshold(0.75)
    assert one.high / max(one.low, 1e-9) > 3.0  # a single level is not enough
    assert fit_psychometric(*DATA["200 a level"], guess=0.5, shape="dprime").notes == ()


def test_trials_without_stimulus_limit_the_guess_rate_on_a_log_scale():
    levels, correct, total = [0.0, 0.1, 0.2, 0.4, 0.8], [8, 14, 22, 33, 38], [40] * 5
    fit = fit_psychometric(levels, correct, total, guess="free", shape="weibull")
    assert fit.guess.low < 0.2 < fit.guess.high
    assert fit.guess.high - fit.guess.low < 0.3


def test_overdispersed_blocks_widen_the_interval():
    levels = np.repeat([0.1, 0.2, 0.3], 6)
    calm, wild = np.tile([14, 15, 14, 15, 14, 15], 3), np.tile([9, 20, 10, 19, 11, 18], 3)
    calm[6:12] += 2
    calm[12:] += 4
    total = np.full(18, 20)
    for correct, least in ((calm, 0.0), (wild, 0.15)):
        plain = fit_psychometric(levels, correct, total, guess=0.5, shape="dprime")
        wide = fit_psychometric(levels, correct, total, guess=0.5, shape="dprime", overdispersion=True)
        assert wide.overdispersion.value >= least
        assert len(wide.answers.levels) == 18
        ratio = (wide.slope.high - wide.slope.low) / (plain.slope.high - plain.slope.low)
        assert ratio > (1.02 if least else 0.9)


def test_deviance_rejects_answers_that_no_rising_function_gives():
    levels, total = [0.1, 0.2, 0.3, 0.4, 0.5], [40] * 5
    rising, other = (
        fit_psychometric(levels, correct, total, guess=0.5, shape="dprime").deviance_p
        for correct in ([24, 28, 32, 35, 37], [38, 20, 38, 20, 38])
    )
    assert rising > 0.2
    assert other < 0.01


def test_tables_agree_with_the_fit():
    levels, correct, total = DATA["30 a level"]
    tables = psychometric_tables(levels, guess=0.5, shape="dprime")
    own = tables.threshold(correct, total, 0.75)
    fit = fit_psychometric(levels, correct, total, guess=0.5, shape="dprime").threshold(0.75)
    for name in ("value", "low", "high"):
        assert math.log(getattr(own, name) / getattr(fit, name)) == pytest.approx(0.0, abs=0.06), name
    assert tables.mass(correct, total).size > 10_000
    assert tables.mass(correct, total).sum() == pytest.approx(1.0)


# --- thresholds, differences and groups -------------------------------------------------------------------------------


def test_both_published_weber_fractions_of_viscosity_fit_one_observer():
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


def test_equality_and_difference_of_signed_levels():
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


def test_the_interval_of_the_reference_is_propagated():
    fit = fit_psychometric([0.1, 0.2, 0.4], [24, 31, 38], [40, 40, 40], guess=0.5, shape="dprime")
    exact, same = weber_fraction(fit, 2.0, 0.75), weber_fraction(fit, Estimate(2.0, 2.0, 2.0), 0.75)
    assert (same.low, same.high) == pytest.approx((exact.low, exact.high))
    wide = weber_fraction(fit, Estimate(2.0, 1.2, 3.0), 0.75)
    assert wide.low < exact.low < exact.high < wide.high
    assert wide.value == pytest.approx(exact.value)
    # independent relative errors add in quadrature: against a simulation of both
    rng = np.random.default_rng(2)
    a, b = np.exp(rng.normal(0.0, 0.1, 200_000)), np.exp(rng.normal(0.0, 0.2, 200_000))
    ends = [Estimate(1.0, math.exp(-1.96 * s), math.exp(1.96 * s)) for s in (0.1, 0.2)]
    ratio = ends[0].over(ends[1])
    assert np.quantile(a / b, [0.025, 0.975]) == pytest.approx([ratio.low, ratio.high], rel=0.02)


@pytest.mark.parametrize("bias", [-0.08, 0.0, 0.12])
def test_the_bias_of_order_is_found(bias):
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


def test_spearman_karber_is_the_mean_of_the_proportions():
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


def test_the_magnitude_exponent_does_not_depend_on_the_modulus():
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


def test_a_group_is_the_mean_of_logs_with_the_interval_of_t():
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


def test_intervals_of_adjustments_and_of_the_exponent_of_one_participant_hold():
    rng, held, stimuli = np.random.default_rng(4), np.zeros(3), np.repeat([0.5, 1.0, 2.0, 4.0], 5)
    for _ in range(400):
        mean, spread = mean_and_spread(list(rng.normal(2.0, 0.3, 9)))
        exponent = magnitude_exponent(stimuli, 10.0 * stimuli**0.8 * np.exp(rng.normal(0.0, 0.2, 20))).exponent
        found = ((mean, 2.0), (spread, 0.3), (exponent, 0.8))
        held += [estimate.low <= truth <= estimate.high for estimate, truth in found]
    assert (held / 400 >= 0.92).all()
    assert (held / 400 <= 0.98).all()


# --- detectability ----------------------------------------------------------------------------------------------------


def test_yes_no_agrees_with_the_textbook():
    # Macmillan and Creelman 2005, chapter 1: "old" to 20 of 25 old and 10 of 25 new faces: d' = 1.095, c = -0.294
    exact = detectability(20000, 5000, 10000, 15000)
    assert exact.d_prime.value == pytest.approx(1.095, abs=0.002)
    assert exact.criterion.value == pytest.approx(-0.294, abs=0.002)


@pytest.mark.parametrize("d", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("shift", [-0.4, 0.0, 0.8])
def test_d_prime_of_a_simulated_comparison_is_found(d, shift):
    rng, n = np.random.default_rng(7), 400_000
    first, second = rng.normal(size=n), rng.normal(size=n)
    for task, hit, false_alarm in (
        ("yes-no", first + d > shift, second > shift),
        ("2afc", second + d - first > shift, second - first - d > shift),
        ("same-different", abs(second + d - first) > 1.0 + abs(shift), abs(second - first) > 1.0 + abs(shift)),
    ):
        counts = [int(k) for k in (hit.sum(), n - hit.sum(), false_alarm.sum(), n - false_alarm.sum())]
        found = detectability(*counts, task=task).d_prime
        assert found.value == pytest.approx(d, abs=0.03), task
        assert found.low <= found.value <= found.high
    assert detectability(*counts, task="same-different").criterion.value == pytest.approx(1.0 + abs(shift), abs=0.02)


def test_d_prime_without_errors_is_finite_and_uncertain():
    found = detectability(20, 0, 0, 20).d_prime
    assert 3.0 < found.value < 6.0
    assert math.isfinite(found.high)
    assert found.high - found.low > 1.5


def test_intervals_of_proportions_include_zero_and_one():
    none, some, every = (proportion(k, 20) for k in (0, 1, 20))
    assert none.low == 0.0
    assert every.high == 1.0
    assert none.high == pytest.approx(0.117, abs=0.002)  # Brown, Cai and DasGupta 2001, 0 of 20
    assert some.low < 0.05 < some.high


# --- impedances -------------------------------------------------------------------------------------------------------

C = 0.1
TIME = np.arange(4000) / 1000.0
"""Four seconds, whole cycles of the frequencies below."""


def force(stiffness, damping, mass, frequency):
    """Return the force of an impedance whose end is moved by 10 mm to and fro [N]."""
    w = 2.0 * np.pi * frequency
    x = 0.01 * np.sin(w * TIME)
    return stiffness * x + damping * np.gradient(x, TIME, edge_order=2) - mass * w**2 * x


@given(st.floats(0.0, 400.0), st.floats(0.0, 20.0), st.floats(0.1, 3.0), st.sampled_from([0.5, 1.0, 2.0]))
def test_each_difference_changes_the_force_by_the_same_share(K, B, M, frequency):
    """Each change alters the root mean square of the force by a tenth (Fu 2017)."""
    differences = impedance_differences(K, B, M, frequency, C)
    before = force(K, B, M, frequency)
    size = np.sqrt(np.mean(before**2))
    for changed in ((K + differences.stiffness, B, M), (K, B + differences.damping, M), (K, B, M + differences.mass)):
        change = np.sqrt(np.mean((force(*changed, frequency) - before) ** 2))
        assert change == pytest.approx(C * size, rel=2e-3)


def test_a_spring_masks_damping_and_a_mass_in_resonance_unmasks_it():
    """With prescribed deflection, the Weber fraction of a stiffness alone equals the one of force (Fu 2017)."""
    assert impedance_differences(200.0, 0.0, 0.0, 1.0, C).stiffness == pytest.approx(20.0)
    alone = impedance_differences(0.0, 5.0, 0.0, 1.0, C).damping
    assert alone == pytest.approx(0.5)
    assert impedance_differences(200.0, 5.0, 0.0, 1.0, C).damping > 6.0 * alone
    tuned = 200.0 / (2.0 * np.pi) ** 2
    assert impedance_differences(200.0, 5.0, tuned, 1.0, C).damping == pytest.approx(alone)


# --- refusals ---------------------------------------------------------------------------------------------------------

GOOD = ([0.1, 0.2], [5, 9], [10, 10])


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (([0.1, 0.2], [0, 0], [0, 0]), "no trials to fit"),
        (([0.1, math.nan], [1, 1], [2, 2]), "levels = nan in row 2"),
        (([0.1, 0.2], [1, 3], [2, 2]), r"correct = 3 in row 2 \(of 2\)"),
        (([0.1, 0.2], [1, 1], [2, 2.5]), "total = 2.5 in row 2"),
        (([0.1, 0.2], [1, 1], [2]), "2, 2, 1 rows"),
        ((["a"], [1], [1]), "levels: holds something that is no number"),
        (([[0.1]], [1], [1]), "2 dimensions"),
        (([0.0, 0.0], [1, 1], [2, 2]), "All levels are 0"),
        (([-0.1, 0.2], [1, 1], [2, 2]), "levels = -0.1: has no logarithm"),
    ],
)
def test_impossible_answers_are_refused(columns, words):
    with pytest.raises(ConfigurationError, match=words):
        fit_psychometric(*columns, guess=0.5, scale="log")


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda _: fit_psychometric(*GOOD, guess=1.0), "guess = 1.0"),
        (lambda _: fit_psychometric(*GOOD, guess="some"), 'guess = .some.: must be a number, "lapse" or "free"'),
        (lambda _: fit_psychometric(*GOOD, guess=0.5, shape="probit"), "shape = 'probit': must be one of phi"),
        (lambda _: fit_psychometric(*GOOD, guess=0.5, scale="dB"), "scale = 'dB'"),
        (lambda _: fit_psychometric(*GOOD, guess=0.5, lapse_prior=0.7), "lapse_prior = 0.7"),
        (lambda _: impedance_differences(-1.0, 0.0, 0.0, 1.0, 1.0), "stiffness = -1.0"),
        (lambda _: impedance_differences(1.0, 0.0, 0.0, 0.0, 1.0), "frequency = 0.0"),
        (lambda _: impedance_differences(1.0, 0.0, 0.0, 1.0, -0.1), "fraction = -0.1"),
        (lambda _: impedance_differences(0.0, 0.0, 0.0, 1.0, 1.0), "are all 0"),
        (lambda fit: fit.threshold(0.5), r"greater than what is guessed \(0.5\)"),
        (lambda fit: fit.threshold(0.75, 1.0), "probability = 1.0"),
        (pse, 'fit "the comparison is more" with guess="lapse"'),
        (lambda fit: weber_fraction(fit, 0.0, 0.75), "reference = 0.0"),
        (lambda _: jnd(fit_psychometric(*GOOD, guess="lapse"), 0.4), "proportion = 0.4"),
        (lambda _: RatePrior(0.0, 1.0), "must be greater than 0"),
        (lambda _: WidthPrior(1.0, 0.0), "greater than 0"),
        (lambda _: detectability(0, 0, 1, 1), "0 of 0"),
        (lambda _: detectability(1, 1, 1, 1, task="oddity"), "must be one of yes-no"),
        (lambda _: spearman_karber([0.1], [1], [2]), "two levels"),
        (lambda _: order_bias([0.1, 0.2], [1, 1], [True, False]), "trials with the comparison in 1 and in 2"),
        (lambda _: magnitude_exponent([1.0, 2.0], [1.0, 0.0]), "estimates = 0 in row 2"),
        (lambda _: magnitude_exponent([1.0, 1.0], [1.0, 2.0]), "fewer than two different stimuli"),
        (lambda _: magnitude_exponent([1.0, 2.0], [1.0]), "must agree"),
        (lambda _: group_estimate([]), "No participant"),
        (lambda _: group_estimate([Estimate(0.1, 0.0, math.inf, 0.95, "above")]), "No participant"),
        (lambda _: group_estimate([Estimate(-0.1, -1.0, 1.0)]), "must be greater than 0"),
        (lambda _: proportion(1, 0), "1 of 0"),
        (lambda _: mean_and_spread([1.0]), "1 values"),
        (lambda _: psychometric_tables([0.1, math.nan], guess=0.5), "levels: must be finite"),
        (lambda _: psychometric_tables([0.1, 0.2], guess=0.5).mass([1, 2], [1, 1]), "correct at most total"),
    ],
)
def test_impossible_questions_are_refused(act, words):
    with pytest.raises(ConfigurationError, match=words):
        act(fit_psychometric(*GOOD, guess=0.5))
