"""Long computations for the topic of tests/apps/calibrate/test_calibrate_tuning.py."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from apps.cli import main
from apps.settings.config import complete
from apps.verification import examine
from apps.verify.check import verify
from haptics.errors import ConfigurationError
from haptics.reading import sha256_of
from haptics.recording.recording import Recording
from tests.processes import NO_PICTURE

QUICK = ["--set=autotune.axes=x", "--set=autotune.pushes=16"]


def calibrate(*arguments: str) -> int:
    return main(["calibrate", "device", *arguments])


def session(path: Path, stiffness: float, damping: float, **more: Any) -> dict[str, Any]:
    tables = {"session": {"measured": str(path), "model": "C"}, "device": {"name": "virtual-joystick", **more}}
    return {**tables, "element": {"stiffness": stiffness, "damping": damping}}


def test_a_device_is_tuned_and_its_sessions_keep_to_the_boundary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, record = tmp_path / "tuned.toml", tmp_path / "recordings"
    assert calibrate("--device=virtual-joystick", *QUICK, f"--out={out}", f"--record={record}", "--json") == 0
    captured = capsys.readouterr()
    assert "let go of the handle" in captured.err
    answer = json.loads(captured.out)
    written = tomllib.loads(out.read_text())
    axis, boundary = written["axis"]["x"], written["axis"]["x"]["boundary"]
    assert answer["axis"]["x"]["mass_kg"] == axis["mass_kg"] == pytest.approx(0.2, rel=0.02)
    low, high = axis["interval_95"]["damping_ns_per_m"]
    assert low <= 1.0 <= high
    assert axis["resolution_m"] == pytest.approx(1e-5, rel=1e-6)
    assert written["suggestion"]["stiffness_n_per_m"] <= 0.5 * boundary["stiffness_n_per_m"] * (1.0 + 1e-9)

    edge, damping = boundary["stiffness_n_per_m"], boundary["damping_ns_per_m"]
    config = complete(session(out, 0.9 * edge, damping))
    assert config.known_spec.mass == axis["mass_kg"]
    with pytest.raises(ConfigurationError, match="begins to swing"):
        complete(session(out, 1.01 * edge, damping))
    with pytest.raises(ConfigurationError, match="begins to swing"):
        config.with_parameter("element.stiffness", 1.01 * edge)
    with pytest.raises(ConfigurationError, match="begins to swing"):
        config.with_tables({"element": {"stiffness": 1.01 * edge}})

    run = ["run", "--device=virtual-joystick", "--model=C", "--headless", "--duration=0.2", "--clock=off", *NO_PICTURE]
    run += [f"--set=session.measured={out}", f"--set=element.damping={damping}", f"--record={record}", "--json"]
    assert main([*run, f"--set=element.stiffness={2.0 * edge}"]) == 2
    assert "session.measured" in capsys.readouterr().err
    assert main([*run, f"--set=element.stiffness={0.9 * edge}"]) == 0
    the_recording_knows_its_file(Path(json.loads(capsys.readouterr().out)["recording"]), out)


def the_recording_knows_its_file(recording: Path, file: Path) -> None:
    """The hash of the file is in the recording; one of before there was a hash is verified all the same."""
    sidecar = recording / "recording.json"
    told = json.loads(sidecar.read_text())
    assert told["measured_file_hash"] == sha256_of(file)
    assert verdicts(recording) == ("ok", [], "ok")
    file.write_text(file.read_text() + "\n")
    assert verdicts(recording) == ("ok", ["measured"], "ok")
    sidecar.write_text(json.dumps({name: value for name, value in told.items() if name != "measured_file_hash"}))
    assert verdicts(recording) == ("ok", [], "ok")
    del told["configuration"]["session"]["measured"]
    sidecar.write_text(json.dumps(told))
    assert verdicts(recording) == ("violated", ["configuration"], "violated")


def verdicts(recording: Path) -> tuple[str, list[str], str]:
    """What ``replay --verify`` says, and finds, and what ``verify`` says."""
    found = examine(Recording(recording))
    return found.verdict, [one.rule for one in found.findings], verify(recording)[1].verdict


def test_a_device_that_fails_leaves_its_recording_and_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, record = tmp_path / "tuned.toml", tmp_path / "recordings"
    place = [f"--out={out}", f"--record={record}"]
    assert calibrate("--device=virtual-joystick", *QUICK, "--fault=unplug@3", *place) == 4
    assert "The recording is in" in capsys.readouterr().err
    assert not out.exists()
    (recording,) = record.iterdir()
    assert (recording / "ticks.npy").exists()
