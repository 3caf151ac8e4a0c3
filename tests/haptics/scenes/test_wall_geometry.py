"""How deep a point is in a wall: the distance away from corners, and nowhere a jump."""

from __future__ import annotations

import numpy as np
import pytest

from haptics.errors import ConfigurationError
from haptics.scenes.shapes import Circle, Polygon, Shape
from haptics.scenes.wall_kernels import ROUNDING
from haptics.scenes.walls import MOST_WALLS, PackedWalls, Wall
from tests.haptics.wall_runs import BLOCK, FLOOR, NOTCH, SHAPES, Floats

_POINTS = np.random.default_rng(5).uniform(-0.04, 0.04, (4000, 2))


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_depth_is_the_distance_but_for_the_rounding_of_corners(shape: Shape) -> None:
    depth, distance = Wall(shape).depth(_POINTS), -shape.distance(_POINTS)
    inside = distance > 0.0
    assert inside.sum() > 200
    assert (depth[inside] <= distance[inside] + 1e-15).all()
    assert (distance[inside] - depth[inside]).max() < 0.5 * ROUNDING
    assert (depth[~inside] <= 0.0).all()


def test_on_a_face_the_depth_is_the_distance_to_it() -> None:
    points = np.array([[0.0, 0.008], [0.01, 0.006], [-0.0185, 0.003]])
    np.testing.assert_allclose(Wall(BLOCK).depth(points), [0.002, 0.004, 0.0015], atol=1e-16)
    np.testing.assert_allclose(Wall(BLOCK).inwards(points), [[0.0, -1.0], [0.0, -1.0], [1.0, 0.0]], atol=1e-15)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_gradient_is_that_of_the_depth(shape: Shape) -> None:
    wall, step = Wall(shape), 1e-8
    points = _POINTS[wall.depth(_POINTS) > 1e-6]
    for i in range(2):
        apart = step * np.eye(2)[i]
        slope = (wall.depth(points + apart) - wall.depth(points - apart)) / (2.0 * step)
        np.testing.assert_allclose(wall.inwards(points)[:, i], slope, atol=1e-6)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_way_out_turns_gradually_also_at_corners(shape: Shape) -> None:
    """Its change over a micrometre: a jump would be about 1."""
    wall, generator = Wall(shape), np.random.default_rng(6)
    points = _POINTS[wall.depth(_POINTS) > 2e-6]
    points = np.concatenate((points, _near_kinks(wall)))
    angles = generator.uniform(0.0, 2.0 * np.pi, len(points))
    other = points + 1e-6 * np.stack((np.cos(angles), np.sin(angles)), axis=1)
    assert np.abs(wall.inwards(other) - wall.inwards(points)).max() < 3e-6 / (0.5 * ROUNDING)


def _near_kinks(wall: Wall) -> Floats:
    """Return points of the diagonals of the block, where two faces are equally near, (n, 2)."""
    steps = np.linspace(0.0012, 0.0099, 300)
    diagonal = np.stack((0.02 - steps, 0.01 - steps), axis=1)
    points = np.concatenate((diagonal, -diagonal, diagonal * [1.0, -1.0], [[0.0, 0.0], [0.01, 0.0]]))
    return np.asarray(points[wall.depth(points) > 2e-6])


@pytest.mark.parametrize("level", [-0.01, 0.01, 0.0])
def test_beside_a_corner_at_the_same_height_nothing_is_solid(level: float) -> None:
    points = np.array([[x, level] for x in (-0.05, -0.021, 0.021, 0.05)])
    assert (Wall(BLOCK).depth(points) < 0.0).all()
    assert (Wall(NOTCH).depth(np.array([[0.005, 0.005], [0.029, 0.001], [-0.031, 0.03]])) < 0.0).all()


def test_on_the_outline_itself_the_way_in_is_known() -> None:
    """Encoders count in steps: a point is on a face, or on its corner, to the last bit often enough."""
    faces = np.array([[0.0, 0.01], [0.0, -0.01], [0.02, 0.0], [-0.02, 0.0]])
    wall = Wall(BLOCK)
    assert (wall.depth(faces) == 0.0).all()
    np.testing.assert_array_equal(wall.inwards(faces), [[0.0, -1.0], [0.0, 1.0], [-1.0, 0.0], [1.0, 0.0]])
    (corner,) = Wall(NOTCH).inwards([[0.0, 0.0]])
    assert corner.min() == -1.0 and corner.max() == 0.0


def test_a_polygon_may_go_round_in_either_sense() -> None:
    turned = Wall(Polygon(NOTCH.points[::-1]))
    np.testing.assert_allclose(turned.depth(_POINTS), Wall(NOTCH).depth(_POINTS), atol=1e-15)


def test_what_is_no_wall_is_refused() -> None:
    for wrong, said in (
        ({"shape": "round"}, "wall.shape = 'round'"),
        ({"stiffness": 0.0}, "wall.stiffness = 0.0"),
        ({"friction": -0.1}, "wall.friction = -0.1"),
        ({"damping": float("nan")}, "wall.damping = nan"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            Wall(**{"shape": Circle((0.0, 0.0), 0.01), **wrong})  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=f"{MOST_WALLS + 1} walls: a scene has {MOST_WALLS} at most"):
        PackedWalls([Wall(FLOOR)] * (MOST_WALLS + 1))
