"""A session with the live view and the stage on a virtual screen: the mouse in one, the death of one, the stop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from haptics.recording.recording import Recording
from tests.apps.screen import WHY_NOT, Screen
from tests.conftest import WHY_NO_QT
from tests.processes import finish, recordings, until, until_running

pytestmark = pytest.mark.skipif(bool(WHY_NOT or WHY_NO_QT), reason=WHY_NOT or WHY_NO_QT)


@pytest.mark.slow  # tests/apps/stage drives the stage alone, tests/apps/session/test_application.py opens both
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
