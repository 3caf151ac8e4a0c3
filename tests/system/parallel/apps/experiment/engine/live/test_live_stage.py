"""Live blocks: the same trials by the wall's clock, each block a session of the servo in its own process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from apps.experiment.design import read_design
from apps.experiment.engine import sitting
from apps.experiment.engine.live.stage import Followers, LiveStage
from apps.experiment.engine.opening import Manner, Request
from apps.experiment.engine.running import run_session
from apps.experiment.journal import SessionFolder, read_journal, replay
from haptics.recording.recording import Recording
from haptics.recording.replay import verify
from tests.apps.experiment.design.designs import WEBER, changed
from tests.apps.experiment.engine.test_scenes import along_a_wall

CALM = WEBER.replace("block = 5", "block = 4\nrest = 0.5\nlate_ticks = 1.0\nlongest_gap = 0.9").replace(
    "most_trials = 4", "most_trials = 2"
)


class Told:
    """Stands in for the session of a block: what it is told to go on with."""

    def __init__(self, config: Any, tell: Any, *, progress: Any, folder: Path) -> None:
        self.folder = folder
        self.keys = SimpleNamespace(listen=lambda hear: None)
        self.tables: list[Mapping[str, Any]] = []

    def configure(self, tables: Mapping[str, Any]) -> None:
        self.tables.append(tables)


def told(path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, Any]]:
    """Return what a session is told where the level is 0.5, 0.7, once more 0.7, and 0.5 again."""
    monkeypatch.setattr("apps.experiment.engine.live.stage.Session", Told)
    design = read_design(path)
    low, high = (design.config(design.conditions[0], level) for level in (0.5, 0.7))
    stage: Any = LiveStage(low, folder, lambda kind, **fields: None, Followers())
    for config in (low, high, high, low):
        stage.take(config)
    return list(stage.session.tables)


def test_a_level_is_put_in_force_where_it_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = told(changed(tmp_path), tmp_path / "block", monkeypatch)
    assert [one["law"]["force"] for one in tables] == [0.7, 0.5]
    assert not any("scene" in one for one in tables)


def test_on_a_scene_it_is_the_scene_that_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = told(along_a_wall(tmp_path), tmp_path / "block", monkeypatch)
    assert [[wall["friction"] for wall in one["scene"]["walls"]] for one in tables] == [[0.7], [0.5]]


@pytest.mark.parametrize("live", [False, True])
def test_the_own_friction_is_measured_by_the_clock_of_the_blocks(
    live: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def ended(*_: Any, live: bool) -> None:
        asked.append(live)
        raise sitting.Ended

    monkeypatch.setattr(sitting, "with_friction", ended)
    file = changed(tmp_path, "{ most_trials = 3 }", "{}")
    request = Request("P01", 1, 7, tmp_path / "out", {}, simulated=True, manner=Manner(live=live))
    assert run_session(read_design(file), request)["reason"] == "ended by a person"
    assert asked == [live]


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
