"""Power by drawn studies against the noncentral t distribution."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from apps.experiment.power.planning import Row, enough, plan
from apps.experiment.power.settings import PowerSettings
from haptics.errors import ConfigurationError

NUMBERS = (4, 8, 16, 32)


def people(mean: float, sd: float, count: int = 20_000, seed: int = 3) -> np.ndarray:
    """Return results whose mean and deviation are these exactly, normally distributed otherwise."""
    drawn = stats.norm.ppf((np.arange(count) + 0.5) / count)
    return np.random.default_rng(seed).permutation(mean + sd * drawn / drawn.std())


def closed_form(mean: float, sd: float, count: int, alpha: float) -> float:
    reach, noncentrality = stats.t.ppf(1.0 - 0.5 * alpha, count - 1), mean / sd * math.sqrt(count)
    return float(stats.nct.sf(reach, count - 1, noncentrality) + stats.nct.cdf(-reach, count - 1, noncentrality))


@pytest.mark.parametrize(("mean", "sd", "alpha"), [(math.log(1.3), 0.4, 0.05), (-0.2, 0.5, 0.05), (0.2, 0.2, 0.01)])
def test_power_of_a_difference_is_that_of_the_t_test(mean: float, sd: float, alpha: float) -> None:
    rows = plan(people(mean, sd), PowerSettings(participants=NUMBERS, alpha=alpha))
    for row in rows:
        expected = closed_form(mean, sd, row.participants, alpha)
        assert row.power == pytest.approx(expected, abs=0.03)
        assert row.low <= row.power <= row.high
        assert row.low - 0.02 <= expected <= row.high + 0.02
    assert [row.participants for row in rows] == list(NUMBERS)


def test_where_there_is_no_difference_as_many_are_found_as_alpha_says() -> None:
    assert [row.power for row in plan(people(0.0, 0.4), PowerSettings(participants=NUMBERS))] == pytest.approx(
        [0.05] * 4, abs=0.015
    )


def test_the_interval_is_as_wide_as_students_t_makes_it() -> None:
    for row in plan(people(0.3, 0.4), PowerSettings(participants=NUMBERS)):
        half = stats.t.ppf(0.975, row.participants - 1) * 0.4 / math.sqrt(row.participants)
        half *= stats.chi.mean(row.participants - 1) / math.sqrt(row.participants - 1)  # the deviation is estimated
        assert row.half_width == pytest.approx(math.expm1(half), rel=0.03)


def test_power_of_a_precision_is_how_often_the_interval_is_narrow_enough() -> None:
    settings = PowerSettings(question="precision", precision=0.25, participants=NUMBERS)
    for row in plan(people(-2.0, 0.4), settings):
        count = row.participants
        widest = math.log(1.25) * math.sqrt(count) / stats.t.ppf(0.975, count - 1) / 0.4
        assert row.power == pytest.approx(stats.chi2.cdf(widest**2 * (count - 1), count - 1), abs=0.03)


def test_the_same_people_make_the_same_plan() -> None:
    settings = PowerSettings(participants=(8,))
    assert plan(people(0.3, 0.4, 500), settings) == plan(people(0.3, 0.4, 500), settings)


def test_enough_are_as_many_as_have_the_power_from_there_on() -> None:
    rows = [
        Row(count, power, power, power, 0.1) for count, power in ((4, 0.5), (6, 0.81), (8, 0.79), (10, 0.85), (12, 0.9))
    ]
    assert enough(rows, 0.8) == 10
    assert enough(rows, 0.95) is None


@pytest.mark.parametrize("numbers", [(), (8, 4), (1, 4), (4.0, 8.0), "8"])
def test_numbers_that_cannot_be_are_refused(numbers: object) -> None:
    with pytest.raises(ConfigurationError, match=r"power\.participants = "):
        PowerSettings(participants=numbers)
