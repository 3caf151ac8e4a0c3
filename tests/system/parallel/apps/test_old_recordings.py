"""Recordings of earlier formats: verified, drawn, shown, and read for calibration."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from apps import cli
from calibration.data.reading import read_joint_recordings
from haptics.errors import ConfigurationError
from haptics.recording.recording import Recording
from tests.recordings import of_every_kept_recording

KILLED = "c_killed"


@of_every_kept_recording
def test_old_recording_is_verified_and_drawn(kept, tmp_path, capsys):
    status = cli.main(["replay", str(kept), "--verify", "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert answer["mismatches"] == 0
    assert (status, answer["verdict"]) == ((1, "incomplete") if kept.name == KILLED else (0, "ok"))
    missing = {finding["rule"] for finding in answer["findings"] if finding["verdict"] != "ok"}
    assert missing == ({"state", "hash", "certificate"} if kept.name == KILLED else set())
    shutil.copytree(kept, tmp_path / "run")
    assert cli.main(["replay", str(tmp_path / "run"), "--headless", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["ticks"] == len(Recording(kept).rows)
    assert Path(answer["picture"]).read_bytes().startswith(b"\x89PNG")


@of_every_kept_recording
def test_old_recording_is_shown(kept, tmp_path, qtbot):
    pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError, reason="Qt or its system libraries are missing")
    from apps.shared.theme import DARK
    from apps.view.replay import ReplayWindow
    from apps.view.screenshot import grab

    recording = Recording(kept)
    window = ReplayWindow(recording.rows, recording.metadata, DARK)
    qtbot.addWidget(window)
    for index in (0, 200, len(recording.rows) - 1):
        window.seek(index)
        assert window.index == index
    grab(recording.rows, recording.metadata, tmp_path / "window.png")
    assert (tmp_path / "window.png").stat().st_size > 10_000


@of_every_kept_recording
def test_old_recording_is_read_for_calibration(kept):
    recording = Recording(kept)
    if recording.metadata["device"]["causality"] == "admittance" or kept.name == "b_fault":
        with pytest.raises(ConfigurationError, match=r"not recorded|not a finite number"):
            read_joint_recordings(kept)
        return
    measured = read_joint_recordings(kept)
    assert [one.joint for one in measured] == ["x", "y"]
    for number, one in enumerate(measured):
        assert np.array_equal(one.effort, -(recording.rows["command"] + recording.rows["force"])[:, number])
