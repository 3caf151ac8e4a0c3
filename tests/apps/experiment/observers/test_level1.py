"""The observer of level 1 against closed forms and published figures."""

from __future__ import annotations

import json
import math
from collections import Counter
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from apps.experiment.observers import SimulatedObserver, make_observer
from apps.experiment.procedures import trial_seed
from apps.experiment.trial import TrialView
from haptics.errors import ConfigurationError

NORMAL = NormalDist()


def person(number: int = 1, **table: Any) -> SimulatedObserver:
    return make_observer({"spread": 0.0, **table}, seed=trial_seed(1, number, 0, 0, 1))


def pair(
    increment: float, reference: float = 1.0, order: int = 2, task: str = "discrimination", axis: str = "law.force"
):
    values = (reference, reference + increment)
    return TrialView(task, axis, reference, increment, values if order == 2 else values[::-1], order)


def single(task: str, level: float, reference: float = 0.0, axis: str = "law.force") -> TrialView:
    return TrialView(task, axis, reference, level, (reference + level,))


def share(observer: SimulatedObserver, trial: TrialView, response: str, count: int = 4000) -> float:
    rng = np.random.default_rng(8)
    return sum(observer.answer(trial, rng).response == response for _ in range(count)) / count


def near(probability: float, count: int = 4000) -> Any:
    """Return what a share of `count` answers equals, within 4 standard errors."""
    return pytest.approx(probability, abs=4.0 * math.sqrt(probability * (1.0 - probability) / count) + 1e-12)


def test_one_weber_fraction_gives_both_published_ones() -> None:
    """Jones, Hunter and Lafontaine (1997), viscosity: 19 % at 71 % correct, 34 % at 84 % by adjustment."""
    observer = person(weber=0.23, floor=0.0, lapse=0.0)
    assert observer.probability(pair(0.19 * 50.0, 50.0, axis="law.viscosity")) == pytest.approx(0.71, abs=0.005)
    assert observer.truth("law.viscosity", 50.0)["adjustment_sd"] / 50.0 == pytest.approx(0.34, abs=0.003)
    rng = np.random.default_rng(4)
    trial = single("adjustment", 20.0, 50.0, "law.viscosity")
    settings = np.array([float(observer.answer(trial, rng).response) for _ in range(4000)])
    assert settings.std() / 50.0 == pytest.approx(0.34, abs=0.015) and settings.mean() == pytest.approx(50.0, rel=0.02)
    assert observer.probability(pair(0.34 * 50.0, 50.0, axis="law.viscosity")) == pytest.approx(0.84, abs=0.005)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("axis", ["law.force", "law.viscosity", "element.stiffness", "element.mass"])
def test_the_increment_that_it_states_is_told_in_three_of_four(axis: str, order: int) -> None:
    observer = person(lapse=0.0)
    increment = observer.truth(axis, 3.0)["increment_75"]
    assert share(observer, pair(increment, 3.0, order, axis=axis), str(order)) == near(0.75)
    assert share(person(lapse=0.1), pair(increment, 3.0, order, axis=axis), str(order)) == near(0.1 + 0.8 * 0.75)


def test_usual_acuity_of_the_axes() -> None:
    observer = person()
    assert observer.truth("law.force", 2.0)["increment_75"] == pytest.approx(math.hypot(0.2, 0.05))
    assert observer.truth("law.viscosity", 10.0)["increment_75"] == pytest.approx(math.hypot(2.3, 1.0))
    assert observer.truth("law.force", 0.0)["weber_fraction_75"] is None
    json.dumps(observer.truth("law.force", 0.0), allow_nan=False)


def test_an_equal_pair_shows_the_order_bias() -> None:
    assert share(person(lapse=0.0, order_bias=0.5), pair(0.0), "2") == near(NORMAL.cdf(0.5))
    assert share(person(), pair(0.0), "2") == near(0.5)


def test_nothing_is_missed_that_is_easy_but_by_lapses() -> None:
    assert share(person(lapse=0.03), pair(5.0), "1") == near(0.03)
    assert share(person(lapse=0.0, weber=1e-6, floor=0.0), pair(0.01), "2") == 1.0


def test_yes_and_no_by_signal_detection() -> None:
    """d' of a stimulus alone is sqrt(2) times the z of a comparison: two intervals have 75 % at d' = 0.954."""
    observer = person(lapse=0.0, false_alarms=0.1)
    level = observer.truth("law.force", 0.0)["increment_75"]
    hits, alarms = (share(observer, single("detection", each), "yes", 8000) for each in (level, 0.0))
    assert alarms == near(0.1, 8000)
    assert NORMAL.inv_cdf(hits) - NORMAL.inv_cdf(alarms) == pytest.approx(0.954, abs=0.09)


def test_on_a_pedestal_the_increment_is_detected() -> None:
    observer = person(lapse=0.0, false_alarms=0.1)
    trial = single("detection", 0.2, 2.0)
    assert observer.probability(trial) == pytest.approx(
        observer.probability(single("detection", 0.2 * 0.05 / 0.2061553)), abs=1e-6
    )


def test_same_and_different_by_the_rule_of_differences() -> None:
    observer = person(lapse=0.0, false_alarms=0.2)
    assert share(observer, pair(0.0, task="same-different"), "different") == near(0.2)
    unit = observer.truth("law.force", 1.0)["increment_75"] / 0.67449
    rng = np.random.default_rng(2)
    differences = 1.3 + rng.standard_normal(400_000)
    expected = float((np.abs(differences) > NORMAL.inv_cdf(0.9)).mean())
    for order in (1, 2):
        trial = pair(1.3 * unit, order=order, task="same-different")
        assert observer.probability(trial) == pytest.approx(expected, abs=0.003)


def test_magnitudes_follow_a_power_law() -> None:
    observer, rng = person(exponent=1.4, estimate_spread=0.2), np.random.default_rng(6)
    values = np.repeat([0.5, 1.0, 2.0, 4.0], 500)
    numbers = np.log([float(observer.answer(single("estimation", value), rng).response) for value in values])
    slope, intercept = np.polyfit(np.log(values), numbers, 1)
    assert slope == pytest.approx(1.4, abs=0.03) and math.exp(intercept) == pytest.approx(observer.modulus, rel=0.03)
    assert (numbers - slope * np.log(values) - intercept).std() == pytest.approx(0.2, abs=0.015)


def test_reaction_times_are_log_normal() -> None:
    observer, rng = person(reaction_time=0.7, reaction_spread=0.25), np.random.default_rng(6)
    times = np.log([observer.answer(pair(0.1), rng).reaction_time for _ in range(3000)])
    assert math.exp(np.median(times)) == pytest.approx(0.7, rel=0.03) and times.std() == pytest.approx(0.25, abs=0.015)


def test_people_differ_by_as_much_as_was_said() -> None:
    factors = np.array([person(number, spread=0.3).acuity_factor for number in range(3000)])
    assert np.median(factors) == pytest.approx(1.0, abs=0.03)
    assert factors.std() / factors.mean() == pytest.approx(0.3, abs=0.02)
    truth = person(7, spread=0.3).truth("law.force", 2.0)
    assert truth["w75"] == pytest.approx(0.1 * factors[7]) and truth["floor"] == pytest.approx(0.05 * factors[7])


def test_the_same_seed_is_the_same_person_with_the_same_answers() -> None:
    def answers() -> list[Any]:
        observer, rng = person(3, spread=0.3), np.random.default_rng(1)
        return [observer.answer(pair(0.1), rng) for _ in range(50)]

    assert answers() == answers()
    assert Counter(answer.response for answer in answers()).keys() == {"1", "2"}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"weber": 0.0}, r"observer\.weber = 0\.0: must be a number greater than 0"),
        ({"floor": "low"}, r"observer\.floor = 'low': must be a number of at least 0"),
        ({"laps": 0.1}, "Did you mean 'observer.lapse'"),
        ({"level": 3}, r"observer\.level = 3"),
    ],
)
def test_what_nobody_is_like_is_refused(table: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        person(**table)


def test_an_axis_that_nobody_knows_needs_a_weber_fraction() -> None:
    with pytest.raises(ConfigurationError, match=r"observer\.weber is missing"):
        person().truth("law.stribeck_velocity", 0.1)
    assert person(weber=0.5).truth("law.stribeck_velocity", 0.1)["increment_75"] == pytest.approx(0.05)
