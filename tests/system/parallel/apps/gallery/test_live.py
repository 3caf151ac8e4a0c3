"""A demonstration with a display: its run is shown in the window, by the wall's clock, and holds all the same."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.apps.screen import WHY_NOT, Screen
from tests.conftest import MISSING_QT
from tests.processes import finish, program, until

pytestmark = pytest.mark.skipif(bool(WHY_NOT or MISSING_QT), reason=WHY_NOT or MISSING_QT)


def test_a_demonstration_is_shown_live(screen: Screen, tmp_path: Path) -> None:
    words = ("demo", "delay", "--out", str(tmp_path / "out"), "--record", str(tmp_path / "recordings"), "--json")
    pipe, environment = subprocess.PIPE, {**screen.environment, "TMPDIR": str(tmp_path)}
    with program("-m", "apps", *words, env=environment, stdout=pipe, stderr=pipe, cwd=tmp_path) as process:
        window = screen.window("virtual-joystick")
        runs = tmp_path / "recordings"
        until(lambda: len(list(tmp_path.glob("haptics-demo-*/*"))) > 1, "it is not shown again and again")
        assert len(list(runs.glob("*/ticks.npy"))) == 1, "repetitions are not kept"
        screen.close(window)
        answer = finish(process)
    assert (answer["holds"], answer["mismatches"]) == (True, 0)
    told = [json.loads((Path(folder) / "recording.json").read_text()) for folder in answer["recordings"]]
    clocks = [one["configuration"]["session"]["clock"] for one in told]
    assert clocks[0] == "wall"
    assert set(clocks[1:]) == {"off"}
