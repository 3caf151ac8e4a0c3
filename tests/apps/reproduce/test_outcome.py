"""When a row is met, and how it is written down."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import pytest

from apps.reproduce.outcome import Bound, Outcome, Row, count_words
from apps.reproduce.report import COLUMNS, Result, describe, write, write_summary


@pytest.mark.parametrize(
    ("expected", "ours", "tolerance", "difference", "met"),
    [
        (1.0, 1.0, 0.0, 0.0, True),
        (1.0, 1.25, 0.25, 0.25, True),
        (1.0, 0.5, 0.25, -0.5, False),
        (Bound(minimum=2.0), 5.0, 0.0, 0.0, True),
        (Bound(minimum=2.0), 1.5, 0.0, -0.5, False),
        (Bound(maximum=2.0), 2.5, 0.0, 0.5, False),
        (Bound(maximum=2.0), 2.5, 0.5, 0.5, True),
        (Bound(1.0, 2.0), 1.5, 0.0, 0.0, True),
        (Bound(minimum=2.0), math.inf, 0.0, math.inf, False),
    ],
)
def test_row_is_met_within_its_tolerance(
    expected: float | Bound, ours: float, tolerance: float, difference: float, met: bool
) -> None:
    row = Row("length", expected, ours, tolerance, "m")
    assert row.met is met
    if math.isfinite(ours):
        assert row.difference == difference


@pytest.mark.parametrize("expected", [1.0, Bound(minimum=0.0), Bound(maximum=1.0), Bound()])
def test_nan_never_meets_anything(expected: float | Bound) -> None:
    assert not Row("length", expected, math.nan, 10.0).met


def test_guard_holds_or_not_and_is_never_met() -> None:
    inside, outside = (Row("size", Bound(maximum=1.0), ours, source="guard") for ours in (0.5, 1.5))
    assert (inside.holds, outside.holds) == (True, False)
    assert inside.met is None
    assert outside.met is None
    number = Row("length", 1.0, 1.0)
    assert count_words([number, inside, outside]) == "1 of 1 met, guards: 1 of 2 hold"
    assert count_words([inside]) == "no number to meet, guards: 1 of 1 hold"
    assert count_words([number]) == "1 of 1 met"


def test_bound_says_what_it_allows() -> None:
    assert str(Bound(minimum=100.0)) == "at least 100"
    assert str(Bound(maximum=4.5)) == "at most 4.5"
    assert str(Bound(2.4, 3.4)) == "2.4 to 3.4"


@pytest.fixture
def result(tmp_path: Path) -> Result:
    rows = [
        Row("length, |x|", 1.0, 1.5, 0.1, "m"),
        Row("force", Bound(minimum=2.0), 3.0, 0.0, "N", "derived"),
        Row("lost", 1.0, math.nan),
        Row("size", Bound(maximum=1.0), 0.5, source="guard"),
        Row("weight", Bound(maximum=1.0), 2.0, source="guard"),
    ]
    return write("some-fig1", "a figure", Outcome(rows, lambda figure: figure.subplots()), tmp_path)


def test_table_has_every_row_with_all_its_digits(result: Result) -> None:
    with result.table.open(newline="") as file:
        table = list(csv.DictReader(file))
    assert tuple(table[0]) == COLUMNS
    assert [row["what"] for row in table] == ["length, |x|", "force", "lost", "size", "weight"]
    assert [row["met"] for row in table] == ["false", "true", "false", "", ""]
    assert [row["holds"] for row in table] == ["false", "true", "false", "true", "false"]
    assert float(table[0]["difference"]) == 0.5
    assert table[1]["expected"] == "at least 2"
    assert (table[1]["unit"], table[1]["source"]) == ("N", "derived")


def test_json_holds_no_nan(result: Result) -> None:
    answer = json.loads(json.dumps(result.as_json(), allow_nan=False))
    assert answer["rows"][1]["expected"] == {"minimum": 2.0}
    assert answer["rows"][2]["ours"] is None
    assert answer["rows"][2]["met"] is False
    assert [row["met"] for row in answer["rows"][3:]] == [None, None]
    assert [row["holds"] for row in answer["rows"][3:]] == [True, False]
    assert answer["tally"]["guard"] == {"count": 2, "holding": 1}


def test_summary_and_words_name_what_is_not_met(result: Result, tmp_path: Path) -> None:
    summary = write_summary([result], tmp_path)
    text = summary.read_text()
    assert "![a figure](some-fig1.png)" in text
    assert "| length, \\|x\\| | 1 | 1.5 | 0.1 | m | paper | **no** |" in text
    assert "| size | at most 1 | 0.5 | 0 |  | guard | holds |" in text
    assert "| weight | at most 1 | 2 | 0 |  | guard | **no** |" in text
    assert "| a figure | 0 of 2 | 1 of 1 | 1 of 2 |" in text
    words = describe([result], summary)
    assert "1 of 3 met" in words
    assert "not met: length, |x|: 1.5 m, expected 1 (tolerance 0.1)" in words
    assert "not met: force" not in words
    assert "not met: weight" not in words
    assert "guard does not hold: weight: 2 , expected at most 1" in words
    assert "numbers met: 0 of 2 paper, 1 of 1 derived" in words
    assert "guards: 1 of 2 hold" in words
