"""Live blocks: the same trials by the wall's clock, each block a session of the servo in its own process."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.experiment.design import read_design
from apps.experiment.engine.opening import Manner, Request
from apps.experiment.engine.running import run_session
from apps.experiment.journal import SessionFolder, read_journal, replay
from apps.verify.check import verify as check
from haptics.recording.recording import Recording
from haptics.recording.replay import verify
from tests.apps.experiment.design.designs import WEBER, changed
from tests.apps.experiment.engine.test_scenes import along_a_wall

CALM = WEBER.replace("block = 5", "block = 4\nlate_ticks = 1.0\nlongest_gap = 0.9").replace(
    "most_trials = 4", "most_trials = 2"
)


@pytest.mark.slow
def test_a_live_block_is_recorded_and_replays(tmp_path: Path) -> None:
    file = changed(tmp_path, "{ most_trials = 3 }", "{}", CALM.replace("easy = 0.2", "easy = 0.0"))
    request = Request("P01", 1, 7, tmp_path / "out", {}, simulated=True, manner=Manner(live=True))
    result = run_session(read_design(file), request)
    assert (result["trials"], result["reason"]) == (4, "completed")
    place = SessionFolder.of(Path(result["folder"]))
    state = replay(read_journal(place.journal).records)
    recording = Recording(place.recording(1))
    assert verify(recording).mismatches == 0
    for attempt in state.attempts:
        for marker, value in zip(attempt.start["markers"], attempt.start["values"], strict=True):
            rows = recording.rows[recording.rows["marker"] == marker]
            (version,) = set(rows["settings_version"].tolist())
            assert recording.settings[version]["law"]["force"] == value
            assert (rows["gate"] == 1.0).all() and len(rows) > 500


@pytest.mark.slow
def test_a_live_block_on_a_scene_changes_its_walls(tmp_path: Path) -> None:
    text = along_a_wall(tmp_path).read_text(encoding="utf-8").replace("easy = 0.2", "easy = 0.0")
    for old, new in (
        ("block = 5", "block = 4\nlate_ticks = 1.0\nlongest_gap = 0.9"),
        ("most_trials = 4", "most_trials = 1"),
    ):
        text = text.replace(old, new)
    file = changed(tmp_path, "{ most_trials = 3 }", "{}", text)
    result = run_session(
        read_design(file), Request("P01", 1, 7, tmp_path, {}, simulated=True, manner=Manner(live=True))
    )
    assert (result["trials"], result["reason"]) == (2, "completed")
    place = SessionFolder.of(Path(result["folder"]))
    recording = Recording(place.recording(1))
    assert (verify(recording).mismatches, check(place.recording(1))[1].violations) == (0, [])
    for attempt in replay(read_journal(place.journal).records).attempts:
        for marker, value in zip(attempt.start["markers"], attempt.start["values"], strict=True):
            (version,) = set(recording.rows["settings_version"][recording.rows["marker"] == marker].tolist())
            assert [wall["friction"] for wall in recording.settings[version]["scene"]["walls"]] == [value]
