"""The scene of a session: named, as a file beside a file of settings, whole, changed in mid-run, and refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from apps.settings.config import SessionConfig, complete, gather
from haptics import Coulomb, Stribeck
from haptics.errors import ConfigurationError
from haptics.rendering.on_scene import OnScene
from haptics.scenes import Circle, Region, Scene, read_scene, scene_table, write_scene

MINE = Scene(Coulomb(1.0), (Region("disc", Circle((0.0, 0.0), 0.02), Coulomb(6.0)),), name="mine")


def session(**tables: Any) -> SessionConfig:
    return complete({"device": {"name": "virtual-joystick"}, **tables})


def test_a_shipped_scene_is_named_and_its_background_is_the_law() -> None:
    config = complete({**gather(None, ["scene=ice-wood-rubber"]), "device": {"name": "virtual-joystick"}})
    assert config.scene == read_scene("ice-wood-rubber")
    assert config.built_element.law == Stribeck(1.8, 2.2, 0.1, 1.0)
    assert isinstance(config.program, OnScene)
    assert config.strongest_element.law == Stribeck(4.2, 5.0, 0.1, 1.0)


@pytest.mark.parametrize("line", ['scene = "mine.toml"', '[session]\nscene = "mine.toml"'])
def test_a_file_of_settings_names_a_scene_beside_it(line: str, tmp_path: Path) -> None:
    write_scene(MINE, tmp_path / "mine.toml")
    (tmp_path / "settings.toml").write_text(f"{line}\n")
    tables = gather(tmp_path / "settings.toml", ["device.name=virtual-joystick"])
    assert complete(tables).scene == MINE
    over = gather(tmp_path / "settings.toml", ["device.name=virtual-joystick", "scene=border"])
    assert complete(over).scene == read_scene("border")
    (tmp_path / "shipped.toml").write_text('scene = "border"\n')
    assert complete(gather(tmp_path / "shipped.toml", ["device.name=virtual-joystick"])).scene == read_scene("border")


def test_the_tables_of_a_session_hold_the_whole_scene_and_make_the_same_session() -> None:
    config = session(scene=scene_table(read_scene("relief")))
    again = complete(json.loads(json.dumps(config.as_dict())))
    assert again.scene == config.scene == read_scene("relief")
    assert "scene" not in session().as_dict()


def test_a_parameter_of_the_law_is_that_of_the_background_and_the_element_may_change_too() -> None:
    config = session(scene=scene_table(MINE))
    louder = config.with_parameter("law.force", 2.0)
    assert louder.scene is not None and louder.scene.law == Coulomb(2.0) == louder.built_element.law
    assert louder.scene.regions == MINE.regions
    stiffer = config.with_parameter("element.stiffness", 3000.0)
    assert isinstance(config.program, OnScene) and isinstance(stiffer.program, OnScene)
    assert stiffer.program.surface.border > config.program.surface.border


def test_another_scene_is_taken_in_mid_run_whole_or_by_its_name() -> None:
    config = session(scene=scene_table(MINE))
    assert config.with_tables({"scene": "border"}).scene == read_scene("border")  # type: ignore[dict-item]
    other = config.with_tables({"scene": scene_table(read_scene("stick-slip-patch"))})
    assert other.law["name"] == "stribeck" and isinstance(other.program, OnScene)
    changed = config.with_tables({"law": {"force": 3.0}})
    assert changed.scene is not None and changed.scene.law == Coulomb(3.0)
    assert session().with_tables({"scene": "border"}).scene is not None  # type: ignore[dict-item]
    left = config.with_tables({"scene": ""})  # type: ignore[dict-item]
    assert left.scene is None and left.built_element.law == MINE.law


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"session": {"scene": "iced"}}, "unknown scene 'iced'"),
        ({"session": {"scene": "none.toml"}}, "none.toml: cannot be read"),
        ({"session": {"scene": 3}}, "scene = 3: must be a scene file"),
        ({"session": {"scene": "border"}, "law": {"force": 3.0}}, "law.force = 3.0: the laws of this session"),
        ({"session": {"scene": "border", "model": "dahl"}}, "model dahl: cannot be put on a scene"),
        ({"scene": {"law": 3}}, "law: must be a table"),
        ({"session": {"scene": "stick-slip-patch"}, "element": {"stiffness": 1000.0}}, "'patch'.*condition 15"),
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_is_opened(tables: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        session(**tables)


def test_a_law_that_a_scene_cannot_mix_is_refused_in_mid_run() -> None:
    config = session(scene=scene_table(MINE))
    with pytest.raises(ConfigurationError, match="all laws of a scene must be of one class"):
        config.with_tables({"law": {"name": "stribeck"}})
