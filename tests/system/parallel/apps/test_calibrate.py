"""Whole calibrations by the command: from data or a device to a parameter file and a session that uses it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.calibrate import joystick
from apps.cli import main
from apps.verification import examine
from apps.verify.check import verify
from calibration.coupled import COUPLINGS, Coupling
from calibration.parameters import read_parameter_file
from devices.joystick.parameters import build_parameters, read_parameters
from haptics.errors import ConfigurationError
from haptics.files import parse_toml, read_toml, sha256_of
from haptics.recording.recording import Recording
from tests.apps.calibrate.commands import calibrate, refusal
from tests.apps.calibrate.test_calibrate_command import write_coupled
from tests.calibration.joints import write_csv, write_idle
from tests.devices.felt import FRICTION
from tests.processes import NO_PICTURE, program
from tests.system.parallel.commands import haptics


def test_coupled_motors_of_a_coupling_file_are_identified(tmp_path, capsys):
    torso = COUPLINGS["icub-torso"]
    mine = Coupling(torso.joints, ("left", "middle", "right"), torso.matrix)
    text = f"joints = {list(mine.joints)}\nmotors = {list(mine.motors)}\nmatrix = {mine.matrix.tolist()}\n"
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    data, out = write_coupled(tmp_path / "a.csv", mine), tmp_path / "P.toml"
    arguments = ("--coupling", tmp_path / "mine.toml", "--data", data, "--out", out, "--model", "coulomb-viscous")
    answer = calibrate(capsys, "coupled", *arguments, "--report", tmp_path / "R.html")
    assert [joint["name"] for joint in answer["joints"]] == ["left", "middle", "right"]
    assert (tmp_path / "R.html").read_text(encoding="utf-8").count("<section>") == 3
    errors = calibrate(capsys, "check", "--parameters", out, "--data", data)["relative_errors"]["a.csv"]
    assert set(errors) == {"left", "middle", "right"}


@pytest.fixture(scope="module")
def idle_joint(tmp_path_factory):
    place = tmp_path_factory.mktemp("friction")
    write_idle(place / "knee.csv")
    write_idle(place / "again.csv", seed=7, duration=30.0)
    return place


def test_friction_of_a_joint_is_fitted_reported_and_checked(idle_joint, capsys):
    data, out, report = idle_joint / "knee.csv", idle_joint / "P.toml", idle_joint / "R.html"
    options = ("--report", report, "--check", idle_joint / "again.csv", "--identity", "knee 7")
    answer = calibrate(capsys, "friction", "--data", data, "--out", out, *options)
    assert answer["out"] == str(out) and answer["report"] == str(report)
    (joint,) = answer["joints"]
    assert joint["friction"]["model"].startswith("stribeck")
    assert joint["models"]["coulomb-viscous"] > 1.2 * joint["models"]["stribeck"]
    assert 0.01 < joint["checks"]["again.csv"] < 0.05
    found = read_parameter_file(out)
    assert (found.provenance.data_files, found.provenance.device) == (("knee.csv",), "knee 7")
    assert found.joints[0].known_friction().values["coulomb"] == joint["friction"]["coulomb_torque_nm"]
    assert report.read_text(encoding="utf-8").count("<section>") == 1


LEVER = ("--lever-arm", "0.1")
DURATION = 12.0


def joint(forward=0.3, backward=0.3, part=0.0, distance=0.02):
    """Columns of a joint with dry friction [N m], of which `part` builds up over a distance [rad], and an offset."""
    time = np.arange(0.0, DURATION, 0.005)
    position = 0.8 + 0.5 * np.sin(1.7 * time) * (0.75 + 0.25 * np.cos(0.9 * time))
    velocity = np.gradient(position, time)
    deflection, state = np.zeros(6), np.empty(len(time))
    for k, step in enumerate(np.diff(position, prepend=position[0])):
        limits = distance * np.linspace(0.2, 1.8, 6)
        deflection = np.clip(deflection + step, -limits, limits)
        state[k] = deflection.mean() / distance
    level = np.where(velocity > 0.0, forward, backward)
    friction = (level - part) * np.sign(velocity) + part * state + 0.05
    noise = 0.003 * np.random.default_rng(2).standard_normal(len(time))
    return {"time_s": time, "position_rad": position, "velocity_rad_per_s": velocity, "torque_nm": noise - friction}


@pytest.fixture(scope="module")
def joints(tmp_path_factory):
    place = tmp_path_factory.mktemp("law")
    write_csv(place / "plain.csv", **joint())
    write_csv(place / "soft.csv", **joint(part=0.2))
    write_csv(place / "sided.csv", **joint(forward=0.4, backward=0.2))
    columns = joint()
    both = {f"{name}.{key}": values for name in ("hip", "knee") for key, values in columns.items() if key != "time_s"}
    write_csv(place / "two.csv", time_s=columns["time_s"], **both)
    return place


def rendered(capsys, joints, name, model, device):
    """Identify a joint, render it on a virtual device along the recorded motion, verify, and compare the loops."""
    law, hand, data = joints / f"{name}.toml", joints / f"{name}-hand.csv", joints / f"{name}.csv"
    answer = calibrate(
        capsys,
        *("friction", "--data", data, "--out", joints / "P.toml", "--model", model),
        *("--law", law, "--law-hand", hand, *LEVER),
    )
    assert (answer["law"], answer["law_hand"]) == (str(law), str(hand))
    run = ["run", "--config", str(law), "--device", device, "--hand", str(hand), "--duration", str(DURATION)]
    run += ["--clock", "off", "--headless", "--record", str(joints / device), "--set", "session.picture=false"]
    capsys.readouterr()
    assert main([*run, "--json"]) == 0
    recording = Path(json.loads(capsys.readouterr().out)["recording"])
    for check in (["verify", str(recording)], ["replay", str(recording), "--verify", "--headless"]):
        assert main([*check, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["verdict"] == "ok"
    picture = joints / f"{name}-{device}.png"
    found = calibrate(capsys, "loops", "--data", data, "--recording", recording, "--law", law, "--out", picture)
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert found["picture"] == str(picture)
    return {**found, "recording": recording, "law": read_toml(law)}


@pytest.mark.parametrize(
    ("name", "model", "device", "element", "bound"),
    [
        ("plain", "coulomb-viscous-offset", "virtual-joystick", "C", 12.0),
        ("soft", "coulomb-viscous-offset-presliding", "virtual-joystick", "iwan", 8.0),
        ("soft", "coulomb-viscous-offset-presliding", "virtual-arm", "D", 15.0),
        ("sided", "coulomb-viscous-asymmetric", "virtual-arm", "A", 15.0),
    ],
)
def test_rendered_loop_is_that_of_the_joint(joints, capsys, name, model, device, element, bound):
    found = rendered(capsys, joints, name, model, device)
    assert Recording(found["recording"]).metadata["model"] == element
    assert found["difference_percent_of_level"] < bound
    assert found["loop_area_rendered"] == pytest.approx(found["loop_area_measured"], rel=0.05)


def test_rendered_levels_are_asymmetric(joints, capsys):
    found = rendered(capsys, joints, "sided", "coulomb-viscous-asymmetric", "virtual-joystick")
    rows = Recording(found["recording"]).rows
    force, velocity = rows["friction_force"][:, 0], rows["sliding_velocity"][:, 0]
    offset = 0.05 / 0.1  # this model does not separate it from the levels
    assert np.median(force[velocity > 1e-3]) == pytest.approx(4.0 + offset, rel=0.02)
    assert np.median(force[velocity < -1e-3]) == pytest.approx(-2.0 + offset, rel=0.02)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "{0}/plain.csv", "--law", "{0}/x.toml"], r"the joint turns, .* give --lever-arm M"),
        (["--data", "{0}/plain.csv", "--law", "{0}/x.toml", "--lever-arm", "-1"], "--lever-arm = -1.0: must be"),
        (["--data", "{0}/plain.csv", "--law", "{0}/none/x.toml", *LEVER], "--law = .*none/x.toml.*: cannot be written"),
        (["--data", "{0}/plain.csv", "--law", "{0}/plain.csv", *LEVER], "--law = .*: is already used"),
        (["--data", "{0}/plain.csv", "--law-hand", "{0}/x.csv"], "--law-hand belongs to --law"),
        (["--data", "{0}/plain.csv", *LEVER], "--lever-arm belongs to --law"),
        (["--data", "{0}/two.csv", "--law", "{0}/x.toml", *LEVER], "hip, knee: choose one with --joint"),
    ],
)
def test_law_options_that_do_not_fit_are_refused(joints, tmp_path, capsys, arguments, message):
    out = tmp_path / "P.toml"
    line = refusal(capsys, "friction", "--out", out, *(argument.format(joints) for argument in arguments))
    assert re.search(message, line), line
    assert not out.exists()
    assert not (joints / "x.toml").exists()


def test_law_of_one_of_several_joints_is_scaled(joints, capsys):
    law = joints / "knee.toml"
    answer = calibrate(
        capsys,
        *("friction", "--data", joints / "two.csv", "--joint", "knee", "--out", joints / "P.toml"),
        *("--model", "coulomb-viscous-offset", "--law", law, *LEVER, "--scale", "0.05"),
    )
    written = read_toml(law)
    assert written["provenance"]["joint"] == "knee"
    assert written["law"]["force"] == pytest.approx(0.15, rel=0.01)
    assert "consider --scale" in answer["law_warnings"][0]


def test_loops_need_a_session_file_and_a_picture_format(joints, tmp_path, capsys):
    other = tmp_path / "other.toml"
    other.write_text("[law]\nforce = 3.0\n")
    arguments = ("loops", "--data", joints / "plain.csv", "--recording", tmp_path, "--law", other)
    assert "has no table [provenance]" in refusal(capsys, *arguments, "--out", tmp_path / "x.png")
    assert "must end in .png or .svg" in refusal(capsys, *arguments, "--out", tmp_path / "x.gif")


CALIBRATE = ("joystick", "--out", "stick.toml")
TRAVEL = ("--travel-x", "0.14", "--travel-y", "0.12", "--stated-max-force", "6")
EMULATED = ("--set", "device.emulated=true", "--set", "device.emulator=arduino")
RUN = ("run", "--device", "pid-joystick", "--headless", "--duration", "1", *NO_PICTURE)
PIPES: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calibrated")
    return folder, haptics("calibrate", *CALIBRATE, *TRAVEL, *EMULATED, "--yes", "--json", folder=folder)


def test_joystick_is_measured_and_its_file_written(calibrated):
    folder, done = calibrated
    answer = json.loads(done.stdout)
    assert answer["out"] == "stick.toml"
    assert answer["parameters"]["force"]["max_force_n"] == 6.0
    assert 0.0 < answer["push_level"] <= 0.3
    assert read_parameters(folder / "stick.toml").device.vid_pid == "2341:8036"
    assert "At the far right corner the counts are" in done.stderr


def test_joystick_file_is_used_by_a_session(calibrated):
    folder, _ = calibrated
    gentle = ("--set", "device.parameters=stick.toml", "--set", "element.stiffness=500", "--set", "element.damping=2")
    done = haptics(*RUN, *EMULATED, *gentle, "--set", "law.force=2", "--json", folder=folder)
    answer = json.loads(done.stdout)
    assert answer["force_n"]["max"] > 0.5
    recorded = json.loads((folder / answer["recording"] / "recording.json").read_text())
    assert len(recorded["parameter_file_hash"]) == 64


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "KIND"),
        (("toaster",), "toaster"),
        ((*CALIBRATE, "--travel-x", "0.1"), "--travel-y"),
        ((*CALIBRATE, "--travel-x", "0.1", "--travel-y", "0.1"), "--weight KG"),
        ((*CALIBRATE, *TRAVEL, "--weight", "1"), "exactly one of two options"),
        ((*CALIBRATE, *TRAVEL, "--gate", "oval"), "unknown --gate 'oval'"),
        ((*CALIBRATE, *TRAVEL, "--set", "device.parameters=x.toml"), "--out"),
        ((*CALIBRATE, *TRAVEL, "--set", "device.colour=red"), "device.colour"),
        ((*CALIBRATE, *TRAVEL, "--set", "device.name=pantograph"), "pid-joystick only"),
        ((*CALIBRATE, *TRAVEL, "--set", "law.force=1"), "unknown table of settings 'law'"),
        ((*CALIBRATE, *TRAVEL, *EMULATED, "--set", "device.hand.name=mouse"), "device.hand"),
        (("joystick", "--out", "nowhere/p.toml", *TRAVEL), "nowhere/p.toml"),
        (("joystick", "--out", "/dev/null", *TRAVEL), "cannot be written"),
        (("joystick", "--out", ".", *TRAVEL), "cannot be written"),
    ],
)
def test_joystick_options_that_do_not_fit_are_refused_in_one_line(tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert words in refusal(capsys, *arguments)


def test_joystick_parameters_that_cannot_be_written_are_printed(calibrated, tmp_path, capfd):
    parameters = read_parameters(calibrated[0] / "stick.toml")
    with pytest.raises(ConfigurationError, match="cannot be written"):
        joystick.write_or_print(tmp_path / "taken away" / "stick.toml", parameters)
    words, text = capfd.readouterr().err.split("\n\n", 1)
    assert "could not be written" in words
    assert build_parameters(parse_toml(text, "standard error"), "standard error") == parameters


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_joystick_measurement_that_is_ended_leaves_no_file(tmp_path, number):
    with program("-m", "apps", "calibrate", *CALIBRATE, *TRAVEL, *EMULATED, cwd=tmp_path, **PIPES) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "far right" in line:
                break
        time.sleep(0.05)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert not (tmp_path / "stick.toml").exists()


FEW_STROKES = [f"--set=excitation.{setting}" for setting in ("speeds=4", "rounds=2", "strokes=1", "stroke_time=0.25")]


OWN = [f"--set=device.friction.{axis}.{name}={value}" for axis in FRICTION for name, value in FRICTION[axis].items()]


def test_device_friction_is_measured_and_its_file_used(tmp_path, capsys):
    out, record = tmp_path / "own.toml", tmp_path / "recordings"
    measure = ["calibrate", "friction", "--device=virtual-joystick", "--model=stribeck-asymmetric"]
    found = main([*measure, *OWN, *FEW_STROKES, f"--out={out}", f"--record={record}", "--json"])
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

    session = ["run", "--device=virtual-joystick", *OWN, f"--set=device.friction_parameters={out}", "--headless"]
    ended = main([*session, *NO_PICTURE, "--duration=0.3", "--set=law.force=0.01", f"--record={record}", "--json"])
    captured = capsys.readouterr()
    assert ended == 0, captured.err
    result = json.loads(captured.out)
    assert any("residual friction" in advice for advice in result["advice"])
    assert json.loads((Path(result["recording"]) / "recording.json").read_text())["friction_file_hash"]


QUICK = ["--set=autotune.axes=x", "--set=autotune.pushes=16"]


def test_device_is_tuned_and_its_sessions_keep_to_the_boundary(tmp_path, capsys):
    out, record = tmp_path / "tuned.toml", tmp_path / "recordings"
    tune = ["calibrate", "device", "--device=virtual-joystick", *QUICK]
    assert main([*tune, f"--out={out}", f"--record={record}", "--json"]) == 0
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
    run = ["run", "--device=virtual-joystick", "--model=C", "--headless", "--duration=0.2", "--clock=off", *NO_PICTURE]
    run += [f"--set=session.measured={out}", f"--set=element.damping={damping}", f"--record={record}", "--json"]
    assert main([*run, f"--set=element.stiffness={1.01 * edge}"]) == 2
    assert "session.measured" in capsys.readouterr().err
    assert main([*run, f"--set=element.stiffness={0.9 * edge}"]) == 0

    # The recording has the hash of the file; a recording of before there was a hash is verified all the same.
    recording = Path(json.loads(capsys.readouterr().out)["recording"])
    sidecar = recording / "recording.json"
    told = json.loads(sidecar.read_text())
    assert told["measured_file_hash"] == sha256_of(out)
    assert verdicts(recording) == ("ok", [], "ok")
    out.write_text(out.read_text() + "\n")
    assert verdicts(recording) == ("ok", ["measured"], "ok")
    sidecar.write_text(json.dumps({name: value for name, value in told.items() if name != "measured_file_hash"}))
    assert verdicts(recording) == ("ok", [], "ok")
    del told["configuration"]["session"]["measured"]
    sidecar.write_text(json.dumps(told))
    assert verdicts(recording) == ("violated", ["configuration"], "violated")


def verdicts(recording):
    """Return verdict and findings of ``replay --verify``, and the verdict of ``verify``."""
    found = examine(Recording(recording))
    return found.verdict, [one.rule for one in found.findings], verify(recording)[1].verdict
