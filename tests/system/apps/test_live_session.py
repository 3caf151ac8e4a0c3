"""Live sessions on a virtual screen, driven by mouse and keyboard: view, stage, several windows, dead-man's key."""

from __future__ import annotations

import json
import math
import os
import subprocess
import time
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest

from apps.opengl.plane import Plane
from apps.session.run import Session
from apps.session.service import Service
from apps.settings.config import complete
from apps.stage.launch import start_stage
from haptics.recording.recording import Recording
from haptics.recording.replay import verify
from haptics.records import Status
from haptics.rendering.envelope import FADE
from tests.apps.screen import WHY_NOT
from tests.apps.stage.driving import layout, near
from tests.conftest import MISSING_QT
from tests.processes import finish, program, recordings, until, until_running

pytestmark = pytest.mark.skipif(bool(WHY_NOT or MISSING_QT), reason=WHY_NOT or MISSING_QT)


@pytest.mark.wall_clock  # the window has 11 s to appear, and the hand to move
def test_mouse_feels_four_newtons(screen, tmp_path):
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
    window = np.ones(40) / 40  # averages over 40 ms, so that single encoder steps do not count
    speed = np.hypot(*(np.convolve(velocity, window, "same") for velocity in rows["velocity"].T))
    fast = (speed > 0.02) & slipping & (rows["status"] & FADE == 0)
    assert fast.sum() > 1500
    force = np.hypot(*rows["command"].T)
    assert force[fast] == pytest.approx(4.0, rel=1e-3)
    assert verify(Recording(Path(answer["recording"]))).mismatches == 0


def test_slider_acts_on_the_run_and_start_begins_another(screen, tmp_path):
    with screen.session(tmp_path, "--device", "virtual-joystick", "--model", "C", "--seed", "3") as process:
        window = screen.window("virtual-joystick")
        first = until_running(process, tmp_path)
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
        assert (answer["recording"], answer["reason"]) == (str(second), "stopped")
        assert json.loads((second / "recording.json").read_text())["state"] == "complete"


def test_missing_display_does_not_prevent_a_run(tmp_path):
    environment, pipe = {**os.environ, "DISPLAY": ":4242", "QT_QPA_PLATFORM": "xcb"}, subprocess.PIPE
    arguments = ("-m", "apps", "demo", "--duration", "2", "--json")
    with program(*arguments, env=environment, cwd=tmp_path, stdout=pipe, stderr=pipe) as process:
        out, err = process.communicate(timeout=100)
    assert process.returncode == 0
    assert json.loads(out)["ticks"] + json.loads(out)["skipped"] == 2000
    assert "no live view: the display :4242 cannot be used" in err
    assert "This application failed to start" not in err


@pytest.mark.wall_clock  # the windows and the session need processor time
def test_two_windows_share_one_run(screen, tmp_path):
    arguments = ("--device", "virtual-joystick", "--model", "C", "--hand", "mouse", "--views", "2")

    def windows():
        return screen.xdotool("search", "--onlyvisible", "--name", "virtual-joystick").split()

    with screen.session(tmp_path, *arguments) as process:
        folder = until_running(process, tmp_path)
        until(lambda: len(windows()) == 2, "there are no two windows")
        one, other = windows()
        screen.xdotool("windowfocus", "--sync", one)
        before = time.monotonic()
        screen.xdotool("keydown", "f")
        time.sleep(1.0)  # the keyboard repeats the key
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


def test_stage_is_operated_and_the_killed_view_is_survived(screen, tmp_path):
    arguments = ("--device", "virtual-joystick", "--model", "C", "--hand", "mouse", "--stage")

    with screen.session(tmp_path, *arguments, "--set", "scene=ice-wood-rubber") as process:
        folder = until_running(process, tmp_path)
        stage, view = screen.window("(stage)"), screen.window("haptics: model C on virtual-joystick$")
        moves = [("mousemove", "--window", stage, str(x), "360", "sleep", "0.05") for x in range(300, 800, 20)]
        screen.xdotool(*(word for move in moves for word in move))
        until(lambda: np.ptp(np.load(folder / "ticks.npy.part", mmap_mode="r")["region"]) > 0, "it is on one material")
        screen.xdotool("windowkill", view)
        rows = len(np.load(folder / "ticks.npy.part", mmap_mode="r"))
        until(lambda: len(np.load(folder / "ticks.npy.part", mmap_mode="r")) > rows + 200, "the run did not go on")
        screen.xdotool("windowfocus", "--sync", stage, "key", "space")
        until((folder / "ticks.npy").exists, "the space bar of the stage did not end the run")
        screen.close(stage)
        answer = finish(process)
    assert answer["reason"] == "stopped"
    assert len(np.unique(Recording(folder).rows["region"])) > 1


def test_scene_changed_during_the_run_is_displayed(screen, tmp_path, monkeypatch):
    """The session, its servo and the stage are real, and so are the pipes between them."""
    monkeypatch.setenv("DISPLAY", screen.environment["DISPLAY"])
    tables = {"session": {"model": "C", "record": str(tmp_path), "scene": "ice-wood-rubber"}}
    session, service = Session(complete(tables), lambda line: None), Service(lambda line: None)
    service.fronts.add(start_stage("dark"))
    assert service.fronts.await_key(60.0, lambda: False)
    window = screen.window("haptics: stage")
    place = Plane(layout().plane, session.started["workspace"]).to_window(0.01, 0.065)
    seen: list[str] = []
    running, changed = Event(), Event()

    def watch():  # in a thread: the heartbeat of the session must not wait for it
        for ready, material, is_drawn in (
            (running, "wood", lambda red, _, blue: red - blue > 40.0),
            (changed, "rubber", lambda red, _, blue: abs(red - blue) < 15.0),
        ):
            ready.wait(60.0)
            end = time.monotonic() + 30.0
            while time.monotonic() < end:
                if is_drawn(*near(screen.shot(window), place, 6).astype(float).mean(axis=0)):
                    seen.append(material)
                    break
                time.sleep(0.1)

    def attend():
        service.run_periodic_tasks()
        if session.servo.trace.count:
            running.set()
        if seen and not changed.is_set():
            session.configure({"scene": "border"})
            changed.set()
        if not watcher.is_alive():
            session.stop()

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    service.begin(session)
    try:
        outcome = session.run(attend, service.connections)
    finally:
        service.fronts.close()
    watcher.join(60.0)
    assert outcome.reason == "stopped", outcome.fault
    assert seen == ["wood", "rubber"]


def released(recording):
    """Return whether the dead-man is not held in the newest tick."""
    return bool(Recording(recording).rows["status"][-1] & Status.RELEASED)


@pytest.mark.wall_clock  # the window repeats the key every 50 ms, and 150 ms of silence release it
def test_force_needs_the_held_space_bar(screen, tmp_path):
    arguments = ("--device", "virtual-joystick", "--model", "C", "--set", "envelope.dead_man=key")
    with screen.session(tmp_path, *arguments) as process:
        window = screen.window("virtual-joystick")
        folder = until_running(process, tmp_path)
        assert released(folder)
        screen.xdotool("windowfocus", "--sync", window)
        screen.xdotool("keydown", "space")
        until(lambda: not released(folder), "the key did nothing")
        time.sleep(1.5)
        assert not released(folder)
        screen.xdotool("keyup", "space")
        until(lambda: released(folder), "letting go did nothing")
        time.sleep(0.2)
        screen.xdotool("key", "Escape")
        until((folder / "ticks.npy").exists, "Esc did not end the run")
        screen.xdotool("windowkill", window)
        answer = finish(process)
    assert answer["reason"] == "stopped"
    rows = Recording(folder).rows
    free = (rows["status"] & Status.RELEASED) != 0
    changes = np.flatnonzero(np.diff(free))
    assert len(changes) == 2, f"once down and once up, not at {rows['time'][changes]} s"
    pressed, let_go = changes
    assert rows["time"][let_go] - rows["time"][pressed] > 1.5
    force = np.hypot(*rows["command"].T)
    assert not force[: pressed + 1].any()
    assert force[pressed + 200 : let_go].max() > 0.5
    assert not force[let_go + 20 :].any()
