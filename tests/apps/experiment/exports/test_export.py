"""The data of sessions as other programs read them."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.cli import main
from apps.experiment.exports.psignifit import counts_of
from apps.experiment.journal import COLUMNS, Journal, make_codes, seal_codes, trial_rows
from tests.apps.experiment.exports.sessions import plain_session, recorded_session
from tests.apps.experiment.journal.records import HEADER, begin_block, end, place, response, start


def export(capsys: pytest.CaptureFixture[str], data: Path, out: Path, form: str, status: int = 0) -> dict[str, Any]:
    assert main(["experiment", "export", str(data), "--to", form, "--out", str(out), "--json"]) == status
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


@pytest.fixture
def data(tmp_path: Path) -> Path:
    plain_session(tmp_path / "data")
    recorded_session(tmp_path / "data")
    return tmp_path / "data"


# --- csv --------------------------------------------------------------------------------------------------------------


def test_the_wide_table_is_read_by_the_csv_module(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = export(capsys, data, tmp_path / "out", "csv")
    assert (told["sessions"], told["participants"], told["trials"]) == (2, 2, 16)
    raw = (tmp_path / "out" / "trials.csv").read_bytes()
    assert raw.count(b"\r\n") == 17
    assert b"nan" not in raw
    with open(tmp_path / "out" / "trials.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [column.name for column in COLUMNS]
    repeated = next(row for row in rows if row["outcome"] == "repeat")
    assert repeated["reasons"] == 'too fast, twice; said "oh"'
    assert (repeated["response"], repeated["correct"], repeated["counts"]) == ("", "", "false")
    assert [row["condition"] for row in rows].count('high, "rough"') == 2
    assert float(next(row for row in rows if row["trial"] == "5")["reaction_time_s"]) == 0.1 + 0.2
    with open(tmp_path / "out" / "participants.csv", encoding="utf-8", newline="") as file:
        first, second = csv.DictReader(file)
    assert (first["participant"], first["observer"], first["field_age_band"]) == ("P01", "", "20-29")
    assert (second["observer"], second["end_reason"], second["trials"]) == ("level-1", "completed", "7")


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed (Debian: r-base-core)")
def test_the_wide_table_is_read_by_r(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export(capsys, data, tmp_path / "out", "csv")
    script = (
        'source("read.R"); t <- read_trials("."); p <- read_participants("."); '
        "stopifnot(is.numeric(t$level), is.logical(t$correct), is.na(t$correct[6]), nrow(p) == 2); "
        'cat(nrow(t), sum(t$correct, na.rm = TRUE), sprintf("%.17g", t$reaction_time_s[5]), t$reasons[6], sep = "\\n")'
    )
    done = subprocess.run(
        ["Rscript", "--vanilla", "-e", script], cwd=tmp_path / "out", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    count, right, time, reasons = done.stdout.splitlines()
    assert (count, right, float(time), reasons) == ("16", "12", 0.1 + 0.2, 'too fast, twice; said "oh"')


# --- psignifit --------------------------------------------------------------------------------------------------------


def test_three_columns_a_condition_of_the_trials_that_count(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export(capsys, data, tmp_path / "out", "psignifit")
    out = tmp_path / "out"
    names = sorted(path.name for path in out.glob("*.csv"))
    assert names[0] == "sub-P01_ses-01_task-friction_condition-highrough_psignifit.csv"
    assert len(names) == 4
    table = np.genfromtxt(out / names[1], delimiter=",", skip_header=1)
    assert table.tolist() == [[0.25, 2.0, 3.0], [0.5, 1.0, 1.0]]
    assert np.genfromtxt(out / names[0], delimiter=",", skip_header=1).tolist() == [0.25, 1.0, 1.0]


def test_what_was_done_again_is_not_counted_twice(tmp_path: Path) -> None:
    with Journal.create(place(tmp_path), HEADER) as journal:
        begin_block(journal)
        for attempt, outcome in enumerate(("repeat", "ok", "ok"), 1):
            journal.append("trial_start", **start(1, attempt))
            journal.append("response", **response(1, attempt, correct=attempt < 3))
            journal.append("trial_end", **end(1, attempt, outcome))
            if attempt == 2:
                journal.append("event", name="redo", trial=1)
    assert counts_of(trial_rows(journal.place)) == {"low": {0.25: (0, 1)}}


def test_conditions_of_like_names_have_files_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Journal.create(place(tmp_path / "data"), HEADER) as journal:
        begin_block(journal)
        for trial, condition in enumerate(("low", "lo w", "LOW", "摩"), 1):
            journal.append("trial_start", **start(trial, condition=condition))
            journal.append("response", **response(trial))
            journal.append("trial_end", **end(trial))
    export(capsys, tmp_path / "data", tmp_path / "out", "psignifit")
    assert len(list((tmp_path / "out").glob("*.csv"))) == 4


def test_answers_that_cannot_be_right_are_no_table_for_psignifit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Journal.create(place(tmp_path / "data"), HEADER) as journal:
        begin_block(journal)
        journal.append("trial_start", **start(1))
        journal.append("response", **response(1, response=2.5, correct=None))
        journal.append("trial_end", **end(1))
    told = export(capsys, tmp_path / "data", tmp_path / "out", "psignifit", status=2)
    assert "right or wrong" in told["error"]
    assert not (tmp_path / "out").exists()


# --- Psych-DS ---------------------------------------------------------------------------------------------------------


def test_psych_ds_names_every_column_of_every_file(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export(capsys, data, tmp_path / "out", "psych-ds")
    told = json.loads((tmp_path / "out" / "dataset_description.json").read_text(encoding="utf-8"))
    assert (told["@context"], told["@type"]) == ("https://schema.org", "Dataset")
    assert "never" in told["description"]
    variables = {one["name"] for one in told["variableMeasured"]}
    files = sorted((tmp_path / "out" / "data").iterdir())
    assert [path.name for path in files] == [
        f"study-friction_participant-P0{number}_session-01_data.csv" for number in (1, 2)
    ]
    for path in files:
        with open(path, encoding="utf-8", newline="") as file:
            assert set(next(csv.reader(file))) <= variables


# --- what is refused --------------------------------------------------------------------------------------------------


def test_a_blind_session_is_not_exported_before_its_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seal = seal_codes(place(tmp_path / "data"), make_codes([{"condition": "low"}]))
    with Journal.create(place(tmp_path / "data"), HEADER | {"blind": seal}) as journal:
        told = export(capsys, tmp_path / "data", tmp_path / "out", "csv", status=2)
        assert "has not ended" in told["error"]
        journal.append("end", reason="completed", trials=0, repeated=0)
    assert export(capsys, tmp_path / "data", tmp_path / "out", "csv")["sessions"] == 1


def test_a_session_is_exported_once_and_two_of_one_name_are_refused(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy"
    twice = ["experiment", "export", str(data), str(data / "sub-P01")]
    assert main([*twice, "--to", "csv", "--json", "--out", str(tmp_path / "out")]) == 0
    assert json.loads(capsys.readouterr().out)["sessions"] == 2
    shutil.copytree(data / "sub-P01", copy)
    assert main([*twice, str(copy), "--to", "csv", "--out", str(tmp_path / "other")]) == 2
    assert "are both sub-P01_ses-01_task-friction" in capsys.readouterr().err


def test_a_journal_under_another_ones_name_is_not_exported(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (data / "sub-P01").rename(data / "sub-P03")
    folder = data / "sub-P03" / "ses-01"
    (found,) = folder.glob("*_journal.jsonl")
    found.rename(folder / found.name.replace("P01", "P03"))
    assert "of participant 'P01'" in export(capsys, data, tmp_path / "out", "csv", status=2)["error"]
