from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from apps.experiment.procedures import Procedure, longest_repeat, make_procedure, trial_seed
from haptics.errors import ConfigurationError

SEED = trial_seed(3, "P01", 1, 1, 0)

TABLES: list[dict[str, Any]] = [
    {"kind": "staircase", "start": 1.0, "minimum": 0.1, "maximum": 4.0, "reversals": 6},
    {"kind": "quest+", "minimum": 0.1, "maximum": 4.0, "trials": 20, "count": 20, "thresholds": 20},
    {"kind": "constant", "levels": [0.1, 0.2, 0.4], "repeats": 4},
    {"kind": "adjustment", "starts": [1.0, 4.0], "repeats": 3},
    {"kind": "estimation", "levels": [1.0, 2.0, 4.0], "repeats": 3},
    {"kind": "series", "level": 0.3, "trials": 7},
]


def run(procedure: Procedure, answers: Any = lambda level: level > 0.3) -> list[float]:
    levels = []
    while not procedure.finished:
        levels.append(procedure.level())
        procedure.take(levels[-1], answers(levels[-1]))
    return levels


@pytest.mark.parametrize("table", TABLES, ids=lambda table: str(table["kind"]))
def test_every_kind_ends_repeats_itself_and_reports_in_json(table: dict[str, Any]) -> None:
    procedures = [make_procedure(table, guess=0.5, seed=SEED) for _ in range(2)]
    json.dumps(procedures[0].report(), allow_nan=False)  # before the first trial, too
    first, second = (run(procedure) for procedure in procedures)
    assert first == second and len(first) > 5
    report = json.loads(json.dumps(procedures[0].report(), allow_nan=False))
    assert report["kind"] == table["kind"] and report["finished"] and report["trials"] == len(first)
    assert {"estimate", "target_percent"} <= report.keys()


def test_constant_stimuli_present_each_level_equally_often_and_count_the_answers() -> None:
    procedure = make_procedure(TABLES[2] | {"repeats": 30}, guess=0.5, seed=SEED)
    levels = run(procedure)
    assert Counter(levels) == {0.1: 30, 0.2: 30, 0.4: 30}
    assert longest_repeat([round(10 * level) for level in levels]) <= 2
    assert procedure.report()["counts"] == [
        {"level": 0.1, "correct": 0, "total": 30},
        {"level": 0.2, "correct": 0, "total": 30},
        {"level": 0.4, "correct": 30, "total": 30},
    ]


def test_another_seed_is_another_order() -> None:
    other = make_procedure(TABLES[2], guess=0.5, seed=trial_seed(3, "P02", 1, 1, 0))
    assert run(other) != run(make_procedure(TABLES[2], guess=0.5, seed=SEED))


def test_no_magnitude_comes_twice_in_a_row() -> None:
    levels = run(make_procedure(TABLES[4] | {"repeats": 50}, guess=0.5, seed=SEED))
    assert longest_repeat([round(level) for level in levels]) == 1


def test_an_adjustment_takes_what_was_set() -> None:
    procedure = make_procedure(TABLES[3] | {"repeats": 2}, guess=0.5, seed=SEED)
    starts = []
    for value in (1.9, 2.1, 2.0, 2.4):
        starts.append(procedure.level())
        procedure.take(value, True)
    report = procedure.report()
    assert sorted(starts) == [1.0, 1.0, 4.0, 4.0]
    assert report["estimate"] == pytest.approx(2.1) and report["sd"] == pytest.approx(0.2160, abs=1e-4)
    assert report["settings"] == [1.9, 2.1, 2.0, 2.4]


def test_a_series_says_what_was_right() -> None:
    procedure = make_procedure(TABLES[5], guess=0.5, seed=SEED)
    for k in range(7):
        procedure.take(procedure.level(), k < 5)
    report = procedure.report()
    assert (report["correct"], report["trials"]) == (5, 7)
    assert report["percent_correct"] == pytest.approx(71.43, abs=0.01)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, r"procedure\.kind is missing"),
        ({"kind": "quest"}, "unknown kind of procedure 'quest'. Did you mean 'quest\\+'"),
        ({"kind": "series", "level": 1.0, "trail": 3}, "Did you mean"),
        ({"kind": "series"}, r"procedure\.level is missing"),
        ({"kind": "constant", "levels": [0.1]}, r"procedure\.levels = \[0\.1\]: .*at least 2 of them"),
        ({"kind": "estimation"}, r"procedure\.levels = \(\)"),
        ({"kind": "adjustment", "starts": "high"}, r"procedure\.starts = 'high'"),
    ],
)
def test_a_wrong_table_is_refused_in_words(table: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        make_procedure(table, guess=0.5, seed=SEED)
