"""The arm in real sessions: command line, servo process, driver, wires, emulated drive, sensor and arm.

What became of the motors is in the emulated drive's own account, which it writes when both are loose.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from haptics.recording.recording import Recording
from haptics.recording.replay import verify
from haptics.records import Status
from tests.processes import RUN, Application, device_log, program, recordings, until, written

pytestmark = [pytest.mark.timeout(400), pytest.mark.wall_clock]
"""The first session compiles what the arm needs, in two processes."""

ARM = ("--device", "arm", "--set", "device.emulated=true")
PATIENT = (
    *("--set", "device.motors.watchdog=0.4"),
    *("--set", "device.motors.reply_timeout=0.15"),
    *("--set", "device.sensor.patience=0.1"),
)
HAND = ("--set", "hand.speed=0.1", "--set", "hand.pause=0", "--set", "hand.rest=0", "--set", "hand.tremor=0")
LATEST = 1.0
"""The motors must be loose so long after a fault at the latest, whatever the machine does besides [s]."""


def account(recording: Path) -> dict[str, Any]:
    """Return what the emulated drive says of its end."""
    file = recording / "emulated_arm.json"
    until(lambda: file.exists() and file.read_text().endswith("}"), "the emulated drive did not end")
    return dict(json.loads(file.read_text()))


def session(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    where = ("--headless", "--record", str(folder))
    with program(
        *RUN, *where, *ARM, *PATIENT, *HAND, *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        out, err = process.communicate(timeout=300)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def friction(recording: Recording) -> tuple[float, int]:
    """Return what force the hand needed besides what accelerated the mass [N], the mean while sliding; of how many."""
    rows, mass = recording.rows, 2.0
    velocity = rows["sliding_velocity"]
    speed = np.hypot(*velocity.T)
    good = (rows["status"] == 0) & (rows["permission"] == 0) & (speed > 0.02)
    chosen = np.flatnonzero(good[1:] & good[:-1] & (np.diff(rows["tick"]) == 1)) + 1
    needed = rows["force"][chosen] - mass * (velocity[chosen] - velocity[chosen - 1]) / 1e-3
    along = np.sum(needed * velocity[chosen], axis=1) / speed[chosen]
    return float(along.mean()), len(chosen)


@pytest.mark.parametrize("model", ["A", "D"])
def test_the_whole_loop_slides_at_the_friction_that_was_asked_for(tmp_path: Path, model: str) -> None:
    done = session(tmp_path, "--model", model, "--duration", "2")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["lost_ticks"] == 0
    recording = Recording(Path(answer["recording"]))
    assert verify(recording).mismatches == 0
    felt, count = friction(recording)
    assert count > 200
    assert felt == pytest.approx(6.0, abs=0.15)
    error = np.hypot(*(recording.rows["position"] - recording.rows["proxy"]).T)
    assert np.median(error) < 2e-3  # seen some milliseconds later, while it moves
    assert np.ptp(recording.rows["position"], axis=0).max() > 0.01
    end = account(Path(answer["recording"]))
    assert (end["states"], end["errors"], end["torques"]) == ([1, 1], [0, 0], [0.0, 0.0])


FATAL = {"motors.unplug": "the drive was unplugged", "sensor.mute": "has sent no usable force|was too old"}
"""All of them are in tests/devices/arm/test_arm_faults.py, without a session."""


@pytest.mark.parametrize("fault", FATAL)
def test_a_fault_of_a_wire_ends_the_session_with_loose_motors(tmp_path: Path, fault: str) -> None:
    setting = f"device.wire_faults=['{fault}@1']"
    done = session(tmp_path, "--model", "A", "--duration", "30", "--set", setting)
    (recording,) = recordings(tmp_path)
    end = account(recording)
    assert done.returncode == 4, done.stderr
    assert "Traceback" not in done.stderr
    answer = json.loads(done.stdout)
    assert answer["reason"] == "fault"
    assert answer["error"].startswith("arm failed at tick ")
    assert any(words in answer["error"] for words in FATAL[fault].split("|")), answer["error"]
    assert answer["lost_ticks"] == 0
    assert end["states"] == [1, 1]
    assert end["torques"] == [0.0, 0.0]
    assert 1.0 <= end["loose_at"] <= 1.0 + LATEST
    print(f"{fault}: loose after {1e3 * (end['loose_at'] - 1.0):.0f} ms")  # noqa: T201 - with -rP
    rows = Recording(recording).rows
    stale = np.flatnonzero(rows["status"] & int(Status.STALE))  # it held until it was given up
    sent = stale[np.isfinite(rows["command"][stale]).all(axis=1)]
    assert (rows["command"][sent] == rows["command"][sent - 1]).all()
    assert verify(Recording(recording)).mismatches == 0


class Session(Application):
    """A session of the arm in processes of its own, that has begun to move."""

    def __init__(self, application: subprocess.Popen[str], folder: Path) -> None:
        super().__init__(application, folder)
        self._recordings = folder / "recordings"
        until(self._moves, "the arm never moved")
        (self.recording,) = recordings(self._recordings)

    def _moves(self) -> bool:
        assert self.application.poll() is None, self.said
        told = [device_log(folder)["command"] for folder in recordings(self._recordings)]
        return any(len(one) > 300 and bool(np.ptp(one[-200:], axis=0).max() > 1e-3) for one in told)


def test_when_application_and_servo_are_killed_the_drive_s_watchdogs_let_go_of_the_motors(tmp_path: Path) -> None:
    where = ("--headless", "--record", str(tmp_path / "recordings"))
    with written(tmp_path, *RUN, *where, *ARM, *PATIENT, *HAND, "--model", "A", "--duration", "60") as process:
        session = Session(process, tmp_path)
        os.killpg(process.pid, signal.SIGKILL)
        end = account(session.recording)
    assert (end["states"], end["errors"], end["torques"]) == ([1, 1], [0x800, 0x800], [0.0, 0.0])
