"""The table of trials that a session leaves: asked, delivered and felt of every trial."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from apps.experiment.journal import trial_rows
from tests.apps.experiment.design.designs import changed
from tests.apps.experiment.engine.running import simulate


def test_a_session_leaves_a_table_with_what_was_delivered_and_felt(tmp_path: Path) -> None:
    result, place = simulate(changed(tmp_path), tmp_path / "out")
    with open(result["table"], encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert Path(result["table"]) == place.table
    assert len(rows) == len(trial_rows(place)) == result["trials"]
    for row in rows:
        assert (row["axis_unit"], row["delivered_exact"], row["stimulus_missing"]) == ("N", "true", "n/a")
        for number in ("1", "2"):
            asked = float(row[f"asked_{number}"])
            assert float(row[f"delivered_{number}"]) == pytest.approx(asked, rel=1e-9)
            low, felt, high = (float(row[f"{name}_{number}"]) for name in ("felt_low", "felt", "felt_high"))
            assert low <= felt <= high
            assert asked < felt < asked + 0.3, "the stick's own friction is felt, too, and not compensated here"


def test_a_table_that_cannot_be_written_loses_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = changed(tmp_path), tmp_path / "out"
    place = out / "sub-P01" / "ses-01"
    place.mkdir(parents=True)
    (place / "sub-P01_ses-01_task-weber_beh.tsv").write_text("mine\n")
    result, _ = simulate(file, out)
    assert (result["table"], result["reason"]) == (None, "completed")
    assert "every export makes it anew" in capsys.readouterr().err
    assert (place / "sub-P01_ses-01_task-weber_beh.tsv").read_text() == "mine\n"
