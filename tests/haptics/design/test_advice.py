"""Suggested couplings and advice on elements and walls, against simulated handles and the documentation."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devices.virtual.arm import VirtualArm
from devices.virtual.joystick import VirtualJoystick
from haptics import Causality, ClosedForm, ConfigurationError, Coulomb, MasslessImpedance, RigidAdmittance
from haptics.design.advice import Severity, advise, advise_walls, suggest, wall_limit
from haptics.design.bounds import corner_factor, corners, mass_limit, settling_time, stiffness_limit
from haptics.design.loops import Coupling, Handle, PositionServo
from haptics.elements.models import InertialImpedance
from haptics.friction.laws import CoulombViscous, Stribeck
from haptics.records import NEUTRAL
from haptics.rendering.rendering import Rendering
from haptics.scenes import find_scene, read_scene
from haptics.scenes.shapes import Circle, HalfPlane, Polygon
from haptics.scenes.walls import Wall
from tests.haptics.design.plants import ExactHandle, decays, held_path
from tests.haptics.doubles import make_spec
from tests.haptics.wall_runs import among

HANDLE = Handle(0.2, 1.0, 0.5e-3, 10e-6)
JOYSTICK = make_spec(mass=0.2, damping=1.0, delay=0.5e-3, position_resolution=10e-6)
ARM = make_spec(Causality.ADMITTANCE, max_force=50.0, servo_frequency=30.0)


def advice_on(element, spec):
    return {advice.bound: advice for advice in advise(element, spec)}


def test_friction_below_that_of_the_device_is_a_warning():
    rough = make_spec(mass=0.2, damping=1.0, delay=0.5e-3, position_resolution=10e-6, least_friction=0.5)
    advice = advice_on(model_c(300.0, force=0.4), rough)["friction"]
    assert (advice.severity, advice.value, advice.limit) == (Severity.WARNING, 0.4, 0.5)
    assert "0.5 N of residual friction" in advice.text
    for level in (0.5, 0.6):
        assert "friction" not in advice_on(model_c(300.0, force=level), rough)


def test_friction_beyond_the_continuous_force_has_a_note_with_the_time_that_remains():
    motors = replace(JOYSTICK, continuous_force=2.0, full_force_time=5.0)
    advice = advice_on(model_c(4500.0), motors)["heat"]
    assert (advice.severity, advice.value, advice.limit) == (Severity.NOTE, 4.0, 2.0)
    # full force, 10 N, lasts 5 s and heats (10/4)^2 times as much
    remaining = 5.0 * math.log(1.0 - 0.9 * 0.25) / math.log(1.0 - 0.9 * 0.04)
    assert f"after {remaining:.3g} s of steady sliding the envelope lowers the force" in advice.text
    assert "heat" not in advice_on(model_c(4500.0, force=2.0), motors) | advice_on(model_c(4500.0), JOYSTICK)


def model_c(stiffness, damping=10.0, force=4.0):
    return MasslessImpedance(Coulomb(force), stiffness, damping)


def test_soft_or_slow_contact_is_a_warning_with_a_suggestion():
    soft = advice_on(model_c(1000.0), JOYSTICK)["presliding"]
    assert (soft.severity, soft.value, soft.limit) == (Severity.WARNING, 4e-3, 1e-3)
    assert "4 mm (F/K) before the contact slides" in soft.text
    assert "choose element.stiffness = 12400 and element.damping = 27.6: 0.323 mm" in soft.text
    assert advice_on(model_c(3000.0), JOYSTICK)["presliding"].severity is Severity.NOTE
    swings = advice_on(model_c(2500.0, damping=2.0), JOYSTICK)["settling"]
    assert swings.severity is Severity.WARNING
    assert swings.value > 0.5
    assert "with the hand off; choose element.stiffness = 12400" in swings.text


@pytest.mark.parametrize(
    ("share", "severity"), [(1.01, Severity.WARNING), (0.99, Severity.NOTE), (0.51, Severity.NOTE)]
)
@pytest.mark.parametrize("cls", [MasslessImpedance, InertialImpedance])
def test_stiffness_is_judged_by_its_limit(share, severity, cls):
    limit = stiffness_limit(HANDLE, 10.0)
    inertia = {"mass": 0.1} if cls is InertialImpedance else {}
    advice = advice_on(cls(law=Coulomb(4.0), stiffness=share * limit, damping=10.0, **inertia), JOYSTICK)["stiffness"]
    assert (advice.severity, advice.limit, advice.value) == (severity, limit, share * limit)
    assert ("lower it" in advice.text) is (severity is Severity.WARNING)


def test_velocity_lag_lowers_the_stiffness_limit():
    smoothed = make_spec(mass=0.2, damping=1.0, delay=0.5e-3, velocity_lag=1e-3)
    assert "stiffness" not in advice_on(model_c(3000.0), JOYSTICK)
    assert advice_on(model_c(3000.0), smoothed)["stiffness"].limit == stiffness_limit(Handle(0.2, 1.0, 1.5e-3), 10.0)


def test_undamped_stiffness_has_the_limit_zero():
    bare = make_spec(mass=0.2)
    advice = advice_on(MasslessImpedance(Coulomb(4.0), 1000.0, 0.0), bare)["stiffness"]
    assert advice.limit == 0.0
    assert "change element.damping" in advice.text


def test_encoder_is_judged_by_half_of_the_friction():
    coarse = make_spec(position_resolution=100e-6, mass=5.0, damping=20.0)
    assert advice_on(model_c(6000.0, force=3.1), coarse)["encoder"].severity is Severity.WARNING
    assert advice_on(model_c(6000.0, force=3.3), coarse)["encoder"].severity is Severity.NOTE
    assert "encoder" not in advice_on(model_c(6000.0, force=6.5), coarse)


STATED = replace(ARM, least_mass=0.7, handle_mass=0.3)


@pytest.mark.parametrize("spec", [ARM, STATED], ids=["computed limit", "stated limit"])
def test_mass_is_judged_by_its_limit(spec):
    servo = PositionServo.of(spec)
    assert servo is not None
    limit = spec.least_mass or mass_limit(servo)
    found = [advice_on(RigidAdmittance(Coulomb(6.0), share * limit), spec) for share in (0.98, 1.02, 1.98, 2.02)]
    severities = [one["mass"].severity if "mass" in one else None for one in found]
    assert severities == [Severity.WARNING, Severity.NOTE, Severity.NOTE, None]
    if spec is STATED:
        assert "shakes below 0.7 kg in a grip of 1000 N/m" in found[0]["mass"].text
        assert "with 0.3 kg of handle beyond its force sensor; raise it" in found[0]["mass"].text


def test_infinite_mass_limit_fits_into_json():
    slow = make_spec(Causality.ADMITTANCE, max_force=50.0, servo_frequency=5.0)
    advice = advice_on(RigidAdmittance(Coulomb(6.0), 2.0), slow)["mass"]
    assert advice.limit == math.inf
    assert "no element.mass" in advice.text
    assert json.loads(json.dumps(advice.as_dict(), allow_nan=False))["limit"] is None


@pytest.mark.filterwarnings("ignore::haptics.errors.AmbiguousLawWarning")
@pytest.mark.parametrize(("velocity", "severity"), [(0.07, Severity.NOTE), (0.05, Severity.WARNING)])
def test_steep_fall_is_judged_by_the_mobility_limit(velocity, severity):
    law = Stribeck(3.0, 4.0, velocity)
    advice = advice_on(MasslessImpedance(law, 6000.0, 10.0), make_spec())["fall"]
    assert (advice.severity, advice.limit) == (severity, law.mobility_limit)
    assert ("raise law.stribeck_velocity above 0.0625 m/s" in advice.text) is (severity is Severity.WARNING)


def test_parameters_with_a_margin_and_unstated_facts_give_no_advice():
    assert advise(model_c(4500.0), JOYSTICK) == []
    assert advise(RigidAdmittance(Coulomb(6.0), 2.0), ARM) == []
    assert advise(model_c(1e6), make_spec()) == []
    assert advise(RigidAdmittance(Coulomb(6.0), 1e-6), make_spec(Causality.ADMITTANCE, max_force=50.0)) == []
    assert advise(model_c(1e6, force=0.0), JOYSTICK) == []


def test_warnings_come_first():
    advice = advise(model_c(1e5, force=3.0), JOYSTICK)
    assert [one.severity for one in advice] == sorted((one.severity for one in advice), reverse=True)
    assert len(advice) == 2
    found = advice_on(model_c(600.0, damping=400.0, force=11.0), JOYSTICK)
    assert found["damping"].severity is found["force"].severity is Severity.WARNING
    assert "stiffness" not in found
    weak = make_spec(Causality.ADMITTANCE, max_force=5.0)
    assert "measure 5 N" in advice_on(RigidAdmittance(Coulomb(6.0), 2.0), weak)["force"].text


@pytest.mark.filterwarnings("ignore::haptics.errors.AmbiguousLawWarning")
@pytest.mark.parametrize(("share", "doubted"), [(1.01, True), (0.99, False)])
@pytest.mark.parametrize("force", [4.0, 0.0])
def test_closed_form_of_a_steep_law_is_a_warning(share, doubted, force):
    """Condition (48), with a tenth as small; the exact law is solved at any slope."""
    limit = 0.1 * (10.0 + 3.0)  # of B + T K
    law = CoulombViscous(force, share * limit)
    closed = advice_on(MasslessImpedance(ClosedForm(law), 3000.0, 10.0), JOYSTICK)
    assert ("approximation" in closed) is doubted
    assert "approximation" not in advice_on(MasslessImpedance(law, 3000.0, 10.0), JOYSTICK)
    if doubted:
        advice = closed["approximation"]
        assert advice.severity is Severity.WARNING and "condition 48" in advice.text
        assert advice.value == pytest.approx(share * advice.limit)


# --- suggestions


HANDLES = [HANDLE, Handle(0.2, 0.0, 2e-3, 100e-6), Handle(0.05, 0.0, 0.0, 20e-6), Handle(1.5, 4.0, 1.3e-3)]


def kicked(handle, stiffness, damping, ticks):
    """Return the positions of a handle that is kicked in a contact that sticks."""
    element = MasslessImpedance(Coulomb(1e9), stiffness, damping)
    return held_path(handle, lambda velocity: float(element.step((velocity, 0.0))[0]), 1e-3, ticks)


@pytest.mark.parametrize("handle", HANDLES)
@pytest.mark.parametrize("times", [(1.0, 1.0), (1.99, 1.0), (1.99, 1.99)])
def test_suggestion_holds_the_handle_with_its_margin(handle, times):
    found = suggest(handle, force=4.0)
    assert decays(kicked(handle, times[0] * found.stiffness, times[1] * found.damping, 800))


@pytest.mark.parametrize("handle", HANDLES)
def test_suggestion_does_not_slip_behind_the_encoder(handle):
    force = 4.0
    suggestion = suggest(handle, force)
    element = MasslessImpedance(Coulomb(force), suggestion.stiffness, suggestion.damping)
    plant, q, last, drift = ExactHandle(handle, velocity=0.0), handle.resolution, 0.0, 0.0
    for tick in range(3000):
        seen = round(plant.position / q) * q if q else plant.position
        friction = float(element.step(((seen - last) / 1e-3, 0.0))[0])
        drift += float(element.velocity[0]) * 1e-3
        last = seen
        push = 0.75 * force * min(tick / 1000.0, 1.0) + 0.01 * force * math.sin(0.06 * tick)
        plant.command(friction - push)
        plant.advance(1e-3)
    assert drift == 0.0


@pytest.mark.parametrize("handle", HANDLES)
def test_kick_decays_within_the_settling_time(handle):
    """An exactly integrated handle: 2 % of its slowest motion are left then, and clearly more at half of that time."""
    found = suggest(handle, force=4.0)
    ticks = math.ceil(found.settling / 1e-3) + 20
    path = np.abs(kicked(handle, found.stiffness, found.damping, ticks))
    assert path[-20:].max() < 0.06 * path.max()
    assert path[ticks // 3 : 2 * ticks // 3].max() > 0.06 * path.max()


def test_unstable_contact_never_settles():
    assert settling_time(HANDLE, Coupling(1.1 * stiffness_limit(HANDLE, 10.0), 10.0)) == math.inf


def test_suggestion_states_a_reason_for_every_bound():
    reasons = suggest(HANDLE, 4.0).reasons
    assert [reason.partition(":")[0] for reason in reasons] == ["stability", "encoder", "settling", "presliding"]
    *_, slow, soft = suggest(Handle(0.25, 1.5, 9e-3, 128e-6), 1.0).reasons
    assert "no coupling" in slow and "rubber" in soft


@pytest.mark.parametrize(
    ("handle", "force", "margin", "message"),
    [
        (HANDLE, 0.0, 2.0, r"force = 0\.0: must be a finite number greater than 0 N\."),
        (HANDLE, 4.0, 1.0, r"margin = 1\.0: must be a finite number greater than 1\."),
        (Handle(0.2, resolution=1e-3), 1e-9, 2.0, "too small for an encoder of 0.001 m"),
    ],
)
def test_impossible_suggestion_is_refused(handle, force, margin, message):
    with pytest.raises(ConfigurationError, match=message):
        suggest(handle, force, margin=margin)


# --- walls


T = 1e-3
PRESSED = ((0.0, 0.0, 0.0), (0.5, 5.0, 0.0), (1.0, 5.0, 0.0), (1.005, 6.0, 0.0), (1.01, 5.0, 0.0))
"""A hand that leans on the wall with 5 N and, after a second, gives it a knock."""
WALL = HalfPlane((0.0, 0.0), (-1.0, 0.0))


def swing(wall, element, delay, *others):
    """Return by how much the bare handle still swings three seconds after the knock, peak to peak [m]."""
    settings: dict[str, Any] = {"mass": 0.2, "damping": 0.0, "delay": delay, "resolution": 0.0}
    hand = {"name": "scripted-force", "script": PRESSED}
    plant = VirtualJoystick({**settings, "velocity_estimator": "difference", "hand": hand})
    rendering = Rendering(among(element, (wall, *others)), replace(plant.spec, fade_in=0.0))
    row, places = NEUTRAL.copy(), np.zeros(4000)
    with plant:
        for tick in range(len(places)):
            plant.write(rendering.tick(plant.read(), 0.0, row, 0, (tick, tick * T, 0.0, 0)))
            places[tick] = plant.handle[0]
    return float(np.ptp(places[-200:]))


@pytest.mark.parametrize(("delay", "friction"), [(0.0, 0.0), (1e-3, 0.0), (2e-3, 0.0), (2e-3, 20.0)])
def test_wall_rings_only_above_its_limit(delay, friction):
    """A sticking contact lowers the limit: the element alone is stable, and so is the wall; together they ring."""
    element, handle = MasslessImpedance(Coulomb(friction), 3000.0, 5.0), Handle(mass=0.2, delay=delay)
    limit = wall_limit(handle, 10.0, T, Coupling(3000.0, 5.0, T) if friction else None)
    if friction:
        assert 0.0 < 1.25 * limit < stiffness_limit(handle, 10.0, T)
    assert swing(Wall(WALL, 0.8 * limit, 10.0, 0.0), element, delay) < 2e-6
    assert swing(Wall(WALL, 1.25 * limit, 10.0, 0.0), element, delay) > 5e-5


def test_wall_advice_has_a_margin():
    spec, element = VirtualJoystick().spec, MasslessImpedance(Coulomb(4.0), 6000.0, 10.0)
    handle = Handle.of(spec)
    assert handle is not None
    limit = wall_limit(handle, 10.0, T, Coupling(6000.0, 10.0, T))
    assert advise_walls((), element, spec) == []
    assert advise_walls((Wall(WALL, 0.4 * limit),), element, spec) == []
    smooth = replace(spec, position_resolution=None)
    (note,) = advise_walls((Wall(WALL, 0.4 * limit), Wall(WALL, 0.7 * limit)), element, smooth)
    assert note.severity is Severity.NOTE and note.value == pytest.approx(0.7 * limit)
    warning, flicker = advise_walls((Wall(WALL, 1.5 * limit),), element, spec)
    assert warning.severity is Severity.WARNING and warning.limit == pytest.approx(limit)
    assert "wall.stiffness" in warning.text and "lower it" in warning.text
    assert flicker.severity is Severity.NOTE and flicker.value == pytest.approx(1.5 * limit * 1e-5)


def test_arm_takes_any_wall():
    assert advise_walls((Wall(WALL, 1e7),), RigidAdmittance(Coulomb(4.0), 2.0), VirtualArm().spec) == []


# --- corners of walls


ANGLE = math.radians(60.0)
"""Between the normals; the bisector is the x axis, along which the hand of `swing` leans."""
MASS = 0.2
SLIPPERY = MasslessImpedance(Coulomb(0.0), 6000.0, 10.0)


def wedge(stiffness, damping, friction):
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
def test_corner_rings_only_above_its_limit(parts, damping, friction):
    def pair(scale):
        return wedge((scale * parts[0], scale * parts[1]), damping, friction)

    limit = 1000.0 * corner_factor(Handle(mass=MASS, delay=1e-3), pair(1000.0), math.cos(ANGLE), T)
    assert limit > 100.0
    one, other = pair(0.8 * limit)
    assert swing(one, SLIPPERY, 1e-3, other) < 2e-6
    one, other = pair(1.25 * limit)
    assert swing(one, SLIPPERY, 1e-3, other) > 5e-5


def test_springs_and_dampers_add_up_in_a_corner():
    handle = Handle(mass=MASS, delay=1e-3)
    smooth = corner_factor(handle, wedge((1000.0, 1000.0), (20.0, 20.0), 0.0), math.cos(ANGLE), T)
    assert 1500.0 * smooth == pytest.approx(wall_limit(handle, 30.0, T), rel=1e-3)
    held = corner_factor(handle, wedge((1000.0, 500.0), (20.0, 10.0), 0.4), math.cos(ANGLE), T)
    assert 1500.0 * held == pytest.approx(wall_limit(handle, 30.0, T), rel=1e-3)
    coupling = Coupling(2000.0, 5.0, T)
    both = corner_factor(handle, wedge((1000.0, 500.0), (20.0, 10.0), 0.4), math.cos(ANGLE), T, coupling)
    assert 1500.0 * both == pytest.approx(wall_limit(handle, 30.0, T, coupling), rel=1e-3)
    right = corner_factor(handle, wedge((1000.0, 1000.0), (20.0, 20.0), 0.0), 0.0, T)
    assert 1000.0 * right == pytest.approx(wall_limit(handle, 20.0, T), rel=1e-3), "each for itself"


def met(*walls):
    return [abs(cosine) for _, cosine in corners(walls, (-0.06, -0.045), (0.06, 0.045))]


def test_corners_of_meeting_surfaces_are_found():
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


def test_corners_of_the_shipped_box_need_no_advice():
    spec, walls = VirtualJoystick().spec, read_scene(find_scene("box")).walls
    assert len(corners(tuple(walls), spec.workspace_min, spec.workspace_max)) == 4
    assert [advice.bound for advice in advise_walls(walls, SLIPPERY, spec)] == []


def test_ringing_corner_is_a_warning():
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


# --- tables of docs/choosing_parameters.md


PAGE = (Path(__file__).parents[3] / "docs" / "choosing_parameters.md").read_text(encoding="utf-8")


def table(first):
    """Return the rows of the table whose heading begins with `first`, cells as text."""
    lines = PAGE[PAGE.index(f"| {first}") :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("row", table("m [kg]"))
def test_table_of_stiffnesses_is_up_to_date(row):
    mass, damping, *cells = map(float, row)
    for delay, cell in zip((0.0, 0.5e-3, 1e-3, 2e-3, 4e-3, 8e-3), cells, strict=True):
        assert f"{stiffness_limit(Handle(mass, damping, delay), 10.0) / 1e3:.1f}" == f"{cell:.1f}"


@pytest.mark.parametrize("row", table("natural frequency"))
def test_table_of_masses_is_up_to_date(row):
    for grip, cell in zip(((400.0, 8.0), (1000.0, 20.0), (1500.0, 20.0)), row[1:], strict=True):
        limit = mass_limit(PositionServo(float(row[0]), grip_stiffness=grip[0], grip_damping=grip[1]))
        assert cell == ("none" if math.isinf(limit) else f"{limit:.3f}")
