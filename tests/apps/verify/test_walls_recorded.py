"""Recordings among walls: computed again with the same bits, judged by the equations of walls, wrongs noticed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.verify.check import verify
from apps.verify.findings import VIOLATED
from haptics import Coulomb
from haptics.recording.recording import Recording
from haptics.recording.replay import verify as replay
from haptics.scenes import Circle, HalfPlane, Polygon, Region, Scene, Wall, scene_table
from tests.apps.verify.runs import make
from tests.apps.verify.test_scenes import forge, of_the_scene, plan, sound

BOX = Scene(
    Coulomb(0.4),
    (Region("disc", Circle((0.0, 0.0), 0.02), Coulomb(2.0)),),
    walls=(
        Wall(HalfPlane((0.035, 0.0), (-1.0, 0.0)), 1500.0, 12.0, 0.4),
        Wall(HalfPlane((0.0, 0.03), (0.1, -1.0)), 2500.0, 0.0, 0.8),
        Wall(Circle((-0.03, -0.02), 0.012), 1000.0, 40.0, 0.0),
        Wall(Polygon(((-0.05, 0.0), (-0.02, 0.005), (-0.03, 0.01), (-0.025, 0.025), (-0.05, 0.02))), 2000.0, 10.0, 0.3),
    ),
    name="a box",
)
TABLE = scene_table(BOX)


@pytest.mark.parametrize("model", "ABCD")
def test_honest_recordings_among_walls_raise_no_alarm(model: str, tmp_path: Path) -> None:
    rows = sound(make(tmp_path / "run", plan(model, TABLE))).rows
    assert (rows["normal_force"] > 1.0).mean() > 0.2
    assert (rows["normal_force"] == 0.0).mean() > 0.1


@pytest.mark.parametrize("model", "BD")
def test_changes_in_mid_run_gates_skips_and_faults_among_walls_raise_no_alarm(model: str, tmp_path: Path) -> None:
    stiffer = scene_table(Scene(Coulomb(0.4), walls=BOX.walls[:2], name="less"))
    changes: dict[int, Any] = {
        150: {"law": {"force": 0.6}},
        300: {"scene": stiffer},
        450: {"scene": "border"},
        600: {"scene": TABLE},
        750: {"session": {"model": "C" if model == "B" else "A"}},
    }
    others: dict[str, Any] = {"shut": ((350, 420),), "skips": (90, 610), "faults": ("nan@0.2+0.02", "jump@0.7+0.003")}
    rows = sound(make(tmp_path / "run", plan(model, TABLE, changes=changes, **others))).rows
    assert np.isnan(rows["normal_force"][rows["settings_version"] == 3]).all()
    assert np.isfinite(rows["normal_force"][rows["settings_version"] != 3]).all()


@pytest.mark.parametrize("control", [False, True])
def test_with_a_late_force_and_the_passivity_controller_too(control: bool, tmp_path: Path) -> None:
    late = plan("C", TABLE)
    late.tables["device"] |= {"delay": 0.002}
    late.tables["envelope"] = {"passivity_control": control}
    assert (sound(make(tmp_path / "run", late)).rows["normal_force"] > 1.0).any()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("walls") / "run", plan("C", TABLE))


def pressed(name: str, factor: float) -> Any:
    """Change a column by a `factor` in one tick in which the handle leans on a wall."""

    def change(rows: np.ndarray, _: Any) -> None:
        tick = int(np.argmax(rows["normal_force"]))
        rows[name][tick] *= factor

    return change


WRONGS: dict[str, tuple[Any, str]] = {
    "normal force": (pressed("normal_force", 1.0 + 1e-6), "walls"),
    "force": (pressed("command_unlimited", 1.0 + 1e-6), "equations"),
    "proxy": (pressed("proxy", 1.0 + 1e-6), "proxy"),
    "stiffness": (of_the_scene(lambda scene: scene["walls"][0].update(stiffness_n_per_m=1501.0)), "walls"),
    "friction": (of_the_scene(lambda scene: scene["walls"][0].update(friction=0.41)), "equations"),
    "place": (of_the_scene(lambda scene: scene["walls"][2]["circle"].update(radius_m=0.0121)), "walls"),
    "no walls": (of_the_scene(lambda scene: scene.pop("walls")), "normal force"),
}


@pytest.mark.parametrize(("change", "rule"), WRONGS.values(), ids=WRONGS.keys())
def test_wrongs_of_walls_are_noticed(recorded: Path, change: Any, rule: str, tmp_path: Path) -> None:
    _, found = verify(forge(recorded, tmp_path / "forged", change))
    assert found.verdict == VIOLATED
    assert rule in {one.rule for one in found.violations}


def test_the_replay_notices_another_wall(recorded: Path, tmp_path: Path) -> None:
    softer = of_the_scene(lambda scene: scene["walls"][0].update(friction=0.41))
    assert replay(Recording(forge(recorded, tmp_path / "forged", softer))).mismatches > 10


def test_a_wall_of_a_kind_that_nobody_knows_is_no_silent_ok(recorded: Path, tmp_path: Path) -> None:
    for name, strange in (
        ("shape", lambda scene: scene["walls"][0].pop("half_plane")),
        ("number", lambda scene: scene["walls"][0].update(friction="much")),
        ("list", lambda scene: scene.update(walls="a fence")),
    ):
        _, found = verify(forge(recorded, tmp_path / name, of_the_scene(strange)))
        assert found.verdict == VIOLATED or found.missing, name
