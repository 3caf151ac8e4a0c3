"""Walls on an impedance device: normal force, the cone of friction, what they store, and corners."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptics import Coulomb, MasslessImpedance
from haptics.records import Status
from haptics.scenes.shapes import HalfPlane, Shape
from haptics.scenes.walls import Wall
from tests.haptics.doubles import make_spec
from tests.haptics.strategies import PHYSICS
from tests.haptics.wall_runs import BLOCK, FLOOR, IMPEDANCE, NOTCH, SHAPES, SLOPE, T, along, bare, dragged, wandering

NUMBERS = st.lists(st.floats(-1.0, 1.0), min_size=16, max_size=16)
MU = 0.4


@pytest.mark.parametrize("depth", [1e-4, 5e-3, 15e-3])
def test_pressed_in_it_pushes_back_with_stiffness_times_depth(depth: float) -> None:
    rows, _ = dragged(along((0.0, 0.001), (0.0, -depth), (0.0, -depth - 1e-12)), (Wall(FLOOR, 2000.0, 10.0, MU),))
    assert rows["normal_force"][-1] == pytest.approx(2000.0 * depth, rel=1e-6)
    np.testing.assert_allclose(rows["command"][-1], (0.0, 2000.0 * depth), atol=1e-6)
    assert rows["normal_force"][0] == 0.0


@pytest.mark.parametrize("shape", [FLOOR, SLOPE], ids=["floor", "slope"])
@pytest.mark.parametrize("speed", [0.01, 0.1, 0.3])
def test_sliding_friction_is_mu_times_the_normal_force(shape: HalfPlane, speed: float) -> None:
    normal = np.array(shape.normal)
    tangent = np.array((-normal[1], normal[0]))
    inside = np.array(shape.point) - 0.005 * normal
    path = along(shape.point, inside, inside + 0.03 * tangent, speed=speed)
    rows, _ = dragged(path, (Wall(shape, 2000.0, 10.0, MU),))
    sliding = rows[-len(path) // 4 :]
    friction = -sliding["command_unlimited"] @ tangent
    np.testing.assert_allclose(friction / sliding["normal_force"], MU, rtol=1e-9)


@pytest.mark.parametrize("told", [1.0, 0.0, 1.3])
def test_inside_the_cone_the_contact_does_not_creep(told: float) -> None:
    """A hand that trembles for 20 s, up to 0.9 of the limit of friction: the contact stays where it is, to rounding,
    whatever velocity the device says it has."""
    t = np.arange(20_000) * T
    swing = 0.9 * MU * 0.005 * np.sin(2.0 * np.pi * 8.0 * t)
    path = np.concatenate((along((0.0, 0.0), (0.0, -0.005)), np.stack((swing, np.full(len(t), -0.005)), axis=1)))
    rows, _ = dragged(path, (Wall(FLOOR, 2000.0, 0.1, MU),), told=told)
    held = rows[-len(t) :]
    stretch = (-held["command_unlimited"][:, 0] - 0.1 * held["velocity"][:, 0]) / 2000.0
    contact = held["position"][:, 0] - stretch
    assert np.ptp(stretch) > 3e-3
    assert np.ptp(contact[2:]) < 1e-15


def test_what_was_wound_up_comes_back() -> None:
    """Sideways inside the cone and back: the force is none again, to the last digits."""
    path = along((0.0, 0.0), (0.0, -0.005), (0.0019, -0.005), (-0.0019, -0.005), (0.0, -0.005), speed=0.02)
    rows, _ = dragged(path, (Wall(FLOOR, 2000.0, 0.0, MU),))
    assert abs(rows["command_unlimited"][-1, 0]) < 1e-12
    assert np.abs(rows["command_unlimited"][:, 0]).max() == pytest.approx(3.8, rel=1e-3)


def test_a_lifted_contact_lets_go() -> None:
    """Unloading narrows the cone: what the spring along the surface holds is never more than mu N."""
    path = along((0.0, 0.0), (0.0, -0.005), (0.0015, -0.005), (0.0015, 0.001), speed=0.05)
    rows, stored = dragged(path, (Wall(FLOOR, 2000.0, 10.0, MU),))
    friction = np.abs(rows["command_unlimited"][:, 0])
    assert (friction <= MU * rows["normal_force"] * (1.0 + 1e-12)).all()
    assert stored[-1] == 0.0 and (rows["command"][-1] == 0.0).all()


@pytest.mark.parametrize("speed", [0.02, 0.15])
def test_pushing_deep_into_a_wall_is_no_energy_that_the_loop_gives(speed: float) -> None:
    """15 mm into 2 kN/m store 0.225 J, more than twice what the loop may inject; they come back, and that is right."""
    spec = make_spec(max_force=100.0)
    path = along((0.0, 0.002), (0.0, -0.015), (0.0, 0.002), (0.0, -0.015), (0.02, -0.015), (0.0, 0.002), speed=speed)
    rows, stored = dragged(path, (Wall(FLOOR, 2000.0, 10.0, MU),), spec=spec)
    assert stored.max() > 0.225 > spec.max_energy
    assert not (rows["status"] & Status.ENERGY).any()
    assert rows["injected_energy"].max() < 5e-4


def test_a_wall_that_is_too_stiff_for_its_damper_injects_and_is_seen() -> None:
    """Without a damper the held force of a wall gives K v^2 T^2 / 2 per tick: the ledger counts just that."""
    rows, _ = dragged(along((0.0, 0.0), (0.0, -0.015), (0.0, 0.0)), (Wall(FLOOR, 2000.0, 0.0, MU),))
    assert rows["injected_energy"][-2] == pytest.approx(2 * 150 * 0.5 * 2000.0 * 1e-4**2, rel=0.02)


@given(NUMBERS, st.floats(0.0, 2.0), st.floats(0.0, 60.0))
@PHYSICS
def test_a_flat_wall_never_gives_more_than_it_got(numbers: list[float], friction: float, damping: float) -> None:
    """Whatever a hand does: the work on the wall is at least what it stores, at every instant; as an algorithm, with
    the force of a tick over the way that led to it, like the elements."""
    path = wandering(numbers)
    rows, stored = dragged(path, (Wall(SLOPE, 2000.0, damping, friction),))
    work = -np.sum(rows["command_unlimited"][1:] * np.diff(path, axis=0), axis=1)
    surplus = np.cumsum(work) - (stored[1:] - stored[0])
    assert (np.diff(surplus, prepend=0.0) >= -1e-12).all()


@given(NUMBERS)
@PHYSICS
def test_the_loop_gives_next_to_nothing_with_walls_and_friction(numbers: list[float]) -> None:
    """With the force held as on a device, walls with corners, and the friction of the plane beside them."""
    walls = (Wall(NOTCH, 2000.0, 10.0, MU), Wall(HalfPlane((0.0, 0.012), (0.0, -1.0)), 2000.0, 10.0, MU))
    rows, _ = dragged(wandering(numbers), walls, MasslessImpedance(Coulomb(1.0), 2000.0, 10.0))
    assert rows["injected_energy"].max() < 2e-3
    assert not (rows["status"] & Status.ENERGY).any()


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_force_has_no_jump_on_any_way_through_a_wall(shape: Shape) -> None:
    """Straight across, through corners and the middle: a tick changes it by what stiffness and way explain."""
    generator = np.random.default_rng(2)
    wall, speed = Wall(shape, 2000.0, 10.0, MU), 0.1
    for start, end in generator.uniform(-0.04, 0.04, (30, 2, 2)):
        path = along(start, end, speed=speed)
        rows, _ = dragged(path, (wall,))
        depth = max(float(wall.depth(path).max()), 0.0)
        change = np.hypot(*np.diff(rows["command_unlimited"], axis=0).T).max()
        # along the way by 2 K, for the damper may be as strong as the spring; turned, over half the rounding
        assert change <= (1.0 + MU) * 2000.0 * speed * T * (4.0 + 2.0 * depth / 1e-3) + 1e-9


@pytest.mark.parametrize("damping", [10.0, 200.0])
def test_what_comes_fast_is_met_without_a_jump(damping: float) -> None:
    """At 0.3 m/s a damper alone would begin with its whole force, up to 60 N here; and at the way out it would pull."""
    path = along((0.0, 0.003), (0.0, -0.006), (0.0, 0.003), speed=0.3)
    rows, _ = dragged(path, (Wall(FLOOR, 2000.0, damping, MU),))
    depth = np.maximum(-path[:, 1], 0.0)
    assert (rows["normal_force"] <= 2.0 * 2000.0 * depth * (1.0 + 1e-12)).all()
    assert (rows["normal_force"] >= 0.0).all()
    going_in = (np.diff(path[:, 1], prepend=1.0) < 0.0) & (depth > 0.0)
    assert (rows["normal_force"][going_in] >= 2000.0 * depth[going_in] * (1.0 - 1e-12)).all()


def test_pushed_through_a_thin_wall_nothing_is_gained() -> None:
    """In on one side, out on the other: the work is what friction and damper took, and none comes back from nowhere."""
    path = along((0.0, 0.015), (0.0, -0.015), (0.0, 0.015), speed=0.05)
    rows, stored = dragged(path, (Wall(BLOCK, 2000.0, 10.0, MU),))
    work = -np.sum(rows["command_unlimited"][:-1] * np.diff(path, axis=0))
    assert stored.max() > 0.05
    assert stored[-1] == 0.0 and 0.0 < work < 0.05


def test_the_envelope_has_the_last_word() -> None:
    spec = make_spec(max_force=10.0, max_force_rate=200.0)
    path = along((0.0, 0.001), (0.0, -0.015), (0.02, -0.015), speed=0.2)
    rows, _ = dragged(path, (Wall(FLOOR, 2000.0, 10.0, MU),), spec=spec)
    norms = np.hypot(*rows["command"].T)
    assert norms.max() == pytest.approx(10.0)
    assert (rows["status"] & Status.LIMITED).any() and (rows["status"] & Status.SLEW).any()
    assert np.hypot(*np.diff(rows["command"], axis=0).T).max() <= 0.2 * (1.0 + 1e-9)


def test_the_proxy_is_seen_on_the_surface() -> None:
    rows, _ = dragged(along((0.0, 0.004), (0.0, -0.006), (0.01, -0.006)), (Wall(FLOOR, 2000.0, 10.0, MU),))
    assert (rows["proxy"][:, 1] >= 0.0).all()
    assert rows["proxy"][-1] == pytest.approx((0.01, 0.0))


def test_a_wall_out_of_reach_changes_nothing() -> None:
    """Bit for bit: every old column is as it was without walls."""
    path = wandering([0.7, -0.4, 0.9, 0.3] * 4)
    element = MasslessImpedance(Coulomb(4.0), 6000.0, 10.0)
    without, _ = dragged(path, (), element)
    beside, _ = dragged(path, (Wall(HalfPlane((0.0, -1.0), (0.0, 1.0))),), element)
    assert np.isnan(without["normal_force"]).all() and (beside["normal_force"] == 0.0).all()
    for name in set(without.dtype.names or ()) - {"normal_force", "region", "channels", "hand_force"}:
        np.testing.assert_array_equal(without[name], beside[name])


def test_friction_of_the_plane_and_of_the_wall_act_side_by_side() -> None:
    path = along((0.0, 0.001), (0.0, -0.005), (0.03, -0.005))
    rows, _ = dragged(path, (Wall(FLOOR, 2000.0, 10.0, MU),), MasslessImpedance(Coulomb(1.0), 6000.0, 10.0), IMPEDANCE)
    assert rows["friction_force"][-1] == pytest.approx((1.0, 0.0), abs=1e-9)
    assert -rows["command_unlimited"][-1, 0] == pytest.approx(1.0 + MU * 10.0)


def test_after_samples_that_were_refused_a_contact_begins_anew() -> None:
    path = along((0.0, 0.0), (0.0, -0.005), (0.0015, -0.005), speed=0.05)
    path = np.concatenate((path, [[np.nan, np.nan]], np.repeat(path[-1:], 50, axis=0)))
    rows, _ = dragged(path, (Wall(FLOOR, 2000.0, 0.0, MU),), bare())
    assert rows["status"][-51] & Status.NOT_FINITE
    np.testing.assert_allclose(rows["command_unlimited"][-1], (0.0, 10.0), atol=1e-9)
