"""The experiments that are shipped: each can be read, and each runs with a simulated observer."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.experiment.design import read_design
from apps.experiment.journal import trial_rows
from apps.experiment.stimulus import measure
from tests.apps.experiment.engine.running import simulate
from tests.processes import ROOT

FILES = sorted([*(ROOT / "examples/experiments").glob("*.toml"), *(ROOT / "examples/replications").glob("*.toml")])


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_it_can_be_read(file: Path) -> None:
    assert read_design(file).conditions


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_it_runs_and_what_is_felt_is_what_was_asked(file: Path, tmp_path: Path) -> None:
    result, place = simulate(file, tmp_path, seed=read_design(file).experiment.seed)
    assert result["reason"] == "completed" and result["repeated"] == 0
    rows = trial_rows(place, measure)
    assert all(row["delivered_exact"] for row in rows)
    if "compensation" in file.read_text(encoding="utf-8"):
        for row in rows:
            for k in (1, 2):
                assert abs(row[f"felt_{k}"] - row[f"asked_{k}"]) < 0.02 * row[f"asked_{k}"]
