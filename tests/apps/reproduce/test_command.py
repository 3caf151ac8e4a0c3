"""The command ``haptics reproduce``, and that every number of every reproduction is met."""

from __future__ import annotations

import argparse
import functools
import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from apps.reproduce import command, kikuuwe_fig7
from apps.reproduce.outcome import Bound, Outcome, Row
from apps.reproduce.registry import REPRODUCTIONS, load
from apps.shared.answer import Answer
from haptics.errors import ConfigurationError


def reproduce(*arguments: str) -> Answer:
    parser = argparse.ArgumentParser()
    command.add_options(parser)
    return command.run(parser.parse_args(arguments))


def pixels(picture: Path) -> np.ndarray:
    from matplotlib.image import imread

    return np.asarray(imread(picture))


@functools.cache
def outcome_of(name: str) -> Outcome:
    return load(name).reproduce()


LONG = ("kikuuwe-servo", "kikuuwe-fig11", "machado-fig3", "machado-fig9", "weigand-fig7", "weigand-fig9")


each_one = pytest.mark.parametrize("name", [name for name in REPRODUCTIONS if name not in LONG])


@each_one
def test_every_number_is_met_and_every_guard_holds(name: str) -> None:
    rows = outcome_of(name).rows
    assert len({row.what for row in rows}) == len(rows) > 0
    assert [row for row in rows if not row.holds] == []
    assert any(row.met for row in rows), "only guards: nothing here is compared with the paper"


@each_one
def test_every_picture_has_something_in_each_part(name: str) -> None:
    figure = Figure(figsize=(12, 7))
    outcome_of(name).draw(figure)
    assert figure.axes
    for axes in figure.axes:
        assert axes.has_data()


def test_command_leaves_picture_table_and_summary(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    answer = reproduce("kikuuwe-fig7", "kikuuwe-fig6", "kikuuwe-fig7", "--out", str(folder))
    assert answer.status == 0
    assert answer.result["all_met"] is True
    found = answer.result["reproductions"]
    assert [reproduction["id"] for reproduction in found] == ["kikuuwe-fig7", "kikuuwe-fig6"]
    assert set(found[0]["rows"][0]) == {
        "what",
        "expected",
        "ours",
        "difference",
        "tolerance",
        "unit",
        "source",
        "met",
        "holds",
    }
    assert found[0]["tally"] == {
        "paper": {"count": 1, "holding": 1},
        "derived": {"count": 8, "holding": 8},
        "guard": {"count": 0, "holding": 0},
    }
    ink = (pixels(Path(found[0]["picture"]))[..., :3] < 0.9).any(axis=2)
    assert ink.mean() > 0.005
    assert sorted(path.name for path in folder.iterdir()) == [
        "kikuuwe-fig6.csv",
        "kikuuwe-fig6.png",
        "kikuuwe-fig7.csv",
        "kikuuwe-fig7.png",
        "summary.md",
    ]
    assert Path(found[0]["picture"]).is_file()
    json.dumps(answer.result, allow_nan=False)
    assert "9 of 9 met" in answer.text


def test_number_that_is_not_met_gives_status_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = Outcome([Row("length", 1.0, 2.0, 0.5, "m")], lambda figure: figure.subplots())
    monkeypatch.setattr(kikuuwe_fig7, "reproduce", lambda: outcome)
    answer = reproduce("kikuuwe-fig7", "--out", str(tmp_path))
    assert answer.status == 1
    assert answer.result["all_met"] is False
    assert answer.error == "1 of 1 numbers are not met."


def test_guard_that_breaks_gives_status_1_and_is_no_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [Row("length", 1.0, 1.0), Row("size", Bound(maximum=1.0), 2.0, source="guard")]
    outcome = Outcome(rows, lambda figure: figure.subplots())
    monkeypatch.setattr(kikuuwe_fig7, "reproduce", lambda: outcome)
    answer = reproduce("kikuuwe-fig7", "--out", str(tmp_path))
    assert answer.status == 1
    assert answer.result["all_met"] is True
    assert answer.result["all_guards_hold"] is False
    assert answer.error == "1 of 1 guards do not hold."
    assert "1 of 1 met, guards: 0 of 1 hold" in answer.text
    assert "guard does not hold: size: 2" in answer.text


def test_unknown_id_is_answered_with_all_that_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"'kikuuwe-fig9'.*Allowed: all, .*kikuuwe-fig6"):
        reproduce("kikuuwe-fig6", "kikuuwe-fig9", "--out", str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("arguments", [(), ("all",), ("kikuuwe-fig6", "all")])
def test_list_has_everything_with_its_title(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = reproduce(*arguments, "--list")
    assert [row["id"] for row in answer.result["reproductions"]] == list(REPRODUCTIONS)
    assert "kikuuwe-fig13" in answer.text
    assert "Fig. 13" in answer.text
    assert list(tmp_path.iterdir()) == []
