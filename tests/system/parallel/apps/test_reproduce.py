"""Reproductions: all pictures and tables, the progress line, and the trials of the page."""

import csv
import re
import sys

import numpy as np
import pytest
from matplotlib.image import imread

from apps.cli import main
from apps.reproduce.registry import REPRODUCTIONS, load
from apps.reproduce.report import write
from apps.reproduce.servo_sensitivity import TRIALS, compared, trial_line
from tests.processes import ROOT
from tests.sampling import sample


@pytest.mark.parametrize("name", REPRODUCTIONS)
def test_reproduction_holds_and_writes_picture_and_table(name, tmp_path):
    outcome = load(name).reproduce()
    assert [row for row in outcome.rows if not row.holds] == []
    result = write(name, load(name).TITLE, outcome, tmp_path)
    with result.table.open(newline="") as file:
        assert [row["what"] for row in csv.DictReader(file)] == [row.what for row in outcome.rows]
    ink = (np.asarray(imread(result.picture))[..., :3] < 0.9).any(axis=2)
    assert ink.mean() > 0.005
    assert ink[: len(ink) // 2].any()
    assert ink[len(ink) // 2 :].any()


def test_progress_is_shown_on_a_terminal_and_removed(tmp_path, monkeypatch, capsys):
    main(["reproduce", "kikuuwe-fig7", "--out", str(tmp_path)])
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    main(["reproduce", "kikuuwe-fig6", "kikuuwe-fig7", "--out", str(tmp_path)])
    shown = capsys.readouterr().err.split("\r\x1b[K")
    assert "2 of 2: kikuuwe-fig7" in shown[-2]
    assert shown[-1] == ""


def numbers(line):
    """Return the numbers of a line of a table, without its name."""
    return [float(number) for number in re.findall(r"-?[0-9.]+", line.strip("|").split("|", 1)[1])]


QUICK = ("as above", "friction believed 30 % too high")
"""Trials of the unit tests."""


@pytest.mark.parametrize("name", sample([name for name in TRIALS if name not in QUICK], 4))
def test_trial_has_the_numbers_of_the_page(name):
    """Processors and libraries change the last digits of a run, and with them the place of a knock."""
    result, times = compared(TRIALS[name])
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    stated = re.search(rf"^\| {re.escape(name)} \|.*$", page, re.MULTILINE)
    assert stated is not None
    assert numbers(trial_line(name, result, times)) == pytest.approx(numbers(stated[0]), rel=0.12, abs=0.06)
    assert times.closer > 2.0
