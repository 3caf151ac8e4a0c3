"""Long computations for the topic of tests/apps/calibrate/test_calibrate_device.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from apps.cli import main
from tests.apps.calibrate.test_calibrate_device import calibrate
from tests.devices.felt import FRICTION
from tests.processes import NO_PICTURE

QUICK = [f"--set=excitation.{setting}" for setting in ("speeds=4", "rounds=2", "strokes=1", "stroke_time=0.25")]


OWN = [f"--set=device.friction.{axis}.{name}={value}" for axis in FRICTION for name, value in FRICTION[axis].items()]


MODEL = "--model=stribeck-asymmetric"


def test_a_device_is_measured_and_its_file_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, record = tmp_path / "own.toml", tmp_path / "recordings"
    found = calibrate("--device=virtual-joystick", *OWN, *QUICK, MODEL, f"--out={out}", f"--record={record}", "--json")
    captured = capsys.readouterr()
    assert found == 0, captured.err
    assert "let go of the handle" in captured.err
    joints = {joint["name"]: joint["friction"] for joint in json.loads(captured.out)["joints"]}
    for axis, levels in FRICTION.items():
        for direction in ("forward", "backward"):
            assert joints[axis][f"coulomb_force_{direction}_n"] == pytest.approx(
                levels[f"coulomb_{direction}"], rel=0.15
            )
    (recording,) = record.iterdir()
    assert json.loads((recording / "recording.json").read_text())["state"] == "complete"

    session = [
        "run",
        "--device=virtual-joystick",
        *OWN,
        f"--set=device.friction_parameters={out}",
        "--headless",
        *NO_PICTURE,
    ]
    ended = main([*session, "--duration=0.3", "--set=law.force=0.01", f"--record={record}", "--json"])
    captured = capsys.readouterr()
    assert ended == 0, captured.err
    result = json.loads(captured.out)
    assert any("friction left of its own" in advice for advice in result["advice"])
    assert json.loads((Path(result["recording"]) / "recording.json").read_text())["friction_file_hash"]
