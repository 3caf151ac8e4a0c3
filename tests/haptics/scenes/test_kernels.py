"""The scene that the tick looks up is the one that is described: place by place the same numbers and regions."""

from __future__ import annotations

import numpy as np
import pytest

from haptics import DeadZoneViscous, Elliptic, GaussianStribeck
from haptics.rendering.on_scene import OnScene
from haptics.scenes import Circle, Polygon, Region, Scene, Texture, read_scene
from haptics.scenes.family import forces_of
from tests.haptics.scenery import element_of, moved

SCENES = {
    **{name: read_scene(name) for name in ("border", "ice-wood-rubber", "stick-slip-patch", "relief")},
    "gaussian": Scene(
        GaussianStribeck(1.0, 1.5, 0.2),
        (Region("disc", Circle((0.02, 0.0), 0.05), GaussianStribeck(3.0, 3.5, 0.1), texture=Texture(amplitude=0.5)),),
    ),
    "dead zone": Scene(
        DeadZoneViscous(1.0, 5.0, 0.1), (Region("disc", Circle((0.02, 0.0), 0.05), DeadZoneViscous(3.0, 9.0, 0.02)),)
    ),
    "elliptic": Scene(
        Elliptic(1.0, 2.0, 0.4),
        (
            Region("disc", Circle((0.02, 0.0), 0.03), Elliptic(4.0, 1.0, 0.4), texture=Texture("noise", 0.5, 0.004)),
            Region(
                "nook", Polygon(((-0.05, -0.05), (0.0, -0.05), (-0.04, -0.04), (-0.05, 0.0))), Elliptic(3.0, 3.0, 0.4)
            ),
        ),
        border=0.004,
    ),
}


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES.keys())
def test_the_tick_finds_the_numbers_and_the_region_of_the_last_proxy(scene: Scene) -> None:
    program = OnScene(element_of("C", scene.law), scene)
    angle = 0.002 * np.arange(12000)
    path = np.stack((0.08 * np.cos(angle), 0.07 * np.sin(1.37 * angle)), axis=1)
    rows = moved(program, path)
    before = rows["proxy"][:-1]
    assert (rows["region"][1:] == program.surface.region_at(before)).all()
    assert set(rows["region"].tolist()) >= set(range(2))  # it did come about
    numbers = program.surface.numbers_at(before)
    force, velocity = rows["friction_force"][1:], rows["sliding_velocity"][1:]
    for k in np.flatnonzero(velocity.any(axis=1))[::7]:
        law = program.element.law
        record = law.record.copy()
        record["numbers"][0] = numbers[k]
        expected = _forced(record, velocity[k])
        assert np.allclose(force[k], expected, rtol=1e-9, atol=1e-9)
    assert len(forces_of(scene.law)) > 0


def _forced(record: np.ndarray, velocity: np.ndarray) -> np.ndarray:
    from haptics.friction.kernels import plane_forces

    result = np.empty((1, 2))
    plane_forces(record, velocity[None, :].copy(), 0.0, result)
    return result[0]
