"""A session with the live view and the stage on a virtual screen: the mouse in one, the death of one, the stop."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

from apps.opengl.plane import Plane
from apps.session.run import Session
from apps.session.service import Service
from apps.settings.config import complete
from apps.stage.launch import StageLink
from haptics.recording.recording import Recording
from tests.apps.screen import WHY_NOT, Screen
from tests.apps.stage.driving import layout, near
from tests.conftest import MISSING_QT
from tests.processes import finish, recordings, until, until_running

pytestmark = pytest.mark.skipif(bool(WHY_NOT or MISSING_QT), reason=WHY_NOT or MISSING_QT)


def test_the_stage_beside_the_view_on_a_scene(screen: Screen, tmp_path: Path) -> None:
    arguments = ("--device", "virtual-joystick", "--model", "C", "--hand", "mouse", "--stage")

    with screen.session(tmp_path, *arguments, "--set", "scene=ice-wood-rubber") as process:
        until_running(process, tmp_path)
        stage, view = screen.window("(stage)"), screen.window("haptics: model C on virtual-joystick$")
        (folder,) = recordings(tmp_path)
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


def test_a_scene_that_is_changed_in_mid_run_is_seen(
    screen: Screen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session, its servo and the stage are real, and so are the pipes between them."""
    monkeypatch.setenv("DISPLAY", screen.environment["DISPLAY"])
    tables = {"session": {"model": "C", "record": str(tmp_path), "scene": "ice-wood-rubber"}}
    session, service = Session(complete(tables), lambda line: None), Service(lambda line: None)
    service.fronts.add(StageLink("dark"))
    assert service.fronts.await_key(60.0, lambda: False)
    window = screen.window("haptics: stage")
    shots: list[Any] = []
    running, seen, changed = Event(), Event(), Event()

    def watch() -> None:  # beside the session, whose heartbeat must not wait for it
        for ready in (running, changed):
            ready.wait(60.0)
            time.sleep(1.5)
            shots.append(screen.shot(window))
            seen.set()

    def attend() -> None:
        service.attend()
        if session.servo.trace.count:
            running.set()
        if seen.is_set() and not changed.is_set():
            session.configure({"scene": "border"})
            changed.set()
        if len(shots) == 2:
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
    place = Plane(layout().plane, session.started["workspace"]).to_window(0.01, 0.065)
    before, after = (near(shot, place, 6).astype(float).mean(axis=0) for shot in shots)
    assert before[0] - before[2] > 40.0, "wood"
    assert abs(after[0] - after[2]) < 15.0, "rubber"
