"""Trials that a user program runs itself: journal, resumption, repetition, table."""

from __future__ import annotations

import csv
import doctest
from datetime import date

import numpy as np
import pytest

import apps.experiment
from apps.experiment import (
    COLUMNS,
    TrialLog,
    export_sessions,
    make_procedure,
    read_sessions,
    trial_log,
    trial_rows,
    trial_seed,
)
from apps.experiment.journal.exclusion import ExclusionLog
from apps.experiment.schedule import scheduled_events
from apps.experiment.status import read_status
from haptics.errors import ConfigurationError
from tests.apps.experiment.journal.records import response

WITHOUT_EXAMPLE = {"COLUMNS", "Journal", "SessionFolder", "SessionState", "read_sessions"}
"""Public names that the examples of other names show."""

STAIRCASE = {"kind": "staircase", "start": 1.0, "minimum": 0.1, "maximum": 2.0, "reversals": 6, "trials": 12}


def opened(folder, **changes):
    arguments = {"axis": "law.force", "seed": 4, "design": {"standard": 2.0}, "observer": "test"}
    return TrialLog.open(folder, "P01", "wood or ice", **{**arguments, **changes})


def procedure():
    return make_procedure(STAIRCASE, guess=0.5, seed=trial_seed(4, "P01", 1, 1, 0))


def run_trial(log, staircase):
    level = staircase.level()
    trial, markers = log.begin_trial(level, values=(2.0, 2.0 + level), comparison=2, reference=2.0)
    correct = np.bool_(level > 0.4)
    log.finish_trial("2" if correct else "1", correct=correct, source="observer")
    staircase.add_outcome(level, bool(correct))
    return trial, markers


def test_interrupted_session_continues_like_an_uninterrupted_one(tmp_path):
    whole = procedure()
    with opened(tmp_path / "whole") as log:
        log.begin_block()
        while not whole.finished:
            run_trial(log, whole)
        log.finish()
    for _ in range(20):  # each time, the program ends in the middle of a trial
        staircase = procedure()
        with opened(tmp_path / "parts") as log:
            log.replay(staircase)
            log.begin_block()
            for _ in range(3):
                if not staircase.finished:
                    run_trial(log, staircase)
            if staircase.finished:
                log.finish()
                break
            log.begin_trial(staircase.level(), values=(2.0, None))
    assert staircase.report() == whole.report()
    names = ("trial", "level", "correct", "response", "asked_2", "condition", "axis_unit")
    tables = [trial_rows(tmp_path / part / "sub-P01" / "ses-01") for part in ("whole", "parts")]
    assert [[row[name] for name in names] for row in tables[0]] == [[row[name] for name in names] for row in tables[1]]
    assert {row["attempt"] for row in tables[1]} == {1, 2}
    markers = [marker for row in tables[1] for marker in (row["marker_1"], row["marker_2"])]
    assert len(set(markers)) == len(markers)


def test_trial_that_does_not_count_is_repeated(tmp_path):
    with opened(tmp_path) as log:
        log.begin_block()
        assert log.begin_trial(0.5, values=(2.0, 2.5))[0] == 1
        log.finish_trial("1", correct=False, repeat=["too slow"])
        assert log.begin_trial(0.5, values=(2.0, 2.5))[0] == 1
        log.finish_trial("2", correct=True)
        assert log.begin_trial(0.4, values=(2.0, 2.4))[0] == 2
        log.finish_trial(None)
        log.finish()
    rows = trial_rows(log.place)
    assert [(row["trial"], row["attempt"], row["counts"], row["reasons"]) for row in rows] == [
        (1, 1, False, "too slow"),
        (1, 2, True, None),
        (2, 1, True, None),
    ]


def test_blocks_are_continued_until_they_are_finished(tmp_path):
    with opened(tmp_path) as log:
        assert log.begin_block() == 1
    with opened(tmp_path) as log:
        assert log.begin_block() == 1
        log.finish_block()
    with opened(tmp_path) as log:
        assert log.begin_block() == 2
        assert log.state.blocks == {1: 2, 2: 1}


def test_other_arguments_are_refused(tmp_path):
    with opened(tmp_path) as log:
        log.begin_block()
        with pytest.raises(ConfigurationError, match="another"):
            opened(tmp_path)
    with pytest.raises(ConfigurationError, match="seed = 4, not 5"):
        opened(tmp_path, seed=5)
    with pytest.raises(ConfigurationError, match="design"):
        opened(tmp_path, design={"standard": 3.0})
    with opened(tmp_path) as log:
        log.finish()
    with pytest.raises(ConfigurationError, match="has ended"):
        opened(tmp_path)
    with pytest.raises(ConfigurationError, match="must be a code"):
        TrialLog.open(tmp_path, "Anna", "wood or ice", axis="law.force")
    for changes, words in (({"seed": -1}, "seed = -1"), ({"design": {"limit": np.inf}}, "design: must be")):
        with pytest.raises(ConfigurationError, match=words):
            opened(tmp_path / "new", **changes)


def test_invalid_steps_are_refused(tmp_path):
    with opened(tmp_path) as log:
        with pytest.raises(ConfigurationError, match="begin_block first"):
            log.begin_trial(0.5, values=(2.0, 2.5))
    with opened(tmp_path / "second") as log:
        log.begin_block()
        with pytest.raises(ConfigurationError, match="begin_trial first"):
            log.finish_trial("1")
        with pytest.raises(ConfigurationError, match=r"level = nan"):
            log.begin_trial(float("nan"), values=(2.0, 2.5))
        log.begin_trial(0.5, values=(2.0, 2.5))
        with pytest.raises(ConfigurationError, match="response"):
            log.finish_trial("left")
        with pytest.raises(ConfigurationError, match="in the session's folder"):
            log.begin_block(tmp_path)


def test_markers_of_attempts_do_not_overlap(tmp_path):
    with TrialLog.open(tmp_path, "P01", "wood or ice", axis="law.force") as log:
        log.begin_block()
        with pytest.raises(ConfigurationError, match="10 values; a trial has at most 9 intervals"):
            log.begin_trial(0.5, values=(1.0,) * 10)
        _, first = log.begin_trial(0.5, values=(1.0,) * 9)
        log.finish_trial("1", correct=True)
        _, second = log.begin_trial(0.5, values=(1.0,) * 9)
        assert max(first) < min(second) and all(marker % 10 for marker in (*first, *second))


def test_table_is_exported(tmp_path):
    staircase = procedure()
    with opened(tmp_path / "data", fields={"handedness": "left"}) as log:
        log.begin_block()
        for _ in range(5):
            run_trial(log, staircase)
        table = log.finish()
    assert table.read_text().count("\n") == 6
    export_sessions([tmp_path / "data"], tmp_path / "csv")
    rows = list(csv.DictReader((tmp_path / "csv" / "trials.csv").read_text().splitlines()))
    assert [row["asked_2"] for row in rows] == [repr(2.0 + float(row["level"])) for row in rows]
    assert list(rows[0]) == [column.name for column in COLUMNS]
    for to in ("bids", "psych-ds", "psignifit"):
        export_sessions([tmp_path / "data"], tmp_path / to, to=to)
        assert list((tmp_path / to).iterdir())
    assert read_sessions([tmp_path / "data"])[0].state.test_trials == 5
    with pytest.raises(ConfigurationError, match="one of csv, psignifit"):
        export_sessions([tmp_path / "data"], tmp_path / "x", to="xls")


@pytest.mark.parametrize("name", apps.experiment.__all__)
def test_public_names_are_documented_and_their_examples_run(name, tmp_path, monkeypatch):
    public = getattr(apps.experiment, name)
    assert public.__doc__
    monkeypatch.chdir(tmp_path)
    examples = [] if name == "COLUMNS" else doctest.DocTestFinder().find(public, name, globs={})
    results = [doctest.DocTestRunner().run(example) for example in examples]
    assert sum(result.failed for result in results) == 0
    assert any(result.attempted for result in results) or name in WITHOUT_EXAMPLE


def test_session_folder_of_another_experiment_is_refused(tmp_path):
    with opened(tmp_path) as log:
        log.begin_block()
    with pytest.raises(ConfigurationError, match="of another experiment"):
        TrialLog.open(tmp_path, "P01", "other", axis="law.force")
    with opened(tmp_path) as log:
        assert log.resumed


def test_trial_that_was_killed_after_its_answer_is_run_again(tmp_path):
    with opened(tmp_path) as log:
        log.begin_block()
        log.begin_trial(0.5, values=(2.0, 2.5))
        log._append("response", **response(1, response="2"))
    with opened(tmp_path) as log:
        log.begin_block()
        with pytest.raises(ConfigurationError, match="begin_trial first"):
            log.finish_trial("2")
        assert log.begin_trial(0.5, values=(2.0, 2.5))[0] == 1
        log.finish_trial("2", correct=True, repeat=[3])
    assert [(row["attempt"], row["reasons"]) for row in trial_rows(log.place)] == [(2, "3")]


# --- schedule and exclusion ---

SCHEDULE = {"sessions": 2, "minimum_days": 2, "maximum_days": [5], "time_zone": "UTC"}


@pytest.fixture
def on_day(monkeypatch):
    """Open the log of a human participant on a day of March 2026."""

    def opened_on(folder, day, session, **changes):
        monkeypatch.setattr(trial_log, "today_in", lambda zone: date(2026, 3, day))
        return opened(folder, session=session, observer="", schedule=SCHEDULE, **changes)

    return opened_on


def test_session_outside_its_window_is_refused_without_a_reason(tmp_path, on_day):
    with on_day(tmp_path, 2, 1) as log:
        log.finish()
    for day, words in ((3, "session 2 of P01 is due from 2026-03-04 to 2026-03-07"), (9, "had to begin")):
        with pytest.raises(ConfigurationError, match=words + r".*pass the reason as outside_window\."):
            on_day(tmp_path, day, 2)
    assert not (tmp_path / "sub-P01" / "ses-02").exists()
    for reason, words in (
        ("see anna@example.org", "looks like an address"),
        ("x" * 501, "^outside_window: .* 500"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            on_day(tmp_path, 9, 2, outside_window=reason)
    with on_day(tmp_path, 9, 2, outside_window="snow") as log:
        log.begin_block()
    with on_day(tmp_path, 10, 2) as log:
        events = scheduled_events(log.state)
        assert [(one["date"], one.get("outside"), one.get("reason")) for one in events] == [
            ("2026-03-09", "late", "snow"),
            ("2026-03-10", None, None),
        ]
        log.finish()
    (found,) = read_status(tmp_path, date(2026, 3, 11))
    assert found.participants[0].state == "finished"
    with pytest.raises(ConfigurationError, match="the experiment has 2"):
        on_day(tmp_path, 10, 3)
    with pytest.raises(ConfigurationError, match="without a schedule"):
        opened(tmp_path, outside_window="x")


def test_session_of_a_simulated_observer_is_due_on_the_first_day(tmp_path):
    for session in (1, 2):
        with opened(tmp_path, session=session, schedule=SCHEDULE) as log:
            log.finish()
    assert scheduled_events(log.state)[0]["days"] == 2


def test_excluded_participant_is_refused(tmp_path):
    with opened(tmp_path) as log:
        log.begin_block()
    ExclusionLog(tmp_path).exclude("P01", "ill")
    for session in (1, 2):
        with pytest.raises(ConfigurationError, match=r"P01 was excluded \(ill\)"):
            opened(tmp_path, session=session)
