"""The drive of a joint: friction that holds, gaps that collide, springs, reductions, motors, encoders."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.arm.flatness.stiffness import LostMotion, RampBacklash, SmoothBacklash, Stiffness
from devices.arm.mechanics.drive_friction import kind_of, sides
from devices.arm.mechanics.drive_kernels import gear_chain
from devices.arm.mechanics.dynamics import TwoLinks
from devices.arm.mechanics.joint import Drive, Motor, smooth_friction
from devices.arm.mechanics.joint_kernels import DRIVE, collide, encoder_angle
from devices.arm.mechanics.surface import Surface
from haptics import Asymmetric, Coulomb, CoulombViscous, Law, Stribeck
from haptics.errors import ConfigurationError
from tests.devices.arm.rigs import FLOATING, Rig

SPEEDS = st.floats(-2.0, 2.0)
INERTIAS = st.floats(0.05, 20.0)
PAIRS = st.tuples(SPEEDS, SPEEDS)
WALKS: dict[str, tuple[Law, Law | None]] = {
    "stribeck": (Stribeck(5.0, 6.0, 0.05, 0.5), None),
    "asymmetric": (Asymmetric(3.0, 7.0, 1.0, viscosity=0.2), None),
    "a law for each direction": (Stribeck(4.0, 5.0, 0.1, 0.3), CoulombViscous(8.0, 0.7)),
    "smooth": (smooth_friction(5.0, 0.4, 50.0), None),
}


# --- impacts --------------------------------------------------------------------------------------------------------


@given(INERTIAS, INERTIAS, st.floats(0.0, 1.0), SPEEDS, SPEEDS)
def test_impacts_keep_the_momentum_and_turn_the_relative_speed_round(
    joint: float, rotor: float, restitution: float, w: float, wm: float
) -> None:
    after, after_m = collide(joint, rotor, restitution, w, wm)
    assert joint * after + rotor * after_m == pytest.approx(joint * w + rotor * wm, abs=1e-12)
    assert after - after_m == pytest.approx(-restitution * (w - wm), abs=1e-12)


@given(st.sampled_from((0, 1)), st.floats(0.0, 1.0), st.floats(0.1, 5.0), st.sampled_from((-1.0, 1.0)))
def test_a_rotor_that_meets_its_joint_collides_with_what_the_whole_arm_puts_against_it(
    i: int, restitution: float, inertia: float, side: float
) -> None:
    rig = Rig(Drive(Motor(inertia), coupling="impact", backlash=1e-3, restitution=restitution))
    rig.plant["rotor"][0, i] += side * 0.6e-3
    rig.plant["rotor_speed"][0, i] = side * 0.3
    before = rig.inertia()
    own = 1.0 / np.linalg.inv(before)[i, i]
    joint, rotor = collide(own, inertia, restitution, 0.0, side * 0.3)
    row = rig.run((0.0, 0.0), 1)[0]
    assert row["rotor_speed"][i] == pytest.approx(rotor, rel=1e-12, abs=1e-15)
    assert row["speed"][i] == pytest.approx(joint, rel=1e-12)
    impulse = np.zeros(2)
    impulse[i] = inertia * (side * 0.3 - rotor)
    assert before @ row["speed"] == pytest.approx(impulse, abs=1e-13)


def test_a_rotor_bounces_in_its_gap_until_it_rests_at_the_end_to_which_it_is_driven() -> None:
    rig = Rig(Drive(coupling="impact", backlash=2e-3, restitution=0.5), step=1e-5)
    rows = rig.run((2.0, 0.0), 20_000)
    ahead = rows["rotor"] - rows["angle"]
    apart = rows["rotor_speed"][:, 0] - rows["speed"][:, 0]
    assert np.abs(ahead).max() < 1.001e-3 + 1e-5 * np.abs(apart).max()
    hits = np.flatnonzero((apart[1:] < -1e-3) & (apart[:-1] > 1e-3))
    assert len(hits) >= 4
    assert -apart[hits + 1] / apart[hits] == pytest.approx(np.full(len(hits), 0.5), rel=0.02)
    assert ahead[-1000:, 0] == pytest.approx(np.full(1000, 1e-3), abs=1e-6)
    assert np.abs(apart[-1000:]).max() < 1e-15
    own = 1.0 / np.linalg.inv(rig.inertia())[0, 0]
    assert rows["load"][-1, 0] == pytest.approx(2.0 * own / (own + 1.0), rel=1e-2)


# --- friction -------------------------------------------------------------------------------------------------------


def level(laws: tuple[Law, Law | None], speed: float) -> float:
    """Friction [N m] of a pair of laws at a speed other than 0."""
    law = laws[1] if speed < 0.0 and laws[1] is not None else laws[0]
    return float(law((speed, 0.0))[0])


def holds(laws: tuple[Law, Law | None], torque: float) -> bool:
    """Whether friction can be `torque` at rest."""
    forward, backward = laws[0], laws[1] or laws[0]
    if isinstance(forward, Asymmetric):
        return -forward.backward_force - 1e-12 <= torque <= forward.forward_force + 1e-12
    return -backward.breakaway_force - 1e-12 <= torque <= forward.breakaway_force + 1e-12


@settings(max_examples=15)
@given(st.sampled_from(sorted(WALKS)), PAIRS, PAIRS, st.tuples(st.floats(-30.0, 30.0), st.floats(-30.0, 30.0)))
def test_both_joints_obey_their_laws_and_newton_at_once(
    name: str, angles: tuple[float, float], speeds: tuple[float, float], torques: tuple[float, float]
) -> None:
    laws = WALKS[name]
    drive = Drive(Motor(0.5), friction=laws[0], backward_friction=laws[1])
    rig = Rig(drive, links=TwoLinks(), start=angles, step=1e-3)
    rig.plant["speed"] = 0.01 * np.array(speeds)
    w = rig.plant["speed"][0].copy()
    terms = rig.links.terms(rig.plant["angle"][0], w)[0]
    row = rig.run(torques, 1)[0]
    for f, v in zip(row["friction"], row["speed"], strict=True):
        assert holds(laws, f) if v == 0.0 else f == pytest.approx(level(laws, v), rel=1e-9, abs=1e-9)
    push = np.array(torques) - terms["coriolis"] @ w - terms["gravity"] - row["friction"]
    change = (terms["inertia"] + 0.5 * np.eye(2)) @ (row["speed"] - w)
    assert change == pytest.approx(1e-3 * push, abs=1e-10)


COUPLED = {
    "elastic": {"coupling": "elastic", "stiffness": 3e4, "damping": 20.0, "backlash": 1e-3},
    "impact": {"coupling": "impact", "backlash": 1e-3, "restitution": 0.4},
}


@settings(max_examples=15)
@given(
    st.sampled_from(sorted(COUPLED)),
    st.sampled_from((0.01, 1.0, 100.0)),
    PAIRS,
    PAIRS,
    st.tuples(st.floats(-30.0, 30.0), st.floats(-30.0, 30.0)),
    st.sampled_from((-1.0, 0.0, 1.0)),
)
def test_rotor_coupling_and_joint_obey_all_their_laws_at_once(
    name: str,
    inertia: float,
    speeds: tuple[float, float],
    rotor_speeds: tuple[float, float],
    torques: tuple[float, float],
    side: float,
) -> None:
    """With rotors much lighter and much heavier than the links, friction on both sides of the coupling."""
    own, shaft = (Stribeck(4.0, 5.0, 0.1, 0.3), None), (CoulombViscous(3.0, 0.5), None)
    drive = Drive(Motor(inertia, friction=shaft[0]), friction=own[0], **COUPLED[name])
    rig = Rig(drive, links=TwoLinks(), start=(0.4, 0.9), step=1e-3)
    rig.plant["speed"], rig.plant["rotor_speed"] = 0.02 * np.array(speeds), 0.02 * np.array(rotor_speeds)
    rig.plant["rotor"] = rig.plant["angle"] + 0.5001e-3 * side
    old = rig.plant[0].copy()
    row = rig.run(torques, 1)[0]
    terms = rig.links.terms(old["angle"], old["speed"])[0]
    push = row["load"] - row["friction"] - terms["coriolis"] @ old["speed"] - terms["gravity"]
    assert terms["inertia"] @ (row["speed"] - old["speed"]) == pytest.approx(1e-3 * push, abs=1e-10)
    push = np.array(torques) - row["load"] - row["rotor_friction"]
    assert inertia * (row["rotor_speed"] - old["rotor_speed"]) == pytest.approx(1e-3 * push, abs=1e-10)
    for which, laws in (("", own), ("rotor_", shaft)):
        for f, v in zip(row[f"{which}friction"], row[f"{which}speed"], strict=True):
            assert holds(laws, f) if v == 0.0 else f == pytest.approx(level(laws, v), rel=1e-9, abs=1e-9)
    w, before = row["rotor_speed"] - row["speed"], old["rotor_speed"] - old["speed"]
    if name == "elastic":
        ahead = old["rotor"] - old["angle"] + 1e-3 * w
        torque = 3e4 * np.array([ahead - 0.5e-3, ahead + 0.5e-3]) + 20.0 * w
        assert row["load"] == pytest.approx(np.maximum(torque[0], 0.0) + np.minimum(torque[1], 0.0), abs=1e-8)
    elif side == 0.0:
        assert (row["load"] == 0.0).all()
    else:
        late = side * w + 0.4 * np.maximum(side * before, 0.0)  # slower away from the end than Newton's law asks for
        assert (late <= 1e-12).all() and (side * row["load"] >= 0.0).all()
        assert late * row["load"] == pytest.approx(np.zeros(2), abs=1e-9)


def test_a_joint_at_rest_stays_exactly_where_it_is() -> None:
    rig = Rig(Drive(friction=Coulomb(50.0)), links=TwoLinks(), start=(1.3, 1.3))
    rows = rig.run((6.0, -4.0), 2000)
    assert (rows["angle"] == (1.3, 1.3)).all()
    assert (rows["speed"] == 0.0).all() and (rows["sticking"] == 1).all()
    weight = rig.links.terms((1.3, 1.3))["gravity"][0]
    assert rows["friction"][-1] == pytest.approx(np.array((6.0, -4.0)) - weight, rel=1e-12)


def test_smooth_friction_creeps_under_any_load() -> None:
    law = smooth_friction(5.0, 0.5, 40.0)
    rig = Rig(Drive(friction=law), step=1e-3)
    speed = rig.run((1.0, 0.0), 3000)["speed"][-1, 0]
    assert speed == pytest.approx(1.0 / (0.5 + 5.0 * 40.0 / 2.0), rel=0.02)
    v = np.array([0.003, 0.1, 1.0])
    assert [float(law((x, 0.0))[0]) for x in v] == pytest.approx(0.5 * v + 10.0 / (1.0 + np.exp(-40.0 * v)) - 5.0)


def test_friction_on_the_shaft_is_multiplied_by_the_reduction() -> None:
    """A shaft that holds 0.2 N m behind a reduction of 50 holds 10 N m at the joint, and slides 50 times as fast."""
    drive = Drive(Motor(1e-4, friction=CoulombViscous(0.2, 1e-4)), ratio=50.0)
    same = Drive(Motor(0.25, friction=CoulombViscous(10.0, 0.25)))
    for push in (9.9, 12.0):
        rows, other = (Rig(d).run((push / d.ratio, 0.0), 500) for d in (drive, same))
        assert rows["angle"] == pytest.approx(other["angle"], rel=1e-12)
        assert rows["rotor_friction"] == pytest.approx(other["rotor_friction"], rel=1e-9, abs=1e-9)
        assert (rows["speed"][-1, 0] == 0.0) == (push < 10.0)


# --- springs --------------------------------------------------------------------------------------------------------


def test_an_elastic_joint_under_gravity_is_twisted_by_its_load() -> None:
    drive = Drive(coupling="elastic", stiffness=1e4, damping=50.0, backlash=2e-3)
    rig = Rig(drive, links=TwoLinks(), start=(1.2, 0.4))
    weight = rig.links.terms((1.2, 0.4))["gravity"][0]
    row = rig.run(weight, 3000)[-1]
    assert row["angle"] == pytest.approx((1.2, 0.4), abs=1e-9)
    assert row["rotor"] - row["angle"] == pytest.approx(weight / 1e4 + 1e-3 * np.sign(weight), abs=1e-9)


GEARS: list[Stiffness] = [
    SmoothBacklash(2e4, 5e-4, 2.0),
    RampBacklash(2e4, 5e-4, 100.0),
    LostMotion(2e4, 4e3, 2e-4, 3e-4),
]


@pytest.mark.parametrize("gear", GEARS)
@pytest.mark.parametrize("friction", [None, Stribeck(3.0, 4.0, 0.05, 0.2)])
def test_a_gearbox_obeys_its_law_at_every_step(gear: Stiffness, friction: Law | None) -> None:
    drive = Drive(Motor(0.3), coupling="elastic", gear=gear, damping=2.0, friction=friction)
    rig = Rig(drive, links=TwoLinks(), start=(1.2, 0.4), step=1e-4)
    commands = rig.links.terms((1.2, 0.4))["gravity"][0] + np.outer(np.sin(np.arange(150) * 0.2), (40.0, 25.0))
    rows = rig.run(commands)
    twist, speed = rows["rotor"] - rows["angle"], rows["rotor_speed"] - rows["speed"]
    assert rows["load"] == pytest.approx(gear.torque(twist) + 2.0 * speed, abs=1e-6)
    assert np.abs(twist).max() > 6e-4


@pytest.mark.parametrize("gear", GEARS)
@given(st.floats(-1e3, 1e3), st.floats(-2e-3, 2e-3), SPEEDS, SPEEDS, st.floats(1e-5, 1e-2), st.floats(1e-5, 1e-2))
def test_torque_of_a_gearbox_is_found_from_wherever_the_search_begins(
    gear: Stiffness, guess: float, e: float, x: float, xm: float, Z: float, Zm: float
) -> None:
    rows, friction = np.zeros(1, DRIVE), Stribeck(3.0, 4.0, 0.05, 0.2)
    Drive(Motor(friction=Coulomb(1.0)), coupling="elastic", gear=gear, damping=2.0, friction=friction).fill(rows[0])
    row = rows.view(np.recarray)[0]
    kind = kind_of(row)
    torque = gear_chain(kind)(row, guess, e, x, Z, xm, Zm, 1e-4)
    own, held, rotor, rotor_held = sides(kind)(row, torque, x, Z, xm, Zm)
    speed = 0.0 if held else x + Z * (torque - own)
    rotor_speed = 0.0 if rotor_held else xm - Zm * (torque + rotor)
    twist = e + 1e-4 * (rotor_speed - speed)
    tolerance = 1e-12 * (abs(torque) + 10.0)
    assert torque - 2.0 * (rotor_speed - speed) == pytest.approx(gear.torque(twist), abs=tolerance)
    assert gear_chain(kind)(row, torque, e, x, Z, xm, Zm, 1e-4) == pytest.approx(torque, abs=tolerance)


@pytest.mark.parametrize("gear", GEARS)
def test_a_gearbox_under_weight_is_twisted_by_its_law(gear: Stiffness) -> None:
    rig = Rig(Drive(coupling="elastic", gear=gear), links=TwoLinks(), start=(1.2, 0.4))
    weight = rig.links.terms((1.2, 0.4))["gravity"][0]
    row = rig.run(weight, 200)[-1]
    assert row["angle"] == pytest.approx((1.2, 0.4), abs=1e-9)
    assert row["rotor"] - row["angle"] == pytest.approx(gear.twist(weight), abs=1e-9)


def test_within_the_gap_nothing_is_transmitted() -> None:
    rig = Rig(Drive(coupling="elastic", stiffness=1e5, backlash=0.02), step=1e-4)
    rows = rig.run((0.5, 0.0), 150)
    inside = rows["rotor"][:, 0] < 0.4 + 0.0099
    assert inside.sum() > 100
    assert (rows["angle"][inside] == (0.4, 0.9)).all()
    assert (rows["load"][inside] == 0.0).all()


def test_rotor_and_joint_swing_at_the_frequency_of_two_masses_on_a_spring() -> None:
    stiffness, inertia = 2e4, 0.7
    drive = Drive(Motor(inertia), coupling="elastic", stiffness=stiffness)
    rig = Rig(drive, Drive(friction=Coulomb(1e6)), step=1e-5)
    rig.plant["rotor"][0, 0] += 1e-3
    twist = (rows := rig.run((0.0, 0.0), 20_000))["rotor"][:, 0] - rows["angle"][:, 0]
    crossings = np.flatnonzero((twist[1:] < 0.0) & (twist[:-1] >= 0.0))
    period = 1e-5 * np.diff(crossings).mean()
    joint = rig.inertia()[0, 0]
    assert 2.0 * np.pi / period == pytest.approx(np.sqrt(stiffness * (1.0 / inertia + 1.0 / joint)), rel=1e-3)


def test_a_very_stiff_joint_is_rigid() -> None:
    push = np.column_stack((np.sin(np.arange(2000) * 0.01), np.cos(np.arange(2000) * 0.013)))
    stiff = Rig(Drive(coupling="elastic", stiffness=1e9, damping=1e4)).run(5.0 * push)
    rigid = Rig(Drive()).run(5.0 * push)
    assert np.abs(stiff["angle"] - rigid["angle"]).max() < 1e-5 * np.ptp(rigid["angle"])


# --- motors, encoders, surface --------------------------------------------------------------------------------------


def test_reduction_multiplies_torque_and_inertia() -> None:
    geared, direct = Rig(Drive(Motor(1e-4), ratio=100.0)), Rig(Drive(Motor(1.0)))
    assert geared.run((0.03, -0.02), 300)["angle"] == pytest.approx(direct.run((3.0, -2.0), 300)["angle"], rel=1e-12)


def test_a_motor_on_a_voltage_runs_up_to_its_back_emf() -> None:
    motor = Motor(1e-3, torque_constant=0.2, back_emf_constant=0.25, resistance=0.5)
    links = TwoLinks(gravity=0.0, mass_1=0.0, mass_2=0.0, joint_inertia_1=0.5, joint_inertia_2=0.5)
    rows = Rig(Drive(motor, ratio=10.0), links=links, step=1e-3).run((12.0, -6.0), 2000)
    assert rows["speed"][-1] == pytest.approx(np.array((12.0, -6.0)) / (0.25 * 10.0), rel=1e-6)
    # The first step: k_t V/R at the shaft, ten times that at the joint, against rotor and joint.
    stall = 10.0 * 0.2 * 12.0 / 0.5
    assert rows["speed"][0, 0] == pytest.approx(1e-3 * stall / (0.5 + 1e-3 * 100.0), rel=0.03)


@pytest.mark.parametrize(
    ("encoder", "ratio", "expected"), [("joint", 50, 0.1), ("motor", 50, 0.102), ("motor", 1, 0.1)]
)
def test_encoders_see_the_side_they_are_on(encoder: str, ratio: float, expected: float) -> None:
    row = np.zeros(1, DRIVE)
    Drive(ratio=ratio, encoder=encoder, resolution=0.1).fill(row[0])
    seen = encoder_angle(row.view(np.recarray)[0], 0.13, 0.1021)  # of the joint, of the rotor seen there
    assert seen == pytest.approx(expected, abs=1e-12)


def test_the_surface_is_a_mass_on_a_spring_and_a_damper() -> None:
    """The force at every step is M x'' + B x' + K x of the motion, whatever moves the arm."""
    step, surface = 1e-5, Surface(mass=2.0, damping=3.0, stiffness=500.0, angle=0.7)
    rows = Rig(Drive(), surface=surface, step=step).run((8.0, -5.0), 5000)
    c, s = np.cos(0.7), np.sin(0.7)
    place = FLOATING.terms(rows["angle"])["position"] @ (s, -c)
    start = float(FLOATING.terms((0.4, 0.9))["position"][0] @ (s, -c))
    x = place - start
    v, a = np.gradient(x, step), np.gradient(np.gradient(x, step), step)
    expected = 2.0 * a + 3.0 * v + 500.0 * x
    assert np.abs(rows["contact_force"] - expected)[5:-5].max() < 2e-3 * np.abs(expected).max()


# --- settings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"coupling": "glue"}, "drive.coupling = 'glue': must be one of rigid, impact, elastic"),
        ({"gear": SmoothBacklash(1e4, 1e-3)}, "drive.gear: is for an elastic coupling"),
        ({"gear": SmoothBacklash(1e4, 1e-3), "coupling": "elastic", "stiffness": 1e4}, "instead of a stiffness"),
        ({"coupling": "elastic"}, "drive.stiffness = 0.0: must be greater than 0"),
        ({"stiffness": 5.0}, "drive.stiffness = 5.0: .* drive.coupling is 'rigid'"),
        ({"backlash": 1e-3}, "a rigid coupling has none"),
        ({"restitution": 1.5}, "drive.restitution = 1.5"),
        ({"ratio": 0.0}, "drive.ratio = 0.0"),
    ],
)
def test_drives_that_cannot_be(values: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Drive(**values)


def test_a_rotor_has_inertia() -> None:
    with pytest.raises(ConfigurationError, match=r"motor\.inertia = 0\.0"):
        Motor(0.0)
