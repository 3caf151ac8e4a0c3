"""Long computations for the topic of tests/apps/calibrate/test_calibrate_friction.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from calibration.parameters.files import read_parameter_file
from tests.apps.calibrate.commands import calibrate
from tests.apps.calibrate.test_calibrate_friction import (
    KEYS,
    folder,  # noqa: F401
)
from tests.processes import ROOT


def test_one_line_finds_the_knee(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, out, report = folder / "knee.csv", folder / "P.toml", folder / "R.html"
    answer = calibrate(
        capsys, "friction", "--data", data, "--out", out, "--report", report, "--check", folder / "again.csv"
    )
    assert answer["out"] == str(out) and answer["report"] == str(report)
    (joint,) = answer["joints"]
    assert joint["friction"]["model"].startswith("stribeck")
    assert joint["models"]["coulomb-viscous"] > 1.2 * joint["models"]["stribeck"]
    assert 0.01 < joint["checks"]["again.csv"] < 0.05
    found = read_parameter_file(out)
    assert found.provenance.data_files == ("knee.csv",)
    assert found.joints[0].known_friction().values["coulomb"] == joint["friction"][KEYS["coulomb"]]
    assert report.read_text(encoding="utf-8").count("<section>") == 1


def test_people_are_told_what_was_found(folder: Path) -> None:
    arguments = (
        "friction",
        "--data",
        "knee.csv",
        "--out",
        "T.toml",
        "--model",
        "coulomb-viscous",
        "--identity",
        "knee 7",
    )
    done = subprocess.run(
        [sys.executable, "-m", "apps", "calibrate", *arguments],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    assert "joint: coulomb-viscous friction, residual" in done.stdout
    assert "viscosity_nms_per_rad" in done.stdout and "95 % between" in done.stdout
    assert "Parameters: T.toml" in done.stdout
    assert done.stderr == ""
    assert read_parameter_file(folder / "T.toml").provenance.device == "knee 7"
