"""``haptics calibrate arm``, from the command to a session that uses what was found."""

import signal
import subprocess
import time
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from apps.calibrate.arm import _configuration
from apps.cli import main
from calibration.handle import CENTRES, MASS
from calibration.parameters.files import format_parameter_file, parse_parameter_file, read_parameter_file
from haptics.errors import ConfigurationError
from tests.apps.calibrate.commands import calibrate, refusal, refuses_to_move
from tests.processes import NO_PICTURE, program, recordings, until

VERTICAL = ("--set=device.arm.gravity=9.8", "--set=device.arm.handle_mass=0.3")
SLOWLY = ("--set=poses.columns=3", "--set=poses.rows=2", "--set=poses.rounds=1")
FEW = (*SLOWLY, "--set=poses.speed=0.3")
QUICK = [f"--set=excitation.{setting}" for setting in ("speeds=4", "rounds=2", "strokes=1", "stroke_time=0.4")]
MODEL = "--model=coulomb-viscous"


def test_the_configuration_has_what_is_certain_and_the_file_of_the_joints() -> None:
    out, joints = Path("arm.toml"), (SimpleNamespace(),)
    values = {MASS: 0.3, **dict.fromkeys(CENTRES, 0.05)}

    def told(error: float, joints: Any) -> dict[str, Any]:
        handle: Any = SimpleNamespace(values=values, errors={MASS: error})
        return dict(tomllib.loads("\n".join(_configuration(out, handle, joints))).get("device", {}))

    found = told(0.001, joints)
    assert found["arm"] == {"handle_mass": 0.3, "friction_parameters": "arm.toml"}
    assert found["sensor"] == {"handle_centre": [0.05, 0.05, 0.05]}
    assert told(10.0, joints)["arm"] == {"friction_parameters": "arm.toml"}
    assert told(10.0, ()) == {}


def test_one_file_tells_an_arm_what_it_carries_and_what_its_joints_rub(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, record = tmp_path / "arm.toml", tmp_path / "recordings"
    arguments = ["arm", "--device=virtual-arm", *VERTICAL, *FEW, *QUICK, MODEL, f"--out={out}", f"--record={record}"]
    answer = calibrate(capsys, *arguments)
    assert answer["handle"]["mass_kg"] == pytest.approx(0.3, abs=0.02)
    assert answer["handle"]["centre_z_m"] == pytest.approx(0.05, abs=0.01)
    assert not answer["handle"]["unknown"]
    assert [joint["name"] for joint in answer["joints"]] == ["1", "2"]
    assert len(answer["data"]) == len(list(record.iterdir())) == 2
    assert answer["left_out"] == ""

    file = read_parameter_file(out)
    assert file.handle is not None
    assert file.handle.values["mass_kg"] == answer["handle"]["mass_kg"]
    assert file.provenance.device == answer["device"] == "virtual-arm virtual, seed 0"
    assert len(file.provenance.data_sha256) == 2
    assert parse_parameter_file(format_parameter_file(file), "the same") == file

    told = tomllib.loads(answer["configuration"])["device"]
    assert told["arm"]["handle_mass"] == pytest.approx(0.3, abs=0.02)
    assert told["arm"]["friction_parameters"] == str(out)
    assert len(told["sensor"]["handle_centre"]) == 3
    config = tmp_path / "session.toml"
    config.write_text(answer["configuration"])
    session = [
        "run",
        "--device=virtual-arm",
        "--model=A",
        f"--config={config}",
        "--headless",
        "--duration=0.2",
        *NO_PICTURE,
    ]
    ended = main([*session, "--set=device.servo.law=flatness", f"--record={record}", "--json"])
    assert ended == 0, capsys.readouterr().err


def test_in_a_horizontal_plane_it_says_that_only_the_offset_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "arm.toml"
    arguments = ["arm", "--device=virtual-arm", "--only=handle", *FEW, f"--out={out}", f"--record={tmp_path}"]
    assert main(["calibrate", *arguments]) == 0
    captured = capsys.readouterr()
    assert "let go of the handle" in captured.err
    assert "not identifiable from these poses: mass_kg, centre_x_m" in captured.out
    assert "the tare at the start removes both" in captured.out
    assert "[device" not in captured.out
    handle = read_parameter_file(out).handle
    assert handle is not None and "mass_kg" in handle.unknown
    assert "has no table [joint.NAME]" in refusal(capsys, "check", f"--parameters={out}", "--data=any.csv")


@pytest.mark.wall_clock  # a drive that does not answer within 0.4 s is taken for a dead one
def test_a_drive_that_shows_no_torques_leaves_the_joints_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = calibrate(
        capsys,
        *("arm", "--device=arm", "--set=device.emulated=true", "--set=device.half_width=0.06", *VERTICAL, *SLOWLY),
        *("--set=device.half_height=0.04", "--set=poses.hold=0.2", "--set=device.sensor.handle_centre=[0, 0, 0.05]"),
        *("--set=device.motors.watchdog=0.8", "--set=device.motors.reply_timeout=0.4"),
        *("--set=device.sensor.patience=0.5", f"--out={tmp_path / 'arm.toml'}", f"--record={tmp_path}"),
    )
    assert answer["joints"] == []
    assert "reports no motor torques" in answer["left_out"]
    error = answer["handle"]["standard_error"]["mass_kg"]
    assert answer["handle"]["mass_kg"] == pytest.approx(0.3, abs=6.0 * error)
    assert error < 0.1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "--device is missing"),
        (["--device=stove"], "unknown device 'stove'"),
        (["--device=virtual-joystick"], "has no force sensor that carries a handle"),
        (["--device=arm", "--set=device.emulated=true", "--only=joints"], "does not report joint angles"),
        (["--device=virtual-arm", "--set=device.hand.name=mouse"], "nobody may hold a device"),
        (["--device=virtual-arm", "--set=poses.rows=0"], "poses.rows = 0"),
        (["--device=virtual-arm", "--set=poses.colour=1"], "unknown setting 'poses.colour'"),
        (["--device=virtual-arm", "--set=excitation.rounds=1"], "excitation.rounds = 1"),
        (["--device=virtual-arm", "--model=magic"], "unknown friction model 'magic'"),
        (["--device=virtual-arm", "--set=law.force=1"], "unknown table of settings 'law'"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(
    arguments: list[str], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert complaint in refuses_to_move(capsys, tmp_path, "arm", *arguments)


def test_a_file_whose_handle_makes_no_sense_is_refused() -> None:
    whole = "[handle]\nmass_kg = 0.3\nresting_wrench_n_nm = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]\n"
    assert parse_parameter_file(whole, "file").joints == ()
    for changed, complaint in (
        (whole.replace("0.3", '"heavy"'), r"handle\.mass_kg = 'heavy'"),
        (whole.replace("mass_kg", "mass_g"), "mass_g"),
        (whole.replace(", 0.0]", "]"), "must be six numbers"),
    ):
        with pytest.raises(ConfigurationError, match=complaint):
            parse_parameter_file(changed, "file")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_request_to_end_leaves_the_recording_and_no_file(tmp_path: Path, number: signal.Signals) -> None:
    slowly = ("--set=poses.columns=12", "--set=poses.rows=12", "--set=poses.hold=10")
    arguments = ("-m", "apps", "calibrate", "arm", "--device=virtual-arm", "--only=handle", *slowly, "--out=arm.toml")
    with program(*arguments, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        until(lambda: recordings(tmp_path / "recordings"), "nothing was recorded", 120.0)
        time.sleep(0.5)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "The recording is in" in err
    assert not (tmp_path / "arm.toml").exists()
