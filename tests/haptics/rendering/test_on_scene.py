"""Elements on scenes: borders, textures and walls, for impedance and admittance devices."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from haptics import Causality, CompliantAdmittance, Coulomb, MasslessImpedance, Status, Stribeck
from haptics.elements.tables import element_class
from haptics.errors import ConfigurationError
from haptics.rendering.programs import SceneElement, parameters_of
from haptics.scenes import Circle, HalfPlane, Region, Scene, Texture, read_scene
from haptics.scenes.walls import Wall
from tests.haptics.changing import cross, dissipated, element_of, moved, pulled, rendering_of, steps_at_the_border
from tests.haptics.doubles import make_spec
from tests.haptics.strategies import PHYSICS
from tests.haptics.wall_runs import (
    BLOCK,
    FLOOR,
    IMPEDANCE,
    NOTCH,
    PEG,
    SHAPES,
    SLOPE,
    T,
    along,
    bare,
    dragged,
    mass,
    pushed,
    wandering,
)

ONE_AND_SIX = read_scene("border")
ROUGH = Scene(
    Stribeck(1.0, 1.4, 0.1, 1.0),
    (
        Region(
            "disc", Circle((0.0, 0.0), 0.015), Stribeck(4.0, 4.5, 0.1), texture=Texture("noise", 0.8, 0.001, seed=2)
        ),
        Region("ridges", HalfPlane((0.01, 0.0), (-1.0, 0.5)), Stribeck(2.0, 2.2, 0.1), texture=Texture("grating", 0.9)),
    ),
    border=5e-4,
)


@pytest.mark.parametrize("model", "ABCD")
@given(speed=st.floats(0.01, 0.3), back=st.booleans())
@example(speed=0.01, back=False)
@example(speed=0.01, back=True)
@example(speed=0.3, back=False)
@example(speed=0.3, back=True)
@example(speed=0.1, back=True)
@settings(max_examples=5)
def test_force_across_a_border_changes_within_its_bound_and_dissipates(model, speed, back):
    """Between 1 N and 6 N, by at most dF v T / border and 1 %; of B and C at the speed of the hand."""
    program = SceneElement(element_of(model, ONE_AND_SIX.law), ONE_AND_SIX)
    speed = -speed if back else speed
    rows = cross(program, speed, 0.012 + 0.2 * abs(speed))
    assert {0, 1} <= set(rows["region"].tolist())
    friction, output = steps_at_the_border(program, rows, speed)
    assert friction <= 1.01
    assert output <= 1.01
    force = np.abs(rows["friction_force"][:, 0])
    assert force.max() == pytest.approx(6.0, rel=1e-6)
    assert dissipated(program.element, rows).min() >= -1e-12


@pytest.mark.parametrize("model", ["B", "C"])
@given(
    mass=st.floats(0.01, 0.5),
    stiffness=st.sampled_from([800.0, 20000.0]) | st.floats(500.0, 50000.0),
    damping=st.floats(0.1, 50.0),
    speed=st.floats(0.01, 0.3),
)
@settings(max_examples=10)
def test_border_has_room_for_the_spring_and_its_ringing(model, mass, stiffness, damping, speed):
    changes = {"mass": mass} if model == "B" else {}
    element = element_of(model, ONE_AND_SIX.law, stiffness=stiffness, damping=damping, **changes)
    program = SceneElement(element, ONE_AND_SIX)
    rows = cross(program, -speed, 0.02 + 6.0 / stiffness + 2.0 * program.surface.border + 0.3 * speed)
    assert max(steps_at_the_border(program, rows, -speed)) <= 1.01
    assert dissipated(element, rows).min() >= -1e-12


@pytest.mark.parametrize("model", "ABCD")
@given(seed=st.integers(0, 1000), speed=st.floats(0.02, 0.5))
@settings(max_examples=5)
def test_element_on_a_rough_scene_never_gives_power(model, seed, speed):
    """Textures are much finer than borders should be: the level jumps, and only heat leaves the element."""
    program = SceneElement(element_of(model, ROUGH.law), ROUGH)
    turns = np.cumsum(np.random.default_rng(seed).normal(0.0, 0.3, 1500))
    velocity = speed * np.stack((np.cos(turns), np.sin(turns)), axis=1)
    if program.causality is Causality.IMPEDANCE:
        rows = moved(program, np.cumsum(1e-3 * velocity, axis=0))
    else:
        rows = pulled(program, (0.0, 0.0), velocity)
    heat = dissipated(program.element, rows)
    at_the_contact = 1e-3 * (rows["friction_force"] * rows["sliding_velocity"]).sum(axis=1)[1:]
    assert heat.min() >= -1e-12
    assert at_the_contact.min() >= 0.0
    assert (heat - at_the_contact).min() >= -1e-12  # the rest is dissipated by spring and damper
    assert np.ptp(np.hypot(*rows["friction_force"].T)) > 0.5


def test_uniform_scene_changes_only_the_region():
    law = Stribeck(2.0, 3.0, 0.1)
    path = np.cumsum(np.random.default_rng(1).normal(0.0, 2e-4, (3000, 2)), axis=0)
    element = element_of("C", law)
    plain = moved(element, path)
    same = Scene(law, (Region("all the same", Circle((0.0, 0.0), 0.01), law),))
    on_scene = moved(SceneElement(element, same), path)
    assert set(plain["region"].tolist()) == {-1}
    assert {0, 1} == set(on_scene["region"].tolist())
    for name in ("friction_force", "command", "proxy", "displacement", "injected_energy"):
        assert (plain[name] == on_scene[name]).all(), name


def test_scene_change_during_a_run_is_eased():
    law = Coulomb(1.0)
    element = element_of("C", law)
    on_scene = SceneElement(element, Scene(law, (Region("6 N", Circle((0.0, 0.0), 1.0), Coulomb(6.0)),)))
    rendering = rendering_of(element)
    rendering.core["fade_in"] = 0.1
    path = np.stack((0.05 * 1e-3 * np.arange(3000), np.zeros(3000)), axis=1)
    rows = moved(element, path)
    parts = [rendering.recompute(rows[:1000])]
    rendering.configure(parameters_of(on_scene), 1)
    parts.append(rendering.recompute(rows[1000:2000]))
    rendering.configure(parameters_of(element), 2)
    parts.append(rendering.recompute(rows[2000:]))
    assert [set(part["region"].tolist()) for part in parts] == [{-1}, {1}, {-1}]
    force = np.concatenate([part["command"][:, 0] for part in parts])
    assert force[[999, 1999, 2999]] == pytest.approx([-1.0, -6.0, -1.0])
    assert np.abs(np.diff(force[150:])).max() < 5.0 * math.pi / 2 / 100 * 1.3  # over a tenth of a second


def test_region_after_a_bad_sample_is_that_of_the_next_good_one():
    program = SceneElement(element_of("C", ONE_AND_SIX.law), ONE_AND_SIX)
    path = np.stack((np.linspace(-0.02, -0.015, 400), np.zeros(400)), axis=1)
    rows = moved(program, path)
    rows["position"][200] = np.nan
    rows["position"][201:, 0] += 0.04
    again = rendering_of(program).recompute(rows)
    assert again["region"][199] == 0 and again["region"][201] == 1


def test_element_that_does_not_fit_a_scene_is_refused():
    scene = Scene(Coulomb(2.0))
    with pytest.raises(ConfigurationError, match="model dahl: cannot be put on a scene; use one of A, B, C, D"):
        SceneElement(element_class("dahl", Causality.IMPEDANCE)(law=scene.law, period=1e-3), scene)
    with pytest.raises(ConfigurationError, match="must have the law of its background"):
        SceneElement(element_of("C", Coulomb(1.0)), scene)
    steep = Scene(Stribeck(1.0, 1.0, 0.1), (Region("grit", Circle((0.0, 0.0), 0.01), Stribeck(1.0, 6.0, 0.1)),))
    with pytest.raises(ConfigurationError, match="condition 15"):
        SceneElement(element_of("C", steep.law), steep)
    assert SceneElement(element_of("A", steep.law), steep).model == "A"
    gentle = replace(steep, regions=())
    assert SceneElement(element_of("C", gentle.law), gentle).causality is Causality.IMPEDANCE


# --- walls on an impedance device


NUMBERS = st.lists(st.floats(-1.0, 1.0), min_size=16, max_size=16)
MU = 0.4


@pytest.mark.parametrize("depth", [1e-4, 5e-3, 15e-3])
def test_wall_pushes_back_with_stiffness_times_depth(depth):
    rows, _ = dragged(along((0.0, 0.001), (0.0, -depth), (0.0, -depth - 1e-12)), (Wall(FLOOR, 2000.0, 10.0, MU),))
    assert rows["normal_force"][-1] == pytest.approx(2000.0 * depth, rel=1e-6)
    np.testing.assert_allclose(rows["command"][-1], (0.0, 2000.0 * depth), atol=1e-6)
    assert rows["normal_force"][0] == 0.0


@pytest.mark.parametrize("shape", [FLOOR, SLOPE], ids=["floor", "slope"])
@pytest.mark.parametrize("speed", [0.01, 0.1, 0.3])
def test_wall_friction_is_mu_times_the_normal_force(shape, speed):
    normal = np.array(shape.normal)
    tangent = np.array((-normal[1], normal[0]))
    inside = np.array(shape.point) - 0.005 * normal
    path = along(shape.point, inside, inside + 0.03 * tangent, speed=speed)
    rows, _ = dragged(path, (Wall(shape, 2000.0, 10.0, MU),))
    sliding = rows[-len(path) // 4 :]
    friction = -sliding["command_unlimited"] @ tangent
    np.testing.assert_allclose(friction / sliding["normal_force"], MU, rtol=1e-9)


@pytest.mark.parametrize("told", [1.0, 0.0, 1.3])
def test_contact_inside_the_friction_cone_does_not_creep(told):
    """Tremor for 20 s up to 0.9 of the friction limit; `told` scales the reported velocity."""
    t = np.arange(20_000) * T
    swing = 0.9 * MU * 0.005 * np.sin(2.0 * np.pi * 8.0 * t)
    path = np.concatenate((along((0.0, 0.0), (0.0, -0.005)), np.stack((swing, np.full(len(t), -0.005)), axis=1)))
    rows, _ = dragged(path, (Wall(FLOOR, 2000.0, 0.1, MU),), told=told)
    held = rows[-len(t) :]
    stretch = (-held["command_unlimited"][:, 0] - 0.1 * held["velocity"][:, 0]) / 2000.0
    contact = held["position"][:, 0] - stretch
    assert np.ptp(stretch) > 3e-3
    assert np.ptp(contact[2:]) < 1e-15


def test_lifted_contact_releases_its_spring():
    """Unloading narrows the cone: the tangential spring never holds more than mu N."""
    path = along((0.0, 0.0), (0.0, -0.005), (0.0015, -0.005), (0.0015, 0.001), speed=0.05)
    rows, stored = dragged(path, (Wall(FLOOR, 2000.0, 10.0, MU),))
    friction = np.abs(rows["command_unlimited"][:, 0])
    assert (friction <= MU * rows["normal_force"] * (1.0 + 1e-12)).all()
    assert stored[-1] == 0.0 and (rows["command"][-1] == 0.0).all()


@pytest.mark.parametrize("speed", [0.02, 0.15])
def test_deep_contact_is_no_injected_energy(speed):
    """15 mm into 2 kN/m store 0.225 J, more than twice the energy limit, and return it."""
    spec = make_spec(max_force=100.0)
    path = along((0.0, 0.002), (0.0, -0.015), (0.0, 0.002), (0.0, -0.015), (0.02, -0.015), (0.0, 0.002), speed=speed)
    rows, stored = dragged(path, (Wall(FLOOR, 2000.0, 10.0, MU),), spec=spec)
    assert stored.max() > 0.225 > spec.max_energy
    assert not (rows["status"] & Status.ENERGY).any()
    assert rows["injected_energy"].max() < 5e-4


def test_undamped_wall_injects_energy_that_is_observed():
    """Without a damper the held force of a wall gives K v^2 T^2 / 2 per tick: the ledger counts just that."""
    rows, _ = dragged(along((0.0, 0.0), (0.0, -0.015), (0.0, 0.0)), (Wall(FLOOR, 2000.0, 0.0, MU),))
    assert rows["injected_energy"][-2] == pytest.approx(2 * 150 * 0.5 * 2000.0 * 1e-4**2, rel=0.02)


@given(NUMBERS, st.floats(0.0, 2.0), st.floats(0.0, 60.0))
@PHYSICS
def test_flat_wall_never_gives_energy(numbers, friction, damping):
    """The work on the wall covers the stored energy at every instant, with the force of a tick over its path."""
    path = wandering(numbers)
    rows, stored = dragged(path, (Wall(SLOPE, 2000.0, damping, friction),))
    work = -np.sum(rows["command_unlimited"][1:] * np.diff(path, axis=0), axis=1)
    surplus = np.cumsum(work) - (stored[1:] - stored[0])
    assert (np.diff(surplus, prepend=0.0) >= -1e-12).all()


@given(NUMBERS)
@PHYSICS
def test_walls_and_friction_inject_almost_nothing(numbers):
    """With the force held as on a device, walls with corners, and friction of the plane."""
    walls = (Wall(NOTCH, 2000.0, 10.0, MU), Wall(HalfPlane((0.0, 0.012), (0.0, -1.0)), 2000.0, 10.0, MU))
    rows, _ = dragged(wandering(numbers), walls, MasslessImpedance(Coulomb(1.0), 2000.0, 10.0))
    assert rows["injected_energy"].max() < 2e-3
    assert not (rows["status"] & Status.ENERGY).any()


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_wall_force_has_no_jump_on_any_path(shape):
    """Straight across, through corners and the middle: the change per tick is bounded by stiffness and path."""
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
def test_fast_impact_is_met_without_a_jump(damping):
    """At 0.3 m/s a damper alone would begin with its whole force, up to 60 N here; and at the way out it would pull."""
    path = along((0.0, 0.003), (0.0, -0.006), (0.0, 0.003), speed=0.3)
    rows, _ = dragged(path, (Wall(FLOOR, 2000.0, damping, MU),))
    depth = np.maximum(-path[:, 1], 0.0)
    assert (rows["normal_force"] <= 2.0 * 2000.0 * depth * (1.0 + 1e-12)).all()
    assert (rows["normal_force"] >= 0.0).all()
    going_in = (np.diff(path[:, 1], prepend=1.0) < 0.0) & (depth > 0.0)
    assert (rows["normal_force"][going_in] >= 2000.0 * depth[going_in] * (1.0 - 1e-12)).all()


def test_envelope_limits_the_force_of_a_wall():
    spec = make_spec(max_force=10.0, max_force_rate=200.0)
    path = along((0.0, 0.001), (0.0, -0.015), (0.02, -0.015), speed=0.2)
    rows, _ = dragged(path, (Wall(FLOOR, 2000.0, 10.0, MU),), spec=spec)
    norms = np.hypot(*rows["command"].T)
    assert norms.max() == pytest.approx(10.0)
    assert (rows["status"] & Status.LIMITED).any() and (rows["status"] & Status.SLEW).any()
    assert np.hypot(*np.diff(rows["command"], axis=0).T).max() <= 0.2 * (1.0 + 1e-9)


def test_wall_out_of_reach_changes_nothing():
    """All other columns are bit for bit the same without walls."""
    path = wandering([0.7, -0.4, 0.9, 0.3] * 4)
    element = MasslessImpedance(Coulomb(4.0), 6000.0, 10.0)
    without, _ = dragged(path, (), element)
    beside, _ = dragged(path, (Wall(HalfPlane((0.0, -1.0), (0.0, 1.0))),), element)
    assert np.isnan(without["normal_force"]).all() and (beside["normal_force"] == 0.0).all()
    for name in set(without.dtype.names or ()) - {"normal_force", "region", "channels", "hand_force"}:
        np.testing.assert_array_equal(without[name], beside[name])


def test_friction_of_plane_and_wall_add_up():
    path = along((0.0, 0.001), (0.0, -0.005), (0.03, -0.005))
    rows, _ = dragged(path, (Wall(FLOOR, 2000.0, 10.0, MU),), MasslessImpedance(Coulomb(1.0), 6000.0, 10.0), IMPEDANCE)
    assert rows["friction_force"][-1] == pytest.approx((1.0, 0.0), abs=1e-9)
    assert -rows["command_unlimited"][-1, 0] == pytest.approx(1.0 + MU * 10.0)


def test_contact_restarts_after_refused_samples():
    path = along((0.0, 0.0), (0.0, -0.005), (0.0015, -0.005), speed=0.05)
    path = np.concatenate((path, [[np.nan, np.nan]], np.repeat(path[-1:], 50, axis=0)))
    rows, _ = dragged(path, (Wall(FLOOR, 2000.0, 0.0, MU),), bare())
    assert rows["status"][-51] & Status.NOT_FINITE
    np.testing.assert_allclose(rows["command_unlimited"][-1], (0.0, 10.0), atol=1e-9)


# --- walls on an admittance device


def forces(*steps):
    """Return piecewise constant forces, (n, 2) [N], from steps (seconds, x, y)."""
    return np.concatenate([np.tile([x, y], (round(seconds / T), 1)) for seconds, x, y in steps])


@pytest.mark.parametrize("stiffness", [2000.0, 1e5, 1e7])
def test_normal_force_at_rest_equals_the_hand_force(stiffness):
    rows, _ = pushed(forces((2.0, 0.0, -10.0)), (Wall(FLOOR, stiffness, (2.0 * stiffness) ** 0.5, MU),))
    assert rows["normal_force"][-1] == pytest.approx(10.0, rel=1e-6)
    assert rows["command"][-1, 1] == pytest.approx(-10.0 / stiffness, rel=1e-6)


@pytest.mark.parametrize("normal", [(0.0, 1.0), (0.6, 0.8)])
def test_stiff_wall_is_hardly_entered(normal):
    """Run into at 0.3 m/s, a wall of 10 kN/mm gives way by micrometres and is stable."""
    out = np.array(normal)
    shape = HalfPlane((-0.03 * out[0], -0.03 * out[1]), normal)
    rows, _ = pushed(forces((1.0, *(-3.0 * out))), (Wall(shape, 1e7, 5000.0, MU),))
    depth = Wall(shape).depth(rows["command"])
    assert depth.max() < 0.3 * T / 10.0
    assert depth[-1] == pytest.approx(3e-7, rel=1e-3)
    np.testing.assert_allclose(rows["proxy"], rows["command"] + np.maximum(depth, 0.0)[:, None] * out, atol=1e-15)


@pytest.mark.parametrize("shape", [FLOOR, SLOPE], ids=["floor", "slope"])
def test_wall_friction_on_an_arm_is_mu_times_the_normal_force(shape):
    """Friction is the missing part of the acceleration along the wall."""
    normal = np.array(shape.normal)
    tangent = np.array((-normal[1], normal[0]))
    pressing, sliding = -10.0 * normal, -10.0 * normal + 6.0 * tangent
    rows, _ = pushed(forces((1.0, *pressing), (0.2, *sliding)), (Wall(shape, 2000.0, 40.0, MU),))
    late = rows[-100:]
    speed = late["sliding_velocity"] @ tangent
    friction = 6.0 - 2.0 * np.diff(speed) / T
    assert speed[-1] > 0.1
    np.testing.assert_allclose(friction / late["normal_force"][1:], MU, rtol=1e-6)


def test_reference_inside_the_friction_cone_does_not_move():
    """Pressed, and pulled sideways with 0.39 of it, to and fro for 20 s: the reference keeps its place bit for bit."""
    t = np.arange(20_000) * T
    swaying = np.stack((3.9 * np.sin(2.0 * np.pi * 3.0 * t), np.full(len(t), -10.0)), axis=1)
    rows, _ = pushed(np.concatenate((forces((2.0, 0.0, -10.0)), swaying)), (Wall(FLOOR, 2000.0, 40.0, MU),))
    held = rows[2000:]
    assert (held["command"][:, 0] == 0.0).all()
    assert (held["sliding_velocity"][:, 0] == 0.0).all()


@given(NUMBERS, st.floats(0.0, 2.0), st.floats(0.0, 200.0), st.sampled_from([300.0, 2000.0, 1e6]))
@PHYSICS
def test_flat_wall_on_an_arm_never_gives_energy(numbers, friction, damping, stiffness):
    """With or without friction of the plane, mass and wall never hold more than the work of the hand."""
    t = np.arange(400)[:, None, None] * T
    waves = np.sin(2.0 * np.pi * 3.0 * np.arange(1, 5) * t + np.pi * np.reshape(numbers[8:], (2, 4)))
    hand = 8.0 * (np.reshape(numbers[:8], (2, 4)) * waves).sum(axis=2)
    level = 0.0 if numbers[0] < 0.0 else 1.0
    rows, stored = pushed(hand, (Wall(SLOPE, stiffness, damping, friction),), mass(0.5, level))
    v = np.diff(rows["command"], axis=0, prepend=np.zeros((1, 2))) / T
    energy = 0.25 * np.sum(v**2, axis=1) + 0.5 * stiffness * np.maximum(Wall(SLOPE).depth(rows["command"]), 0.0) ** 2
    given_by_the_hand = np.cumsum(np.sum(hand * v, axis=1) * T)
    start = 0.5 * stiffness * max(float(Wall(SLOPE).depth((0.0, 0.0))[0]), 0.0) ** 2  # the origin is inside
    surplus = given_by_the_hand - energy + start
    assert (np.diff(surplus, prepend=0.0) >= -1e-11 * max(1.0, stored.max() * 1e3)).all()


def test_stored_energy_of_a_wall_is_not_injected():
    """30 N into 2 kN/m and out again return 0.225 J to the hand."""
    hand = forces((0.5, 0.0, -30.0), (0.5, 0.0, -2.0), (0.5, 0.0, -30.0), (0.5, 0.0, 0.0))
    rows, stored = pushed(hand, (Wall(FLOOR, 2000.0, 60.0, MU),), mass(0.5))
    assert stored.max() > 0.2
    assert rows["injected_energy"].max() < 0.02
    assert not (rows["status"] & Status.ENERGY).any()


def test_corner_of_two_walls_holds():
    walls = (Wall(FLOOR, 2000.0, 40.0, MU), Wall(HalfPlane((0.0, 0.0), (1.0, 0.0)), 2000.0, 40.0, MU))
    rows, _ = pushed(forces((3.0, -6.0, -8.0)), walls)
    assert np.abs(rows["command"][-1] - rows["command"][-500]).max() < 1e-9
    x, y = -2000.0 * rows["command"][-1]
    assert rows["normal_force"][-1] == pytest.approx(x + y, rel=1e-6)
    assert abs(6.0 - x) <= MU * y + 1e-6 and abs(8.0 - y) <= MU * x + 1e-6


def test_reference_inside_a_wall_is_moved_out_gently():
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
def test_wall_beside_friction_of_the_plane_injects_almost_nothing(element, shape):
    t = np.arange(3000)[:, None] * T
    hand = 14.0 * np.sin(2.0 * np.pi * np.array([0.7, 1.1]) * t + np.array([0.0, 1.0]))
    rows, stored = pushed(hand, (Wall(shape, 2000.0, 40.0, MU),), element)
    assert stored.max() > 1e-3
    assert rows["injected_energy"].max() < 5e-3
    assert np.isfinite(rows["command"]).all()


def test_envelope_limits_the_speed_at_a_wall():
    spec = make_spec(Causality.ADMITTANCE, max_speed=0.1, max_acceleration=5.0)
    hand = forces((0.5, 0.0, 20.0), (1.5, 0.0, -20.0))
    rows, _ = pushed(hand, (Wall(FLOOR, 1e6, 100.0, MU),), spec=spec)
    v = np.diff(rows["command"], axis=0) / T
    assert np.hypot(*v.T).max() <= 0.1 * (1.0 + 1e-9)
    assert np.hypot(*np.diff(v, axis=0).T).max() / T <= 5.0 * (1.0 + 1e-6)
    assert rows["normal_force"][-1] == pytest.approx(20.0, rel=1e-2)
    assert Wall(FLOOR).depth(rows["command"]).max() < 1e-4
