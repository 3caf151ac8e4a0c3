"""Demonstrations: one with a window, and whole ones without."""

import json
import subprocess
from pathlib import Path

import pytest

from apps.gallery import report
from apps.gallery.command import DEMONSTRATIONS, load
from apps.gallery.showing import Showing
from tests.apps.screen import WHY_NOT
from tests.conftest import MISSING_QT
from tests.processes import ROOT, finish, program, until
from tests.sampling import sample


@pytest.mark.skipif(bool(WHY_NOT or MISSING_QT), reason=WHY_NOT or MISSING_QT)
def test_demonstration_is_shown_live_and_repeated(screen, tmp_path):
    words = ("demo", "delay", "--out", str(tmp_path / "out"), "--record", str(tmp_path / "recordings"), "--json")
    pipe, environment = subprocess.PIPE, {**screen.environment, "TMPDIR": str(tmp_path)}
    with program("-m", "apps", *words, env=environment, stdout=pipe, stderr=pipe, cwd=tmp_path) as process:
        window = screen.window("virtual-joystick")
        runs = tmp_path / "recordings"
        until(lambda: len(list(tmp_path.glob("haptics-demo-*/*"))) > 1, "the demonstration is not repeated")
        assert len(list(runs.glob("*/ticks.npy"))) == 1, "repetitions are not kept"
        screen.close(window)
        answer = finish(process)
    assert (answer["holds"], answer["mismatches"]) == (True, 0)
    told = [json.loads((Path(folder) / "recording.json").read_text()) for folder in answer["recordings"]]
    clocks = [one["configuration"]["session"]["clock"] for one in told]
    assert clocks[0] == "wall" and set(clocks[1:]) == {"off"}


@pytest.mark.parametrize("name", sample(DEMONSTRATIONS, 2))
def test_demonstration_holds_in_its_whole_length(name, tmp_path):
    module, showing = load(name), Showing(name, tmp_path / "recordings", brief=False)
    outcome = module.demonstrate(showing)
    result = report.finish(showing, module.TITLE, module.GUIDE, outcome, tmp_path).result
    assert [row for row in outcome.rows if not row.holds] == []
    assert outcome.number <= outcome.bound
    assert (result["mismatches"], result["holds"]) == (0, True)
    assert result["ticks"] > 1000 * len(result["recordings"])
    page = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith(f"| [{name}]"))
    assert f"{outcome.number:.3g} {outcome.unit}" in row
