"""Reproductions: every number, picture and table, servo laws, and the trials of the page."""

import csv
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from apps.cli import main
from apps.reproduce import weigand
from apps.reproduce.command import REPRODUCTIONS, reproduce, title_of
from apps.reproduce.kikuuwe_arm import LAWS, NAMES, TRIALS, compared, law_line, trial_line
from apps.reproduce.report import write
from devices.arm.flatness.joint import FeedForwardServo
from tests.apps.test_reproduce import numbers, stated
from tests.sampling import sample


@pytest.mark.parametrize("name", REPRODUCTIONS)
def test_reproduction_meets_every_number_and_has_a_picture_and_a_table(name, tmp_path):
    outcome = reproduce(name)
    names = [row.what for row in outcome.rows]
    assert len(set(names)) == len(names) > 0
    assert [row for row in outcome.rows if not row.holds] == []
    assert any(row.met for row in outcome.rows), "no number of the paper is compared"
    figure = Figure(figsize=(12, 7))
    outcome.draw(figure)
    assert figure.axes
    assert all(axes.has_data() for axes in figure.axes)
    result = write(name, title_of(name), outcome, tmp_path)
    with result.table.open(newline="") as file:
        assert [row["what"] for row in csv.DictReader(file)] == names
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


def require_page_numbers(line, name):
    """Compare with the page; the tolerance covers other processors and libraries, which move the place of a knock."""
    assert numbers(line) == pytest.approx(stated("studies/servo_laws.md", name), rel=0.12, abs=0.06)


@pytest.mark.parametrize("law", LAWS)
def test_servo_law_results_are_those_of_the_page(law):
    require_page_numbers(law_line(law), NAMES[law])


@pytest.mark.parametrize("name", sample(TRIALS, 5))
def test_trial_has_the_numbers_of_the_page(name):
    require_page_numbers(trial_line(name), name)
    closer, smoother, _ = compared(TRIALS[name])[1]
    assert closer > 2.0
    assert smoother > 2.0 or name != "as above"


def test_feedback_is_compared_with_the_same_feed_forward_without_it():
    row = next(row for row in weigand.reproduce_fig7().rows if "rigid, conventional feedback" in row.what)
    with_it, without = (
        weigand.worst(weigand.run(FeedForwardServo("rigid", feedback), circumstances=weigand.HELD))
        for feedback in ("conventional", "none")
    )
    assert row.ours == pytest.approx(with_it / without)
    assert row.ours < 0.5  # it improves
