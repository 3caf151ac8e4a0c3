"""Compiled hands: the same numbers as interpreted ones, and a mouse that another process moves."""

import os
import subprocess
import time

import numpy as np

from devices.common.settings import Workspace
from devices.virtual.hands.registry import HAND_TARGET, HANDS, make_hand
from haptics.shared import Mailbox
from tests.processes import program

WORKSPACE = Workspace((-0.1, -0.08), (0.1, 0.08))
# Names for the code of another process.
EVERYTHING = "from pathlib import Path\nfrom tests.system.devices.virtual.test_compiled_hands import *\n"


def hand_table(name, folder):
    """Return the settings of the named hand with all its features; its files are in `folder`."""
    if name == "recorded":
        times = np.linspace(0.0, 3.0, 40)
        path = np.column_stack((times, 0.05 * np.sin(3.0 * times), 0.02 * np.cos(5.0 * times)))
        (folder / "path.csv").write_text("t,x,y\n" + "".join(f"{t},{x},{y}\n" for t, x, y in path.tolist()))
    if name == "mouse":
        lane = Mailbox(folder / "target", HAND_TARGET, create=not (folder / "target").exists())
        lane.publish(np.array(((0.05, -0.2), 1, 0b1000, 0.25), HAND_TARGET))
    tables = {
        "minimum-jerk": {"tremor": 0.3, "pause": 0.05, "rest": 0.4, "speed": 0.3},
        "scripted-force": {"script": [[0.1, 0.0, 2.0], [0.5, 4.0, -1.0], [0.9, 1.0, 1.0]], "repeat": 1.7},
        "recorded": {"file": str(folder / "path.csv"), "tremor": 0.2},
        "mouse": {"target": str(folder / "target"), "tremor": 0.2, "smoothing": 0.2},
    }
    return {"name": name, "presses": ["1@0.2+0.5", "31@0.3", "1@0.6+0.4"], **tables[name]}


def moves(name, folder):
    """Return the samples of a hand over four seconds as bytes."""
    hand = make_hand(hand_table(name, folder), 5, WORKSPACE)
    handle = np.array((0.01, -0.02))
    return np.array([hand.sample(time, handle) for time in np.arange(0.0, 4.0, 1e-2)]).tobytes()


def test_interpreted_hands_give_the_same_numbers(tmp_path):
    here = {name: moves(name, tmp_path).hex() for name in HANDS}
    code = f"for name in HANDS: print(name, moves(name, Path({str(tmp_path)!r})).hex())"
    interpreted = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    with program("-c", EVERYTHING + code, env=interpreted, stdout=subprocess.PIPE) as process:
        there, _ = process.communicate()
    assert process.returncode == 0
    assert dict(line.split() for line in there.splitlines()) == here


# --- the mouse -------------------------------------------------------------------------------------------------------


def publish(path):
    """Publish opposite numbers until this process is killed; most of the time a value is half written."""
    lane = Mailbox(path, HAND_TARGET)
    lane.record["engaged"] = 1
    k = 0
    position = lane.record["position"][0]
    while True:
        k = (k + 1) % 70
        lane.sequence[0] += 1
        position[0] = 1e-3 * k
        position[1] = -1e-3 * k
        lane.sequence[0] += 1


def test_mouse_position_is_never_half_written(tmp_path):
    path = tmp_path / "target"
    Mailbox(path, HAND_TARGET, create=True)
    hand = make_hand({"name": "mouse", "target": str(path), "smoothing": 1e-3}, 0, WORKSPACE)
    seen = set()
    now, handle = 0.0, np.zeros(2)
    with program("-c", f"{EVERYTHING}publish(Path({str(path)!r}))") as writer:
        end = time.monotonic() + 1.0
        while len(seen) <= 20 or time.monotonic() < end:
            now += 10.0  # the filter has long arrived
            sample = hand.sample(now, handle)
            assert sample.x == -sample.y
            seen.add(sample.x)
            assert writer.poll() is None
