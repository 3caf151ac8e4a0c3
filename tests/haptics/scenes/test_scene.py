"""A scene's numbers at points: those of its materials, and between them never faster than the border says."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptics import (
    Asymmetric,
    ClosedForm,
    Coulomb,
    CoulombViscous,
    DeadZoneViscous,
    Elliptic,
    GaussianStribeck,
    Law,
    Stribeck,
    friction_law,
)
from haptics.errors import ConfigurationError
from haptics.scenes import Circle, HalfPlane, ImageMap, Region, Scene, Texture

RIGHT = HalfPlane((0.0, 0.0), (-1.0, 0.0))
PAIRS: list[tuple[Law, Law]] = [
    (Coulomb(1.0), Coulomb(6.0)),
    (CoulombViscous(1.0, 0.0), CoulombViscous(6.0, 20.0)),
    (Stribeck(1.0, 2.0, 0.3, 1.0), Stribeck(4.0, 6.0, 0.1, 0.0)),
    (GaussianStribeck(1.0, 2.0, 0.3), GaussianStribeck(4.0, 6.0, 0.1)),
    (DeadZoneViscous(1.0, 5.0, 0.1), DeadZoneViscous(6.0, 1.0, 0.2)),
    (Elliptic(1.0, 2.0, 0.4), Elliptic(6.0, 5.0, 0.4)),
    (Asymmetric(1.0, 2.0, 3.0), Asymmetric(6.0, 5.0, 3.0)),
    (ClosedForm(Stribeck(1.0, 2.0, 0.3)), ClosedForm(Stribeck(4.0, 6.0, 0.1))),
]


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_well_inside_a_region_the_numbers_are_those_of_its_law(left: Law, right: Law) -> None:
    scene = Scene(left, (Region("right", RIGHT, right),), border=0.002)
    numbers = scene.numbers_at([(-0.0015, 0.0), (0.0015, 0.3), (0.0, 0.0)])
    assert numbers[0, :-1].tolist() == left.record["numbers"][0, :-1].tolist()
    assert numbers[1, :-1].tolist() == right.record["numbers"][0, :-1].tolist()
    assert numbers[2, :-1] == pytest.approx((numbers[0, :-1] + numbers[1, :-1]) / 2.0)
    assert scene.region_at([(-0.001, 0.0), (0.001, 0.0)]).tolist() == [0, 1]


@given(
    border=st.floats(1e-4, 0.02),
    start=st.tuples(st.floats(-0.03, 0.03), st.floats(-0.03, 0.03)),
    way=st.tuples(st.floats(-0.01, 0.01), st.floats(-0.01, 0.01)),
)
def test_the_level_changes_by_at_most_the_difference_times_the_way_over_the_border(
    border: float, start: tuple[float, float], way: tuple[float, float]
) -> None:
    scene = Scene(Coulomb(1.0), (Region("disc", Circle((0.0, 0.0), 0.02), Coulomb(6.0)),), border=border)
    here, there = scene.numbers_at([start, (start[0] + way[0], start[1] + way[1])])[:, 0]
    assert abs(there - here) <= 5.0 * math.hypot(*way) / border + 1e-12
    assert 1.0 <= here <= 6.0


def test_the_slope_of_the_level_has_no_jump() -> None:
    scene = Scene(Coulomb(1.0), (Region("right", RIGHT, Coulomb(6.0)),))
    x = np.linspace(-0.002, 0.002, 4001)
    slope = np.diff(scene.numbers_at(np.stack((x, 0.0 * x), axis=1))[:, 0]) / np.diff(x)
    assert slope.max() == pytest.approx(5.0 / 0.002, rel=1e-3)  # the steepest place is what the border promises
    assert np.abs(np.diff(slope)).max() < 0.01 * slope.max()


def test_later_regions_lie_over_earlier_ones() -> None:
    disc = Region("disc", Circle((0.0, 0.0), 0.03), Coulomb(3.0))
    scene = Scene(Coulomb(1.0), (disc, Region("right", RIGHT, Coulomb(6.0))))
    turned = replace(scene, regions=scene.regions[::-1])
    assert scene.numbers_at([(0.02, 0.0)])[0, 0] == 6.0
    assert turned.numbers_at([(0.02, 0.0)])[0, 0] == 3.0
    assert (scene.region_at([(0.02, 0.0)])[0], turned.region_at([(0.02, 0.0)])[0]) == (2, 2)


@pytest.mark.parametrize("pattern", ["grating", "noise"])
def test_a_texture_modulates_forces_within_its_amplitude_and_nothing_else(pattern: str) -> None:
    texture = Texture(pattern, amplitude=0.5, wavelength=0.003, angle=0.3, seed=5)
    law = Stribeck(2.0, 4.0, 0.2, 3.0)
    scene = Scene(law, (Region("all", Circle((0.0, 0.0), 1.0), law, texture=texture),))
    points = np.random.default_rng(1).uniform(-0.05, 0.05, (4000, 2))
    numbers = scene.numbers_at(points)
    factor = numbers[:, 0] / 4.0
    assert factor.min() >= 0.5 and factor.max() <= 1.5 and factor.std() > 0.1
    assert abs(factor.mean() - 1.0) < 0.05
    assert np.allclose(numbers[:, 1], 2.0 * factor)
    assert (numbers[:, 2:4] == (0.2, 3.0)).all()


def test_noise_is_the_same_for_the_same_seed_smooth_and_repeats() -> None:
    texture = Texture("noise", 0.9, 0.002, seed=3)
    points = np.random.default_rng(2).uniform(-0.05, 0.05, (500, 2))
    found = texture.pattern_at(points)
    assert np.abs(found).max() <= 1.0
    assert (found == Texture("noise", 0.9, 0.002, seed=3).pattern_at(points)).all()
    assert not np.allclose(found, replace(texture, seed=4).pattern_at(points))
    assert np.allclose(found, texture.pattern_at(points + 32 * 0.002), atol=1e-9)
    assert np.abs(texture.pattern_at(points + 1e-7) - found).max() < 1e-3


def test_an_image_has_the_numbers_of_its_scale_and_its_edges_are_as_wide_as_borders() -> None:
    levels = np.zeros((50, 100), np.uint8)
    levels[:, 50:] = 255
    image = ImageMap(levels, Coulomb(1.0), Coulomb(6.0), (-0.05, -0.025), (0.1, 0.05))
    scene = Scene(Coulomb(1.0), (Region("image", HalfPlane((1.0, 0.0), (1.0, 0.0)), image),), border=0.002)
    x = np.linspace(-0.06, 0.06, 20001)
    level = scene.numbers_at(np.stack((x, 0.0 * x), axis=1))[:, 0]
    assert level[x < -0.005].tolist() == [1.0] * int((x < -0.005).sum())
    assert level[x > 0.005].tolist() == [6.0] * int((x > 0.005).sum())
    assert np.diff(level).min() >= -1e-12
    assert (np.diff(level) / np.diff(x)).max() <= 5.0 / 0.002 * (1.0 + 1e-6)


def test_the_first_row_of_an_image_is_the_uppermost() -> None:
    levels = np.array([[0, 255], [255, 255]], np.uint8)
    image = ImageMap(levels, Coulomb(1.0), Coulomb(6.0), (0.0, 0.0), (0.2, 0.2))
    scene = Scene(Coulomb(2.0), (Region("image", HalfPlane((1.0, 0.0), (1.0, 0.0)), image),))
    assert scene.numbers_at([(0.02, 0.18), (0.18, 0.18), (0.02, 0.02)])[:, 0].tolist() == [1.0, 6.0, 6.0]
    assert scene.numbers_at([(0.1, 0.15)])[0, 0] == pytest.approx(3.5)


@friction_law
def own(speed, static=4.0, kinetic=3.0, width=0.2):  # type: ignore[no-untyped-def]
    return kinetic + (static - kinetic) / (1.0 + speed / width)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Scene(own()), "law of one's own"),
        (lambda: Scene(3.0), "must be a friction law"),  # type: ignore[arg-type]
        (lambda: Scene(Coulomb(1.0), (Region("a", RIGHT, CoulombViscous(1.0, 1.0)),)), "one class"),
        (
            lambda: Scene(ClosedForm(Coulomb(1.0)), (Region("a", RIGHT, ClosedForm(CoulombViscous(1.0, 1.0))),)),
            "one class",
        ),
        (lambda: Scene(Elliptic(1.0, 2.0), (Region("a", RIGHT, Elliptic(1.0, 2.0, 0.5)),)), "cannot turn"),
        (lambda: Scene(Coulomb(1.0), border=0.0), "border"),
        (lambda: Scene(Coulomb(1.0), border=math.nan), "border"),
        (lambda: Scene(Coulomb(1.0), look="gold"), "look"),
        (lambda: Scene(Coulomb(1.0), (Region("a", RIGHT, Coulomb(1.0)),) * 2), "two regions"),
        (
            lambda: Scene(Coulomb(1.0), tuple(Region(f"{k}", RIGHT, Coulomb(1.0)) for k in range(65))),
            "65 regions; at most 64",
        ),
        (lambda: Region("", RIGHT, Coulomb(1.0)), "name"),
        (lambda: Region("a\n", RIGHT, Coulomb(1.0)), "printable"),
        (lambda: Region("a", RIGHT, Coulomb(1.0), look="gold"), "look"),
        (lambda: Region("a", (0.0, 0.0), Coulomb(1.0)), "shape"),  # type: ignore[arg-type]
        (lambda: Region("a", RIGHT, 4.0), "law"),  # type: ignore[arg-type]
        (lambda: Region("a", RIGHT, Coulomb(1.0), texture=0.3), "texture"),  # type: ignore[arg-type]
        (lambda: Texture(amplitude=0.95), "amplitude"),
        (lambda: ImageMap(np.zeros((2, 2)), Coulomb(1.0), Coulomb(2.0), (0, 0), (1, 1)), "whole numbers"),
        (lambda: ImageMap(np.full((2, 2), 300), Coulomb(1.0), Coulomb(2.0), (0, 0), (1, 1)), "0 to 255"),
        (lambda: ImageMap(np.zeros((300, 300), np.uint8), Coulomb(1.0), Coulomb(2.0), (0, 0), (1, 1)), "65536"),
        (
            lambda: ImageMap(np.zeros((2, 2), np.uint8), Coulomb(1.0), CoulombViscous(1.0, 1.0), (0, 0), (1, 1)),
            "one class",
        ),
        (lambda: ImageMap(np.zeros((2, 2), np.uint8), Coulomb(1.0), Coulomb(2.0), (0, 0), (1, 0)), "size"),
    ],
)
def test_what_is_no_scene_is_refused(make: object, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        make()  # type: ignore[operator]
