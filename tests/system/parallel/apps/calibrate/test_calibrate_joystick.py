"""The command: a parameter file out of an emulated stick, a session with it, and every refusal."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from apps.calibrate import joystick
from apps.calibrate.places import require_place
from devices.joystick.parameters import parse_parameters, read_parameters
from haptics.errors import ConfigurationError
from tests.devices.joystick.test_parameters import GOOD
from tests.processes import NO_PICTURE, ROOT

CALIBRATE = ("calibrate", "joystick", "--out", "stick.toml")
TRAVEL = ("--travel-x", "0.14", "--travel-y", "0.12", "--stated-max-force", "6")
EMULATED = ("--set", "device.emulated=true", "--set", "device.emulator=arduino")
RUN = ("run", "--device", "pid-joystick", "--headless", "--duration", "1", *NO_PICTURE)

Calibrated = tuple[Path, subprocess.CompletedProcess[str]]


def start(*arguments: str, folder: Path) -> subprocess.Popen[str]:
    environment = {key: value for key, value in os.environ.items() if key not in {"DISPLAY", "WAYLAND_DISPLAY"}}
    return subprocess.Popen(
        [sys.executable, "-m", "apps", *arguments],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def haptics(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    with start(*arguments, folder=folder) as process:
        out, err = process.communicate(timeout=100)
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> Calibrated:
    folder = tmp_path_factory.mktemp("calibrated")
    return folder, haptics(*CALIBRATE, *TRAVEL, *EMULATED, "--yes", "--json", folder=folder)


def test_one_object_comes_out_and_a_file(calibrated: Calibrated) -> None:
    folder, done = calibrated
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["out"] == "stick.toml"
    assert answer["parameters"]["force"]["max_force_n"] == 6.0
    assert 0.0 < answer["push_level"] <= 0.3
    assert read_parameters(folder / "stick.toml").device.vid_pid == "2341:8036"
    assert "At the far right corner the counts are" in done.stderr


def test_a_session_renders_with_it(calibrated: Calibrated) -> None:
    folder, _ = calibrated
    gentle = ("--set", "device.parameters=stick.toml", "--set", "element.stiffness=500", "--set", "element.damping=2")
    done = haptics(*RUN, *EMULATED, *gentle, "--set", "law.force=2", "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["force_n"]["max"] > 0.5
    recorded = json.loads((folder / answer["recording"] / "recording.json").read_text())
    assert len(recorded["parameter_file_hash"]) == 64


def test_the_file_of_another_stick_is_refused(calibrated: Calibrated) -> None:
    folder, _ = calibrated
    other = ("--set", "device.emulated=true", "--set", "device.emulator=sidewinder-ff2")
    done = haptics(*RUN, *other, "--set", "device.parameters=stick.toml", folder=folder)
    assert done.returncode in {2, 3}
    assert "2341:8036" in done.stderr and "045e:001b" in done.stderr
    text = (folder / "stick.toml").read_text()
    digest = read_parameters(folder / "stick.toml").device.report_descriptor_sha256
    (folder / "changed.toml").write_text(text.replace(digest, digest[::-1]))
    done = haptics(*RUN, *EMULATED, "--set", "device.parameters=changed.toml", folder=folder)
    assert done.returncode == 2
    assert "report descriptor" in done.stderr and "haptics calibrate joystick" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("calibrate",), "KIND"),
        (("calibrate", "toaster"), "toaster"),
        ((*CALIBRATE, "--travel-x", "0.1"), "--travel-y"),
        ((*CALIBRATE, "--travel-x", "0.1", "--travel-y", "0.1"), "--weight KG"),
        ((*CALIBRATE, *TRAVEL, "--weight", "1"), "exactly one of two options"),
        ((*CALIBRATE, *TRAVEL, "--gate", "oval"), "unknown --gate 'oval'"),
        ((*CALIBRATE, *TRAVEL, "--set", "device.parameters=x.toml"), "--out"),
        ((*CALIBRATE, *TRAVEL, "--set", "device.colour=red"), "device.colour"),
        ((*CALIBRATE, *TRAVEL, "--set", "device.name=pantograph"), "pid-joystick only"),
        ((*CALIBRATE, *TRAVEL, "--set", "law.force=1"), "unknown table of settings 'law'"),
        ((*CALIBRATE, *TRAVEL, *EMULATED, "--set", "device.hand.name=mouse"), "device.hand"),
        (("calibrate", "joystick", "--out", "nowhere/p.toml", *TRAVEL), "nowhere/p.toml"),
    ],
)
def test_a_wrong_request_is_one_line_and_status_2(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    done = haptics(*arguments, "--json", folder=tmp_path)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "error" in json.loads(done.stdout)


@pytest.mark.parametrize("place", [".", "no such folder/p.toml", "terminal"])
def test_only_a_file_can_be_made(tmp_path: Path, place: str) -> None:
    (tmp_path / "terminal").symlink_to("/dev/null")
    with pytest.raises(ConfigurationError, match=r"--out = .*cannot be written"):
        require_place(tmp_path / place)
    require_place(tmp_path / "new.toml")


def test_what_could_not_be_written_after_all_is_not_lost(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigurationError, match="cannot be written"):
        joystick._keep(tmp_path / "taken away" / "stick.toml", GOOD)
    words, text = capfd.readouterr().err.split("\n\n", 1)
    assert "could not be written" in words
    assert parse_parameters(text, "standard error") == GOOD


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_request_to_end_is_heard_and_no_file_is_left(tmp_path: Path, number: signal.Signals) -> None:
    with start(*CALIBRATE, *TRAVEL, *EMULATED, folder=tmp_path) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "far right" in line:
                break
        time.sleep(0.05)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert not (tmp_path / "stick.toml").exists()


def test_without_parameters_a_session_is_refused_and_this_command_named(tmp_path: Path) -> None:
    done = haptics(*RUN, folder=tmp_path)
    assert done.returncode in {2, 3}
    assert "device.parameters" in done.stderr and "haptics calibrate joystick" in done.stderr


def test_a_stick_that_is_pulled_out_is_status_4(tmp_path: Path) -> None:
    unplugged = ("--set", "device.wire_faults=['unplug@1.5']")  # opening takes .5 s on a busy machine
    done = haptics(*CALIBRATE, *TRAVEL, *EMULATED, *unplugged, "--json", folder=tmp_path)
    assert done.returncode == 4, done.stderr
    assert "unplugged" in json.loads(done.stdout)["error"]
    assert not (tmp_path / "stick.toml").exists()
