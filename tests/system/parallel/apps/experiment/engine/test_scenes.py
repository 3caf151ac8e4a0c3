"""Long computations for the topic of tests/apps/experiment/engine/test_scenes.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from apps.experiment.journal import trial_rows
from tests.apps.experiment.engine.running import simulate
from tests.apps.experiment.engine.test_scenes import along_a_wall, sound


def test_the_friction_of_a_wall_is_judged(tmp_path: Path) -> None:
    _, place = simulate(along_a_wall(tmp_path), tmp_path / "out")
    for rows in sound(place):
        assert np.nanmax(rows["normal_force"]) > 1.0
    assert trial_rows(place, None)[0]["axis_unit"] == ""
    assert "np." not in place.table.read_text(encoding="utf-8"), "numbers as people write them"
