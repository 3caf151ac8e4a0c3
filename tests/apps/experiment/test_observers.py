"""Simulated observers of levels 1 and 2 against closed forms and published figures."""

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

from apps.experiment.design import read_design
from apps.experiment.journal import Journal
from apps.experiment.observers import felt_force, highest, make_observer
from apps.experiment.procedures.methods import trial_seed
from apps.experiment.session.running import Request, run_session
from apps.experiment.trial import TrialView
from haptics.errors import ConfigurationError
from haptics.records import ROW
from tests.apps.experiment.designs import WEBER, changed

NORMAL = NormalDist()


def person(number=1, **table):
    return make_observer({"spread": 0.0, **table}, seed=trial_seed(1, number, 0, 0, 1))


def pair(increment, reference=1.0, order=2, task="discrimination", axis="law.force"):
    values = (reference, reference + increment)
    return TrialView(task, axis, reference, increment, values if order == 2 else values[::-1], order)


def single(task, level, reference=0.0, axis="law.force"):
    return TrialView(task, axis, reference, level, (reference + level,))


def share(observer, trial, response, count=4000):
    rng = np.random.default_rng(8)
    return sum(observer.answer(trial, rng).response == response for _ in range(count)) / count


def near(probability, count=4000):
    """Approximate a share of `count` answers within 4 standard errors."""
    return pytest.approx(probability, abs=4.0 * math.sqrt(probability * (1.0 - probability) / count) + 1e-12)


def test_weber_fraction_reproduces_published_values():
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
def test_stated_increment_is_detected_in_75_percent(axis, order):
    observer = person(lapse=0.0)
    increment = observer.truth(axis, 3.0)["increment_75"]
    assert share(observer, pair(increment, 3.0, order, axis=axis), str(order)) == near(0.75)
    assert share(person(lapse=0.1), pair(increment, 3.0, order, axis=axis), str(order)) == near(0.1 + 0.8 * 0.75)


def test_default_acuity_of_the_axes():
    observer = person()
    assert observer.truth("law.force", 2.0)["increment_75"] == pytest.approx(math.hypot(0.2, 0.05))
    assert observer.truth("law.viscosity", 10.0)["increment_75"] == pytest.approx(math.hypot(2.3, 1.0))
    assert observer.truth("law.force", 0.0)["weber_fraction_75"] is None
    json.dumps(observer.truth("law.force", 0.0), allow_nan=False)


def test_equal_pair_shows_the_order_bias():
    assert share(person(lapse=0.0, order_bias=0.5), pair(0.0), "2") == near(NORMAL.cdf(0.5))
    assert share(person(), pair(0.0), "2") == near(0.5)


def test_easy_pair_is_missed_only_by_lapses():
    assert share(person(lapse=0.03), pair(5.0), "1") == near(0.03)
    assert share(person(lapse=0.0, weber=1e-6, floor=0.0), pair(0.01), "2") == 1.0


def test_detection_follows_signal_detection_theory():
    """d' of a stimulus alone is sqrt(2) times the z of a comparison: two intervals have 75 % at d' = 0.954."""
    observer = person(lapse=0.0, false_alarms=0.1)
    level = observer.truth("law.force", 0.0)["increment_75"]
    hits, alarms = (share(observer, single("detection", each), "yes", 8000) for each in (level, 0.0))
    assert alarms == near(0.1, 8000)
    assert NORMAL.inv_cdf(hits) - NORMAL.inv_cdf(alarms) == pytest.approx(0.954, abs=0.09)


def test_increment_on_a_pedestal_is_detected():
    observer = person(lapse=0.0, false_alarms=0.1)
    trial = single("detection", 0.2, 2.0)
    assert observer.probability(trial) == pytest.approx(
        observer.probability(single("detection", 0.2 * 0.05 / 0.2061553)), abs=1e-6
    )


def test_same_different_follows_the_differencing_rule():
    observer = person(lapse=0.0, false_alarms=0.2)
    assert share(observer, pair(0.0, task="same-different"), "different") == near(0.2)
    unit = observer.truth("law.force", 1.0)["increment_75"] / 0.67449
    rng = np.random.default_rng(2)
    differences = 1.3 + rng.standard_normal(400_000)
    expected = float((np.abs(differences) > NORMAL.inv_cdf(0.9)).mean())
    for order in (1, 2):
        trial = pair(1.3 * unit, order=order, task="same-different")
        assert observer.probability(trial) == pytest.approx(expected, abs=0.003)


def test_magnitude_estimates_follow_a_power_law():
    observer, rng = person(exponent=1.4, estimate_spread=0.2), np.random.default_rng(6)
    values = np.repeat([0.5, 1.0, 2.0, 4.0], 500)
    numbers = np.log([float(observer.answer(single("estimation", value), rng).response) for value in values])
    slope, intercept = np.polyfit(np.log(values), numbers, 1)
    assert slope == pytest.approx(1.4, abs=0.03) and math.exp(intercept) == pytest.approx(observer.modulus, rel=0.03)
    assert (numbers - slope * np.log(values) - intercept).std() == pytest.approx(0.2, abs=0.015)


def test_estimates_fall_with_a_negative_exponent_that_differs_between_people():
    exponents = [person(number, exponent=-0.8, exponent_spread=0.4).exponent for number in range(400)]
    assert max(exponents) < 0.0 and np.median(exponents) == pytest.approx(-0.8, rel=0.1)
    assert np.std(np.log(np.negative(exponents))) == pytest.approx(math.sqrt(math.log1p(0.16)), rel=0.15)
    observer, rng = person(exponent=-0.8), np.random.default_rng(6)
    numbers = [observer.answer(single("estimation", value), rng).response for value in (0.001, 0.01)]
    assert numbers[0] > 3.0 * numbers[1] > 0.0
    with pytest.raises(ConfigurationError, match=r"observer\.exponent = 0"):
        person(exponent=0.0)


def test_threshold_drifts_in_a_sine_about_the_usual_one():
    observer = person(drift=0.35, drift_trials=80.0, lapse=0.0)
    logs = np.log([observer.drift_factor(number) for number in range(1, 81)])
    assert logs.mean() == pytest.approx(0.0, abs=1e-9) and logs.std() == pytest.approx(0.35)
    assert observer.truth("law.force", 1.0) == person(lapse=0.0).truth("law.force", 1.0) | {"drift": 0.35}
    for number in (int(np.argmin(logs)) + 1, int(np.argmax(logs)) + 1):
        raised = observer.drift_factor(number) * observer.truth("law.force", 1.0)["increment_75"]
        assert observer.probability(replace(pair(raised), number=number)) == pytest.approx(0.75)


def test_reaction_times_are_log_normal():
    observer, rng = person(reaction_time=0.7, reaction_spread=0.25), np.random.default_rng(6)
    times = np.log([observer.answer(pair(0.1), rng).reaction_time for _ in range(3000)])
    assert math.exp(np.median(times)) == pytest.approx(0.7, rel=0.03) and times.std() == pytest.approx(0.25, abs=0.015)


def test_acuity_varies_between_people_as_configured():
    factors = np.array([person(number, spread=0.3).acuity_factor for number in range(3000)])
    assert np.median(factors) == pytest.approx(1.0, abs=0.03)
    assert factors.std() / factors.mean() == pytest.approx(0.3, abs=0.02)
    truth = person(7, spread=0.3).truth("law.force", 2.0)
    assert truth["w75"] == pytest.approx(0.1 * factors[7]) and truth["floor"] == pytest.approx(0.05 * factors[7])


def test_answers_are_determined_by_the_seed():
    def answers():
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
def test_invalid_observer_setting_is_refused(table, words):
    with pytest.raises(ConfigurationError, match=words):
        person(**table)


def test_unknown_axis_requires_a_weber_fraction():
    with pytest.raises(ConfigurationError, match=r"observer\.weber is missing"):
        person().truth("law.stribeck_velocity", 0.1)
    assert person(weber=0.5).truth("law.stribeck_velocity", 0.1)["increment_75"] == pytest.approx(0.05)


def feeling_person(**table):
    return make_observer({"level": 2, "spread": 0.0, "lapse": 0.0, **table}, seed=trial_seed(1, "P", 0, 0, 1))


def strokes(force, *, viscosity=0.0, ticks=800, known=True, rest=0):
    """Return rows of strokes to and fro in a slanted direction, 2 Hz; first `rest` ticks without motion."""
    rows = np.zeros(ticks, ROW)
    rows["time"] = np.arange(ticks) * 1e-3
    speed = 0.15 * np.sin(4.0 * np.pi * rows["time"]) * (np.arange(ticks) >= rest)
    direction = np.array([0.8, -0.6])
    rows["velocity"] = speed[:, None] * direction
    friction = (force * np.sign(speed) + viscosity * speed)[:, None] * direction
    rows["hand_force"] = friction if known else math.nan
    rows["friction_force"] = friction if not known else 77.0
    rows["gate"] = np.minimum(np.arange(ticks) / 50.0, 1.0)
    return rows


def correct(observer, first, second, axis="law.force", reference=2.0):
    """Return the share of answers that the second is stronger."""
    trial = TrialView("discrimination", axis, reference, 1.0, (reference, 9.9), 2, (first, second))
    rng = np.random.default_rng(12)
    return sum(observer.answer(trial, rng).response == "2" for _ in range(800)) / 800


@pytest.mark.parametrize("known", [True, False], ids=["hand", "computed"])
def test_force_observer_detects_the_increment_of_level_1(known):
    """Within 4 standard errors and the Weber noise of the comparison, which is the stronger of the two."""
    observer = feeling_person()
    increment = observer.truth("law.force", 2.0)["increment_75"]
    weak, strong = strokes(2.0, known=known), strokes(2.0 + increment, known=known)
    assert correct(observer, weak, strong) == pytest.approx(0.745, abs=0.06)
    assert correct(observer, strong, weak) == pytest.approx(0.255, abs=0.06)


def test_force_observer_ignores_the_asked_values():
    assert correct(feeling_person(), strokes(2.0), strokes(2.0)) == pytest.approx(0.5, abs=0.07)


def test_short_sliding_impairs_answers():
    observer = feeling_person()
    increment = observer.truth("law.force", 2.0)["increment_75"]
    short = correct(observer, strokes(2.0, ticks=110, rest=60), strokes(2.0 + increment, ticks=110, rest=60))
    assert 0.5 < short < 0.68
    assert correct(observer, strokes(2.0, ticks=40), strokes(5.0, ticks=40)) == 0.0  # gate never up: nothing is felt


def test_viscosity_is_force_over_speed():
    observer = feeling_person(floor=0.0)
    weak, strong = strokes(0.0, viscosity=20.0), strokes(0.0, viscosity=20.0 * 1.23)
    assert correct(observer, weak, strong, "law.viscosity", 20.0) == pytest.approx(0.745, abs=0.06)
    rng = np.random.default_rng(1)
    trial = TrialView("estimation", "law.viscosity", 0.0, 20.0, (20.0,), None, (weak,))
    assert np.mean([observer.felt_stimulus(trial, weak, rng) for _ in range(300)]) == pytest.approx(20.0, rel=0.03)


def test_static_force_is_the_highest_force():
    rows = strokes(1.0)
    peaked = rows.copy()
    peaked["hand_force"][300:340] *= 3.0
    observer = feeling_person()
    assert correct(observer, rows, peaked, "law.static_force", 1.0) > 0.97
    assert highest(np.array([1.0, 1.0, 4.0, 2.0, 1.0]), 2) == pytest.approx(3.0)


def test_felt_force_opposes_the_motion():
    force, speed, period = felt_force(strokes(2.0), 0.02)
    assert np.allclose(force, 2.0) and speed.min() > 0.02 and period == pytest.approx(1e-3)
    assert len(force) < 760  # neither the ramp of the gate nor the turns


def test_force_observer_has_the_configured_false_alarms():
    observer = feeling_person(false_alarms=0.1)
    level = observer.truth("law.force", 0.0)["increment_75"]
    rates = []
    for force in (0.0, level):
        trial = TrialView("detection", "law.force", 0.0, force, (force,), None, (strokes(force),))
        rng = np.random.default_rng(3)
        rates.append(sum(observer.answer(trial, rng).response == "yes" for _ in range(800)) / 800)
    assert rates[0] == pytest.approx(0.1, abs=0.043)
    normal = NormalDist()
    assert normal.inv_cdf(rates[1]) > normal.inv_cdf(rates[0]) + 0.5


def test_force_observer_judges_same_and_different():
    observer = feeling_person(false_alarms=0.2)
    rng = np.random.default_rng(3)

    def share(second):
        trial = TrialView("same-different", "law.force", 2.0, 0.0, (2.0, 2.0), 2, (strokes(2.0), second))
        return sum(observer.answer(trial, rng).response == "different" for _ in range(500)) / 500

    assert share(strokes(2.0)) == pytest.approx(0.2, abs=0.07)
    assert share(strokes(3.0)) > 0.9


def test_force_observer_requires_rows_and_a_known_axis():
    rng = np.random.default_rng(1)
    with pytest.raises(ConfigurationError, match=r"has none; take observer\.level = 1"):
        feeling_person().answer(TrialView("discrimination", "law.force", 1.0, 0.1, (1.0, 1.1), 2), rng)
    rows = (strokes(1.0), strokes(1.0))
    with pytest.raises(ConfigurationError, match=r"does not know how element\.mass is felt"):
        feeling_person().answer(TrialView("discrimination", "element.mass", 1.0, 0.1, (1.0, 1.1), 2, rows), rng)


ONE_CONDITION = WEBER.replace('[[conditions]]\nname = "2 N"\nreference = 2.0\nprocedure = { most_trials = 3 }\n', "")
PROCEDURE = ONE_CONDITION[ONE_CONDITION.index("[procedure]") : ONE_CONDITION.index("[catch]")]


def session(folder, level, observer):
    """Return the responses of a session with 16 trials at one level on 1 N."""
    procedure = (
        f'[procedure]\nkind = "series"\nlevel = {level}\ntrials = 16\n\n[observer]\n{observer}\nspread = 0.0\n\n'
    )
    file = changed(folder, PROCEDURE, procedure, ONE_CONDITION.replace("easy = 0.2", "easy = 0.0"))
    result = run_session(read_design(file), Request("P01", 1, 7, folder / "out", {}, simulated=True))
    records = Journal.read(Path(result["folder"]))
    return [record for record in records if record["record"] == "response"]


def test_force_observer_guesses_without_a_difference(tmp_path):
    responses = session(tmp_path, 1e-6, "level = 2\nlapse = 0.0")
    assert 3 <= sum(response["correct"] for response in responses) <= 13
