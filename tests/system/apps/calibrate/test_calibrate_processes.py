"""Calibrations that move a device, in real processes: killed, unplugged, stale, interrupted in the middle of a motion.

What was commanded is known from a witness that the servo does not write: the log of the virtual device.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from haptics.recording.recording import Recording
from haptics.recording.replay import verify
from haptics.records import Status
from tests.processes import Application, device_log, recordings, until, until_running, written

QUICK = [f"--set=excitation.{setting}" for setting in ("speeds=4", "rounds=2", "strokes=1", "stroke_time=0.25")]
EMULATED = ("--set=device.emulated=true", "--set=device.emulator=arduino")
STICK = ["--travel-x=0.14", "--travel-y=0.12", "--yes", *EMULATED]
COMMANDS = {
    "joystick": ["friction", "--device=virtual-joystick", *QUICK],
    "joints": ["friction", "--device=virtual-arm", *QUICK],
    "poses": ["arm", "--device=virtual-arm", "--only=handle"],
    "pushes": ["joystick", *STICK, "--stated-max-force=6"],
}
"""Calibrations that move the device."""

MOVING = 1500
"""Ticks after which each of them is in the middle of a motion."""

pytestmark = [pytest.mark.timeout(180)]


@contextmanager
def calibrating(what: str, folder: Path, *more: str) -> Iterator[tuple[Application, Path]]:
    """Start a calibration by the wall's clock; give it and its recording once it moves the device."""
    clock = [] if "--yes" in COMMANDS[what] else ["--clock=wall"]
    arguments = ["-m", "apps", "calibrate", *COMMANDS[what], *clock, f"--record={folder / 'recordings'}", *more]
    with written(folder, *arguments, f"--out={folder / 'own.toml'}", cwd=folder) as process:
        yield Application(process, folder), folder / "recordings"


def moving(what: str, application: Application, place: Path) -> Path:
    """Return the recording once it has so many ticks."""
    return until_running(application.application, place, MOVING)


def servo_of(process: subprocess.Popen[str]) -> int:
    """Return the process id of the servo, the only child that was spawned."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    spawned = [int(pid) for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert len(spawned) == 1
    return spawned[0]


def is_safe(recording: Path) -> bool:
    """Tell whether the last that the device was told leaves it safe: no force, or a reference that stays."""
    commands = device_log(recording)["command"]
    if Recording(recording).metadata["device"]["causality"] == "impedance":
        return not commands[-1].any()
    return bool((commands[-1] == commands[-2]).all())


def whole(recording: Path) -> Recording:
    """Return a recording after it has been replayed."""
    found = Recording(recording)
    assert verify(found).mismatches == 0
    assert len(found.rows) > MOVING
    return found


@pytest.mark.parametrize("what", ["joystick", "poses"])
def test_a_calibration_that_is_killed_leaves_the_device_safe(what: str, tmp_path: Path) -> None:
    with calibrating(what, tmp_path) as (application, place):
        recording = moving(what, application, place)
        killed = time.monotonic_ns()
        application.application.kill()
        application.application.wait()
        until(lambda: "application lost" in (recording / "recording.json").read_text(), "nobody completed it")
    log = device_log(recording)
    assert is_safe(recording)
    moved = log["monotonic_ns"][1:][np.any(np.diff(log["command"], axis=0) != 0.0, axis=1)]
    assert moved[-1] - killed < 0.1e9  # 20 ms, and what a busy machine adds
    assert whole(recording).metadata["state"] == "interrupted"


@pytest.mark.parametrize("what", ["joints", "pushes"])
def test_a_servo_that_is_killed_is_a_fault_and_the_recording_kept(what: str, tmp_path: Path) -> None:
    with calibrating(what, tmp_path) as (application, place):
        recording = moving(what, application, place)
        os.kill(servo_of(application.application), signal.SIGKILL)
        assert application.application.wait(60.0) == 4
    assert "killed by SIGKILL" in application.said
    assert str(recording) in application.said
    assert "Traceback" not in application.said
    found = whole(recording)
    assert (found.metadata["state"], found.metadata["reason"]) == ("interrupted", "fault")


@pytest.mark.wall_clock
@pytest.mark.parametrize(
    ("fault", "words", "what"),
    [
        ("unplug", "No such device", "poses"),
        ("unplug", "No such device", "pushes"),
        ("stale", "too old", "joystick"),
        ("stale", "too old", "joints"),
    ],
)
def test_a_device_that_goes_bad_is_left_safe(what: str, fault: str, words: str, tmp_path: Path) -> None:
    with calibrating(what, tmp_path, f"--fault={fault}@{1e-3 * MOVING}") as (application, place):
        assert application.application.wait(90.0) == 4
    (recording,) = [path for path in recordings(place) if path.is_dir()]
    assert words in application.said
    assert str(recording) in application.said
    found = Recording(recording)
    assert verify(found).mismatches == 0
    assert found.metadata["reason"] == "fault"
    if fault == "stale":
        first = int(np.argmax(found.rows["status"] & Status.STALE != 0))
        ticks = found.rows["tick"][[first, -1]]  # those that were skipped have no row
        assert abs(ticks[0] - MOVING) <= 25  # when the last sample has become too old
        assert ticks[1] - ticks[0] < 110
        assert is_safe(recording)
        if found.metadata["device"]["causality"] == "impedance":
            assert not found.rows["command"][first + 1 :].any()
        else:
            assert (found.rows["command"][first:] == found.rows["command"][first - 1]).all()


@pytest.mark.parametrize("what", ["joystick", "poses"])
def test_ctrl_c_ends_it_in_order(what: str, tmp_path: Path) -> None:
    with calibrating(what, tmp_path) as (application, place):
        recording = moving(what, application, place)
        application.application.send_signal(signal.SIGINT)
        assert application.application.wait(60.0) == 130
    assert "Traceback" not in application.said
    assert str(recording) in application.said
    found = whole(recording)
    assert (found.metadata["state"], found.metadata["reason"]) == ("complete", "interrupted")
    assert is_safe(recording)
