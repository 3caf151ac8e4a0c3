"""The dead-man's key of a real window on a virtual screen: what reaches the envelope of the running servo."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from haptics.job import KEY_LASTS
from haptics.trace import Status
from tests.apps.screen import WHY_NOT, Screen, virtual_screen
from tests.conftest import WHY_NO_QT

pytestmark = pytest.mark.skipif(bool(WHY_NOT or WHY_NO_QT), reason=WHY_NOT or WHY_NO_QT)

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def screen() -> Iterator[Screen]:
    with virtual_screen() as screen:
        yield screen


def start(screen: Screen, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "apps", "run", "--device", "virtual-joystick", "--model", "C", "--json"]
    command += ["--record", str(folder), "--set", "envelope.dead_man=key"]
    environment = {**screen.environment, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder
    )


def until(condition: Any, otherwise: str, seconds: float = 60.0) -> None:
    """Wait until `condition` holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, otherwise
        time.sleep(0.02)


def rows_of(folder: Path) -> np.ndarray:
    """Return what has been recorded so far."""
    parts = list(folder.glob("*/ticks.npy*"))
    return np.load(parts[0]) if parts else np.zeros(0)


def released(folder: Path) -> bool:
    """Return whether the envelope was told in the newest tick that the dead-man is not held."""
    rows = rows_of(folder)
    return bool(len(rows) and rows["status"][-1] & Status.RELEASED)


def test_there_is_force_only_while_the_space_bar_is_held(screen: Screen, tmp_path: Path) -> None:
    process = start(screen, tmp_path)
    window = screen.window("virtual-joystick")
    until(lambda: len(rows_of(tmp_path)) > 300, "the session never started")
    assert released(tmp_path)
    screen.xdotool("windowfocus", "--sync", window)
    screen.xdotool("keydown", "space")
    until(lambda: not released(tmp_path), "the key did nothing")
    time.sleep(1.5)
    assert not released(tmp_path)
    screen.xdotool("keyup", "space")
    until(lambda: released(tmp_path), "letting go did nothing")
    time.sleep(0.2)
    screen.xdotool("key", "Escape")
    until(lambda: list(tmp_path.glob("*/ticks.npy")), "Esc did not end the run")
    screen.xdotool("windowkill", window)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    answer = json.loads(out)
    assert answer["reason"] == "stopped"
    rows = rows_of(tmp_path)
    free = (rows["status"] & Status.RELEASED) != 0
    (pressed, let_go) = np.flatnonzero(np.diff(free))  # once down and once up, whatever the keyboard repeats
    assert rows["time"][let_go] - rows["time"][pressed] > 1.5
    force = np.hypot(*rows["command"].T)
    assert not force[: pressed + 1].any()
    assert force[pressed + 200 : let_go].max() > 0.5
    assert not force[let_go + 20 :].any()


def test_the_run_ends_with_the_view_whose_key_was_held(screen: Screen, tmp_path: Path) -> None:
    process = start(screen, tmp_path)
    window = screen.window("virtual-joystick")
    until(lambda: len(rows_of(tmp_path)) > 300, "the session never started")
    screen.xdotool("windowfocus", "--sync", window)
    screen.xdotool("keydown", "space")
    until(lambda: not released(tmp_path), "the key did nothing")
    screen.xdotool("windowkill", window)
    killed = time.monotonic()
    until(lambda: list(tmp_path.glob("*/ticks.npy")), "the run went on without its key")
    assert time.monotonic() - killed < 50 * KEY_LASTS
    screen.xdotool("keyup", "space")
    _, err = process.communicate(timeout=60)
    assert "the live view is gone, and with it the key that must be held" in err
