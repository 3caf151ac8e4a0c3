"""Long computations for the topic of tests/apps/calibrate/test_calibrate_coupled.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibration.coupled import COUPLINGS, Coupling
from tests.apps.calibrate.commands import calibrate
from tests.apps.calibrate.test_calibrate_coupled import write


def test_a_coupling_can_come_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torso = COUPLINGS["icub-torso"]
    mine = Coupling(torso.joints, ("left", "middle", "right"), torso.matrix)
    text = f"joints = {list(mine.joints)}\nmotors = {list(mine.motors)}\nmatrix = {mine.matrix.tolist()}\n"
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    data, out = write(tmp_path / "a.csv", mine), tmp_path / "P.toml"
    arguments = ("--coupling", tmp_path / "mine.toml", "--data", data, "--out", out, "--model", "coulomb-viscous")
    answer = calibrate(capsys, "coupled", *arguments, "--report", tmp_path / "R.html")
    assert [joint["name"] for joint in answer["joints"]] == ["left", "middle", "right"]
    assert (tmp_path / "R.html").read_text(encoding="utf-8").count("<section>") == 3
    errors = calibrate(capsys, "check", "--parameters", out, "--data", data)["relative_errors"]["a.csv"]
    assert set(errors) == {"left", "middle", "right"}
