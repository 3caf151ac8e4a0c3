"""What the report finds in sessions of every task, and what it leaves out."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from apps.experiment.journal import Journal, SessionFolder
from apps.experiment.report.analysis import analyse, staircase_percent
from apps.experiment.report.group import analyse_group
from apps.experiment.report.results import PersonResult
from apps.experiment.report.sessions import Experiment, read_experiment
from apps.experiment.report.settings import AnalysisSettings
from haptics.errors import ConfigurationError, RecordingError
from tests.apps.experiment.report.sittings import QUEST, design, header, write_session


def found_in(folder: Path, **settings: Any) -> tuple[Experiment, list[PersonResult]]:
    experiment = read_experiment([folder])
    chosen = AnalysisSettings(**settings)
    return experiment, [analyse(experiment, person, chosen) for person in experiment.people]


def test_a_weber_function_is_recovered_with_its_truth_beside(weber: Path) -> None:
    experiment, people = found_in(weber)
    assert [one.code for one in people] == ["P01", "P02", "P03"]
    assert experiment.simulated
    told = [one for person in people for condition in person.conditions for one in condition.differences]
    assert [condition.reference for condition in people[0].conditions] == [1.0, 2.0]
    assert sum(bool(one.holds_truth) for one in told) >= 4  # of 6; coverage itself is tested with the fits
    for one in told:
        assert one.percent == 75.0
        assert one.weber is not None
        assert one.true_weber == pytest.approx(0.12, rel=0.7)
    assert len({one.true_weber for one in told}) == 6  # every simulated person and reference has its own
    group = analyse_group(experiment, people, AnalysisSettings())
    assert [(one.reference, one.simulated) for one in group.conditions] == [(1.0, 3), (2.0, 3)]
    for one in group.conditions:
        assert one.weber is not None
        assert one.weber.mean.low <= one.weber.mean.value <= one.weber.mean.high


def test_only_trials_that_count_are_fitted(weber: Path) -> None:
    experiment, people = found_in(weber)
    for person, result in zip(experiment.people, people, strict=True):
        assert [len(one.rows) for one in result.conditions] == [30, 30]
        assert result.catches.easy == len(person.of_kind("catch-easy")) > 0
        assert result.catches.null > 0
        assert result.catches.lapse is not None
        assert all(one.fit is not None and one.fit.answers.trials == 30 for one in result.conditions)


def test_the_procedure_says_the_same_as_in_the_session(weber: Path) -> None:
    _, people = found_in(weber)
    for condition in people[0].conditions:
        (procedure,) = condition.procedures
        assert procedure["trials"] == 30
        assert procedure["target_percent"] == pytest.approx(75.0)
        assert condition.fit is not None
        fitted = condition.fit.threshold(0.75)
        assert math.log(procedure["estimate"] / fitted.value) == pytest.approx(0.0, abs=1.0)


def test_a_difference_has_the_percentage_that_was_asked_for(weber: Path) -> None:
    _, people = found_in(weber, percent=(71.0, 84.0))
    for condition in people[0].conditions:
        low, high = condition.differences
        assert (low.percent, high.percent) == (71.0, 84.0)
        assert low.jnd.value <= high.jnd.value
        assert low.true_jnd is not None
        assert high.true_jnd is not None
        assert high.true_jnd / low.true_jnd == pytest.approx(0.9945 / 0.5534, rel=1e-3)  # z of 84 and 71 %


def test_reversals_are_those_of_the_staircase(tmp_path: Path) -> None:
    table = {"kind": "staircase", "start": 0.5, "minimum": 0.02, "maximum": 1.0, "trials": 20, "reversals": 6}
    write_session(tmp_path, tables=design(references=(1.0,), procedure=table, catch={}))
    experiment, (person,) = found_in(tmp_path)
    (procedure,) = person.conditions[0].procedures
    rows = person.conditions[0].rows
    assert len(procedure["reversals"]) >= 6
    for one in procedure["reversals"]:
        assert rows[one["trial"] - 1]["level"] == one["level"]
        assert bool(rows[one["trial"] - 1]["correct"]) is (one["direction"] == "down")
    assert staircase_percent(experiment) == [pytest.approx(procedure["target_percent"], abs=0.01)]


def test_magnitude_estimates_give_the_exponent(tmp_path: Path) -> None:
    table = {"kind": "estimation", "levels": [0.5, 1.0, 2.0, 4.0], "repeats": 6}
    tables = design("estimation", (1.0,), procedure=table, catch={}, observer={"exponent": 1.4, "weber": 0.1})
    for code in ("P01", "P02"):
        write_session(tmp_path, code, tables)
    experiment, people = found_in(tmp_path)
    assert people[0].magnitude is not None
    assert people[0].magnitude.exponent.low <= 1.4 <= people[0].magnitude.exponent.high
    group = analyse_group(experiment, people, AnalysisSettings())
    assert group.magnitude is not None
    assert len(group.magnitude.exponents) == 2
    assert group.magnitude.exponent.value == pytest.approx(1.4, abs=0.15)


def test_adjustments_give_their_spread(tmp_path: Path) -> None:
    table = {"kind": "adjustment", "starts": [0.5, 1.5], "repeats": 15}
    write_session(tmp_path, tables=design("adjustment", (1.0,), procedure=table, catch={}))
    _, (person,) = found_in(tmp_path)
    (condition,) = person.conditions
    assert condition.settings["point"].low <= 1.0 <= condition.settings["point"].high
    (difference,) = condition.differences
    assert difference.percent == pytest.approx(84.13)
    assert difference.holds_truth


@pytest.mark.parametrize("task", ["detection", "same-different"])
def test_yes_and_different_have_thresholds_and_detectability(tmp_path: Path, task: str) -> None:
    table = {"kind": "constant", "levels": [0.1, 0.25, 0.5], "repeats": 20}
    tables = design(task, (1.0,), procedure=table, catch={"null": 0.25}, observer={"weber": 0.2, "spread": 0.0})
    write_session(tmp_path, tables=tables)
    _, (person,) = found_in(tmp_path)
    (condition,) = person.conditions
    assert list(condition.detectability) == [0.1, 0.25, 0.5]
    d_primes = [one.d_prime.value for one in condition.detectability.values()]
    assert d_primes[0] < d_primes[2]
    # the increment told in 75 % of trials of two intervals is 0.954 standard deviations of a presentation
    true = 0.9539 * 0.5 / math.hypot(0.2, 0.05)
    assert condition.detectability[0.5].d_prime.low <= true <= condition.detectability[0.5].d_prime.high
    assert condition.fit is not None
    assert condition.fit.guess.low <= 0.16 <= condition.fit.guess.high


def test_who_misses_easy_trials_does_not_count(tmp_path: Path) -> None:
    write_session(tmp_path, "P01", design(references=(1.0,)))
    careless = design(
        references=(1.0,), observer={"weber": 0.12, "lapse": 0.3}, catch={"easy": 0.5, "most_errors": 0.05}
    )
    write_session(tmp_path, "P02", careless)
    experiment, people = found_in(tmp_path)
    people[1] = analyse(read_experiment([tmp_path / "sub-P02"]), experiment.people[1], AnalysisSettings())
    assert people[0].excluded == ()
    assert "easy catch trials were answered wrongly, more than 5%" in people[1].excluded[0]
    group = analyse_group(experiment, people, AnalysisSettings())
    assert group.counted == 1
    assert group.conditions[0].simulated == 1


def test_repeated_attempts_are_told_with_their_reasons(tmp_path: Path) -> None:
    folder = write_session(tmp_path, tables=design(references=(1.0,), catch={}))
    place = SessionFolder.of(folder)
    with_reasons = _begun_again(place, ["too fast", "late ticks"])
    with_reasons.close()
    _, (person,) = found_in(tmp_path)
    assert person.repeated == {"asked for by the participant": 1, "late ticks": 1, "too fast": 1}
    assert len(person.conditions[0].rows) == 29


def _begun_again(place: SessionFolder, reasons: list[str]) -> Journal:
    """Take a session up again: the last trial is asked for once more, and disturbed."""
    journal = Journal.open(place)
    last = next(one for one in reversed(journal.records) if one["record"] == "trial_start")
    journal.append("event", name="redo", trial=last["trial"])
    again = {name: value for name, value in last.items() if name not in {"record", "number", "utc", "monotonic_ns"}}
    journal.append("trial_start", **{**again, "attempt": 2})
    journal.append("trial_end", trial=last["trial"], attempt=2, outcome="repeat", reasons=reasons)
    return journal


def test_two_sessions_of_a_participant_are_fitted_together(tmp_path: Path) -> None:
    for session in (1, 2):
        write_session(tmp_path, tables=design(references=(1.0,), catch={}), session=session)
    experiment, (person,) = found_in(tmp_path)
    assert len(experiment.sittings) == 2
    assert len(person.conditions[0].rows) == 60
    assert [one["session"] for one in person.conditions[0].procedures] == [1, 2]


def test_a_fit_of_felt_levels_needs_them(weber: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"analysis.stimulus = 'felt': trial 3 has none"):
        found_in(weber, stimulus="felt")


def test_folders_of_two_experiments_are_refused(tmp_path: Path, weber: Path) -> None:
    other = design(references=(1.0,), catch={}, procedure={**QUEST, "trials": 5, "least_trials": 5})
    other["experiment"]["name"] = "viscosity"
    write_session(tmp_path, tables=other)
    with pytest.raises(ConfigurationError, match="2 experiments \\(viscosity, weber-friction\\)"):
        read_experiment([weber, tmp_path])
    with pytest.raises(RecordingError, match="holds no session"):
        read_experiment([tmp_path / "sub-P01" / "ses-01" / "blocks"])


def test_a_session_without_a_trial_has_a_page_and_does_not_count(tmp_path: Path) -> None:
    place = SessionFolder.new(tmp_path, "P01", 1, "weber-friction")
    Journal.create(place, header(design())).close()
    experiment, (person,) = found_in(tmp_path)
    assert person.conditions == ()
    assert person.excluded == ("no trial counts",)
    assert analyse_group(experiment, [person], AnalysisSettings()).conditions == ()


@pytest.mark.parametrize("percent", [[50.0], [100.0], ["many"], 101.0])
def test_percentages_that_stand_for_nothing_are_refused(percent: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"analysis.percent = "):
        AnalysisSettings(percent=percent)


def test_the_table_of_a_preregistration_is_the_table_of_the_analysis() -> None:
    settings = AnalysisSettings.of({"hypotheses": ["w falls with the reference"], "shape": "weibull"}, [80.0])
    assert (settings.shape, settings.percent) == ("weibull", (80.0,))
