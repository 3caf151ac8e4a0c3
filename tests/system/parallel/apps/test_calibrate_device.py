"""Calibrations that move a device: the arm, from the command to a session, and ends before the last motion."""

from __future__ import annotations

import os
import signal
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from apps.calibrate.device import _configuration
from apps.cli import main
from calibration.handle import CENTRES, MASS
from calibration.parameters import format_parameter_file, parse_parameter_file, read_parameter_file
from haptics.errors import ConfigurationError
from haptics.files import parse_toml
from tests.apps.calibrate.commands import (
    MOVING,
    SLOWLY,
    VERTICAL,
    calibrate,
    calibrating,
    is_safe,
    refusal,
    refuses_to_move,
    whole,
)
from tests.processes import NO_PICTURE, spawned_by, until_running

FEW = (*SLOWLY, "--set=poses.speed=0.3")
FEW_STROKES = [f"--set=excitation.{setting}" for setting in ("speeds=4", "rounds=2", "strokes=1", "stroke_time=0.4")]
MODEL = "--model=coulomb-viscous"


def test_configuration_has_certain_values_and_the_file_of_the_joints():
    out, joints = Path("arm.toml"), (SimpleNamespace(),)
    values = {MASS: 0.3, **dict.fromkeys(CENTRES, 0.05)}

    def told(error, joints):
        handle: Any = SimpleNamespace(values=values, errors={MASS: error})
        return dict(tomllib.loads("\n".join(_configuration(out, handle, joints))).get("device", {}))

    found = told(0.001, joints)
    assert found["arm"] == {"handle_mass": 0.3, "friction_parameters": "arm.toml"}
    assert found["sensor"] == {"handle_centre": [0.05, 0.05, 0.05]}
    assert told(10.0, joints)["arm"] == {"friction_parameters": "arm.toml"}
    assert told(10.0, ()) == {}


def test_arm_calibration_identifies_handle_and_joint_friction(tmp_path, capsys):
    out, record = tmp_path / "arm.toml", tmp_path / "recordings"
    places = (f"--out={out}", f"--record={record}")
    answer = calibrate(capsys, "arm", "--device=virtual-arm", *VERTICAL, *FEW, *FEW_STROKES, MODEL, *places)
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
    assert parse_parameter_file(parse_toml(format_parameter_file(file), "the same"), "the same") == file

    told = tomllib.loads(answer["configuration"])["device"]
    assert told["arm"]["handle_mass"] == pytest.approx(0.3, abs=0.02)
    assert told["arm"]["friction_parameters"] == str(out)
    assert len(told["sensor"]["handle_centre"]) == 3
    config = tmp_path / "session.toml"
    config.write_text(answer["configuration"])
    session = ["run", "--device=virtual-arm", "--model=A", f"--config={config}", "--headless", "--duration=0.2"]
    ended = main([*session, *NO_PICTURE, "--set=device.servo.law=flatness", f"--record={record}", "--json"])
    assert ended == 0, capsys.readouterr().err


def test_arm_in_a_horizontal_plane_identifies_only_the_offset(tmp_path, capsys):
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


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "--device is missing"),
        (["--device=virtual-joystick"], "has no force sensor that carries a handle"),
        (["--device=arm", "--set=device.emulated=true", "--only=joints"], "does not report joint angles"),
        (["--device=virtual-arm", "--set=device.hand.name=mouse"], "the handle must be free"),
        (["--device=virtual-arm", "--set=poses.rows=0"], "poses.rows = 0"),
        (["--device=virtual-arm", "--set=poses.colour=1"], "unknown setting 'poses.colour'"),
        (["--device=virtual-arm", "--model=magic"], "unknown friction model 'magic'"),
    ],
)
def test_wrong_arm_options_are_refused_in_one_line(arguments, complaint, tmp_path, capsys):
    assert complaint in refuses_to_move(capsys, tmp_path, "arm", *arguments)


def test_file_with_a_wrong_handle_is_refused():
    whole = "[handle]\nmass_kg = 0.3\nresting_wrench_n_nm = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]\n"
    assert parse_parameter_file(parse_toml(whole, "file"), "file").joints == ()
    for changed, complaint in (
        (whole.replace("0.3", '"heavy"'), r"handle\.mass_kg = 'heavy'"),
        (whole.replace("mass_kg", "mass_g"), "mass_g"),
        (whole.replace(", 0.0]", "]"), "must be six numbers"),
    ):
        with pytest.raises(ConfigurationError, match=complaint):
            parse_parameter_file(parse_toml(changed, "file"), "file")


@pytest.mark.timeout(180)
@pytest.mark.parametrize("motion", ["joints", "pushes"])
def test_killed_servo_of_a_calibration_is_a_fault_and_the_recording_kept(motion, tmp_path):
    with calibrating(motion, tmp_path) as (application, place):
        recording = until_running(application.application, place, MOVING)
        (servo,) = spawned_by(application.application.pid)
        os.kill(servo, signal.SIGKILL)
        assert application.application.wait(60.0) == 4
    assert "killed by SIGKILL" in application.said
    assert str(recording) in application.said
    assert "Traceback" not in application.said
    found = whole(recording)
    assert (found.metadata["state"], found.metadata["reason"]) == ("interrupted", "fault")


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("motion", "number"), [("joystick", signal.SIGINT), ("poses", signal.SIGINT), ("poses", signal.SIGTERM)]
)
def test_request_to_end_a_calibration_leaves_its_recording_and_no_file(motion, number, tmp_path):
    with calibrating(motion, tmp_path) as (application, place):
        recording = until_running(application.application, place, MOVING)
        application.application.send_signal(number)
        assert application.application.wait(60.0) == 130
    assert "Traceback" not in application.said
    assert not (tmp_path / "own.toml").exists()
    assert str(recording) in application.said
    found = whole(recording)
    assert (found.metadata["state"], found.metadata["reason"]) == ("complete", "interrupted")
    assert is_safe(recording)
