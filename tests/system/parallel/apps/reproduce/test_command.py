"""Long computations for the topic of tests/apps/reproduce/test_command.py."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pytest

from apps.reproduce.registry import REPRODUCTIONS, load
from apps.reproduce.report import write
from tests.apps.reproduce.test_command import outcome_of, pixels, reproduce


@pytest.mark.parametrize("name", REPRODUCTIONS)
def test_every_picture_and_table_is_written(name: str, tmp_path: Path) -> None:
    outcome = outcome_of(name)
    result = write(name, load(name).TITLE, outcome, tmp_path)
    with result.table.open(newline="") as file:
        assert [row["what"] for row in csv.DictReader(file)] == [row.what for row in outcome.rows]
    ink = (pixels(result.picture)[..., :3] < 0.9).any(axis=2)
    assert ink.mean() > 0.005
    assert ink[: len(ink) // 2].any()
    assert ink[len(ink) // 2 :].any()


def test_progress_is_shown_on_a_terminal_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reproduce("kikuuwe-fig7", "--out", str(tmp_path))
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    reproduce("kikuuwe-fig6", "kikuuwe-fig7", "--out", str(tmp_path))
    shown = capsys.readouterr().err.split("\r\x1b[K")
    assert "2 of 2: kikuuwe-fig7" in shown[-2]
    assert shown[-1] == ""
