"""The command: friction of the motors behind a coupling, by name or from a file."""

from pathlib import Path

import pytest

from calibration.coupled import COUPLINGS, Coupling
from calibration.parameters.files import read_parameter_file
from tests.apps.calibrate.commands import calibrate, refusal
from tests.calibration.measured import write_csv
from tests.calibration.test_coupled import LAWS, recorded

CASES = sorted(COUPLINGS)


def write(path: Path, coupling: Coupling, noise: float = 0.02, motors: int = 3) -> Path:
    joints = recorded(coupling, LAWS[:motors], noise)
    columns = {"time_s": joints[0].time}
    for joint in joints:
        columns[f"{joint.joint}__velocity_rad_per_s"] = joint.velocity
        columns[f"{joint.joint}__torque_nm"] = joint.effort
    return write_csv(path, **columns)


@pytest.mark.parametrize("name", CASES)
def test_each_motor_gets_its_own_friction(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    coupling = COUPLINGS[name]
    data, out = write(tmp_path / "a.csv", coupling), tmp_path / "P.toml"
    arguments = ("coupled", "--coupling", name, "--data", data, "--out", out, "--model", "stribeck", "--check", data)
    answer = calibrate(capsys, *arguments)
    assert [joint["name"] for joint in answer["joints"]] == list(coupling.motors)
    for joint, law in zip(answer["joints"], LAWS, strict=True):
        found = joint["friction"]
        assert found["coulomb_torque_nm"] == pytest.approx(law["coulomb"], abs=0.01)
        assert found["viscosity_nms_per_rad"] == pytest.approx(law["viscosity"], abs=0.05)
        assert joint["checks"]["a.csv"] < 0.05
    file = read_parameter_file(out)
    assert file.coupling is not None and file.coupling.joints == coupling.joints


def test_a_motor_that_never_moved_alone_is_missed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torso = COUPLINGS["icub-torso"]
    data = write(tmp_path / "a.csv", torso, motors=2)
    arguments = ("--coupling", "icub-torso", "--data", data, "--out", tmp_path / "P.toml", "--model", "coulomb-viscous")
    answer = calibrate(capsys, "coupled", *arguments)
    assert [joint["name"] for joint in answer["joints"]] == ["motor_a", "motor_b"]
    assert answer["missing"] == ["motor_c"]


@pytest.mark.parametrize(
    ("coupling", "says"),
    [
        ("icub-tors", "Did you mean 'icub-torso'"),
        ("none.toml", "--coupling = 'none.toml': cannot be read"),
        ("bad.toml", "bad.toml: coupling: must have joints"),
        ("number.toml", "number.toml: coupling = 3: must be a table"),
        ("deep.toml", "--coupling = 'deep.toml': is nested too deeply"),
        ("icub-left-shoulder", "has no joint l_shoulder_pitch"),
    ],
)
def test_a_wrong_request_is_one_line(
    coupling: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.toml").write_text("joints = ['a']\n", encoding="utf-8")
    (tmp_path / "number.toml").write_text("coupling = 3\n", encoding="utf-8")
    (tmp_path / "deep.toml").write_text("x = " + "[" * 2000 + "]" * 2000, encoding="utf-8")
    write(tmp_path / "a.csv", COUPLINGS["icub-torso"])
    assert says in refusal(capsys, "coupled", "--coupling", coupling, "--data", "a.csv", "--out", "P.toml")
