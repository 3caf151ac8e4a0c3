"""Two real windows on one run, on a virtual screen: a key, a slider and the mouse in one, and the other goes on."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

from haptics.recording.recording import Recording
from tests.apps.screen import WHY_NOT, Screen
from tests.conftest import MISSING_QT
from tests.processes import finish, recordings, until, until_running

pytestmark = pytest.mark.skipif(bool(WHY_NOT or MISSING_QT), reason=WHY_NOT or MISSING_QT)


@pytest.mark.wall_clock  # the windows and the session have to get on
def test_two_windows_on_one_run(screen: Screen, tmp_path: Path) -> None:
    arguments = ("--device", "virtual-joystick", "--model", "C", "--hand", "mouse", "--views", "2")

    def windows() -> list[str]:
        return screen.xdotool("search", "--onlyvisible", "--name", "virtual-joystick").split()

    with screen.session(tmp_path, *arguments) as process:
        until_running(process, tmp_path)
        until(lambda: len(windows()) == 2, "there are no two windows")
        (folder,) = recordings(tmp_path)
        one, other = windows()
        screen.xdotool("windowfocus", "--sync", one)
        before = time.monotonic()
        screen.xdotool("keydown", "f")
        time.sleep(1.0)  # the keyboard repeats it meanwhile
        screen.xdotool("keyup", "f")
        after = time.monotonic()
        until(lambda: len(Recording(folder).events) == 2, "the key is not there")
        screen.xdotool("mousemove", "576", "230", "mousedown", "3")
        time.sleep(0.3)
        screen.xdotool("mouseup", "3", "mousemove", "60", "367", "click", "1")  # the slider of the friction force
        until(lambda: len((folder / "settings.jsonl").read_text().splitlines()) > 1, "the slider did nothing")
        screen.xdotool("windowkill", one)
        until(lambda: windows() == [other], "the window did not go")
        assert process.poll() is None
        rows = len(np.load(folder / "ticks.npy.part", mmap_mode="r"))
        until(lambda: len(np.load(folder / "ticks.npy.part", mmap_mode="r")) > rows + 200, "the run did not go on")
        screen.xdotool("windowfocus", "--sync", other, "key", "--window", other, "space")
        until((folder / "ticks.npy").exists, "the space bar of the other window did not end the run")
        screen.xdotool("windowkill", other)
        answer = finish(process)
    assert answer["reason"] == "stopped"
    recording = Recording(folder)
    down, up, end = recording.events
    assert [(key["name"], key["down"]) for key in (down, up)] == [("f", True), ("f", False)]
    assert before < 1e-9 * down["monotonic_ns"] < 1e-9 * up["monotonic_ns"] < after
    assert up["tick"] - down["tick"] == pytest.approx(1e-6 * (up["monotonic_ns"] - down["monotonic_ns"]), abs=1.1)
    assert end["event"] == "stopped"
    held = recording.rows["buttons"] & 0b100
    assert (held != 0).any()
    assert np.count_nonzero(np.diff(held.astype(int))) == 2, "once down and once up"
    assert json.loads((folder / "settings.jsonl").read_text().splitlines()[-1])["law"]["force"] < 4.0
