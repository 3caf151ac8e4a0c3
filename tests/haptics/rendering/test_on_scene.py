"""Elements on scenes: what a border does to the force, that nothing is driven, and what is refused."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from haptics import Coulomb, Stribeck
from haptics.device import Causality
from haptics.elements.tables import element_class
from haptics.errors import ConfigurationError
from haptics.rendering.on_scene import OnScene
from haptics.rendering.programs import parameters_of
from haptics.scenes import Circle, HalfPlane, Region, Scene, Texture, read_scene
from tests.haptics.scenery import (
    cross,
    dissipated,
    element_of,
    moved,
    pulled,
    rendering_of,
    steps_at_the_border,
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
def test_across_a_border_the_force_changes_as_fast_as_the_border_says_and_nothing_is_driven(
    model: str, speed: float, back: bool
) -> None:
    """Between 1 N and 6 N, by at most dF v T / border and 1 %; of B and C at the speed of the hand."""
    program = OnScene(element_of(model, ONE_AND_SIX.law), ONE_AND_SIX)
    speed = -speed if back else speed
    rows = cross(program, speed, 0.012 + 0.2 * abs(speed))
    assert {0, 1} <= set(rows["region"].tolist())
    friction, output = steps_at_the_border(program, rows, speed)
    assert friction <= 1.01
    assert output <= 1.01
    force = np.abs(rows["friction_force"][:, 0])
    assert force.max() == pytest.approx(6.0, rel=1e-6)
    assert dissipated(program.element, rows).min() >= -1e-12


@pytest.mark.parametrize("stiffness", [800.0, 20000.0])
@given(mass=st.floats(0.01, 0.5), damping=st.floats(0.5, 20.0), speed=st.floats(0.01, 0.3))
@settings(max_examples=5)
def test_the_room_for_the_ringing_of_model_b_is_enough(
    stiffness: float, mass: float, damping: float, speed: float
) -> None:
    program = OnScene(element_of("B", ONE_AND_SIX.law, mass=mass, damping=damping, stiffness=stiffness), ONE_AND_SIX)
    rows = cross(program, -speed, 0.02 + 2.0 * program.surface.border + 0.3 * speed)
    friction, output = steps_at_the_border(program, rows, -speed)
    assert friction <= 1.01
    assert output <= 1.01


@given(stiffness=st.floats(500.0, 50000.0), damping=st.floats(0.1, 50.0), speed=st.floats(0.01, 0.3))
@settings(max_examples=5)
def test_in_front_of_any_spring_the_border_of_model_c_is_wide_enough(
    stiffness: float, damping: float, speed: float
) -> None:
    program = OnScene(element_of("C", ONE_AND_SIX.law, stiffness=stiffness, damping=damping), ONE_AND_SIX)
    rows = cross(program, -speed, 0.01 + 6.0 / stiffness + 2.0 * program.surface.border + 0.1 * speed)
    assert max(steps_at_the_border(program, rows, -speed)) <= 1.01
    assert dissipated(program.element, rows).min() >= -1e-12


@pytest.mark.parametrize("model", "ABCD")
@given(seed=st.integers(0, 1000), speed=st.floats(0.02, 0.5))
@settings(max_examples=5)
def test_whatever_the_hand_does_on_a_rough_scene_the_element_never_gives_power(
    model: str, seed: int, speed: float
) -> None:
    """Textures much finer than borders should be: the level jumps, and yet heat is all that comes out."""
    program = OnScene(element_of(model, ROUGH.law), ROUGH)
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
    assert (heat - at_the_contact).min() >= -1e-12  # what is more than friction, spring and damper have taken
    assert np.ptp(np.hypot(*rows["friction_force"].T)) > 0.5


def test_without_a_scene_there_is_no_region_and_on_a_uniform_one_nothing_else_changes() -> None:
    law = Stribeck(2.0, 3.0, 0.1)
    path = np.cumsum(np.random.default_rng(1).normal(0.0, 2e-4, (3000, 2)), axis=0)
    element = element_of("C", law)
    plain = moved(element, path)
    same = Scene(law, (Region("all the same", Circle((0.0, 0.0), 0.01), law),))
    on_scene = moved(OnScene(element, same), path)
    assert set(plain["region"].tolist()) == {-1}
    assert {0, 1} == set(on_scene["region"].tolist())
    for name in ("friction_force", "command", "proxy", "displacement", "injected_energy"):
        assert (plain[name] == on_scene[name]).all(), name


def test_a_scene_put_in_force_in_mid_run_eases_and_one_taken_away_leaves_no_region() -> None:
    law = Coulomb(1.0)
    element = element_of("C", law)
    on_scene = OnScene(element, Scene(law, (Region("6 N", Circle((0.0, 0.0), 1.0), Coulomb(6.0)),)))
    rendering = rendering_of(element)
    rendering.core["fade_in"] = 0.1
    path = np.stack((0.05 * 1e-3 * np.arange(3000), np.zeros(3000)), axis=1)
    rows = moved(element, path)
    parts = [rendering.again(rows[:1000])]
    rendering.configure(parameters_of(on_scene), 1)
    parts.append(rendering.again(rows[1000:2000]))
    rendering.configure(parameters_of(element), 2)
    parts.append(rendering.again(rows[2000:]))
    assert [set(part["region"].tolist()) for part in parts] == [{-1}, {1}, {-1}]
    force = np.concatenate([part["command"][:, 0] for part in parts])
    assert force[[999, 1999, 2999]] == pytest.approx([-1.0, -6.0, -1.0])
    assert np.abs(np.diff(force[150:])).max() < 5.0 * math.pi / 2 / 100 * 1.3  # over a tenth of a second


def test_after_a_bad_sample_the_place_is_that_of_the_next_good_one() -> None:
    program = OnScene(element_of("C", ONE_AND_SIX.law), ONE_AND_SIX)
    path = np.stack((np.linspace(-0.02, -0.015, 400), np.zeros(400)), axis=1)
    rows = moved(program, path)
    rows["position"][200] = np.nan
    rows["position"][201:, 0] += 0.04
    again = rendering_of(program).again(rows)
    assert again["region"][199] == 0 and again["region"][201] == 1


def test_it_travels_to_another_process_and_means_the_same() -> None:
    program = OnScene(element_of("B", ROUGH.law), ROUGH)
    path = np.cumsum(np.random.default_rng(1).normal(0.0, 2e-4, (500, 2)), axis=0)
    other = pickle.loads(pickle.dumps(program))
    assert moved(other, path).tobytes() == moved(program, path).tobytes()


def test_what_cannot_be_put_on_a_scene_is_refused() -> None:
    scene = Scene(Coulomb(2.0))
    with pytest.raises(ConfigurationError, match="model dahl: cannot be put on a scene; use one of A, B, C, D"):
        OnScene(element_class("dahl", Causality.IMPEDANCE)(law=scene.law, period=1e-3), scene)
    with pytest.raises(ConfigurationError, match="is that of its background"):
        OnScene(element_of("C", Coulomb(1.0)), scene)
    steep = Scene(Stribeck(1.0, 1.0, 0.1), (Region("grit", Circle((0.0, 0.0), 0.01), Stribeck(1.0, 6.0, 0.1)),))
    with pytest.raises(ConfigurationError, match="condition 15"):
        OnScene(element_of("C", steep.law), steep)
    assert OnScene(element_of("A", steep.law), steep).model == "A"
    gentle = replace(steep, regions=())
    assert OnScene(element_of("C", gentle.law), gentle).causality is Causality.IMPEDANCE
