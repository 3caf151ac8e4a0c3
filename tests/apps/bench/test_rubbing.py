"""The benchmark ``mujoco``: exact friction neither creeps nor slides at another force; MuJoCo's own is told, too."""

from __future__ import annotations

import importlib.util

import pytest

from apps.bench import rubbing
from apps.bench.outcome import CannotMeasure


def test_without_mujoco_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CannotMeasure, match="pip install mujoco"):
        rubbing.run(lambda share, words: None)


def test_rows_tell_creep_sliding_force_and_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mujoco")
    monkeypatch.setattr(rubbing, "_ROUNDS", 3)
    monkeypatch.setattr(rubbing, "_STEPS", 50)
    outcome = rubbing.run(lambda share, words: None)
    rows = {row["friction"]: row for row in outcome.result["rows"]}
    exact = rows["exact, by a callback"]
    assert exact["creep_um_s"] == 0.0
    assert exact["sliding_n"] == pytest.approx(4.0, abs=1e-9)
    assert rows["elliptic cone"]["creep_um_s"] > 100.0
    assert abs(rows["elliptic cone, noslip 10"]["creep_um_s"]) < 1.0, "noslip is nearly as good, and the page says so"
    assert all(row["ratio"] > 0.0 for row in rows.values())
    assert "noslip 10" in outcome.text
