"""Power analysis: the command, simulated participants and tasks, closed forms, and threshold methods."""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from apps.experiment import command, power
from apps.experiment.observers import ROOT_2, Z75, different, phi, yes_criterion
from apps.experiment.power import Arm, Row, Study, enough, noticed_at, simulate_people
from apps.experiment.power import plan as plan_power
from apps.experiment.procedures.methods import make_procedure
from apps.experiment.settings import PowerSettings
from calibration import psychometric
from calibration.psychometric import fit_drift
from haptics.errors import ConfigurationError
from tests.processes import ROOT

FILE = """\
experiment = { name = "weber", task = "discrimination" }
session = { model = "C" }
device = { name = "virtual-joystick" }
law = { name = "coulomb" }
stimulus = { axis = "law.force" }

[[conditions]]
name = "low"
reference = 0.5
procedure = { minimum = 0.01, maximum = 1.0 }

[[conditions]]
name = "high"
reference = 2.0

[procedure]
kind = "quest+"
minimum = 0.04
maximum = 2.0
count = 16
thresholds = 20
trials = 30

[catch]
easy = 0.1

[trials]
interval = 3.0
gap = 0.5
block = 22
rest = 60.0

[exploration]
rest = 0.5

[power]
people = 60
participants = [8, 16]
"""


def plan(folder, *arguments, old="", new=""):
    """Run the command on the file with `old`, which must be in it, replaced."""
    assert old in FILE
    path = folder / "weber.toml"
    path.write_text(FILE.replace(old, new, 1), encoding="utf-8")
    parser = argparse.ArgumentParser()
    command.add_options(parser)
    return command.run(parser.parse_args(["power", str(path), "--workers", "1", *arguments]))


def test_plan_of_a_difference(tmp_path):
    answer = plan(tmp_path, "--ratio", "2")
    result: dict[str, Any] = json.loads(json.dumps(answer.result, allow_nan=False))
    assert result["truth"] == pytest.approx(2.0, rel=0.05) and result["found"] == pytest.approx(2.0, rel=0.25)
    assert result["trials"] == {"low": 30.0, "high": 30.0}
    few, many = result["power"]
    assert few["power"] < many["power"] > 0.8 and few["half_width"] > many["half_width"]
    assert result["enough"] in (8, 16) and f"{result['enough']} participants are enough" in answer.text
    assert "not people" in answer.text and "not people" in result["statement"]


def test_time_of_a_participant(tmp_path):
    """60 trials and their share of catch trials: two intervals with a rest before each, a gap, an answer; breaks."""
    result = plan(tmp_path, "--people", "20").result
    assert result["minutes"] == pytest.approx((60 / 0.9 * (2 * (3.0 + 0.5) + 0.5 + 0.6) + 3 * 60.0) / 60.0)


def test_plan_without_an_effect_has_no_power(tmp_path):
    answer = plan(tmp_path, "--ratio", "1", "--participants", "4,6")
    assert all(row["power"] < 0.3 for row in answer.result["power"]) and answer.result["enough"] is None
    assert "take more participants or trials" in answer.text


def test_plan_of_a_precision(tmp_path):
    answer = plan(tmp_path, old="[power]", new='[power]\nquestion = "precision"\nfirst = "high"\nprecision = 0.3')
    assert answer.result["truth"] == pytest.approx(math.hypot(0.2, 0.05) / 2.0, rel=0.15)
    assert list(answer.result["trials"]) == ["high"] and "within 30%" in answer.text


def test_threads_yield_the_same_plan(tmp_path):
    alone, threads = (
        plan(tmp_path, *more).result["power"] for more in ((), ("--executor", "threads", "--workers", "2"))
    )
    assert threads == alone


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("people = 60", "people = 6", r"weber\.toml:\d+: power\.people = 6: must be a whole number at least 20"),
        ("[power]", "[power]\nsecond = 'middle'", r"weber\.toml:\d+: .*unknown condition 'middle'"),
        ("[power]", "[power]\nfirst = 'high'\nsecond = 'high'", r"power\.second = 'high': must be another condition"),
        ("[power]", "[observer]\nlapse = 0.6\n[power]", r"weber\.toml:\d+: observer\.lapse = 0\.6"),
        ('"discrimination"', '"same-different"', r"weber\.toml:\d+: .*catch\.null = 0"),
        ('"discrimination"', '"estimation"', r"weber\.toml:\d+: .*ask for 'precision'"),
        (
            '"discrimination"',
            '"adjustment"',
            r"weber\.toml:\d+: .*does not measure the quantity of the task 'adjustment'",
        ),
    ],
)
def test_invalid_setting_is_refused_with_line_and_key(tmp_path, old, new, words):
    with pytest.raises(ConfigurationError, match=words):
        plan(tmp_path, old=old, new=new)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--participants", "8;12"), "--participants 8;12: must be whole numbers"),
        (("--workers", "-1"), "--workers -1"),
        (("--ratio", "0"), r"power\.ratio = 0"),
    ],
)
def test_invalid_option_is_refused(tmp_path, arguments, words):
    with pytest.raises(ConfigurationError, match=words):
        plan(tmp_path, *arguments)


QUEST: dict[str, Any] = {"kind": "quest+", "minimum": 0.02, "maximum": 2.0, "trials": 40, "count": 20, "thresholds": 20}
WEAK = Arm("weak", "discrimination", "law.force", 1.0, 1, QUEST)
STRONG = Arm("strong", "discrimination", "law.force", 4.0, 1, QUEST | {"minimum": 0.08, "maximum": 8.0})
STUDY = Study((WEAK, STRONG), {"spread": 0.3}, "dprime", 0.75, 5)


def test_simulated_person_does_not_depend_on_others():
    together = simulate_people(STUDY, 0, 6)
    assert (simulate_people(STUDY, 4, 1)[0] == together[4]).all()
    assert not (together[3] == together[4]).all()
    assert not (simulate_people(replace(STUDY, seed=6), 4, 1)[0] == together[4]).all()


def test_effect_size_is_recovered():
    study = replace(STUDY, arms=(WEAK, replace(WEAK, name="harder", factor=1.5, spread=0.1)))
    found = simulate_people(study, 0, 120)
    truth, estimates = (found[:, 1, k] - found[:, 0, k] for k in (1, 0))
    assert truth.mean() == pytest.approx(math.log(1.5), abs=0.04) and truth.std() == pytest.approx(0.1, abs=0.03)
    assert estimates.mean() == pytest.approx(math.log(1.5), abs=4.0 * estimates.std() / math.sqrt(120))


def test_tracks_of_a_condition_are_fitted_together():
    one, three = (simulate_people(replace(STUDY, arms=(replace(WEAK, tracks=n),)), 0, 25)[:, 0] for n in (1, 3))
    assert set(one[:, 2]) == {40.0} and set(three[:, 2]) == {120.0}
    assert (three[:, 0] - three[:, 1]).std() < 0.8 * (one[:, 0] - one[:, 1]).std()


def test_threshold_depends_on_the_proportion():
    low, high = (simulate_people(replace(STUDY, proportion=p), 0, 12)[:, 0] for p in (0.71, 0.84))
    assert (high[:, 1] - low[:, 1]) == pytest.approx(math.log(0.9945 / 0.5534), abs=1e-3)
    assert (high[:, 0] > low[:, 0]).all()


ADJUSTMENT = {"kind": "adjustment", "starts": [0.5, 2.0], "repeats": 10}
ESTIMATION = {"kind": "estimation", "levels": [0.5, 1.0, 2.0, 4.0], "repeats": 5}


def task_study(task, procedure, observer, null=0.0):
    arm = Arm("one", task, "law.force", 1.0, 1, procedure, null=null)
    return Study((arm,), {"level": 1, "weber": 0.2, "floor": 0.0, **observer}, "dprime", 0.75, 3)


def yes(z, alarms):
    """Return the probability of yes to a stimulus of strength z."""
    return phi(ROOT_2 * z - yes_criterion(alarms))


@pytest.mark.parametrize(("task", "rule"), [("detection", yes), ("same-different", different)])
@pytest.mark.parametrize("alarms", [0.05, 0.3])
def test_noticed_level_corresponds_to_the_proportion(task, rule, alarms):
    """75 % of the trials without a guess are noticed: the proportion corrected for guessing."""
    said = rule(noticed_at(task, 0.75, alarms) * Z75, alarms)
    assert (said - alarms) / (1.0 - alarms) == pytest.approx(0.75, abs=1e-9)


def test_spread_of_adjustments_is_recovered():
    found = simulate_people(task_study("adjustment", ADJUSTMENT, {}), 0, 400)[:, 0]
    assert (found[:, 2] == 20).all() and np.std(found[:, 1]) > 0.1, "people differ"
    assert math.exp(float(np.mean(found[:, 0] - found[:, 1]))) == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize("exponent", [1.4, -0.8])
def test_size_of_the_exponent_of_estimates_is_recovered(exponent):
    found = simulate_people(task_study("estimation", ESTIMATION, {"exponent": exponent}), 0, 40)[:, 0]
    assert np.exp(found[:, 1]) == pytest.approx(abs(exponent))
    assert math.exp(float(np.mean(found[:, 0]))) == pytest.approx(abs(exponent), rel=0.03)


def test_drift_is_simulated():
    """A change that takes much longer than the session moves the whole threshold of the session."""
    table = {"spread": 0.0, "drift": 0.8, "drift_trials": 1e5}
    study = Study((replace(WEAK, tracks=3, stride=2),), table, "dprime", 0.75, 5)
    found, without = (simulate_people(one, 0, 60)[:, 0] for one in (study, replace(study, observer={"spread": 0.0})))
    assert (found[:, 1] == without[:, 1]).all(), "the truth is the usual threshold"
    assert np.std(without[:, 0]) < 0.3 and np.std(found[:, 0]) == pytest.approx(0.8, rel=0.2)


def test_declared_drift_is_fitted(tmp_path):
    """The file declares the model of a threshold that drifts; it recovers the threshold also without a drift."""
    text = '[analysis]\ndrift = "auto"\n\n[power]\nquestion = "precision"'
    answer = plan(tmp_path, "--people", "20", old="[power]", new=text)
    assert answer.result["drift"] == "auto" and "threshold that may change within a session" in answer.text
    assert answer.result["found"] == pytest.approx(answer.result["truth"], rel=0.2)
    plain = plan(tmp_path, "--people", "20", old="[power]", new='[power]\nquestion = "precision"')
    assert "drift" not in plain.result and plain.result["found"] != answer.result["found"]


def test_drift_is_fitted_to_the_trials_in_their_order(monkeypatch):
    """As in the report: two interleaved tracks, two sessions, and the trials without a stimulus among the others."""
    fitted = []

    def recorded(levels, correct, **named):
        fitted.append((levels, correct, named))
        return fit_drift(levels, correct, **named)

    monkeypatch.setattr(psychometric, "fit_drift", recorded)
    procedure = QUEST | {"trials": 12, "minimum": 0.05}
    arm = Arm("one", "detection", "law.force", 1.0, 2, procedure, null=0.2, stride=3, sessions=2)
    study = Study((arm,), {"level": 1}, "dprime", 0.75, 3, drift=True)
    simulate_people(study, 0, 1)
    ((levels, correct, named),) = fitted
    sessions, times = named["sessions"], named["times"]
    assert len(levels) == len(correct) == len(times) == 60 and named["guess"] == "free"
    assert list(zip(sessions, times, strict=True)) == sorted(zip(sessions, times, strict=True))
    for session in (0, 1):
        of_session = [k for k in range(60) if sessions[k] == session]
        assert sum(levels[k] == 0.0 for k in of_session) == 6, "a share of 0.2"
        assert {times[k] for k in of_session} == {track + 3 * k for track in (1, 2) for k in range(12)}


FAR = {"kind": "staircase", "start": 4.0, "minimum": 0.02, "maximum": 4.0, "reversals": 8, "most_trials": 60}


@pytest.mark.parametrize("procedure", [FAR, QUEST | {"trials": 20}])
def test_sessions_begin_with_the_threshold_of_the_training(procedure, monkeypatch):
    """The trials of the training are not analysed, and its threshold is that with which the next session begins."""
    begun = []

    def recorded(*arguments, **named):
        begun.append((named["carried"], make_procedure(*arguments, **named)))
        return begun[-1][1]

    monkeypatch.setattr(power, "make_procedure", recorded)
    arm = replace(WEAK, procedure=procedure, tracks=2, sessions=3, training=(1,), carried=0.4)
    (found,) = simulate_people(replace(STUDY, arms=(arm,)), 0, 1)[:, 0]
    assert [carried is None for carried, _ in begun] == [True] * 2 + [False] * 4
    for (_, earlier), (carried, _) in zip(begun, begun[2:], strict=False):
        assert carried.level == earlier.report()["estimate"]
        log_sd = earlier.report()["log_sd"] if procedure["kind"] == "quest+" else 0.0
        assert carried.spread == pytest.approx(math.hypot(0.4, log_sd))
    assert found[2] == sum(procedure.trials for _, procedure in begun[2:])
    begun.clear()
    simulate_people(replace(STUDY, arms=(replace(arm, carried=0.0),)), 0, 1)
    assert [carried for carried, _ in begun] == [None] * 6


NUMBERS = (4, 8, 16, 32)


def normal_results(mean, sd, count=20_000, seed=3):
    """Return normally distributed results with an exact mean and deviation."""
    drawn = stats.norm.ppf((np.arange(count) + 0.5) / count)
    return np.random.default_rng(seed).permutation(mean + sd * drawn / drawn.std())


def closed_form(mean, sd, count, alpha):
    reach, noncentrality = stats.t.ppf(1.0 - 0.5 * alpha, count - 1), mean / sd * math.sqrt(count)
    return float(stats.nct.sf(reach, count - 1, noncentrality) + stats.nct.cdf(-reach, count - 1, noncentrality))


@pytest.mark.parametrize(
    ("mean", "sd", "alpha"), [(math.log(1.3), 0.4, 0.05), (-0.2, 0.5, 0.05), (0.2, 0.2, 0.01), (0.0, 0.4, 0.05)]
)
def test_power_of_a_difference_agrees_with_the_t_test(mean, sd, alpha):
    rows = plan_power(normal_results(mean, sd), PowerSettings(participants=NUMBERS, alpha=alpha))
    for row in rows:
        expected = closed_form(mean, sd, row.participants, alpha)
        assert row.power == pytest.approx(expected, abs=0.03 if mean else 0.015)  # the level alpha without an effect
        assert row.low <= row.power <= row.high
        assert row.low - 0.02 <= expected <= row.high + 0.02
    assert [row.participants for row in rows] == list(NUMBERS)


def test_interval_width_agrees_with_student_t():
    for row in plan_power(normal_results(0.3, 0.4), PowerSettings(participants=NUMBERS)):
        half = stats.t.ppf(0.975, row.participants - 1) * 0.4 / math.sqrt(row.participants)
        half *= stats.chi.mean(row.participants - 1) / math.sqrt(row.participants - 1)  # the deviation is estimated
        assert row.half_width == pytest.approx(math.expm1(half), rel=0.03)


def test_power_of_a_precision_agrees_with_chi_squared():
    settings = PowerSettings(question="precision", precision=0.25, participants=NUMBERS)
    for row in plan_power(normal_results(-2.0, 0.4), settings):
        count = row.participants
        widest = math.log(1.25) * math.sqrt(count) / stats.t.ppf(0.975, count - 1) / 0.4
        assert row.power == pytest.approx(stats.chi2.cdf(widest**2 * (count - 1), count - 1), abs=0.03)


@pytest.mark.parametrize(("shares", "ratio"), [((1, 3), 1.4), ((1, 1), 1.0)])
def test_power_of_groups_agrees_with_welch_test(shares, ratio):
    pair = np.column_stack([normal_results(0.0, 0.3), normal_results(math.log(ratio), 0.5, seed=4)])
    rng = np.random.default_rng(6)
    for row in plan_power(pair, PowerSettings(question="groups", participants=(16, 48)), shares):
        second = row.participants * shares[1] // sum(shares)
        samples = rng.normal(0.0, 0.3, (8000, row.participants - second)), rng.normal(0.0, 0.5, (8000, second))
        found = stats.ttest_ind(samples[0], samples[1] + math.log(ratio), axis=1, equal_var=False)
        assert row.power == pytest.approx(np.mean(found.pvalue < 0.05), abs=0.03 if ratio > 1.0 else 0.015)


def test_enough_requires_the_power_from_there_on():
    rows = [
        Row(count, power, power, power, 0.1) for count, power in ((4, 0.5), (6, 0.81), (8, 0.79), (10, 0.85), (12, 0.9))
    ]
    assert enough(rows, 0.8) == 10
    assert enough(rows, 0.95) is None


@pytest.mark.parametrize("numbers", [(), (8, 4), (1, 4), (4.0, 8.0), "8"])
def test_invalid_participant_numbers_are_refused(numbers):
    with pytest.raises(ConfigurationError, match=r"power\.participants = "):
        PowerSettings(participants=numbers)


EXAMPLE = ROOT / "examples" / "threshold_methods.py"


def test_scatter_at_the_best_level_reaches_the_bound():
    """Estimates from the proportion correct at one level are asymptotically unbiased and reach the bound."""
    found = importlib.util.spec_from_file_location("threshold_methods", EXAMPLE)
    study = importlib.util.module_from_spec(found)
    found.loader.exec_module(study)
    lapse, trials = 0.02, 4000
    z, bound = study.best(lapse)
    assert all(study.information(z, lapse) >= study.information(other * z, lapse) for other in (0.5, 0.95, 1.05, 2.0))
    p = lapse + (1.0 - 2.0 * lapse) * study.NORMAL.cdf(z)
    shares = np.random.default_rng(1).binomial(trials, p, 4000) / trials
    logs = [math.log(study.NORMAL.inv_cdf((share - lapse) / (1.0 - 2.0 * lapse))) for share in shares]
    assert np.std(logs) == pytest.approx(bound / math.sqrt(trials), rel=0.05)
    assert study.best(0.0)[1] == pytest.approx(1.282, abs=1e-3)  # by hand: z = 1.575, P = 0.942, I = 0.608
