"""Walls on an admittance device: the mass meets them implicitly, whatever their stiffness."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptics import CompliantAdmittance, Coulomb, Stribeck
from haptics.device import Causality
from haptics.elements.models import Element
from haptics.records import Status
from haptics.scenes.shapes import HalfPlane
from haptics.scenes.walls import Wall
from tests.haptics.doubles import make_spec
from tests.haptics.strategies import PHYSICS
from tests.haptics.wall_runs import BLOCK, FLOOR, PEG, SLOPE, Floats, T, mass, pushed

NUMBERS = st.lists(st.floats(-1.0, 1.0), min_size=16, max_size=16)
MU = 0.4


def forces(*steps: tuple[float, float, float]) -> Floats:
    """Return forces that hold for so many seconds each, (n, 2) [N]: (seconds, x, y)."""
    return np.concatenate([np.tile([x, y], (round(seconds / T), 1)) for seconds, x, y in steps])


@pytest.mark.parametrize("stiffness", [2000.0, 1e5, 1e7])
def test_at_rest_the_normal_force_is_the_hands(stiffness: float) -> None:
    rows, _ = pushed(forces((2.0, 0.0, -10.0)), (Wall(FLOOR, stiffness, (2.0 * stiffness) ** 0.5, MU),))
    assert rows["normal_force"][-1] == pytest.approx(10.0, rel=1e-6)
    assert rows["command"][-1, 1] == pytest.approx(-10.0 / stiffness, rel=1e-6)


@pytest.mark.parametrize("normal", [(0.0, 1.0), (0.6, 0.8)])
def test_a_stiff_wall_is_not_entered(normal: tuple[float, float]) -> None:
    """Run into at 0.3 m/s, a wall of 10 kN/mm gives way by micrometres: stable, far beyond what a force device can."""
    out = np.array(normal)
    shape = HalfPlane((-0.03 * out[0], -0.03 * out[1]), normal)
    rows, _ = pushed(forces((1.0, *(-3.0 * out))), (Wall(shape, 1e7, 5000.0, MU),))
    depth = Wall(shape).depth(rows["command"])
    assert depth.max() < 0.3 * T / 10.0
    assert depth[-1] == pytest.approx(3e-7, rel=1e-3)
    np.testing.assert_allclose(rows["proxy"], rows["command"] + np.maximum(depth, 0.0)[:, None] * out, atol=1e-15)


@pytest.mark.parametrize("shape", [FLOOR, SLOPE], ids=["floor", "slope"])
def test_sliding_friction_is_mu_times_the_normal_force(shape: HalfPlane) -> None:
    """By the mass alone: what is missing of its acceleration along the wall is friction."""
    normal = np.array(shape.normal)
    tangent = np.array((-normal[1], normal[0]))
    pressing, sliding = -10.0 * normal, -10.0 * normal + 6.0 * tangent
    rows, _ = pushed(forces((1.0, *pressing), (0.2, *sliding)), (Wall(shape, 2000.0, 40.0, MU),))
    late = rows[-100:]
    speed = late["sliding_velocity"] @ tangent
    friction = 6.0 - 2.0 * np.diff(speed) / T
    assert speed[-1] > 0.1
    np.testing.assert_allclose(friction / late["normal_force"][1:], MU, rtol=1e-6)


def test_inside_the_cone_nothing_moves_at_all() -> None:
    """Pressed, and pulled sideways with 0.39 of it, to and fro for 20 s: the reference keeps its place bit for bit."""
    t = np.arange(20_000) * T
    swaying = np.stack((3.9 * np.sin(2.0 * np.pi * 3.0 * t), np.full(len(t), -10.0)), axis=1)
    rows, _ = pushed(np.concatenate((forces((2.0, 0.0, -10.0)), swaying)), (Wall(FLOOR, 2000.0, 40.0, MU),))
    held = rows[2000:]
    assert (held["command"][:, 0] == 0.0).all()
    assert (held["sliding_velocity"][:, 0] == 0.0).all()


def test_inside_the_cone_of_an_oblique_wall_only_rounding_moves() -> None:
    tangent, normal = np.array((-0.8, 0.6)), np.array((0.6, 0.8))
    t = np.arange(5000) * T
    swaying = -10.0 * normal + 3.9 * np.sin(2.0 * np.pi * 3.0 * t)[:, None] * tangent
    rows, _ = pushed(np.concatenate((forces((2.0, *(-10.0 * normal))), swaying)), (Wall(SLOPE, 2000.0, 40.0, MU),))
    assert np.ptp(rows["command"][2000:] @ tangent) < 1e-15


@given(NUMBERS, st.floats(0.0, 2.0), st.floats(0.0, 200.0), st.sampled_from([300.0, 2000.0, 1e6]))
@PHYSICS
def test_a_flat_wall_never_gives_more_than_it_got(
    numbers: list[float], friction: float, damping: float, stiffness: float
) -> None:
    """With friction of the plane beside it, or none: mass and wall never hold more than the hand has put in."""
    t = np.arange(400)[:, None, None] * T
    waves = np.sin(2.0 * np.pi * 3.0 * np.arange(1, 5) * t + np.pi * np.reshape(numbers[8:], (2, 4)))
    hand = 8.0 * (np.reshape(numbers[:8], (2, 4)) * waves).sum(axis=2)
    level = 0.0 if numbers[0] < 0.0 else 1.0
    rows, stored = pushed(hand, (Wall(SLOPE, stiffness, damping, friction),), mass(0.5, level))
    v = np.diff(rows["command"], axis=0, prepend=np.zeros((1, 2))) / T
    energy = 0.25 * np.sum(v**2, axis=1) + 0.5 * stiffness * np.maximum(Wall(SLOPE).depth(rows["command"]), 0.0) ** 2
    given_by_the_hand = np.cumsum(np.sum(hand * v, axis=1) * T)
    surplus = given_by_the_hand - energy + energy_before(stiffness)
    assert (np.diff(surplus, prepend=0.0) >= -1e-11 * max(1.0, stored.max() * 1e3)).all()


def energy_before(stiffness: float) -> float:
    """Return what the wall stores before the first tick [J]: the reference begins at the origin, a bit inside."""
    return 0.5 * stiffness * max(float(Wall(SLOPE).depth((0.0, 0.0))[0]), 0.0) ** 2


def test_the_ledger_counts_what_a_wall_stores() -> None:
    """30 N into 2 kN/m and out again: 0.225 J come back to the hand, and are nothing that the loop has injected."""
    hand = forces((0.5, 0.0, -30.0), (0.5, 0.0, -2.0), (0.5, 0.0, -30.0), (0.5, 0.0, 0.0))
    rows, stored = pushed(hand, (Wall(FLOOR, 2000.0, 60.0, MU),), mass(0.5))
    assert stored.max() > 0.2
    assert rows["injected_energy"].max() < 0.02
    assert not (rows["status"] & Status.ENERGY).any()


def test_in_a_corner_of_two_walls_both_hold() -> None:
    walls = (Wall(FLOOR, 2000.0, 40.0, MU), Wall(HalfPlane((0.0, 0.0), (1.0, 0.0)), 2000.0, 40.0, MU))
    rows, _ = pushed(forces((3.0, -6.0, -8.0)), walls)
    assert np.abs(rows["command"][-1] - rows["command"][-500]).max() < 1e-9
    x, y = -2000.0 * rows["command"][-1]
    assert rows["normal_force"][-1] == pytest.approx(x + y, rel=1e-6)
    assert abs(6.0 - x) <= MU * y + 1e-6 and abs(8.0 - y) <= MU * x + 1e-6


def test_the_reference_starts_inside_and_is_moved_out_gently() -> None:
    spec = make_spec(Causality.ADMITTANCE, fade_in=0.5)
    walls = (Wall(HalfPlane((0.0, 0.01), (0.0, 1.0)), 2000.0, 60.0, 0.0),)
    rows, _ = pushed(forces((2.0, 0.0, 0.0)), walls, spec=spec)
    assert rows["command"][10, 1] < 1e-5
    assert rows["command"][-1, 1] > 0.0099
    before_the_edge = rows["command"][rows["command"][:, 1] < 0.05, 1]
    assert np.abs(np.diff(before_the_edge, n=2)).max() / T**2 < 8.0


@pytest.mark.parametrize(
    "element",
    [
        mass(2.0, 4.0),
        CompliantAdmittance(Coulomb(4.0), 2.0, 20000.0, 400.0),
        CompliantAdmittance(Stribeck(3.0, 4.0, 0.15), 2.0, 20000.0, 400.0),
    ],
    ids=["A", "D", "D with Stribeck"],
)
@pytest.mark.parametrize("shape", [SLOPE, PEG, BLOCK], ids=["half-plane", "circle", "block"])
def test_a_wall_gives_nothing_beside_friction_of_the_plane(element: Element, shape: HalfPlane) -> None:
    t = np.arange(3000)[:, None] * T
    hand = 14.0 * np.sin(2.0 * np.pi * np.array([0.7, 1.1]) * t + np.array([0.0, 1.0]))
    rows, stored = pushed(hand, (Wall(shape, 2000.0, 40.0, MU),), element)
    assert stored.max() > 1e-3
    assert rows["injected_energy"].max() < 5e-3
    assert np.isfinite(rows["command"]).all()


def test_the_envelope_has_the_last_word() -> None:
    spec = make_spec(Causality.ADMITTANCE, max_speed=0.1, max_acceleration=5.0)
    hand = forces((0.5, 0.0, 20.0), (1.5, 0.0, -20.0))
    rows, _ = pushed(hand, (Wall(FLOOR, 1e6, 100.0, MU),), spec=spec)
    v = np.diff(rows["command"], axis=0) / T
    assert np.hypot(*v.T).max() <= 0.1 * (1.0 + 1e-9)
    assert np.hypot(*np.diff(v, axis=0).T).max() / T <= 5.0 * (1.0 + 1e-6)
    assert rows["normal_force"][-1] == pytest.approx(20.0, rel=1e-2)
    assert Wall(FLOOR).depth(rows["command"]).max() < 1e-4
