"""Calibrations that move a device, by the wall clock: slow drives, failing devices and killed processes."""

from __future__ import annotations

import time

import numpy as np
import pytest

from haptics.recording.recording import Recording
from haptics.recording.replay import verify
from haptics.records import Status
from tests.apps.calibrate.commands import MOVING, SLOWLY, VERTICAL, calibrate, calibrating, is_safe, whole
from tests.processes import device_log, recordings, until, until_running


@pytest.mark.wall_clock  # a drive without an answer for 0.4 s counts as failed
def test_drive_without_torques_leaves_the_joints_out(tmp_path, capsys):
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


@pytest.mark.timeout(180)
@pytest.mark.parametrize("motion", ["joystick", "poses"])
def test_killed_calibration_leaves_the_device_safe(motion, tmp_path):
    with calibrating(motion, tmp_path) as (application, place):
        recording = until_running(application.application, place, MOVING)
        killed = time.monotonic_ns()
        application.application.kill()
        application.application.wait()
        until(
            lambda: "application lost" in (recording / "recording.json").read_text(), "the recording was not completed"
        )
    log = device_log(recording)
    assert is_safe(recording)
    moved = log["monotonic_ns"][1:][np.any(np.diff(log["command"], axis=0) != 0.0, axis=1)]
    assert moved[-1] - killed < 0.1e9  # 20 ms, and the delays of a busy machine
    assert whole(recording).metadata["state"] == "interrupted"


@pytest.mark.timeout(180)
@pytest.mark.wall_clock
@pytest.mark.parametrize(
    ("fault", "words", "motion"),
    [
        ("unplug", "No such device", "poses"),
        ("unplug", "No such device", "pushes"),
        ("stale", "too old", "joystick"),
        ("stale", "too old", "joints"),
    ],
)
def test_failing_device_is_left_safe_by_a_calibration(motion, fault, words, tmp_path):
    with calibrating(motion, tmp_path, f"--fault={fault}@{1e-3 * MOVING}") as (application, place):
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
