"""The same hand motion with other settings: again without a clock, or from the recorded samples."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from apps.cli import main
from apps.compare.again import open_loop, twice
from haptics.errors import ConfigurationError
from haptics.recording.recording import Recording
from tests.apps.compare.test_compare import record


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return Recording(record(tmp_path_factory.mktemp("again"), "--model", "C", "--set", "law.force=3"))


def test_what_a_mouse_did_is_repeated_along_its_path(recording: Recording, tmp_path: Path) -> None:
    recording.metadata["configuration"]["device"]["hand"] = {"name": "mouse"}
    try:
        first, second = twice(recording, ["law.force=1.5"], tmp_path / "runs")
    finally:
        recording.metadata["configuration"]["device"]["hand"] = {"name": "minimum-jerk"}
    assert first.metadata["configuration"]["device"]["hand"]["name"] == "recorded"
    way = np.hypot(*(first.rows["position"] - recording.rows["position"]).T)
    assert np.percentile(way, 95) < 0.005
    assert (second.rows["position"] != first.rows["position"]).any()


def test_with_the_same_settings_the_open_loop_gives_what_was_recorded(recording: Recording) -> None:
    pieces, _ = open_loop(recording, [])
    rows = np.concatenate(list(pieces))
    assert rows["friction_force"] == pytest.approx(recording.rows["friction_force"], abs=1e-12)
    assert rows["proxy"] == pytest.approx(recording.rows["proxy"], abs=1e-12)
    assert (rows["command"] == 0.0).all(), "nothing of it was sent"


def test_the_open_loop_answers_the_same_motion_with_another_law(recording: Recording) -> None:
    pieces, config = open_loop(recording, ["law.name=coulomb-viscous", "law.force=2", "law.viscosity=4"])
    rows = np.concatenate(list(pieces))
    assert config.law["name"] == "coulomb-viscous"
    assert (rows["position"] == recording.rows["position"]).all()
    speed, force = (np.hypot(*rows[name].T) for name in ("sliding_velocity", "friction_force"))
    sliding = (rows["sticking"] == 0) & (speed > 0.02)
    assert force[sliding] == pytest.approx(2.0 + 4.0 * speed[sliding], rel=1e-6)


def test_the_command_says_that_the_loop_is_open(recording: Recording, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["compare", str(recording.folder), "--with", "law.force=1", "--open-loop"]
    capsys.readouterr()
    assert main([*arguments, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["open_loop"] == ["law.force=1"]
    figures = {row["name"]: row for row in answer["figures"]}
    assert figures["path of the end effector"]["a"] == figures["path of the end effector"]["b"]
    assert main(arguments) == 0
    assert "LOOP OPEN" in capsys.readouterr().out


@pytest.mark.parametrize(
    "more",
    [[], ["B", "--with", "law.force=1"], ["B", "--open-loop"], ["--with", "law.force=-1"], ["--with", "nothing"]],
)
def test_what_makes_no_sense_is_refused(recording: Recording, more: list[str]) -> None:
    given = [str(recording.folder) if word == "B" else word for word in more]
    assert main(["compare", str(recording.folder), *given]) == 2


def test_a_recording_that_does_not_say_how_it_was_made_is_refused(recording: Recording, tmp_path: Path) -> None:
    kept = recording.metadata.pop("configuration")
    try:
        with pytest.raises(ConfigurationError, match="cannot be run again"):
            twice(recording, ["law.force=1"], tmp_path)
    finally:
        recording.metadata["configuration"] = kept
