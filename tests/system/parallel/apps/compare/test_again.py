"""Long computations for the topic of tests/apps/compare/test_again.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from apps.compare.again import twice
from haptics.recording.recording import Recording
from tests.apps.compare.test_again import recording  # noqa: F401


def test_a_run_again_is_the_same_and_the_other_has_the_other_law(recording: Recording, tmp_path: Path) -> None:
    first, second = twice(recording, ["law.force=1.5"], tmp_path / "runs")
    assert (first.rows["position"] == recording.rows["position"]).all()
    assert (first.rows["command"] == recording.rows["command"]).all()
    sliding = second.rows["sticking"] == 0
    assert sliding.sum() > 100
    force = np.hypot(*second.rows["friction_force"][sliding].T)
    assert np.median(force) == pytest.approx(1.5)
    assert len(second.rows) == len(recording.rows)
