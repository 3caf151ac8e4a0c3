"""Long computations for the topic of tests/apps/experiment/power/test_command.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.apps.experiment.power.test_command import FILE, plan


def test_many_people_without_a_threshold_are_worth_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A staircase that settles at 86 % presents little near 80 %."""
    procedure = 'kind = "staircase"\nstart = 0.5\ndown = 4\nreversals = 8\nsteps = [2.0]'
    text = 'kind = "quest+"\nminimum = 0.04\nmaximum = 2.0\ncount = 16\nthresholds = 20\ntrials = 30'
    new = f"{procedure}\nminimum = 0.04\nmaximum = 2.0"
    changed = FILE.replace("[power]", "[power]\nproportion = 0.8")
    monkeypatch.setattr("tests.apps.experiment.power.test_command.FILE", changed)
    answer = plan(tmp_path, old=text, new=new)
    assert answer.result["left_out"] > 3 and "power.proportion" in answer.text.replace("\n", " ")


def test_the_same_seed_is_the_same_plan(tmp_path: Path) -> None:
    def rows(*arguments: str) -> list[Any]:
        return plan(tmp_path, "--people", "20", *arguments).result["power"]

    assert rows("--seed", "3") == rows("--seed", "3") != rows("--seed", "4")
