"""The table of trials: one row per attempt that ended, the same from every reader."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.experiment.journal import COLUMNS, Journal, SessionFolder, csv_of, trial_rows, tsv_of, write_table
from haptics.errors import RecordingError
from tests.apps.experiment.journal.records import HEADER, begin_block, end, place, response, run_trial, start


def session(out: Path) -> SessionFolder:
    with Journal.create(place(out), HEADER) as journal:
        begin_block(journal)
        run_trial(journal, 1)
        journal.append("trial_start", **start(2, kind="catch-null", comparison_interval=None, level=0.0))
        journal.append("trial_end", **end(2, 1, "repeat", "too slow", "a gap of 7 ms"))
        begin_block(journal, 1, 2)
        journal.append("trial_start", **start(2, 2, values=[3.0], markers=[221]))
        journal.append("response", **response(2, 2, response=0.1 + 0.2, correct=None, key='a, "b"\n'))
        journal.append("trial_end", **end(2, 2))
        journal.append("trial_start", **start(3))
    return journal.place


def test_a_row_joins_what_the_records_of_an_attempt_say(tmp_path: Path) -> None:
    first, repeated, again = trial_rows(session(tmp_path))
    assert list(first) == [column.name for column in COLUMNS]
    assert (first["trial"], first["condition"], first["response"], first["correct"]) == (1, "low", "2", True)
    assert (first["asked_1"], first["asked_2"], first["axis_unit"]) == (1.0, 1.25, "N")
    assert (repeated["counts"], repeated["response"], repeated["reasons"]) == (False, None, "too slow; a gap of 7 ms")
    assert (again["counts"], again["attempt"], again["asked_2"], again["marker_2"]) == (True, 2, None, None)
    assert [one["recording"] for one in (first, repeated, again)] == [
        "blocks/block-01",
        "blocks/block-01",
        "blocks/block-01_2",
    ]
    assert float(again["response"]) == 0.1 + 0.2


def test_the_columns_of_the_stimulus_come_from_the_recording_or_say_why_not(tmp_path: Path) -> None:
    where = session(tmp_path)
    (where.folder / "blocks" / "block-01").mkdir(parents=True)

    def measure(folder: Path, trial: dict[str, Any]) -> dict[str, Any]:
        assert folder == where.folder / "blocks" / "block-01"
        return {"delivered_1": float(trial["markers"][0]), "delivered_exact": True}

    first, _, again = trial_rows(where, measure)
    assert (first["recording"], again["recording"]) == ("blocks/block-01", "blocks/block-01_2")
    assert (first["delivered_1"], first["delivered_exact"], first["felt_1"]) == (111.0, True, None)
    assert first["stimulus_missing"] is None
    assert again["stimulus_missing"] == "the recording is not there"
    assert {row["stimulus_missing"] for row in trial_rows(where, None)} == {"not measured"}
    assert "not a readable recording" in trial_rows(where)[0]["stimulus_missing"]


def test_a_trial_is_looked_for_in_the_recordings_made_when_its_block_was_resumed(tmp_path: Path) -> None:
    where = session(tmp_path)
    for name in ("block-01", "block-01_2"):
        (where.folder / "blocks" / name).mkdir(parents=True)

    def measure(folder: Path, _trial: dict[str, Any]) -> dict[str, Any]:
        return {"ticks_1": 5} if folder.name == "block-01_2" else {"stimulus_missing": "no such interval"}

    first, *_ = trial_rows(where, measure)
    assert (first["recording"], first["ticks_1"], first["stimulus_missing"]) == ("blocks/block-01_2", 5, None)


def test_a_recording_outside_the_session_is_not_opened(tmp_path: Path) -> None:
    with Journal.create(place(tmp_path), HEADER) as journal:
        journal.append("block_start", block=1, conditions=[], recording="blocks/../../../x", attempt=1)
        run_trial(journal, 1)
    with pytest.raises(RecordingError, match="not in the session's folder"):
        trial_rows(journal.place, lambda _folder, _trial: {})


def test_the_tables_are_made_anew_at_any_time_and_never_over_somebody_elses(tmp_path: Path) -> None:
    where = session(tmp_path)
    assert write_table(where) == write_table(where) == where.table
    lines = [line.split("\t") for line in where.table.read_text(encoding="utf-8").splitlines()]
    assert {len(line) for line in lines} == {len(COLUMNS)}
    assert len(lines) == 4
    told = json.loads(where.table.with_suffix(".json").read_text(encoding="utf-8"))
    assert list(told) == lines[0]
    where.table.write_text("mine\n")
    with pytest.raises(OSError, match="somebody's"):
        write_table(where)
    assert where.table.read_text() == "mine\n"


def test_every_column_says_what_it_is() -> None:
    assert len({column.name for column in COLUMNS}) == len(COLUMNS)
    for column in COLUMNS:
        assert column.doc
        assert column.as_bids()["Description"] == column.doc
        assert column.kind in ("text", "number", "whole", "flag")


_TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)


@settings(max_examples=12)
@given(_TEXTS, _TEXTS, st.floats(allow_nan=False, allow_infinity=False), st.lists(_TEXTS, max_size=2))
def test_every_cell_of_the_csv_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, condition: str, key: str, value: float, reasons: list[str]
) -> None:
    with Journal.create(place(tmp_path_factory.mktemp("out")), HEADER) as journal:
        begin_block(journal)
        journal.append("trial_start", **start(1, condition=condition, level=value))
        journal.append("response", **response(1, key=key))
        journal.append("trial_end", **end(1, 1, "ok", *reasons))
    rows = trial_rows(journal.place)
    (read,) = csv.DictReader(io.StringIO(csv_of(rows), newline=""))
    assert (read["condition"], read["key"], read["reasons"]) == (condition, key, "; ".join(reasons))
    assert float(read["level"]) == value
    header, row, rest = tsv_of(rows).split("\n")
    assert rest == ""
    assert len(header.split("\t")) == len(row.split("\t")) == len(COLUMNS)
    assert len(tsv_of(rows).splitlines()) == 2
