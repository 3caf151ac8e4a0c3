"""Long computations for the topic of tests/apps/gallery/test_minutes.py."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from apps.gallery.registry import DEMONSTRATIONS
from apps.gallery.showing import Showing
from tests.apps.gallery.test_minutes import require, shown
from tests.processes import ROOT
from tests.sampling import sample


@pytest.mark.parametrize("name", sample(DEMONSTRATIONS, 2))
def test_what_it_promises_holds_in_its_whole_length(name: str, tmp_path: Path) -> None:
    result = shown(name, tmp_path, brief=False)
    require(result)
    page = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith(f"| [{name}]"))
    told = f"{result.outcome.number:.3g} {result.outcome.unit}"
    assert told in row, "the page says what comes out"


def test_the_interval_of_the_threshold_has_the_truth_in_it_as_often_as_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apps.gallery.minutes import threshold

    design, seeds = threshold._design, range(100, 125)
    held = []
    for seed in seeds:

        def seeded(hand: str, seed: int = seed) -> Any:
            found = design(hand)
            return dataclasses.replace(found, experiment=dataclasses.replace(found.experiment, seed=seed))

        monkeypatch.setattr(threshold, "_design", seeded)
        outcome = threshold.demonstrate(Showing("threshold", tmp_path / str(seed)))
        held.append(outcome.rows[0].holds)
    assert sum(held) >= 21, "95 % of 25 are 24; with a chance of 1 in 100 there are fewer than 21"
