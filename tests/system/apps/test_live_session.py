"""A live session with a real window on a virtual screen, moved and stopped as a person would.

The pointer is driven by xdotool: 30 s along a Lissajous figure over the plane of the window, one position every 16 ms
as a real mouse would send them. What the hand felt is then judged from the recording.
"""

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from haptics.rendering.envelope import FADE
from tests.apps.screen import WHY_NOT, Screen
from tests.conftest import MISSING_QT
from tests.processes import ROOT, finish, recordings, until, until_running

pytestmark = pytest.mark.skipif(bool(WHY_NOT or MISSING_QT), reason=WHY_NOT or MISSING_QT)


def smoothed_speed(rows: np.ndarray, window: int = 40) -> np.ndarray:
    """Return the speed of the handle [m/s], averaged over 40 ms so that single encoder steps do not count."""
    kernel = np.ones(window) / window
    return np.hypot(*(np.convolve(rows["velocity"][:, axis], kernel, "same") for axis in range(2)))


@pytest.mark.wall_clock  # the window has 11 s to appear, and the hand to move
def test_a_session_with_the_mouse_feels_four_newtons(screen: Screen, tmp_path: Path) -> None:
    arguments = ("--device", "virtual-joystick", "--model", "C", "--hand", "mouse", "--duration", "11")
    with screen.session(tmp_path, *arguments) as process:
        screen.window("virtual-joystick")
        # The plane spans about x = 390..705 and y = 83..334 pixels of a window that opens in the upper left corner.
        ticks = np.arange(0, 9, 0.016)
        points = [(int(576 + 140 * math.sin(1.9 * t)), int(230 + 100 * math.sin(2.6 * t + 0.4))) for t in ticks]
        screen.trace_path(points, 0.015)
        answer = finish(process)
    assert answer["lost_ticks"] == 0
    rows = np.load(Path(answer["recording"]) / "ticks.npy")
    assert np.ptp(rows["position"], axis=0).min() > 0.05, "the handle hardly moved"
    slipping = rows["sticking"] == 0
    assert 0.02 < slipping.mean() < 0.999
    fast = (smoothed_speed(rows) > 0.02) & slipping & (rows["status"] & FADE == 0)
    assert fast.sum() > 1500
    force = np.hypot(*rows["command"].T)
    assert force[fast] == pytest.approx(4.0, rel=1e-3)
    verified = subprocess.run(
        [sys.executable, "-m", "apps", "replay", answer["recording"], "--verify", "--json"],
        env={**screen.environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(verified.stdout)["mismatches"] == 0


def test_the_space_bar_stops_and_closing_the_window_leaves(screen: Screen, tmp_path: Path) -> None:
    with screen.session(tmp_path, "--device", "virtual-arm", "--model", "A") as process:
        window = screen.window("virtual-arm")
        until_running(process, tmp_path)
        part = next(tmp_path.glob("*/ticks.npy.part"))
        screen.xdotool("windowfocus", "--sync", window, "key", "--window", window, "space")
        until(lambda: not part.exists(), "the space bar did not end the run")
        metadata = json.loads((part.parent / "recording.json").read_text())
        assert metadata["reason"] == "stopped"
        assert process.poll() is None, "the window should stay until it is closed"
        screen.xdotool("windowkill", window)
        answer = finish(process)
        assert answer["reason"] == "stopped"


def test_a_slider_acts_on_the_running_session_and_start_begins_another(screen: Screen, tmp_path: Path) -> None:
    with screen.session(tmp_path, "--device", "virtual-joystick", "--model", "C", "--seed", "3") as process:
        window = screen.window("virtual-joystick")
        until_running(process, tmp_path)
        (first,) = recordings(tmp_path)
        # Left on the track of the first slider, the friction force.
        screen.xdotool("mousemove", "60", "383", "click", "1")
        until(lambda: len((first / "settings.jsonl").read_text().splitlines()) > 1, "the slider did nothing")
        time.sleep(0.5)
        screen.xdotool("windowfocus", "--sync", window, "key", "--window", window, "space")
        until((first / "ticks.npy").exists, "the space bar did not end the run")
        settings = [json.loads(line) for line in (first / "settings.jsonl").read_text().splitlines()]
        rows = np.load(first / "ticks.npy")
        assert set(rows["settings_version"]) >= {0, settings[-1]["version"]}
        last = rows[rows["settings_version"] == settings[-1]["version"]]
        assert settings[-1]["law"]["force"] < 4.0
        assert np.hypot(*last["friction_force"].T).max() <= settings[-1]["law"]["force"] * (1 + 1e-9)
        screen.xdotool("mousemove", "140", "687", "click", "1")  # Start again
        until(lambda: len(recordings(tmp_path)) == 2, "no second session was started")
        second = next(folder for folder in recordings(tmp_path) if folder != first)
        until(lambda: len(np.load(second / "ticks.npy.part", mmap_mode="r")) > 100, "the second session did not run")
        screen.xdotool("windowfocus", "--sync", window, "key", "--window", window, "space")
        until((second / "ticks.npy").exists, "the space bar did not end the second run")
        screen.xdotool("windowkill", window)
        answer = finish(process)
        assert answer["recording"] == str(second)
        assert json.loads((second / "recording.json").read_text())["state"] == "complete"


def test_a_run_goes_on_when_the_view_dies(screen: Screen, tmp_path: Path) -> None:
    with screen.session(tmp_path, "--device", "virtual-joystick", "--model", "C", "--duration", "600") as process:
        window = screen.window("virtual-joystick")
        until_running(process, tmp_path)
        screen.xdotool("windowkill", window)
        assert process.stderr is not None
        said = iter(process.stderr.readline, "")
        assert any("the run goes on without it" in line for line in said)
        (part,) = tmp_path.glob("*/ticks.npy.part")
        until_running(process, tmp_path, len(np.load(part, mmap_mode="r")) + 500)
        process.send_signal(signal.SIGINT)
        answer = json.loads(process.communicate(timeout=60.0)[0])
    assert process.returncode == 130
    assert answer["reason"] == "interrupted"


def test_a_display_that_is_not_there_is_no_obstacle(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "apps", "demo", "--duration", "2", "--json"]
    environment = {**os.environ, "DISPLAY": ":4242", "QT_QPA_PLATFORM": "xcb", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0
    answer = json.loads(done.stdout)
    assert answer["ticks"] + answer["skipped"] == 2000
    assert "no live view: the display :4242 cannot be used" in done.stderr
    assert "This application failed to start" not in done.stderr
