"""The calibrate command: friction and motors from recordings and devices, terminal dialogues, and motions."""

from __future__ import annotations

import argparse
import os
import signal
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from apps.calibrate.joystick import TerminalInput, TerminalPerson
from apps.calibrate.options import carry_out, orderly_end
from apps.cli import main
from calibration.coupled import COUPLINGS
from calibration.joystick.person import GATES, MIDDLE
from calibration.parameters import read_parameter_file
from devices import create_device
from haptics.errors import ConfigurationError, DeviceFault
from tests.apps.calibrate.commands import calibrate, refusal, refuses_to_move
from tests.calibration.joints import KNEE, driven, friction, idle, through_stuck_gear, write_csv, write_idle
from tests.calibration.test_coupled import LAWS, recorded

Capture = pytest.CaptureFixture[str]

STRIBECK = ("--model", "stribeck")
KEYS = {
    "coulomb": "coulomb_torque_nm",
    "viscosity": "viscosity_nms_per_rad",
    "static_forward": "static_torque_forward_nm",
    "static_backward": "static_torque_backward_nm",
    "stribeck_velocity": "stribeck_velocity_rad_per_s",
}


def fit(capsys, kind, data, out, *options):
    """Return the friction or the motor of the only joint, as the command identifies it."""
    (joint,) = calibrate(capsys, kind, "--data", data, "--out", out, *options)["joints"]
    found: dict[str, Any] = joint[kind]
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of an idle knee, of a driven one, and of unusable recordings."""
    place = tmp_path_factory.mktemp("recordings")
    write_idle(place / "knee.csv")
    write_idle(place / "again.csv", seed=7, duration=30.0)
    write_idle(place / "idle.csv", noise=0.05)
    motor = driven(noise=0.05)
    velocity, torque, drive = motor.velocity, motor.effort, motor.drive
    columns = {"velocity_rad_per_s": velocity, "torque_nm": torque, "pwm_percent": drive}
    write_csv(place / "driven.csv", time_s=motor.time, **columns)
    knee = idle(duration=10.0)
    time, ones = knee.time, np.ones(len(knee))
    write_csv(place / "one_way.csv", time_s=time, velocity_rad_per_s=1 + np.abs(knee.velocity), torque_nm=ones)
    write_csv(place / "slide.csv", time_s=time, velocity_m_per_s=knee.velocity, force_n=knee.effort)
    write_csv(place / "hip.csv", time_s=time, hip__velocity_rad_per_s=knee.velocity, hip__torque_nm=knee.effort)
    write_coupled(place / "torso.csv", COUPLINGS["icub-torso"])
    (place / "number.toml").write_text("coupling = 3\n", encoding="utf-8")
    return place


def test_friction_parameters_are_within_four_standard_errors(folder, capsys):
    found = fit(capsys, "friction", folder / "knee.csv", folder / "S.toml", *STRIBECK)
    for name, truth in KNEE.items():
        low, high = found["interval_95"][KEYS[name]]
        assert abs(found[KEYS[name]] - truth) < 4.0 * (high - low) / 3.92
    assert found["fit"]["condition_number"] > 1.0
    assert found["fit"]["samples"] == 6000


def test_parameters_are_checked_with_another_recording(folder, capsys):
    out = folder / "C.toml"
    fit(capsys, "friction", folder / "knee.csv", out, *STRIBECK)
    check = ("check", "--parameters", out, "--data")
    good = calibrate(capsys, *check, folder / "again.csv")["relative_errors"]["again.csv"]["joint"]
    knee = idle(0.1, seed=7, duration=30.0)
    double = write_csv(folder / "2.csv", time_s=knee.time, velocity_rad_per_s=knee.velocity, torque_nm=2 * knee.effort)
    bad = calibrate(capsys, *check, double)["relative_errors"]["2.csv"]["joint"]
    assert good < 0.05
    assert bad == pytest.approx(0.5, abs=0.02)  # half of the doubled torque is missing
    assert "has the joints hip; the parameters are of joint" in refusal(capsys, *check, folder / "hip.csv")


def test_several_recordings_are_fitted_together(folder, capsys):
    first, *files = [write_idle(folder / f"part{seed}.csv", seed=seed, duration=20.0) for seed in (1, 2, 3)]
    more = [word for file in files for word in ("--data", file)]
    found = fit(capsys, "friction", first, folder / "all.toml", *more, *STRIBECK)
    assert found["fit"]["samples"] == 6000
    assert read_parameter_file(folder / "all.toml").provenance.data_files == ("part1.csv", "part2.csv", "part3.csv")


def test_slide_has_forces_and_an_identified_mass(tmp_path, capsys):
    knee = idle(0.02)
    columns = {"velocity_m_per_s": knee.velocity, "acceleration_m_per_s2": knee.acceleration}
    force = knee.effort - 3.0 * knee.acceleration
    data = write_csv(tmp_path / "slide.csv", time_s=knee.time, force_n=force, **columns)
    found = fit(capsys, "friction", data, tmp_path / "P.toml", *STRIBECK, "--fit-inertia")
    assert found["mass_kg"] == pytest.approx(3.0, abs=0.02)
    assert found["coulomb_force_n"] == pytest.approx(0.85, abs=0.01)


def test_velocities_are_computed_from_positions(tmp_path, capsys):
    knee = idle(0.1)
    noisy = knee.velocity + 0.02 * np.random.default_rng(4).standard_normal(len(knee))
    columns = {"velocity_rad_per_s": noisy, "torque_nm": knee.effort, "position_rad": knee.position}
    data = write_csv(tmp_path / "a.csv", time_s=knee.time, **columns)
    found = fit(capsys, "friction", data, tmp_path / "P.toml", *STRIBECK, "--smooth", "4")
    assert found["static_torque_forward_nm"] == pytest.approx(1.27, abs=0.1)
    assert found["static_torque_backward_nm"] == pytest.approx(1.95, abs=0.1)


@pytest.fixture
def motor_folder(folder, tmp_path, capsys):
    """Files of an idle and of a driven motor, with its friction identified."""
    for name in ("idle.csv", "driven.csv"):
        (tmp_path / name).symlink_to(folder / name)
    fit(capsys, "friction", tmp_path / "idle.csv", tmp_path / "friction.toml", *STRIBECK)
    return tmp_path


def test_motor_gain_and_offset_are_identified(motor_folder, capsys):
    out, report = motor_folder / "motor.toml", motor_folder / "motor.html"
    known = ("--friction", motor_folder / "friction.toml")
    motor = fit(capsys, "motor", motor_folder / "driven.csv", out, *known, "--report", report)
    assert motor["gain_nm_per_percent"] == pytest.approx(0.05, abs=0.0005)
    assert motor["offset_torque_nm"] == pytest.approx(0.8, abs=0.02)
    assert not motor["warnings"]
    file = read_parameter_file(out)
    assert file.provenance.data_files == ("idle.csv", "driven.csv")
    assert file.joints[0].known_friction().model == "stribeck"
    assert "left out" not in report.read_text(encoding="utf-8").split("<img", maxsplit=1)[0]


def test_friction_file_may_be_the_output(motor_folder, capsys):
    out = motor_folder / "friction.toml"
    fit(capsys, "motor", motor_folder / "driven.csv", out, "--friction", out)
    joint = read_parameter_file(out).joints[0]
    assert joint.friction is not None and joint.motor is not None


def test_motor_without_friction_parameters_has_a_hysteresis(motor_folder, capsys):
    out = motor_folder / "motor.toml"
    (joint,) = calibrate(capsys, "motor", "--data", motor_folder / "driven.csv", "--out", out)["joints"]
    assert joint["motor"]["hysteresis_torque_nm"] > 1.0
    assert "friction" not in joint


def test_held_joint_has_a_report(tmp_path, capsys):
    motor = driven()
    drive = 10.0 * np.round(6.0 * np.sin(0.5 * motor.time))  # a PWM in steps
    torque = through_stuck_gear(0.05 * drive, 0.3)
    columns = {"velocity_rad_per_s": np.zeros(len(motor)), "torque_nm": torque, "pwm_percent": drive}
    data = write_csv(tmp_path / "held.csv", time_s=motor.time, **columns)
    found = fit(capsys, "motor", data, tmp_path / "held.toml", "--report", tmp_path / "held.html")
    assert found["fit"]["held"]
    assert found["hysteresis_torque_nm"] == pytest.approx(0.3, abs=0.02)
    assert "The joint was held" in (tmp_path / "held.html").read_text(encoding="utf-8")


def test_open_windings_yield_the_back_emf(motor_folder, capsys):
    opened = idle()
    less = {**KNEE, "viscosity": KNEE["viscosity"] - 5.0}
    opened = replace(opened, effort=-friction(opened.velocity, less) + 0.05 * np.sin(1e5 * opened.time))
    columns = {"velocity_rad_per_s": opened.velocity, "torque_nm": opened.effort}
    data, out = write_csv(motor_folder / "open.csv", time_s=opened.time, **columns), motor_folder / "motor.toml"
    known = ("--friction", motor_folder / "friction.toml", "--open-windings", data)
    motor = fit(capsys, "motor", motor_folder / "driven.csv", out, *known)
    assert motor["back_emf_viscosity_nms_per_rad"] == pytest.approx(5.0, abs=0.2)
    low, high = motor["interval_95"]["back_emf_viscosity_nms_per_rad"]
    assert low < 5.0 < high
    assert read_parameter_file(out).provenance.data_files[-1] == "open.csv"


def write_coupled(path, coupling, noise=0.02, motors=3):
    joints = recorded(coupling, LAWS[:motors], noise)
    columns = {"time_s": joints[0].time}
    for joint in joints:
        columns[f"{joint.joint}__velocity_rad_per_s"] = joint.velocity
        columns[f"{joint.joint}__torque_nm"] = joint.effort
    return write_csv(path, **columns)


@pytest.mark.parametrize("name", sorted(COUPLINGS))
def test_coupled_motors_have_separate_friction(name, tmp_path, capsys):
    coupling = COUPLINGS[name]
    data, out = write_coupled(tmp_path / "a.csv", coupling), tmp_path / "P.toml"
    arguments = ("--coupling", name, "--data", data, "--out", out, *STRIBECK, "--check", data)
    answer = calibrate(capsys, "coupled", *arguments)
    assert [joint["name"] for joint in answer["joints"]] == list(coupling.motors)
    for joint, law in zip(answer["joints"], LAWS, strict=True):
        found = joint["friction"]
        assert found["coulomb_torque_nm"] == pytest.approx(law["coulomb"], abs=0.01)
        assert found["viscosity_nms_per_rad"] == pytest.approx(law["viscosity"], abs=0.05)
        assert joint["checks"]["a.csv"] < 0.05
    file = read_parameter_file(out)
    assert file.coupling is not None and file.coupling.joints == coupling.joints


def test_coupled_motor_that_never_moved_alone_is_missing(tmp_path, capsys):
    data = write_coupled(tmp_path / "a.csv", COUPLINGS["icub-torso"], motors=2)
    arguments = ("--coupling", "icub-torso", "--data", data, "--out", tmp_path / "P.toml", "--model", "coulomb-viscous")
    answer = calibrate(capsys, "coupled", *arguments)
    assert [joint["name"] for joint in answer["joints"]] == ["motor_a", "motor_b"]
    assert answer["missing"] == ["motor_c"]


REFUSED = [
    ("friction --data none.csv", "none.csv: there is no such file"),
    ("friction", "give either --data FILE"),
    ("friction --data knee.csv --device virtual-joystick", "give either --data FILE"),
    ("friction --data knee.csv --model stribek", "Did you mean 'stribeck'"),
    ("friction --data knee.csv --joint hip", "unknown joint"),
    ("friction --data knee.csv --smooth soft", "--smooth = 'soft': must be a frequency"),
    ("friction --data knee.csv --inertia -1", "--inertia = -1.0: must be a finite number"),
    ("friction --data knee.csv --inertia 1", "acceleration"),
    ("friction --data knee.csv --column torque_nm", "must be OURS=THEIRS"),
    ("friction --data one_way.csv", "one_way.csv"),
    ("friction --data knee.csv --data slide.csv", "slide.csv: slides in one file and turns in another"),
    ("friction --data knee.csv --report nowhere/R.html", "--report = 'nowhere/R.html': cannot be written"),
    ("friction --data refused.toml", "--out = 'refused.toml': is already used for another file"),
    ("friction --data knee.csv --report refused.toml", "--report = 'refused.toml': is already used"),
    ("motor --data idle.csv", "no column for what drives the motor"),
    ("motor --data driven.csv --data idle.csv", "identified from one recording; give one"),
    ("motor --data driven.csv --open-windings idle.csv", "--open-windings: needs --friction"),
    ("motor --data driven.csv --friction none.toml", "none.toml: cannot be read"),
    ("motor --data driven.csv --inertia 2", "has no accelerations"),
    ("coupled --data torso.csv --coupling icub-tors", "Did you mean 'icub-torso'"),
    ("coupled --data torso.csv --coupling none.toml", "--coupling = 'none.toml': cannot be read"),
    ("coupled --data torso.csv --coupling number.toml", "number.toml: coupling = 3: must be a table"),
    ("coupled --data torso.csv --coupling icub-left-shoulder", "has no joint l_shoulder_pitch"),
]


@pytest.mark.parametrize(("request_", "words"), REFUSED, ids=[request for request, _ in REFUSED])
def test_invalid_request_is_refused_in_one_line(request_, words, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    kind, *arguments = request_.split()
    assert words in refusal(capsys, kind, "--out", "refused.toml", *arguments)
    assert not (folder / "refused.toml").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("friction --device=stove", "unknown device 'stove'"),
        ("friction --device=virtual-joystick --set=device.hand.name=mouse", "the handle must be free"),
        ("friction --device=virtual-joystick --set=device.friction_parameters=a.toml", "name it with --out"),
        ("friction --device=virtual-joystick --set=device.name=pantograph", "--device says"),
        ("friction --device=virtual-joystick --set=excitation.speed=1", "unknown setting 'excitation.speed'"),
        ("friction --device=virtual-joystick --set=law.force=1", "unknown table of settings 'law'"),
        ("friction --device=virtual-arm --set=excitation.rounds=1", "excitation.rounds = 1"),
        ("device", "--device is missing"),
        ("device --device=virtual-arm", "haptics calibrate servo"),
        ("device --device=virtual-joystick --rate=1", "--rate = 1.0"),
        ("device --device=virtual-joystick --set=autotune.strength=2", "autotune.strength = 2"),
        ("device --device=virtual-joystick --set=device.hand.name=mouse", "the handle must be free"),
    ],
)
def test_invalid_device_request_is_refused_before_motion(arguments, words, tmp_path, capsys):
    assert words in refuses_to_move(capsys, tmp_path, *arguments.split())


def test_unwritable_recording_folder_is_refused(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    options = (f"--out={tmp_path / 'own.toml'}", f"--record={tmp_path / 'file' / 'recordings'}")
    error = refusal(capsys, "friction", "--device=virtual-joystick", *options)
    assert "no recording can be made there" in error


SPEC = create_device("virtual-joystick", {}).spec


@pytest.mark.parametrize("error", [KeyboardInterrupt(), DeviceFault("it was unplugged")])
def test_interrupted_motion_reports_its_recording(error, tmp_path, capsys):
    def run(mover, folder, facts, progress):
        folder.mkdir()
        assert "let go of the handle" in capsys.readouterr().err
        raise error

    steps = {"require": lambda mover: None, "extent": lambda mover: (1.0, "gently"), "run": run}
    options = argparse.Namespace(record=tmp_path / "recordings", device="virtual-joystick")
    mover: Any = SimpleNamespace(spec=SPEC)
    measurement: Any = SimpleNamespace(table="run", **steps)
    with pytest.raises(type(error)):
        carry_out(options, mover, measurement)
    (place,) = (tmp_path / "recordings").iterdir()
    assert f"The recording is in {place}." in capsys.readouterr().err


@pytest.mark.parametrize(("faults", "unfit"), [((), False), (("--fault=dropout@0.5",), True)])
def test_unfit_timing_is_reported(faults, unfit, tmp_path, capsys):
    session = ("run", "--device=virtual-joystick", "--clock=off", "--duration=1", "--headless", *faults)

    def run(mover, folder, facts, progress):
        main([*session, f"--record={tmp_path / 'sessions'}"])
        (made,) = (tmp_path / "sessions").iterdir()
        made.rename(folder)
        return "result"

    steps = {"require": lambda mover: None, "extent": lambda mover: (1.0, "gently"), "run": run}
    options = argparse.Namespace(record=tmp_path / "recordings", device="virtual-joystick")
    mover: Any = SimpleNamespace(spec=SPEC)
    measurement: Any = SimpleNamespace(table="run", **steps)
    assert carry_out(options, mover, measurement) == "result"
    warnings = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning: the timing")]
    assert len(warnings) == unfit
    assert all("had no usable sample; fitness.unusable_share allows 1 %" in line for line in warnings)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_termination_signal_interrupts_a_motion_only(number):
    received: list[int] = []
    before = signal.signal(number, lambda which, _: received.append(which))
    try:
        with pytest.raises(KeyboardInterrupt), orderly_end():
            os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
    finally:
        signal.signal(number, before)
    assert received == [number]


@pytest.fixture
def pipe():
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue


def terminal(pipe, typed, yes=False):
    os.write(pipe[1], typed.encode())
    return TerminalPerson(yes, TerminalInput(pipe[0]))


def look():
    return 12, -34


def test_answers_are_read_line_by_line(pipe):
    answers = TerminalInput(pipe[0])
    assert answers.next(0.0) is None
    os.write(pipe[1], b"one\ntwo\nth")
    assert [answers.next(0.0) for _ in range(3)] == ["one", "two", None]
    os.write(pipe[1], b"ree\r\n")
    assert answers.next(0.0) == "three"


def test_position_and_weight_are_confirmed_with_enter(pipe, capsys):
    person = terminal(pipe, "\n\n\n")
    person.bring(GATES["square"][0], look)
    output = capsys.readouterr()
    assert "the far right corner" in output.err and "Enter" in output.err
    assert output.out == ""
    person.hang(0.25, look)
    person.take_off(0.25, look)
    output = capsys.readouterr()
    assert "0.25 kg" in output.err and "straight towards you" in output.err and "Take the weight off" in output.err


def test_device_fault_interrupts_a_question(pipe):
    def broken():
        raise DeviceFault("the stick was unplugged")

    with pytest.raises(DeviceFault, match="unplugged"):
        terminal(pipe, "").bring(MIDDLE, broken)


def test_motion_is_confirmed_with_yes_or_no(pipe, capsys):
    assert terminal(pipe, "perhaps\nY\n").saw((0.009, 0.0))
    assert "9 mm to the right? [y/n]" in capsys.readouterr().err
    assert not terminal(pipe, "no\n").saw((0.0, -0.004))
    assert terminal(pipe, "", yes=True).saw((0.0, -0.004))
    assert "4 mm towards you" in capsys.readouterr().err


def test_closed_terminal_is_refused(pipe):
    person = terminal(pipe, "")
    os.close(pipe[1])
    with pytest.raises(ConfigurationError, match="run it in a terminal"):
        person.release_handle(look)


@pytest.mark.parametrize(("given", "force"), [([], 2.9), (["--set=autotune.force=1"], 1.0)])
def test_device_is_tuned_for_a_friction_that_it_can_render(monkeypatch, tmp_path, given, force):
    tuned = []

    def refuse(options, mover, tuning):
        tuned.append(tuning.settings.force)
        raise ConfigurationError("nothing moves here")

    monkeypatch.setattr("apps.calibrate.device.carry_out", refuse)
    assert main(["calibrate", "device", "--device=touch", f"--out={tmp_path / 'touch.toml'}", *given]) == 2
    assert tuned == [force]
