"""Answers that cannot be are refused in words that name the row."""

from __future__ import annotations

import math
from typing import Any

import pytest

from calibration.psychometric import (
    Estimate,
    RatePrior,
    WidthPrior,
    detectability,
    fit_psychometric,
    group_estimate,
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
from haptics.errors import ConfigurationError

GOOD = ([0.1, 0.2], [5, 9], [10, 10])


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (([], [], []), "no trials to fit"),
        (([0.1, 0.2], [0, 0], [0, 0]), "no trials to fit"),
        (([0.1, math.nan], [1, 1], [2, 2]), "levels = nan in row 2"),
        (([0.1, 0.2], [1, math.inf], [2, 2]), "correct = inf in row 2"),
        (([0.1, 0.2], [1, 3], [2, 2]), r"correct = 3 in row 2 \(of 2\)"),
        (([0.1, 0.2], [1, -1], [2, 2]), "correct = -1 in row 2"),
        (([0.1, 0.2], [1, 1], [2, 2.5]), "total = 2.5 in row 2"),
        (([0.1, 0.2], [1, 1], [2]), "2, 2, 1 rows"),
        ((["a"], [1], [1]), "levels: holds something that is no number"),
        (([[0.1]], [1], [1]), "2 dimensions"),
        (([0.0, 0.0], [1, 1], [2, 2]), "All levels are 0"),
        (([-0.1, 0.2], [1, 1], [2, 2]), "levels = -0.1: has no logarithm"),
    ],
)
def test_answers_that_cannot_be_are_refused(columns: tuple[Any, Any, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        fit_psychometric(*columns, guess=0.5, scale="log")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"guess": 1.0}, "guess = 1.0"),
        ({"guess": "some"}, 'guess = .some.: must be a number, "lapse" or "free"'),
        ({"guess": 0.5, "shape": "probit"}, "shape = 'probit': must be one of phi"),
        ({"guess": 0.5, "scale": "dB"}, "scale = 'dB'"),
        ({"guess": 0.5, "lapse_prior": 0.7}, "lapse_prior = 0.7"),
    ],
)
def test_options_that_are_not_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        fit_psychometric(*GOOD, **options)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda fit: fit.threshold(0.5), r"greater than what is guessed \(0.5\)"),
        (lambda fit: fit.threshold(0.75, 1.0), "probability = 1.0"),
        (pse, 'fit "the comparison is more" with guess="lapse"'),
        (lambda fit: weber_fraction(fit, 0.0, 0.75), "reference = 0.0"),
        (lambda _: jnd(fit_psychometric(*GOOD, guess="lapse"), 0.4), "proportion = 0.4"),
        (lambda _: RatePrior(0.0, 1.0), "must be greater than 0"),
        (lambda _: WidthPrior(1.0, 0.0), "greater than 0"),
        (lambda _: detectability(0, 0, 1, 1), "0 of 0"),
        (lambda _: detectability(1, 1, 1, 1, task="oddity"), "must be one of yes-no"),  # type: ignore[arg-type]
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
def test_questions_without_an_answer_are_refused(act: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        act(fit_psychometric(*GOOD, guess=0.5))
