"""The command: friction parameters and a report out of files, checks on other recordings, and every refusal."""

from pathlib import Path

import numpy as np
import pytest

from calibration.parameters.files import read_parameter_file
from tests.apps.calibrate.commands import calibrate, refusal
from tests.calibration.hand_moved import KNEE
from tests.calibration.measured import idle, write_csv, write_idle

KEYS = {
    "coulomb": "coulomb_torque_nm",
    "viscosity": "viscosity_nms_per_rad",
    "static_forward": "static_torque_forward_nm",
    "static_backward": "static_torque_backward_nm",
    "stribeck_velocity": "stribeck_velocity_rad_per_s",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("friction")
    write_idle(place / "knee.csv")
    write_idle(place / "again.csv", seed=7, duration=30.0)
    return place


def test_the_parameters_of_the_paper_come_out_within_four_standard_errors(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = calibrate(
        capsys, "friction", "--data", folder / "knee.csv", "--out", folder / "S.toml", "--model", "stribeck"
    )
    found = answer["joints"][0]["friction"]
    for name, truth in KNEE.items():
        low, high = found["interval_95"][KEYS[name]]
        assert abs(found[KEYS[name]] - truth) < 4.0 * (high - low) / 3.92
    assert found["fit"]["condition_number"] > 1.0
    assert found["fit"]["samples"] == 6000


def test_parameters_are_checked_by_another_recording(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "C.toml"
    calibrate(capsys, "friction", "--data", folder / "knee.csv", "--out", out, "--model", "stribeck")
    check = ("check", "--parameters", out, "--data")
    good = calibrate(capsys, *check, folder / "again.csv")["relative_errors"]["again.csv"]["joint"]
    knee = idle(0.1, seed=7, duration=30.0)
    double = write_csv(folder / "2.csv", time_s=knee.time, velocity_rad_per_s=knee.velocity, torque_nm=2 * knee.effort)
    bad = calibrate(capsys, *check, double)["relative_errors"]["2.csv"]["joint"]
    assert good < 0.05
    assert bad == pytest.approx(0.5, abs=0.02)  # half of twice the torque is missing


def test_several_recordings_are_fitted_together(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [write_idle(folder / f"part{seed}.csv", seed=seed, duration=20.0) for seed in (1, 2, 3)]
    data = [word for file in files for word in ("--data", file)]
    answer = calibrate(capsys, "friction", *data, "--out", folder / "all.toml", "--model", "stribeck")
    assert answer["joints"][0]["friction"]["fit"]["samples"] == 6000
    assert read_parameter_file(folder / "all.toml").provenance.data_files == ("part1.csv", "part2.csv", "part3.csv")


def test_a_slide_has_forces_and_its_mass_can_be_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    knee = idle(0.02)
    assert knee.acceleration is not None
    data = write_csv(
        tmp_path / "slide.csv",
        time_s=knee.time,
        velocity_m_per_s=knee.velocity,
        acceleration_m_per_s2=knee.acceleration,
        force_n=knee.effort - 3.0 * knee.acceleration,
    )
    arguments = ("friction", "--data", data, "--out", tmp_path / "P.toml", "--model", "stribeck", "--fit-inertia")
    found = calibrate(capsys, *arguments)["joints"][0]["friction"]
    assert found["mass_kg"] == pytest.approx(3.0, abs=0.02)
    assert found["coulomb_force_n"] == pytest.approx(0.85, abs=0.01)


def test_velocities_are_made_of_positions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    knee = idle(0.1)
    assert knee.position is not None
    noisy = knee.velocity + 0.02 * np.random.default_rng(4).standard_normal(len(knee))
    data = write_csv(
        tmp_path / "a.csv",
        time_s=knee.time,
        velocity_rad_per_s=noisy,
        torque_nm=knee.effort,
        position_rad=knee.position,
    )
    arguments = ("friction", "--data", data, "--out", tmp_path / "P.toml", "--model", "stribeck", "--smooth", "4")
    found = calibrate(capsys, *arguments)["joints"][0]["friction"]
    assert found["static_torque_forward_nm"] == pytest.approx(1.27, abs=0.1)
    assert found["static_torque_backward_nm"] == pytest.approx(1.95, abs=0.1)


REFUSED: dict[str, tuple[list[str], str]] = {
    "no file": (["--data", "none.csv"], "none.csv: there is no such file"),
    "nothing": ([], "give either --data FILE"),
    "two things": (["--data", "knee.csv", "--device", "virtual-joystick"], "give either --data FILE"),
    "no model": (["--data", "knee.csv", "--model", "stribek"], "Did you mean 'stribeck'"),
    "no joint": (["--data", "knee.csv", "--joint", "hip"], "unknown joint"),
    "no frequency": (["--data", "knee.csv", "--smooth", "soft"], "--smooth = 'soft': must be a frequency"),
    "no inertia": (["--data", "knee.csv", "--inertia", "-1"], "--inertia = -1.0: must be a finite number"),
    "no accelerations": (["--data", "knee.csv", "--inertia", "1"], "acceleration"),
    "no column": (["--data", "knee.csv", "--column", "torque_nm"], "must be OURS=THEIRS"),
    "constant": (["--data", "constant.csv"], "constant.csv: the velocity is constant"),
    "one way": (["--data", "one_way.csv"], "one_way.csv"),
    "another kind": (
        ["--data", "knee.csv", "--data", "slide.csv"],
        "slide.csv: slides in one file and turns in another",
    ),
    "nowhere": (["--data", "knee.csv", "--report", "nowhere/R.html"], "--report = 'nowhere/R.html': cannot be written"),
    "over the data": (["--data", "refused.toml"], "--out = 'refused.toml': is already used for another file"),
    "over the result": (
        ["--data", "knee.csv", "--report", "refused.toml"],
        "--report = 'refused.toml': is already used",
    ),
    "nan": (["--data", "nan.csv"], "nan.csv, line 3, column 'torque_nm'"),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_wrong_request_is_one_line(
    mistake: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    knee = idle(duration=10.0)
    ones, some = np.ones(len(knee)), np.where(np.arange(len(knee)) == 1, np.nan, 1.0)
    write_csv(folder / "constant.csv", time_s=knee.time, velocity_rad_per_s=ones, torque_nm=knee.effort)
    write_csv(folder / "one_way.csv", time_s=knee.time, velocity_rad_per_s=1 + np.abs(knee.velocity), torque_nm=ones)
    write_csv(folder / "slide.csv", time_s=knee.time, velocity_m_per_s=knee.velocity, force_n=knee.effort)
    write_csv(folder / "nan.csv", time_s=knee.time, velocity_rad_per_s=knee.velocity, torque_nm=some)
    arguments, says = REFUSED[mistake]
    assert says in refusal(capsys, "friction", "--out", "refused.toml", *arguments)
    assert not (folder / "refused.toml").exists()


def test_data_of_another_joint_is_no_check(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    knee = idle(duration=10.0)
    data = write_csv(
        folder / "hip.csv", time_s=knee.time, hip__velocity_rad_per_s=knee.velocity, hip__torque_nm=knee.effort
    )
    out = folder / "K.toml"
    calibrate(capsys, "friction", "--data", folder / "knee.csv", "--out", out, "--model", "coulomb-viscous")
    says = refusal(capsys, "check", "--parameters", out, "--data", data)
    assert "has the joints hip; the parameters are of joint" in says
