"""Scenes: shapes, materials, textures and images at points, condition (15) over mixtures, and walls."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptics import Asymmetric, ClosedForm, ConfigurationError, Elliptic, Law
from haptics.elements.models import CompliantAdmittance, InertialImpedance, MasslessImpedance
from haptics.friction.kernels import plane_forces
from haptics.friction.laws import Coulomb, CoulombViscous, DeadZoneViscous, GaussianStribeck, Stribeck
from haptics.rendering.programs import SceneElement
from haptics.scenes.kernels import ROUNDING
from haptics.scenes.scene import Region, Scene, fitted, mobility_limit, numbers_of, require_solvable, spread
from haptics.scenes.shapes import Circle, HalfPlane, ImageMap, Polygon, Shape, Texture
from haptics.scenes.tables import read_scene
from haptics.scenes.walls import MAX_WALLS, PackedWalls, Wall
from tests.haptics.changing import element_of, moved
from tests.haptics.references import region_at, rubber, steepest
from tests.haptics.strategies import FAMILIES
from tests.haptics.wall_runs import BLOCK, NOTCH, SHAPES

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
UP = HalfPlane((0.0, 0.0), (0.0, -1.0))


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_numbers_inside_a_region_are_those_of_its_law(left, right):
    scene = Scene(left, (Region("right", RIGHT, right),), border=0.002)
    numbers = scene.numbers_at([(-0.0015, 0.0), (0.0015, 0.3), (0.0, 0.0)])
    assert numbers[0, :-1].tolist() == left.record["numbers"][0, :-1].tolist()
    assert numbers[1, :-1].tolist() == right.record["numbers"][0, :-1].tolist()
    assert numbers[2, :-1] == pytest.approx((numbers[0, :-1] + numbers[1, :-1]) / 2.0)
    assert region_at(scene, [(-0.001, 0.0), (0.001, 0.0)]).tolist() == [0, 1]


@given(
    border=st.floats(1e-4, 0.02),
    start=st.tuples(st.floats(-0.03, 0.03), st.floats(-0.03, 0.03)),
    way=st.tuples(st.floats(-0.01, 0.01), st.floats(-0.01, 0.01)),
)
def test_level_changes_within_the_bound_of_the_border(border, start, way):
    scene = Scene(Coulomb(1.0), (Region("disc", Circle((0.0, 0.0), 0.02), Coulomb(6.0)),), border=border)
    here, there = scene.numbers_at([start, (start[0] + way[0], start[1] + way[1])])[:, 0]
    assert abs(there - here) <= 5.0 * math.hypot(*way) / border + 1e-12
    assert 1.0 <= here <= 6.0


def test_slope_of_the_level_has_no_jump():
    scene = Scene(Coulomb(1.0), (Region("right", RIGHT, Coulomb(6.0)),))
    x = np.linspace(-0.002, 0.002, 4001)
    slope = np.diff(scene.numbers_at(np.stack((x, 0.0 * x), axis=1))[:, 0]) / np.diff(x)
    assert slope.max() == pytest.approx(5.0 / 0.002, rel=1e-3)  # the bound of the border is reached
    assert np.abs(np.diff(slope)).max() < 0.01 * slope.max()


def test_later_regions_cover_earlier_ones():
    disc = Region("disc", Circle((0.0, 0.0), 0.03), Coulomb(3.0))
    scene = Scene(Coulomb(1.0), (disc, Region("right", RIGHT, Coulomb(6.0))))
    turned = replace(scene, regions=scene.regions[::-1])
    assert scene.numbers_at([(0.02, 0.0)])[0, 0] == 6.0
    assert turned.numbers_at([(0.02, 0.0)])[0, 0] == 3.0
    assert (region_at(scene, [(0.02, 0.0)])[0], region_at(turned, [(0.02, 0.0)])[0]) == (2, 2)


@pytest.mark.parametrize("pattern", ["grating", "noise"])
def test_texture_modulates_only_forces_within_its_amplitude(pattern):
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


def test_noise_is_seeded_smooth_and_periodic():
    texture = Texture("noise", 0.9, 0.002, seed=3)
    points = np.random.default_rng(2).uniform(-0.05, 0.05, (500, 2))
    found = texture.pattern_at(points)
    assert np.abs(found).max() <= 1.0
    assert (found == Texture("noise", 0.9, 0.002, seed=3).pattern_at(points)).all()
    assert not np.allclose(found, replace(texture, seed=4).pattern_at(points))
    assert np.allclose(found, texture.pattern_at(points + 32 * 0.002), atol=1e-9)
    assert np.abs(texture.pattern_at(points + 1e-7) - found).max() < 1e-3


def test_image_has_the_numbers_of_its_scale_with_smooth_edges():
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
    two = ImageMap(np.array([[0, 255], [255, 255]], np.uint8), Coulomb(1.0), Coulomb(6.0), (0.0, 0.0), (0.2, 0.2))
    scene = replace(scene, regions=(replace(scene.regions[0], law=two),))  # the first row is the uppermost
    assert scene.numbers_at([(0.02, 0.18), (0.18, 0.18), (0.02, 0.02)])[:, 0].tolist() == [1.0, 6.0, 6.0]


BOW_TIE = ((0.0, 0.0), (0.02, 0.02), (0.02, 0.0), (0.0, 0.02))
PEG = Circle((0.0, 0.0), 0.01)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Scene(rubber()), "not a built-in law"),
        (lambda: Scene(Coulomb(1.0), (Region("a", RIGHT, CoulombViscous(1.0, 1.0)),)), "one class"),
        (lambda: Scene(Elliptic(1.0, 2.0), (Region("a", RIGHT, Elliptic(1.0, 2.0, 0.5)),)), "cannot turn"),
        (lambda: Scene(Coulomb(1.0), look="gold"), "look"),
        (lambda: Scene(Coulomb(1.0), tuple(Region(f"{k}", RIGHT, Coulomb(1.0)) for k in range(65))), "65 regions"),
        (lambda: Region("a\n", RIGHT, Coulomb(1.0)), "printable"),
        (lambda: Region("a", (0.0, 0.0), Coulomb(1.0)), "shape"),
        (lambda: Region("a", RIGHT, Coulomb(1.0), texture=0.3), "texture"),
        (lambda: Texture(amplitude=0.95), "amplitude"),
        (lambda: ImageMap(np.zeros((2, 2)), Coulomb(1.0), Coulomb(2.0), (0, 0), (1, 1)), "whole numbers"),
        (lambda: ImageMap(np.full((2, 2), 300), Coulomb(1.0), Coulomb(2.0), (0, 0), (1, 1)), "0 to 255"),
        (lambda: ImageMap(np.zeros((300, 300), np.uint8), Coulomb(1.0), Coulomb(2.0), (0, 0), (1, 1)), "65536"),
        (
            lambda: ImageMap(np.zeros((2, 2), np.uint8), Coulomb(1.0), CoulombViscous(1.0, 1.0), (0, 0), (1, 1)),
            "one class",
        ),
        (lambda: ImageMap(np.zeros((2, 2), np.uint8), Coulomb(1.0), Coulomb(2.0), (0, 0), (1, 0)), "size"),
        (lambda: Polygon(((0.0, 0.0), (1.0, 0.0))), "has 2 corners"),
        (lambda: Polygon(tuple((math.cos(k), math.sin(k)) for k in range(300))), "has 300 corners"),
        (lambda: Polygon(BOW_TIE), "meet"),
        (lambda: Polygon(((0.0, 0.0), (0.03, 0.0), (0.01, 0.0), (0.0, 0.02))), "meet"),
        (lambda: Polygon(((0.0, 0.0), (0.02, 0.0), (0.02, 0.0), (0.0, 0.02))), "meet"),
        (lambda: Polygon(((0.0, 0.0), (0.02, 0.0), (0.02, 0.02), (0.01, 0.0), (0.0, 0.02))), "meet"),
        (lambda: Polygon(((0.0, 0.0), (0.02, math.nan), (0.02, 0.02))), r"points\[1\]\[1\] = nan"),
        (lambda: Polygon(((0.0, 0.0), (0.02,), (0.02, 0.02))), r"points\[1\]"),
        (lambda: Circle((0.0, 1e9), 0.1), "at most 100 m"),
        (lambda: HalfPlane((0.0, 0.0), (0.0, 0.0)), "must not be zero"),
        (lambda: Wall(PEG, damping=math.nan), r"wall\.damping = nan"),
        (lambda: Scene(Coulomb(1.0), walls=(Wall(PEG),) * (MAX_WALLS + 1)), f"{MAX_WALLS + 1} walls; at most"),
        (lambda: Scene(Coulomb(1.0), walls=(PEG,)), "must be Wall objects"),
        (lambda: PackedWalls([Wall(PEG)] * (MAX_WALLS + 1)), f"a scene has {MAX_WALLS} at most"),
    ],
)
def test_invalid_scene_is_refused(make, words):
    with pytest.raises(ConfigurationError, match=words):
        make()


# --- shapes


OUTLINES: dict[str, Shape] = {
    "circle": Circle((0.01, -0.02), 0.03),
    "half-plane": HalfPlane((0.01, 0.0), (3.0, 4.0)),
    "square": Polygon(((-0.02, -0.02), (0.02, -0.02), (0.02, 0.02), (-0.02, 0.02))),
    "hook": Polygon(((0.0, 0.0), (0.04, 0.0), (0.04, 0.01), (0.01, 0.01), (0.01, 0.04), (0.0, 0.04))),
    "clockwise": Polygon(((0.0, 0.03), (0.03, 0.0), (0.0, -0.03), (-0.03, 0.0))),
}
SIDES = {
    "circle": ((0.01, 0.0), (0.045, -0.02)),
    "half-plane": ((0.0, 0.0), (0.02, 0.01)),
    "square": ((0.0, 0.0), (0.021, 0.0)),
    "hook": ((0.005, 0.035), (0.02, 0.02)),
    "clockwise": ((0.01, 0.01), (0.02, 0.02)),
}
"""Point inside and point outside of each outline."""
BOX = ((-0.1, -0.1), (0.1, 0.1))
coordinates = st.floats(-0.08, 0.08)


@pytest.mark.parametrize("name", OUTLINES)
@given(x=coordinates, y=coordinates, dx=coordinates, dy=coordinates)
def test_distance_is_lipschitz_zero_on_the_outline_and_negative_inside(name, x, y, dx, dy):
    shape = OUTLINES[name]
    here, there, inside, outside = shape.distance([(x, y), (x + dx, y + dy), *SIDES[name]])
    assert inside < 0.0 < outside
    assert abs(there - here) <= math.hypot(dx, dy) + 1e-12
    outline = shape.outline(BOX)
    edge = outline if not isinstance(shape, HalfPlane) else outline[np.abs(outline).max(axis=1) < 0.0999]
    assert np.allclose(shape.distance(edge), 0.0, atol=1e-12)


def test_distance_of_a_square_is_to_edges_and_corners():
    found = OUTLINES["square"].distance([(0.0, 0.015), (0.023, 0.024), (0.0, -0.05), (0.02, 0.0)])
    assert found == pytest.approx([-0.005, 0.005, 0.03, 0.0], abs=1e-15)


# --- condition (15)


@pytest.mark.parametrize(("family", "cls"), [("stribeck", Stribeck), ("gaussian", GaussianStribeck)])
@given(data=st.data())
def test_mobility_limit_bounds_all_mixtures_of_three_laws(family, cls, data):
    laws = [data.draw(FAMILIES[family]) for _ in range(3)]
    scene = Scene(laws[0], (Region("one", RIGHT, laws[1]), Region("other", UP, laws[2])))
    shares = np.concatenate((np.random.default_rng(1).dirichlet((0.4, 0.4, 0.4), 60), np.eye(3)))
    mixed = shares @ np.stack([numbers_of(law) for law in laws])
    least = min(steepest(cls(kinetic, max(static, kinetic), *rest)) for static, kinetic, *rest in mixed[:, :4])
    assert 1.0 / least <= 1.0 / mobility_limit(scene) * (1.0 + 1e-6) + 1e-9


def test_mobility_limit_is_reached_between_two_laws():
    """The steepest of all mixtures lies between: the peak comes up sooner than the viscosity."""
    one, other = Stribeck(1.0, 1.0, 0.02, 0.0), Stribeck(0.0, 8.0, 1.0, 10.0)
    scene = Scene(one, (Region("other", RIGHT, other),))
    shares = np.linspace(0.0, 1.0, 5001)[:, None]
    mixed = (1.0 - shares) * numbers_of(one) + shares * numbers_of(other)
    found = (mixed[:, 0] - mixed[:, 1]) / mixed[:, 2] - mixed[:, 3]
    assert found.argmax() not in (0, 5000)
    assert 1.0 / mobility_limit(scene) == pytest.approx(found.max(), rel=1e-6)


def test_mobility_limit_covers_images_and_textures():
    gentle, steep = Stribeck(1.0, 1.5, 0.1), Stribeck(1.0, 3.0, 0.1)
    image = ImageMap(np.zeros((2, 2), np.uint8), gentle, steep, (0.0, 0.0), (0.1, 0.1))
    scene = Scene(gentle, (Region("image", RIGHT, image),))
    assert mobility_limit(scene) == pytest.approx(1.0 / 20.0)
    textured = Scene(gentle, (Region("ridges", RIGHT, steep, texture=Texture(amplitude=0.5)),))
    assert mobility_limit(textured) == pytest.approx(1.0 / 30.0)


def test_distant_regions_are_not_mixed():
    """Side by side these two laws fall; each alone on a background with high viscosity does not."""
    one, other, flat = Stribeck(1.0, 1.0, 0.02, 0.0), Stribeck(0.0, 8.0, 1.0, 10.0), Stribeck(1.0, 1.0, 1.0, 60.0)
    near, far = (
        Scene(flat, (Region("a", Circle((0.0, 0.0), 0.01), one), Region("b", Circle((x, 0.0), 0.01), other)))
        for x in (0.02, 0.05)
    )
    assert mobility_limit(near) < mobility_limit(far)


def test_too_steep_scene_is_refused_with_its_region():
    scene = Scene(Stribeck(1.0, 1.5, 0.1), (Region("grit", RIGHT, Stribeck(1.0, 4.0, 0.1)),), name="steps")
    require_solvable(scene, 0.02)
    with pytest.raises(ConfigurationError, match=r"'steps': in region 'grit'.*30 N s/m.*condition 15"):
        require_solvable(scene, 0.05)


def test_borders_are_wider_in_front_of_a_spring():
    scene = Scene(Coulomb(1.0), (Region("right", RIGHT, Coulomb(6.0)),), border=0.002)
    assert spread(scene) == 5.0
    assert fitted(scene, MasslessImpedance(Coulomb(1.0), 5000.0, 5.0)).border == pytest.approx(0.003)
    assert fitted(scene, InertialImpedance(Coulomb(1.0), 0.1, 5000.0, 5.0)).border == pytest.approx(0.0045)
    assert fitted(scene, CompliantAdmittance(Coulomb(1.0), 2.0, 5000.0, 5.0)).border == 0.002


# --- depth of walls


_POINTS = np.random.default_rng(5).uniform(-0.04, 0.04, (4000, 2))


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_depth_is_the_distance_up_to_rounded_corners(shape):
    depth, distance = Wall(shape).depth(_POINTS), -shape.distance(_POINTS)
    inside = distance > 0.0
    assert inside.sum() > 200
    assert (depth[inside] <= distance[inside] + 1e-15).all()
    assert (distance[inside] - depth[inside]).max() < 0.5 * ROUNDING
    assert (depth[~inside] <= 0.0).all()


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_inward_direction_is_the_gradient_of_the_depth(shape):
    wall, step = Wall(shape), 1e-8
    points = _POINTS[wall.depth(_POINTS) > 1e-6]
    for i in range(2):
        apart = step * np.eye(2)[i]
        slope = (wall.depth(points + apart) - wall.depth(points - apart)) / (2.0 * step)
        np.testing.assert_allclose(wall.inwards(points)[:, i], slope, atol=1e-6)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_inward_direction_turns_gradually_at_corners(shape):
    """Its change over a micrometre: a jump would be about 1."""
    wall, generator = Wall(shape), np.random.default_rng(6)
    points = _POINTS[wall.depth(_POINTS) > 2e-6]
    steps = np.linspace(0.0012, 0.0099, 300)  # on the diagonals of the block two faces are equally near
    diagonal = np.stack((0.02 - steps, 0.01 - steps), axis=1)
    kinks = np.concatenate((diagonal, -diagonal, diagonal * [1.0, -1.0], [[0.0, 0.0], [0.01, 0.0]]))
    points = np.concatenate((points, kinks[wall.depth(kinks) > 2e-6]))
    angles = generator.uniform(0.0, 2.0 * np.pi, len(points))
    other = points + 1e-6 * np.stack((np.cos(angles), np.sin(angles)), axis=1)
    assert np.abs(wall.inwards(other) - wall.inwards(points)).max() < 3e-6 / (0.5 * ROUNDING)


def test_inward_direction_exists_on_the_outline():
    """Encoders count in steps: a point is on a face, or on its corner, to the last bit often enough."""
    faces = np.array([[0.0, 0.01], [0.0, -0.01], [0.02, 0.0], [-0.02, 0.0]])
    wall = Wall(BLOCK)
    assert (wall.depth(faces) == 0.0).all()
    np.testing.assert_array_equal(wall.inwards(faces), [[0.0, -1.0], [0.0, 1.0], [-1.0, 0.0], [1.0, 0.0]])
    (corner,) = Wall(NOTCH).inwards([[0.0, 0.0]])
    assert corner.min() == -1.0 and corner.max() == 0.0


def test_depth_ignores_the_sense_of_a_polygon():
    turned = Wall(Polygon(NOTCH.points[::-1]))
    np.testing.assert_allclose(turned.depth(_POINTS), Wall(NOTCH).depth(_POINTS), atol=1e-15)


# --- lookup in the tick


SCENES = {
    **{name: read_scene(name) for name in ("border", "ice-wood-rubber", "stick-slip-patch", "relief")},
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
def test_tick_uses_the_numbers_and_region_of_the_last_proxy(scene):
    program = SceneElement(element_of("C", scene.law), scene)
    angle = 0.002 * np.arange(12000)
    path = np.stack((0.08 * np.cos(angle), 0.07 * np.sin(1.37 * angle)), axis=1)
    rows = moved(program, path)
    before = rows["proxy"][:-1]
    assert (rows["region"][1:] == region_at(program.surface, before)).all()
    assert set(rows["region"].tolist()) >= set(range(2))  # it did come about
    numbers = program.surface.numbers_at(before)
    force, velocity = rows["friction_force"][1:], rows["sliding_velocity"][1:]
    for k in np.flatnonzero(velocity.any(axis=1))[::7]:
        law = program.element.law
        record = law.record.copy()
        record["numbers"][0] = numbers[k]
        expected = np.empty((1, 2))
        plane_forces(record, velocity[k : k + 1].copy(), 0.0, expected)
        assert np.allclose(force[k], expected[0], rtol=1e-9, atol=1e-9)
