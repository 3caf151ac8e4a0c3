"""The corner of two walls: the largest stable stiffness against a simulated handle that is pressed into it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from devices.virtual.joystick import VirtualJoystick
from haptics import Coulomb, MasslessImpedance
from haptics.design import Coupling, Handle, Severity, advise_walls, corner_factor, wall_limit
from haptics.design.corners import corners
from haptics.scenes import find_scene, read_scene
from haptics.scenes.shapes import Circle, HalfPlane, Polygon
from haptics.scenes.walls import Wall
from tests.haptics.design.test_walls import swing

T = 1e-3
ANGLE = math.radians(60.0)
"""Between the normals; the bisector is the x axis, along which the hand of `swing` leans."""

MASS = 0.2
SLIPPERY = MasslessImpedance(Coulomb(0.0), 6000.0, 10.0)


def wedge(stiffness: tuple[float, float], damping: tuple[float, float], friction: float) -> tuple[Wall, Wall]:
    """Return two walls that meet in the origin, their normals to either side of the x axis."""
    first, second = (HalfPlane((0.0, 0.0), (-math.cos(a), math.sin(a))) for a in (0.5 * ANGLE, -0.5 * ANGLE))
    return Wall(first, stiffness[0], damping[0], friction), Wall(second, stiffness[1], damping[1], friction)


CASES = [
    pytest.param((1.0, 1.0), (25.0, 25.0), 0.0, id="smooth"),
    pytest.param((1.0, 0.6), (25.0, 10.0), 0.0, id="smooth, unequal"),
    pytest.param((1.0, 1.0), (25.0, 25.0), 2.0, id="held by friction"),
    pytest.param((1.0, 0.6), (25.0, 18.0), 2.0, id="held by friction, unequal"),
]


@pytest.mark.parametrize(("parts", "damping", "friction"), CASES)
def test_a_corner_rings_above_the_limit_and_not_below(
    parts: tuple[float, float], damping: tuple[float, float], friction: float
) -> None:
    def pair(scale: float) -> tuple[Wall, Wall]:
        return wedge((scale * parts[0], scale * parts[1]), damping, friction)

    limit = 1000.0 * corner_factor(Handle(mass=MASS, delay=1e-3), pair(1000.0), math.cos(ANGLE), T)
    assert limit > 100.0
    one, other = pair(0.8 * limit)
    assert swing(one, SLIPPERY, 1e-3, other) < 2e-6
    one, other = pair(1.25 * limit)
    assert swing(one, SLIPPERY, 1e-3, other) > 5e-5


def test_springs_and_dampers_add_up() -> None:
    handle = Handle(mass=MASS, delay=1e-3)
    smooth = corner_factor(handle, wedge((1000.0, 1000.0), (20.0, 20.0), 0.0), math.cos(ANGLE), T)
    assert 1500.0 * smooth == pytest.approx(wall_limit(handle, 30.0, T), rel=1e-3)
    held = corner_factor(handle, wedge((1000.0, 500.0), (20.0, 10.0), 0.4), math.cos(ANGLE), T)
    assert 1500.0 * held == pytest.approx(wall_limit(handle, 30.0, T), rel=1e-3)
    beside = Coupling(2000.0, 5.0, T)
    both = corner_factor(handle, wedge((1000.0, 500.0), (20.0, 10.0), 0.4), math.cos(ANGLE), T, beside)
    assert 1500.0 * both == pytest.approx(wall_limit(handle, 30.0, T, beside), rel=1e-3)
    right = corner_factor(handle, wedge((1000.0, 1000.0), (20.0, 20.0), 0.0), 0.0, T)
    assert 1000.0 * right == pytest.approx(wall_limit(handle, 20.0, T), rel=1e-3), "each for itself"


def test_without_damping_nothing_holds_in_a_corner() -> None:
    assert corner_factor(Handle(mass=MASS, delay=1e-3), wedge((1e3, 1e3), (0.0, 0.0), 0.0), 0.5, T) == 0.0


def met(*walls: Wall) -> list[float]:
    return [abs(cosine) for _, cosine in corners(walls, (-0.06, -0.045), (0.06, 0.045))]


def test_surfaces_that_meet_are_found_and_others_are_not() -> None:
    left, right = (Wall(HalfPlane((side * 0.03, 0.0), (-side, 0.0))) for side in (-1.0, 1.0))
    below = Wall(HalfPlane((0.0, -0.045), (0.0, 1.0)))
    assert met(left, right) == []
    assert met(left, below) == pytest.approx([0.0], abs=1e-9)
    assert met(*wedge((1e3, 1e3), (1.0, 1.0), 0.0)) == pytest.approx([math.cos(ANGLE)], abs=1e-6)
    assert met(left, Wall(HalfPlane((-0.03, 0.0), (1.0, 0.0)))) == pytest.approx([1.0])
    peg = Wall(Circle((0.0, 0.0), 0.01))
    assert met(peg, left) == []
    assert met(peg, Wall(HalfPlane((0.005, 0.0), (-1.0, 0.0)))) == pytest.approx([0.5], abs=0.12)
    far = Wall(HalfPlane((0.2, 0.0), (-1.0, 0.0)))
    assert met(far, below) == []
    cover = Wall(Polygon(((-0.05, -0.06), (-0.01, -0.06), (-0.01, -0.02), (-0.05, -0.02))))
    assert len(met(left, below, cover)) == 2, "not the corner that lies in the third"


def test_the_corners_of_the_shipped_box_are_no_worse_than_its_walls() -> None:
    spec, walls = VirtualJoystick().spec, read_scene(find_scene("box")).walls
    assert len(corners(tuple(walls), spec.workspace_min, spec.workspace_max)) == 4
    assert [advice.bound for advice in advise_walls(walls, SLIPPERY, spec)] == []


def test_a_corner_that_rings_is_said_in_words_where_its_walls_do_not() -> None:
    spec = replace(VirtualJoystick().spec, position_resolution=None)
    handle = Handle.of(spec)
    assert handle is not None
    walls = wedge((12000.0, 12000.0), (100.0, 100.0), 2.0)
    assert wall_limit(handle, 100.0, T) > 4.0 * 12000.0
    (advice,) = advise_walls(walls, SLIPPERY, spec)  # each bears four times as much by itself
    assert (advice.bound, advice.severity, advice.value) == ("wall-corner", Severity.WARNING, 24000.0)
    assert advice.limit == pytest.approx(24000.0 * corner_factor(handle, walls, math.cos(ANGLE), T), rel=1e-3)
    assert "two walls that meet" in advice.text
    assert "lower them" in advice.text
