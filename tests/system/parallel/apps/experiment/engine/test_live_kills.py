"""Whatever is killed of a live session, and whenever: its journal is that of a session that was never interrupted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apps.experiment.design.designs import WEBER, changed
from tests.apps.experiment.engine.live.killed import course, different, main
from tests.apps.experiment.engine.running import simulate
from tests.apps.screen import WHY_NOT

QUICK = (
    WEBER.replace("{ most_trials = 3 }", "{}")
    .replace("reversals = 20\nmost_trials = 4", "reversals = 20\nmost_trials = 30")
    .replace("block = 5", "block = 20\nrest = 0.2\ninterval = 0.3\ngap = 0.15\nlate_ticks = 1.0\nlongest_gap = 0.9")
    .replace("start = [-0.03, 0.0]\nstrokes = 2\nleast_speed = 0.025\ngreatest_speed = 0.2\n", "")
    + "\n[screen]\nfull_screen = false\n"
)


@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
@pytest.mark.timeout(900)
def test_kills_at_random_moments_leave_the_same_journal(tmp_path: Path) -> None:
    few = QUICK.replace("most_trials = 30", "most_trials = 5")
    told = main(changed(tmp_path, text=few), tmp_path / "out", 3, 3)
    assert told["kills"] == {"application": 1, "servo": 1, "screen": 1}
    assert told["resumed"] == 3
    assert told["different"] == []


def test_a_difference_would_be_seen(tmp_path: Path) -> None:
    file = changed(tmp_path)
    for out, seed in (("a", 7), ("b", 7), ("c", 8)):
        simulate(file, tmp_path / out, seed=seed)
    assert course(tmp_path / "a") and not different(tmp_path / "a", tmp_path / "b")
    assert different(tmp_path / "a", tmp_path / "c")
