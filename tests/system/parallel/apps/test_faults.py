"""Faults on demand from the command line: what a person sees, and what stays in the recording."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.cli import main
from apps.settings.config import complete, gather
from haptics.errors import ConfigurationError
from haptics.recording.recording import Recording
from haptics.records import Status
from tests.processes import NO_PICTURE


def run(folder: Path, *arguments: str) -> tuple[subprocess.CompletedProcess[str], Recording]:
    command = [
        sys.executable,
        "-m",
        "apps",
        "run",
        "--headless",
        "--json",
        *NO_PICTURE,
        "--record",
        str(folder),
        *arguments,
    ]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300.0, check=False)
    return done, Recording(Path(json.loads(done.stdout)["recording"]))


def commands_after(recording: Recording, start: float) -> np.ndarray[Any, np.dtype[Any]]:
    rows = recording.rows
    assert rows["time"][-1] >= start, "the fault must have come"
    return np.asarray(rows["command"][rows["time"] >= start])


def test_a_device_that_loses_its_numbers_is_status_4_with_the_recording_kept(tmp_path: Path) -> None:
    done, recording = run(tmp_path, "--fault", "nan@0.3", "--duration", "20")
    assert done.returncode == 4
    assert "faults on demand: nan from 0.3 s on" in done.stderr.splitlines()
    assert "virtual-joystick" in json.loads(done.stdout)["error"]
    assert str(recording.folder) in done.stderr
    assert recording.metadata["configuration"]["session"]["faults"] == ["nan@0.3"]
    rows = recording.rows
    bad = rows["time"] >= 0.3
    assert bad.any()
    assert (rows["status"][bad] & Status.NOT_FINITE).all()
    assert not (rows["status"][~bad] & Status.NOT_FINITE).any()
    assert np.isfinite(rows["command"]).all()
    assert not rows["command"][-1].any()


def test_an_unplugged_arm_is_status_4_and_named(tmp_path: Path) -> None:
    done, recording = run(tmp_path, "--device", "virtual-arm", "--fault", "unplug@0.3", "--duration", "20")
    assert done.returncode == 4
    error = json.loads(done.stdout)["error"]
    assert "virtual-arm" in error
    assert "No such device (read, fault on demand)" in error
    rows = recording.rows
    assert 0.2 < rows["time"][-1] < 0.31
    assert np.isfinite(rows["command"]).all()


def test_a_dropout_is_survived(tmp_path: Path) -> None:
    """Without a clock: on the wall's, a machine that stands still makes other samples too old."""
    faults = "--fault", "duplicate@0.1", "--fault", "dropout@0.3"
    done, recording = run(tmp_path, *faults, "--duration", "0.8", "--clock", "off")
    assert done.returncode == 0, done.stderr
    assert "faults on demand: duplicate from 0.1 s on, dropout from 0.3 s for 0.05 s" in done.stderr
    rows = recording.rows
    stale = (rows["status"] & Status.STALE) != 0
    too_old = 0.3005 + recording.metadata["limits"]["max_sample_age"]
    without = (rows["time"] > too_old) & (rows["time"] < 0.3495)
    assert stale[without].all()
    assert not stale[~without & ((rows["time"] < 0.3) | (rows["time"] > 0.36))].any()


def test_faults_in_a_file_and_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "session.toml"
    file.write_text('[session]\nfaults = ["nan@2", "stuck@1+0.5"]\n')
    config = complete(gather(file, []))
    assert config.session.faults == ("nan@2", "stuck@1+0.5")
    assert config.as_dict()["session"]["faults"] == ["nan@2", "stuck@1+0.5"]
    assert complete({}).as_dict()["session"]["faults"] == []
    assert main(["run", "--config", str(file), "--fault", "unplugged@2", "--headless"]) == 2
    assert "Did you mean 'unplug'?" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", ["nan@2", 3, ["nan"], [2.0], [["nan@2"]], {"nan": 2}])
def test_faults_that_are_none_are_named(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="fault"):
        complete({"session": {"faults": wrong}})
