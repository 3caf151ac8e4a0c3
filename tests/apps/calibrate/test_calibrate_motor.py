"""The command: gain and offset of a motor once the friction is known, hysteresis where it is not, back-EMF."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from calibration.parameters.files import read_parameter_file
from tests.apps.calibrate.commands import calibrate, refusal
from tests.calibration.hand_moved import KNEE
from tests.calibration.measured import driven, friction, idle, through_stuck_gear, write_csv, write_idle


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_idle(tmp_path / "idle.csv", noise=0.05)
    motor = driven(noise=0.05)
    assert motor.drive is not None
    write_csv(
        tmp_path / "driven.csv",
        time_s=motor.time,
        velocity_rad_per_s=motor.velocity,
        torque_nm=motor.effort,
        pwm_percent=motor.drive,
    )
    return tmp_path


def known(folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    out = folder / "friction.toml"
    calibrate(capsys, "friction", "--data", folder / "idle.csv", "--out", out, "--model", "stribeck")
    return out


def test_both_phases_give_gain_and_offset(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, report = folder / "motor.toml", folder / "motor.html"
    data = ("--data", folder / "driven.csv", "--friction", known(folder, capsys))
    answer = calibrate(capsys, "motor", *data, "--out", out, "--report", report)
    motor = answer["joints"][0]["motor"]
    assert motor["gain_nm_per_percent"] == pytest.approx(0.05, abs=0.0005)
    assert motor["offset_torque_nm"] == pytest.approx(0.8, abs=0.02)
    assert not motor["warnings"]
    file = read_parameter_file(out)
    assert file.provenance.data_files == ("idle.csv", "driven.csv")
    assert file.joints[0].known_friction().model == "stribeck"
    assert "left out" not in report.read_text(encoding="utf-8").split("<img", maxsplit=1)[0]


def test_the_file_of_the_friction_can_be_written_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = known(folder, capsys)
    calibrate(capsys, "motor", "--data", folder / "driven.csv", "--friction", out, "--out", out)
    joint = read_parameter_file(out).joints[0]
    assert joint.friction is not None and joint.motor is not None


def test_a_joint_that_has_gone_warm_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    motor = driven(noise=0.05)
    assert motor.drive is not None
    warm = {**KNEE, "viscosity": 0.7 * KNEE["viscosity"]}
    data = write_csv(
        folder / "warm.csv",
        time_s=motor.time,
        velocity_rad_per_s=motor.velocity,
        torque_nm=motor.effort + friction(motor.velocity) - friction(motor.velocity, warm),
        pwm_percent=motor.drive,
    )
    arguments = ("motor", "--data", data, "--friction", known(folder, capsys), "--out", folder / "warm.toml")
    found = calibrate(capsys, *arguments)["joints"][0]["motor"]
    assert found["gain_nm_per_percent"] == pytest.approx(0.05, rel=0.01)
    assert any("lower than in its file" in warning for warning in found["warnings"])


def test_without_the_friction_there_is_a_hysteresis(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = calibrate(capsys, "motor", "--data", folder / "driven.csv", "--out", folder / "motor.toml")
    (joint,) = answer["joints"]
    assert joint["motor"]["hysteresis_torque_nm"] > 1.0
    assert "friction" not in joint


def test_a_held_joint_gets_a_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    motor = driven()
    drive = 10.0 * np.round(6.0 * np.sin(0.5 * motor.time))  # a PWM in steps
    torque = through_stuck_gear(0.05 * drive, 0.3)
    data = write_csv(
        folder / "held.csv",
        time_s=motor.time,
        velocity_rad_per_s=np.zeros(len(motor)),
        torque_nm=torque,
        pwm_percent=drive,
    )
    arguments = ("motor", "--data", data, "--out", folder / "held.toml", "--report", folder / "held.html")
    found = calibrate(capsys, *arguments)["joints"][0]["motor"]
    assert found["fit"]["held"]
    assert found["hysteresis_torque_nm"] == pytest.approx(0.3, abs=0.02)
    assert "The joint was held" in (folder / "held.html").read_text(encoding="utf-8")


def test_open_windings_tell_the_back_emf(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened = idle()
    less = {**KNEE, "viscosity": KNEE["viscosity"] - 5.0}
    opened = replace(opened, effort=-friction(opened.velocity, less) + 0.05 * np.sin(1e5 * opened.time))
    data = write_csv(
        folder / "open.csv", time_s=opened.time, velocity_rad_per_s=opened.velocity, torque_nm=opened.effort
    )
    arguments = ("motor", "--data", folder / "driven.csv", "--friction", known(folder, capsys))
    answer = calibrate(capsys, *arguments, "--open-windings", data, "--out", folder / "motor.toml")
    motor = answer["joints"][0]["motor"]
    assert motor["back_emf_viscosity_nms_per_rad"] == pytest.approx(5.0, abs=0.2)
    low, high = motor["interval_95"]["back_emf_viscosity_nms_per_rad"]
    assert low < 5.0 < high
    assert read_parameter_file(folder / "motor.toml").provenance.data_files[-1] == "open.csv"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--data", "idle.csv"), "no column for what drives the motor"),
        (("--data", "driven.csv", "--data", "idle.csv"), "identified from one recording; give one"),
        (("--data", "driven.csv", "--open-windings", "idle.csv"), "--open-windings: needs --friction"),
        (("--data", "driven.csv", "--friction", "none.toml"), "none.toml: cannot be read"),
        (("--data", "driven.csv", "--inertia", "2"), "has no accelerations"),
    ],
)
def test_a_wrong_request_is_one_line(
    arguments: tuple[str, ...],
    says: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    assert says in refusal(capsys, "motor", "--out", "refused.toml", *arguments)
    assert not (folder / "refused.toml").exists()
