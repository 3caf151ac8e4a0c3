"""When a row is met, and how it is written down."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import pytest

from apps.reproduce.outcome import Bound, Outcome, Row
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
    ]
    return write("some-fig1", "a figure", Outcome(rows, lambda figure: figure.subplots()), tmp_path)


def test_table_has_every_row_with_all_its_digits(result: Result) -> None:
    with result.table.open(newline="") as file:
        table = list(csv.DictReader(file))
    assert tuple(table[0]) == COLUMNS
    assert [row["what"] for row in table] == ["length, |x|", "force", "lost"]
    assert [row["met"] for row in table] == ["false", "true", "false"]
    assert float(table[0]["difference"]) == 0.5
    assert table[1]["expected"] == "at least 2"
    assert (table[1]["unit"], table[1]["source"]) == ("N", "derived")


def test_json_holds_no_nan(result: Result) -> None:
    answer = json.loads(json.dumps(result.as_json(), allow_nan=False))
    assert answer["rows"][1]["expected"] == {"minimum": 2.0}
    assert answer["rows"][2]["ours"] is None
    assert answer["rows"][2]["met"] is False


def test_summary_and_words_name_what_is_not_met(result: Result, tmp_path: Path) -> None:
    summary = write_summary([result], tmp_path)
    text = summary.read_text()
    assert "![a figure](some-fig1.png)" in text
    assert "| length, \\|x\\| | 1 | 1.5 | 0.1 | m | paper | **no** |" in text
    words = describe([result], summary)
    assert "1 of 3 met" in words
    assert "not met: length, |x|: 1.5 m, expected 1 (tolerance 0.1)" in words
    assert "not met: force" not in words
