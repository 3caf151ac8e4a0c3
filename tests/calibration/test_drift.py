"""Psychometric fits with thresholds that change within a session."""

from __future__ import annotations

import math

import numpy as np
import pytest

from calibration.psychometric import fit_drift, fit_psychometric
from haptics.errors import ConfigurationError
from tests.calibration.drift_coverage import Case, cover, make_drift, simulate

LONG = Case("constant", 600)


def fit_of(kind, size=1.0, case=LONG, **options):
    rng = np.random.default_rng(5)
    drift = size * make_drift(kind, case.trials, 1, rng)
    levels, correct = simulate(case, drift, rng)
    return fit_drift(levels[0], correct[0], guess=0.5, shape="dprime", **options), drift[0], levels[0], correct[0]


def test_a_large_change_is_found_and_followed():
    fit, drift, *_ = fit_of("line", 2.0)
    assert fit.changes
    assert fit.bayes_factor > 100.0
    (course,) = fit.time_courses(0.75)
    true = LONG.truth * np.exp(drift[course.times.astype(int)])
    assert ((course.low <= true) & (true <= course.high)).all()
    assert abs(math.log(course.middle[-1] / course.middle[0]) - (drift[-1] - drift[0])) < 0.6


def test_no_change_is_reported_for_a_constant_threshold():
    fit, _, levels, correct = fit_of("none")
    assert not fit.changes
    usual = fit_psychometric(levels, correct.astype(int), np.ones(600), guess=0.5, shape="dprime", scale="log")
    assert fit.constant.threshold(0.75) == usual.threshold(0.75)
    both = fit.averaged.threshold(0.75)
    assert both.value == pytest.approx(usual.threshold(0.75).value, rel=0.05)
    assert both.high / both.low >= 0.98 * usual.threshold(0.75).high / usual.threshold(0.75).low


def test_sessions_have_separate_time_courses():
    case = Case("constant", 120)
    fit, *_ = fit_of("none", case=case, sessions=[1] * 60 + [2] * 60, times=[*range(60), *range(60)])
    assert [(one.session, len(one.times)) for one in fit.time_courses(0.75)] == [(1, 10), (2, 10)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"times": [2, 1]}, "times: must be finite and not decrease within a session"),
        ({"times": [1, math.nan]}, "times: must be finite"),
        ({"sessions": [1]}, "levels, sessions and times have 2, 1 and 2 rows"),
    ],
)
def test_invalid_columns_are_refused(options, words):
    with pytest.raises(ConfigurationError, match=words):
        fit_drift([0.1, 0.2], [1, 0], guess=0.5, **options)


def test_coverage_with_and_without_a_drift():
    case = Case("staircase", 60, proportion=0.85)
    for kind in ("none", "serial"):
        got = cover(case, kind, runs=6)
        assert got.averaged >= max(got.constant, 0.66)
