"""Fits against independent ones, and what must hold of every fit."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.psychometric import RatePrior, WidthPrior, fit_psychometric, psychometric_tables
from calibration.psychometric.shapes import SHAPES, make_shape
from tests.calibration.psychometric import oracles

GOLDEN = json.loads(oracles.GOLDEN.read_text(encoding="utf-8"))
PLAIN = WidthPrior(1.0, 3.0)
"""So wide that the most likely function is that of largest posterior, nearly."""
FLAT = RatePrior(1.0, 1.0, 0.3)


@pytest.mark.parametrize("name", oracles.DATA)
def test_the_posterior_is_that_of_sweetspot(name: str) -> None:
    golden, fit = GOLDEN["sweetspot"][name], _logistic(name)
    found = fit.threshold(0.75)
    step = math.log(golden["high"] / golden["low"]) / 60.0  # of its grid and of ours, about
    for key, own in (("low", found.low), ("threshold", found.value), ("high", found.high)):
        assert math.log(own / golden[key]) == pytest.approx(0.0, abs=1.5 * step), key
    assert math.log(fit.threshold(0.75, kind="mean").value / golden["mean"]) == pytest.approx(0.0, abs=1.5 * step)
    assert fit.slope.value == pytest.approx(golden["slope"], rel=0.02)


def _logistic(name: str):  # type: ignore[no-untyped-def]
    return fit_psychometric(
        *oracles.DATA[name],
        guess=0.5,
        shape="logistic",
        scale="log",
        lapse_prior=oracles.LAPSE,
        width_prior=WidthPrior(2.6, 0.6),  # of the golden numbers
    )


@pytest.mark.parametrize("name", oracles.DATA)
def test_the_most_likely_weibull_function_is_that_of_psychofit(name: str) -> None:
    golden = GOLDEN["psychofit"][name]
    fit = fit_psychometric(*oracles.DATA[name], guess=0.5, shape="weibull", lapse_prior=FLAT, width_prior=PLAIN)
    u, width, (lapse, *_) = fit.posterior.best
    du, dw = np.diff(fit.posterior.thresholds[:2])[0], np.diff(np.log(fit.posterior.widths[:2]))[0]
    assert u == pytest.approx(math.log(golden["threshold"]), abs=3.0 * du)
    exponent = fit.posterior.shape.exponent_span / width
    assert math.log(exponent) == pytest.approx(math.log(golden["exponent"]), abs=3.0 * dw)
    assert lapse == pytest.approx(golden["lapse"], abs=0.02)


def test_signed_levels_with_equal_lapses_are_fitted_as_by_psychofit() -> None:
    golden = GOLDEN["psychofit_erf"]
    fit = fit_psychometric(*oracles.SIGNED, guess="lapse", lapse_prior=FLAT, width_prior=WidthPrior(5.0, 3.0))
    middle = fit.threshold(0.5, kind="map")
    assert middle.value == pytest.approx(golden["threshold"], abs=0.1 * (middle.high - middle.low))
    deviation = fit.threshold(float(oracles.stats.norm.cdf(1.0)), kind="map").value - middle.value
    assert deviation == pytest.approx(golden["deviation"], rel=0.1)


@pytest.mark.parametrize("name", oracles.DATA)
def test_the_mean_is_that_of_bayesfits_likelihood(name: str) -> None:
    golden = GOLDEN["bayesfit"][name]
    levels, correct, total = oracles.DATA[name]
    slope = 4.0 * oracles.scipy_fit(oracles.DATA[name], "logistic", "linear", oracles.BAYESFIT_LAPSE)["slope"]
    within = WidthPrior(2.0 * math.log(19.0) / slope, math.log(1.5) / 2.6)  # its slopes end at half and one and a half
    fit = fit_psychometric(
        levels, correct, total, guess=0.5, shape="logistic", lapse_prior=oracles.BAYESFIT_LAPSE, width_prior=within
    )
    found = fit.threshold(0.75, kind="mean")
    assert found.value == pytest.approx(golden["mean"], abs=0.06 * (found.high - found.low))
    assert golden["map"] == pytest.approx(fit.threshold(0.75, kind="map").value, abs=0.06 * (found.high - found.low))


CORE = {"phi": "phi", "logistic": "logistic", "weibull": "gumbel", "dprime": "dprime"}


@pytest.mark.parametrize(("shape", "scale"), [(s, "log") for s in SHAPES] + [("phi", "linear"), ("logistic", "linear")])
def test_the_best_cell_is_where_an_independent_optimiser_ends(shape: str, scale: str) -> None:
    data = oracles.DATA["200 a level"]
    fit = fit_psychometric(*data, guess=0.5, shape=shape, scale=scale, lapse_prior=0.01, width_prior=PLAIN)
    golden = oracles.scipy_fit(data, CORE[shape], scale, fixed_lapse=0.01)
    u, width, _ = fit.posterior.best
    du, dw = np.diff(fit.posterior.thresholds[:2])[0], np.diff(np.log(fit.posterior.widths[:2]))[0]
    assert u == pytest.approx(math.log(golden["threshold"]) if scale == "log" else golden["threshold"], abs=2.0 * du)
    slope = fit.posterior.shape.steepness / width
    assert math.log(slope / golden["slope"]) == pytest.approx(0.0, abs=2.0 * dw)
    assert fit.deviance == pytest.approx(2.0 * (golden["cost"] - _saturated(data)), abs=0.3)


def _saturated(data: tuple[list[float], list[int], list[int]]) -> float:
    right, total = np.asarray(data[1]), np.asarray(data[2])
    p = right / total
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = right * np.log(p) + np.where(p < 1.0, (total - right) * np.log1p(-p), 0.0)
    return -float(np.sum(terms))


@pytest.mark.parametrize("oracle", ["sweetspot", "psychofit", "bayesfit"])
def test_the_oracles_still_say_what_is_stored(oracle: str) -> None:
    pytest.importorskip({"sweetspot": "SweetSpot"}.get(oracle, oracle), reason="an oracle, installed by who wants it")
    make = {
        "sweetspot": oracles.sweetspot_logistic,
        "psychofit": oracles.psychofit_weibull,
        "bayesfit": oracles.bayesfit_logistic,
    }[oracle]
    assert make(oracles.DATA["uneven"]) == pytest.approx(GOLDEN[oracle]["uneven"], rel=1e-3, abs=1e-6)


# --- what holds of every fit ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_has_its_threshold_half_way_and_its_width_from_5_to_95_percent(name: str) -> None:
    from calibration.psychometric.kernels import sigmoid

    shape = make_shape(name, "log")
    assert sigmoid(shape.code, 0.0) == pytest.approx(0.5, abs=1e-12)
    for share in (0.01, 0.05, 0.25, 0.71, 0.95, 0.999):
        assert sigmoid(shape.code, shape.reach(share)) == pytest.approx(share, abs=1e-10)
    assert shape.reach(0.95) - shape.reach(0.05) == pytest.approx(1.0, abs=1e-12)
    slope = (sigmoid(shape.code, 1e-5) - sigmoid(shape.code, -1e-5)) / 2e-5
    assert slope == pytest.approx(shape.steepness, rel=1e-6)
    assert sigmoid(shape.code, -math.inf) == pytest.approx(0.0, abs=1e-300)
    assert sigmoid(shape.code, math.inf) == 1.0


counts = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=6)


@given(
    counts,
    st.sampled_from([("phi", "linear"), ("weibull", "log"), ("dprime", "log")]),
    st.sampled_from([0.0, 0.5, "lapse"]),
    st.floats(0.51, 0.99),
)
def test_every_interval_contains_its_estimate_and_nothing_is_not_a_number(
    rows: list[tuple[int, int]], kind: tuple[str, str], guess: float | str, proportion: float
) -> None:
    total = [max(a, b) for a, b in rows]
    if not any(total):
        return
    levels = 0.1 * np.arange(1, len(rows) + 1)
    fit = fit_psychometric(
        levels, [min(r) for r in rows], total, guess=guess, shape=kind[0], scale=kind[1], lapse_prior=0.0
    )
    for which in ("median", "mean", "map"):
        for probability in (0.68, 0.95):
            found = fit.threshold(proportion, probability, which)
            assert found.low <= found.value <= found.high
    assert fit.slope.low <= fit.slope.value <= fit.slope.high


def test_certain_answers_without_lapses_are_numbers() -> None:
    fit = fit_psychometric([1.0, 2.0, 3.0], [0, 10, 10], [10, 10, 10], guess=0.0, lapse_prior=0.0)
    assert math.isfinite(fit.deviance)
    assert 0.0 < fit.deviance_p <= 1.0
    assert 1.0 < fit.threshold(0.5).value < 2.0
    assert np.isfinite(fit.curve().high).all()


def test_the_band_holds_the_curve_and_narrows_with_trials() -> None:
    few, many = (
        fit_psychometric(oracles.LEVELS, np.array([16, 20, 22, 23, 27, 30]) * k, [30 * k] * 6, guess=0.5, scale="log")
        for k in (1, 10)
    )
    for curve in (few.curve(), many.curve()):
        assert (curve.low <= curve.middle).all()
        assert (curve.middle <= curve.high).all()
        assert (np.diff(curve.middle) > 0.0).all()
    assert np.mean(many.curve().high - many.curve().low) < 0.5 * np.mean(few.curve().high - few.curve().low)


def test_a_threshold_beyond_the_levels_is_a_bound() -> None:
    above = fit_psychometric([0.1, 0.2, 0.3], [10, 11, 9], [20, 20, 20], guess=0.5, shape="dprime").threshold(0.75)
    assert (above.bound, above.value, above.high) == ("above", pytest.approx(0.3), math.inf)
    assert above.text().startswith("more than 0.3 (")
    assert above.as_dict()["high"] is None
    below = fit_psychometric([0.1, 0.2, 0.3], [20, 20, 20], [20, 20, 20], guess=0.5, shape="dprime").threshold(0.75)
    assert (below.bound, below.value) == ("below", pytest.approx(0.1))
    assert below.low == 0.0


def test_what_the_data_do_not_limit_is_said() -> None:
    fit = fit_psychometric([0.1, 0.2, 0.3], [10, 10, 10], [20, 20, 20], guess=0.5, shape="dprime")
    assert any("far above the tested levels" in note for note in fit.notes)
    one = fit_psychometric([0.2], [15], [20], guess=0.5, shape="dprime").threshold(0.75)
    assert one.high / max(one.low, 1e-9) > 3.0  # a single level says little
    good = fit_psychometric(*oracles.DATA["200 a level"], guess=0.5, shape="dprime")
    assert good.notes == ()


def test_no_stimulus_tells_the_guesses_on_a_log_scale_too() -> None:
    levels, correct, total = [0.0, 0.1, 0.2, 0.4, 0.8], [8, 14, 22, 33, 38], [40] * 5
    fit = fit_psychometric(levels, correct, total, guess="free", shape="weibull")
    assert fit.guess.low < 0.2 < fit.guess.high
    assert fit.guess.high - fit.guess.low < 0.3


def test_overdispersed_blocks_widen_the_interval() -> None:
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


def test_deviance_finds_answers_that_no_rising_function_gives() -> None:
    levels, total = [0.1, 0.2, 0.3, 0.4, 0.5], [40] * 5
    fits = [
        fit_psychometric(levels, correct, total, guess=0.5, shape="dprime")
        for correct in ([24, 28, 32, 35, 37], [38, 20, 38, 20, 38])
    ]
    assert fits[0].deviance_p > 0.2
    assert fits[1].deviance_p < 0.01
    again = fit_psychometric(levels, [24, 28, 32, 35, 37], total, guess=0.5, shape="dprime")
    assert again.deviance_p == fits[0].deviance_p


def test_tables_fit_as_the_fit_does() -> None:
    levels, correct, total = oracles.DATA["30 a level"]
    tables = psychometric_tables(levels, guess=0.5, shape="dprime")
    own = tables.threshold(correct, total, 0.75)
    fit = fit_psychometric(levels, correct, total, guess=0.5, shape="dprime").threshold(0.75)
    for name in ("value", "low", "high"):
        assert math.log(getattr(own, name) / getattr(fit, name)) == pytest.approx(0.0, abs=0.06), name
    assert tables.mass(correct, total).size > 10_000
    assert tables.mass(correct, total).sum() == pytest.approx(1.0)
