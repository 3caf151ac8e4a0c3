"""Walls in the file of a scene: read, written, and refused with the line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from haptics import Coulomb
from haptics.errors import ConfigurationError
from haptics.scenes import Circle, Scene, Wall, read_scene, scene_from_table, scene_table, write_scene
from haptics.scenes.walls import MOST_WALLS
from tests.haptics.wall_runs import BLOCK, FLOOR, PEG

WALLS = (Wall(FLOOR), Wall(PEG, 500.0, 0.0, 1.2), Wall(BLOCK, 1e6, 300.0, 0.0))


def test_walls_go_through_a_file_and_through_json(tmp_path: Path) -> None:
    scene = Scene(Coulomb(0.0), walls=WALLS)
    write_scene(scene, tmp_path / "scene.toml")
    assert read_scene(tmp_path / "scene.toml") == scene
    assert scene_from_table(json.loads(json.dumps(scene_table(scene)))) == scene
    assert "walls" not in scene_table(Scene(Coulomb(1.0)))


def test_the_shipped_box_survives_writing(tmp_path: Path) -> None:
    scene = read_scene("box")
    assert len(scene.walls) == 6
    write_scene(scene, tmp_path / "again.toml")
    assert read_scene(tmp_path / "again.toml") == scene
    corner = [[0.0595, 0.0], [0.0, 0.0445], [0.0, 0.0]]
    assert all((wall.depth(corner) < 0.0).all() for wall in scene.walls)


FILE = """\
law = { name = "coulomb", force_n = 1.0 }

[[regions]]
law = { force_n = 3.0 }
circle = { center_m = [0.0, 0.0], radius_m = 0.02 }

[[walls]]
half_plane = { point_m = [0.05, 0.0], normal = [-1.0, 0.0] }

[[walls]]
friction = 0.4
circle = { center_m = [0.0, 0.0], radius_m = 0.02 }
stiffness_n_per_m = 2000.0
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("friction = 0.4", "friction = -0.4", 11, "wall 2.friction = -0.4: must be a finite number at least 0"),
        ("2000.0", "0.0", 13, "wall 2.stiffness_n_per_m = 0.0: must be"),
        ("stiffness_n_per_m", "stiffness", 13, "'wall 2.stiffness'. Did you mean 'wall 2.stiffness_n_per_m'"),
        ("radius_m = 0.02 }\nstiff", "radius_m = -1.0 }\nstiff", 12, "circle.radius = -1.0"),
        ("half_plane = { point_m", "shape = { point_m", 7, "wall 1: has 0 shapes; must have one of"),
        ("friction = 0.4", 'friction = "0.4"', 11, "wall 2.friction = '0.4'"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, old: str, new: str, line: int, said: str) -> None:
    file = tmp_path / "scene.toml"
    file.write_text(FILE.replace(old, new), encoding="utf-8")
    with pytest.raises(ConfigurationError) as error:
        read_scene(file)
    assert f"line {line}: " in str(error.value) and said in str(error.value)


def test_no_scene_has_more_walls_than_a_tick_can_meet() -> None:
    with pytest.raises(ConfigurationError, match=f"{MOST_WALLS + 1} walls; at most {MOST_WALLS}"):
        Scene(Coulomb(1.0), walls=(Wall(Circle((0.0, 0.0), 0.01)),) * (MOST_WALLS + 1))
    with pytest.raises(ConfigurationError, match="must be Wall objects"):
        Scene(Coulomb(1.0), walls=(Circle((0.0, 0.0), 0.01),))  # type: ignore[arg-type]
