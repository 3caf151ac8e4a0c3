"""The dead-man's key of a real window on a virtual screen: what reaches the envelope of the running servo.

What comes of a window that dies while its key is held is in tests/apps/session/test_held_key.py.
"""

from __future__ import annotations

import subprocess
import time
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest

from haptics.records import Status
from tests.apps.screen import WHY_NOT, Screen
from tests.conftest import MISSING_QT
from tests.processes import finish, until, until_running

pytestmark = pytest.mark.skipif(bool(WHY_NOT or MISSING_QT), reason=WHY_NOT or MISSING_QT)


def start(screen: Screen, folder: Path) -> AbstractContextManager[subprocess.Popen[str]]:
    """Run a session whose key must be held."""
    held = ("--set", "envelope.dead_man=key")
    return screen.session(folder, "--device", "virtual-joystick", "--model", "C", *held)


def rows_of(folder: Path) -> np.ndarray:
    """Return what has been recorded so far."""
    parts = list(folder.glob("*/ticks.npy*"))
    return np.load(parts[0]) if parts else np.zeros(0)


def released(folder: Path) -> bool:
    """Return whether the envelope was told in the newest tick that the dead-man is not held."""
    rows = rows_of(folder)
    return bool(len(rows) and rows["status"][-1] & Status.RELEASED)


@pytest.mark.wall_clock  # the window says so every 50 ms, and 150 ms of silence let the key go
def test_there_is_force_only_while_the_space_bar_is_held(screen: Screen, tmp_path: Path) -> None:
    with start(screen, tmp_path) as process:
        window = screen.window("virtual-joystick")
        until_running(process, tmp_path)
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
        answer = finish(process)
    assert answer["reason"] == "stopped"
    rows = rows_of(tmp_path)
    free = (rows["status"] & Status.RELEASED) != 0
    changes = np.flatnonzero(np.diff(free))
    assert len(changes) == 2, f"once down and once up, whatever the keyboard repeats, not at {rows['time'][changes]} s"
    pressed, let_go = changes
    assert rows["time"][let_go] - rows["time"][pressed] > 1.5
    force = np.hypot(*rows["command"].T)
    assert not force[: pressed + 1].any()
    assert force[pressed + 200 : let_go].max() > 0.5
    assert not force[let_go + 20 :].any()
