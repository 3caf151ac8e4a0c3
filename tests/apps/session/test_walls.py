"""Walls in a session: what is said of them at its start, and that they come through its settings."""

from __future__ import annotations

from typing import Any

import pytest

from apps.session.counsel import Counsel
from apps.settings.config import SessionConfig, complete, gather
from haptics import Coulomb
from haptics.rendering.on_scene import OnScene
from haptics.scenes import HalfPlane, Scene, Wall, read_scene, scene_table


def session(stiffness: float, **device: Any) -> SessionConfig:
    scene = Scene(Coulomb(1.0), walls=(Wall(HalfPlane((0.05, 0.0), (-1.0, 0.0)), stiffness),))
    return complete({"device": {"name": "virtual-joystick", **device}, "scene": scene_table(scene)})


@pytest.mark.parametrize("device", ["virtual-joystick", "virtual-arm"])
def test_the_box_is_named_and_comes_to_the_servo_whole(device: str) -> None:
    config = complete(gather(None, ["scene=box", f"device.name={device}"]))
    assert isinstance(config.program, OnScene)
    assert config.program.scene.walls == read_scene("box").walls
    assert complete(config.as_dict()).scene == config.scene


def test_a_wall_that_is_too_stiff_is_named_at_the_start() -> None:
    config = session(30e3)
    counsel = Counsel(config.spec)
    said = counsel.consider(config.built_element, 0, config.scene)
    assert "wall.stiffness = 30000 N/m" in said and "lower it" in said
    assert {"wall", "wall-encoder"} <= {one["bound"] for one in counsel.record}
    assert "wall" not in Counsel(config.spec).consider(config.built_element, 0)


def test_of_a_sound_wall_nothing_is_said() -> None:
    config = session(2000.0)
    counsel = Counsel(config.spec)
    assert "wall" not in counsel.consider(config.built_element, 0, config.scene)
    assert not [one for one in counsel.record if one["bound"].startswith("wall")]
