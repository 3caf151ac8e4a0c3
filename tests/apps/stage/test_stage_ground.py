"""What lies where on the stage: looks go over into each other as the law's numbers do, names lie in their regions."""

from __future__ import annotations

import numpy as np
import pytest

from apps.stage.ground import LOOKS, Ground, grid, ground_of
from haptics import Coulomb
from haptics.scenes import LOOKS as SCENE_LOOKS
from haptics.scenes import Circle, HalfPlane, ImageMap, Polygon, Region, Scene, find_scene, read_scene, shipped_scenes
from tests.apps.stage.driving import WORKSPACE

SIZE = (924.0, 693.0)
ICE, RUBBER = LOOKS.index("ice") - 1, LOOKS.index("rubber") - 1

TWO = Scene(
    Coulomb(1.0),
    (Region("rubber", HalfPlane((0.0, 0.0), (-1.0, 0.0)), Coulomb(6.0), "rubber"),),
    border=0.004,
    look="ice",
)


def at(ground: Ground, x: float, y: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers at the cell in which a place [m] lies."""
    rows, columns, _ = ground.looks.shape
    (left, low), (right, high) = WORKSPACE
    row, column = int(rows * (y - low) / (high - low)), int(columns * (x - left) / (right - left))
    return ground.looks[row, column], ground.others[row, column]


def test_every_look_of_a_scene_is_known() -> None:
    assert set(LOOKS) == set(SCENE_LOOKS)


def test_looks_are_blended_as_the_law_is() -> None:
    ground = ground_of(TWO, WORKSPACE, SIZE)
    points = grid(WORKSPACE, SIZE).reshape(-1, 2)
    share = (TWO.numbers_at(points)[:, 0] - 1.0) / 5.0
    rubber, ice = ground.looks[..., RUBBER].reshape(-1), ground.looks[..., ICE].reshape(-1)
    assert rubber / 255 == pytest.approx(share, abs=0.003)
    assert (ice.astype(int) + rubber - 255 == pytest.approx(0, abs=1)) and 0 < (rubber % 255 > 0).sum()


def test_distances_tell_where_the_border_is() -> None:
    ground = ground_of(TWO, WORKSPACE, SIZE)
    row = ground.others[100, :, 2].astype(float)
    x = grid(WORKSPACE, SIZE)[100, :, 0]
    near = np.abs(x) < 0.0035
    assert row[near] == pytest.approx(255 * (0.5 - x[near] / 0.008), abs=1.0)
    assert row.min() == 0
    assert row.max() == 255


def test_a_later_region_covers_the_border_of_an_earlier_one() -> None:
    scene = Scene(
        Coulomb(1.0),
        (
            Region("a", HalfPlane((0.0, 0.0), (-1.0, 0.0)), Coulomb(2.0), "wood"),
            Region("b", Circle((0.0, 0.0), 0.02), Coulomb(3.0), "metal"),
        ),
    )
    ground = ground_of(scene, WORKSPACE, SIZE)
    assert at(ground, 0.0, 0.0)[1][2] == 0, "well inside the circle, though on the line"
    assert at(ground, 0.0, 0.03)[1][2] == pytest.approx(128, abs=12)
    assert tuple(at(ground, 0.0, 0.0)[0]) == (0, 0, 0, 255)


def test_names_lie_in_what_is_seen_of_their_regions() -> None:
    hidden = Region("hidden", Circle((0.03, 0.02), 0.01), Coulomb(2.0))
    scene = Scene(
        Coulomb(1.0),
        (
            hidden,
            Region("over it", Polygon([(0.01, 0.0), (0.06, 0.0), (0.06, 0.04), (0.01, 0.04)]), Coulomb(3.0), "glass"),
            Region("left", HalfPlane((-0.03, 0.0), (1.0, 0.0)), Coulomb(4.0)),
        ),
    )
    labels = {label.words: label.place for label in ground_of(scene, WORKSPACE, SIZE).labels}
    assert list(labels) == ["over it  3 N", "left  4 N"]
    assert scene.region_at(list(labels.values())).tolist() == [2, 3]


def test_the_name_of_a_band_stands_in_its_middle() -> None:
    band = Region("band", HalfPlane((0.0, -0.03), (0.0, 1.0)), Coulomb(2.0))
    (label,) = ground_of(Scene(Coulomb(1.0), (band,)), WORKSPACE, SIZE).labels
    assert label.place == pytest.approx((0.0, -0.0375), abs=0.001)


def test_an_image_is_dark_where_its_friction_is_high() -> None:
    levels = np.array([[0, 255]], np.uint8)
    image = ImageMap(levels, Coulomb(1.0), Coulomb(5.0), corner=(-0.06, -0.045), size=(0.12, 0.09))
    whole = Polygon([(-0.1, -0.1), (0.1, -0.1), (0.1, 0.1), (-0.1, 0.1)])
    ground = ground_of(Scene(Coulomb(1.0), (Region("map", whole, image, "metal"),)), WORKSPACE, SIZE)
    assert at(ground, -0.05, 0.0)[1][1] < 20
    assert at(ground, 0.05, 0.0)[1][1] > 235
    assert ground.labels[0].words == "map  1 to 5 N"
    assert at(ground_of(TWO, WORKSPACE, SIZE), 0.05, 0.0)[1][1] == pytest.approx(128, abs=1), "a look of its own"


@pytest.mark.parametrize("name", sorted(shipped_scenes()))
def test_the_shipped_scenes_can_be_drawn(name: str) -> None:
    ground = ground_of(read_scene(find_scene(name)), WORKSPACE, SIZE)
    assert ground.looks.shape == ground.others.shape == (231, 308, 4)
    shares = ground.looks.sum(axis=2).astype(int) + ground.others[..., 0]
    assert shares.max() <= 257


def test_without_a_scene_the_plane_is_plain() -> None:
    ground = ground_of(None, WORKSPACE, SIZE)
    assert not ground.looks.any()
    assert not ground.labels
    assert not ground.walls
