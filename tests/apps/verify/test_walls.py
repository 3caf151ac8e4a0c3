"""What the verification knows of walls, against what the rendering did: two programs, one answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from apps.verify.walls.handles import Touch, on_a_handle
from apps.verify.walls.masses import Mass, on_a_mass
from apps.verify.walls.solids import depth_in, on_the_surface
from haptics import Coulomb
from haptics.scenes import Polygon, Scene, Shape, Wall, scene_table
from tests.haptics.wall_runs import ADMITTANCE, SHAPES, SLOPE, T, dragged, mass, pushed, wandering

STAR = Polygon(((0.0, 0.03), (0.008, 0.008), (0.03, 0.0), (0.008, -0.008), (0.0, -0.03), (-0.02, 0.0)))
ALL = {**SHAPES, "star": STAR}


def tables(*walls: Wall) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = scene_table(Scene(Coulomb(0.0), walls=walls))["walls"]
    return found


@pytest.mark.parametrize("shape", ALL.values(), ids=ALL)
def test_depth_and_gradient_are_the_same_by_two_ways(shape: Shape) -> None:
    wall = Wall(shape)
    points = np.random.default_rng(3).uniform(-0.05, 0.05, (3000, 2))
    points = np.concatenate((points, [[0.0, 0.0], [0.01, 0.0], [0.02, 0.01], [0.021, 0.01], [-0.03, 0.0]]))
    depth, gradient = depth_in(tables(wall)[0], points)
    np.testing.assert_allclose(depth, wall.depth(points), atol=1e-15)
    inside = depth > 1e-9
    np.testing.assert_allclose(gradient[inside], wall.inwards(points)[inside], atol=1e-11)
    assert (wall.depth(on_the_surface(tables(wall), points[~np.isclose(depth, 0.0)]))[:50] < 0.02).all()


@pytest.mark.parametrize("shape", ALL.values(), ids=ALL)
@pytest.mark.parametrize("seed", range(4))
def test_the_force_on_a_handle_is_the_same_by_two_ways(shape: Shape, seed: int) -> None:
    walls = (Wall(shape, 2000.0, 10.0, 0.4), Wall(SLOPE, 500.0, 3.0, 1.0))
    path = wandering(np.random.default_rng(seed).uniform(-1.0, 1.0, 16).tolist())
    rows, stored = dragged(path, walls)
    anew = np.zeros(len(path), bool)
    anew[0] = True
    found = on_a_handle(tables(*walls), path, rows["velocity"], anew, T, Touch(), len(path))
    assert found.normal.max() > 1.0
    assert (np.abs(rows["normal_force"] - found.normal) <= found.doubt + 1e-300).all()
    off = np.abs(rows["command_unlimited"] - found.force).max(axis=1)
    assert (off <= found.doubt).all() and found.doubt.max() < 1e-8
    np.testing.assert_allclose(found.store, stored, atol=1e-12)
    np.testing.assert_allclose(rows["proxy"], on_the_surface(tables(*walls), path), atol=1e-13)


@pytest.mark.parametrize("shape", ALL.values(), ids=ALL)
@pytest.mark.parametrize("stiffness", [2000.0, 1e6])
def test_the_force_on_a_mass_is_the_same_by_two_ways(shape: Shape, stiffness: float) -> None:
    t = np.arange(1500)[:, None] * T
    hand = 12.0 * np.sin(2.0 * np.pi * np.array([1.9, 2.3]) * t + np.array([0.3, 1.0]))
    wall = Wall(shape, stiffness, 60.0, 0.4)
    rows, stored = pushed(hand, (wall,), mass(2.0))
    reference = np.concatenate((np.zeros((1, 2)), rows["command"][:-1]))
    moved = (rows["command"] - reference) / T  # what the envelope has left of the velocity
    before = np.concatenate((np.zeros((1, 2)), moved[:-1]))
    meeting = Mass(np.full(len(hand), 2.0), before, hand, ADMITTANCE.max_acceleration)
    found = on_a_mass(tables(wall), reference, meeting, np.ones(len(hand)), T, len(hand))
    assert found.normal.max() > 1.0
    assert (np.abs(rows["normal_force"] - found.normal) <= found.doubt + 1e-8).all()
    balance = 2.0 * (rows["sliding_velocity"] - before) / T - hand - found.force
    assert (np.abs(balance).max(axis=1) <= found.doubt + 1e-8).all()
    np.testing.assert_allclose(found.store, stored, atol=1e-10 * stiffness)


def test_several_walls_at_once_are_solved_together() -> None:
    t = np.arange(1500)[:, None] * T
    hand = 12.0 * np.sin(2.0 * np.pi * np.array([1.9, 2.3]) * t + np.array([0.3, 1.0]))
    walls = (Wall(SLOPE, 3000.0, 60.0, 0.4), Wall(SHAPES["circle"], 2000.0, 60.0, 1.0), Wall(STAR, 2000.0, 60.0, 0.2))
    rows, stored = pushed(hand, walls, mass(2.0))
    reference = np.concatenate((np.zeros((1, 2)), rows["command"][:-1]))
    before = np.concatenate((np.zeros((1, 2)), ((rows["command"] - reference) / T)[:-1]))
    meeting = Mass(np.full(len(hand), 2.0), before, hand, ADMITTANCE.max_acceleration)
    found = on_a_mass(tables(*walls), reference, meeting, np.ones(len(hand)), T, len(hand))
    deep = np.sum([wall.depth(reference) > 0.0 for wall in walls], axis=0)
    assert (deep > 1).sum() > 50
    assert (np.abs(rows["normal_force"] - found.normal) <= found.doubt + 1e-8).all()
    np.testing.assert_allclose(found.store, stored, atol=1e-9)
