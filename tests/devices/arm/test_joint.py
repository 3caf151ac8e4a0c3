"""Drives of the joints, the simulated arm in a hand, and the arm built from settings."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.arm.body import KINDS, ArmBody
from devices.arm.flatness.laws import LostMotion, RampBacklash, SmoothBacklash
from devices.arm.mechanics.drive import DRIVE, Drive, Motor, encoder_angle
from devices.arm.mechanics.dynamics import FiveBarLinks, TwoLinks
from devices.arm.mechanics.linkage import PlacedLinkage
from devices.arm.mechanics.plant import PLANT, Surface, new_plant, step_plant
from devices.common.linkage import FiveBar
from haptics import Asymmetric, Coulomb, CoulombViscous, Stribeck
from haptics.errors import ConfigurationError
from haptics.jit import kernel
from haptics.settings import build
from tests.devices.arm.servo_rig import smooth_friction

FLOATING = TwoLinks(gravity=0.0)


@kernel
def run_plant(plant, drives, commands, results):
    """Simulate the arm `plant[0]` under motor torques, (n, 2) [N m], into `results`, (n,) of the same dtype."""
    workspace = np.zeros(4)
    for k in range(len(commands)):
        step_plant(plant[0], drives, commands[k], workspace)
        results[k] = plant[0]


class Rig:
    """An arm with its drives; `rows` of a run are its states, one after each step."""

    def __init__(self, drive, links=FLOATING, start=(0.4, 0.9), step=1e-4, placed=None):
        self.links = links
        self.plant = np.zeros(1, PLANT)
        self.drives = new_plant(self.plant, links, (drive, drive), Surface(), start, placed=placed)
        self.plant["step"] = step

    def run(self, commands, count=0):
        """Step through `commands`, (n, 2), or `count` times with the same one."""
        inputs = np.array(commands, dtype=np.float64)
        if inputs.ndim == 1:
            inputs = np.tile(inputs, (count, 1))
        rows = np.zeros(len(inputs), PLANT)
        run_plant(self.plant, self.drives, inputs, rows)
        return rows

    def inertia(self):
        """Return H of the links in the present pose, without rotors."""
        return np.asarray(self.links.terms(self.plant["angle"][0])["inertia"][0])


SPEEDS = st.floats(-2.0, 2.0)
PAIRS = st.tuples(SPEEDS, SPEEDS)
WALKS = {
    "stribeck": (Stribeck(5.0, 6.0, 0.05, 0.5), None),
    "asymmetric": (Asymmetric(3.0, 7.0, 1.0, viscosity=0.2), None),
    "a law for each direction": (Stribeck(4.0, 5.0, 0.1, 0.3), CoulombViscous(8.0, 0.7)),
    "smooth": (smooth_friction(5.0, 0.4, 50.0), None),
}


# --- friction and impacts ---------------------------------------------------------------------------------------------


def level(laws, speed):
    """Friction [N m] of a pair of laws at a speed other than 0."""
    law = laws[1] if speed < 0.0 and laws[1] is not None else laws[0]
    return float(law((speed, 0.0))[0])


def holds(laws, torque):
    """Whether friction can be `torque` at rest."""
    forward, backward = laws[0], laws[1] or laws[0]
    if isinstance(forward, Asymmetric):
        return -forward.backward_force - 1e-12 <= torque <= forward.forward_force + 1e-12
    return -backward.breakaway_force - 1e-12 <= torque <= forward.breakaway_force + 1e-12


@settings(max_examples=15)
@given(st.sampled_from(sorted(WALKS)), PAIRS, PAIRS, st.tuples(st.floats(-30.0, 30.0), st.floats(-30.0, 30.0)))
def test_both_joints_satisfy_friction_laws_and_motion_equations(name, angles, speeds, torques):
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
    "plastic impact": {"coupling": "impact", "backlash": 1e-3, "restitution": 0.0},
    "impact": {"coupling": "impact", "backlash": 1e-3, "restitution": 0.4},
    "elastic impact": {"coupling": "impact", "backlash": 1e-3, "restitution": 1.0},
    "smooth gear": {"coupling": "elastic", "damping": 2.0, "gear": SmoothBacklash(2e4, 5e-4, 2.0)},
    "ramp gear": {"coupling": "elastic", "damping": 2.0, "gear": RampBacklash(2e4, 5e-4, 100.0)},
    "lost motion": {"coupling": "elastic", "damping": 2.0, "gear": LostMotion(2e4, 4e3, 2e-4, 3e-4)},
}


@pytest.mark.parametrize("name", COUPLED)
@settings(max_examples=15)
@given(
    st.sampled_from((0.01, 1.0, 100.0)),
    PAIRS,
    PAIRS,
    st.tuples(st.floats(-30.0, 30.0), st.floats(-30.0, 30.0)),
    st.sampled_from((-1.0, 0.0, 1.0)),
    st.sampled_from((0.0, -1e3, 1e3)),
)
def test_rotor_coupling_and_joint_satisfy_all_laws(name, inertia, speeds, rotor_speeds, torques, side, guess):
    """With rotors much lighter and much heavier than the links, friction on both sides of the coupling."""
    own, shaft = (Stribeck(4.0, 5.0, 0.1, 0.3), None), (CoulombViscous(3.0, 0.5), None)
    drive = Drive(Motor(inertia, friction=shaft[0]), friction=own[0], **COUPLED[name])
    rig = Rig(drive, links=TwoLinks(), start=(0.4, 0.9), step=1e-3)
    rig.plant["speed"], rig.plant["rotor_speed"] = 0.02 * np.array(speeds), 0.02 * np.array(rotor_speeds)
    rig.plant["rotor"] = rig.plant["angle"] + 0.5001e-3 * side
    rig.plant["load"] = guess  # from which the solver begins
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
    ahead = old["rotor"] - old["angle"] + 1e-3 * w
    if "gear" in COUPLED[name]:
        assert row["load"] == pytest.approx(COUPLED[name]["gear"].torque(ahead) + 2.0 * w, abs=1e-6)
    elif name == "elastic":
        torque = 3e4 * np.array([ahead - 0.5e-3, ahead + 0.5e-3]) + 20.0 * w
        assert row["load"] == pytest.approx(np.maximum(torque[0], 0.0) + np.minimum(torque[1], 0.0), abs=1e-8)
    elif side == 0.0:
        assert (row["load"] == 0.0).all()
    else:
        approach = np.maximum(side * before, 0.0)
        late = side * w + COUPLED[name]["restitution"] * approach  # slower from the end than Newton's law asks for
        assert (late <= 1e-12).all() and (side * row["load"] >= 0.0).all()
        assert late * row["load"] == pytest.approx(np.zeros(2), abs=1e-9)


def test_sticking_joint_does_not_move():
    rig = Rig(Drive(friction=Coulomb(50.0)), links=TwoLinks(), start=(1.3, 1.3))
    rows = rig.run((6.0, -4.0), 2000)
    assert (rows["angle"] == (1.3, 1.3)).all()
    assert (rows["speed"] == 0.0).all() and (rows["sticking"] == 1).all()
    weight = rig.links.terms((1.3, 1.3))["gravity"][0]
    assert rows["friction"][-1] == pytest.approx(np.array((6.0, -4.0)) - weight, rel=1e-12)


def test_friction_on_the_shaft_is_multiplied_by_the_reduction():
    """A shaft that holds 0.2 N m behind a reduction of 50 holds 10 N m at the joint, and slides 50 times as fast."""
    drive = Drive(Motor(1e-4, friction=CoulombViscous(0.2, 1e-4)), ratio=50.0)
    same = Drive(Motor(0.25, friction=CoulombViscous(10.0, 0.25)))
    for push in (9.9, 12.0):
        rows, other = (Rig(d).run((push / d.ratio, 0.0), 500) for d in (drive, same))
        assert rows["angle"] == pytest.approx(other["angle"], rel=1e-12)
        assert rows["rotor_friction"] == pytest.approx(other["rotor_friction"], rel=1e-9, abs=1e-9)
        assert (rows["speed"][-1, 0] == 0.0) == (push < 10.0)


# --- motors and encoders ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("encoder", "ratio", "expected"), [("joint", 50, 0.1), ("motor", 50, 0.102), ("motor", 1, 0.1)]
)
def test_encoder_measures_its_side_of_the_gear(encoder, ratio, expected):
    row = np.zeros(1, DRIVE)
    Drive(ratio=ratio, encoder=encoder, resolution=0.1).fill(row[0])
    seen = encoder_angle(row.view(np.recarray)[0], 0.13, 0.1021)  # of the joint, of the rotor seen there
    assert seen == pytest.approx(expected, abs=1e-12)


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
def test_invalid_drives_are_rejected(values, message):
    with pytest.raises(ConfigurationError, match=message):
        Drive(**values)
    with pytest.raises(ConfigurationError, match=r"motor\.inertia = 0\.0"):
        Motor(0.0)


# --- the arm in a hand ------------------------------------------------------------------------------------------------


BARS = FiveBarLinks(
    FiveBar(0.3, 0.4, 0.45, 0.32, 0.15), (1.0, 0.6, 0.7, 1.1), inertias=(0.01, 0.008, 0.009, 0.012), gravity=0.0
)
SERIAL = TwoLinks(0.4, 0.35, 2.0, 1.5, 0.5, 0.5, 0.03, 0.02, 0.05, 0.05, gravity=0.0)
PARALLEL = TwoLinks(0.4, 0.35, 2.0, 1.5, 0.5, 0.4, 0.03, 0.02, 0.05, 0.05, gravity=0.0, absolute=True)
LINKS = {"serial": SERIAL, "parallel": PARALLEL, "five-bar": BARS}
every_linkage = pytest.mark.parametrize("links", LINKS.values(), ids=LINKS)

FORCES = st.tuples(st.floats(-20.0, 20.0), st.floats(-20.0, 20.0)).map(np.array)


def held(links, step=1e-4):
    """Return an arm placed in its workspace whose base is turned, with motors that do not resist."""
    placed = PlacedLinkage(links.linkage, (0.05, 0.45), rotation=0.7)
    return Rig(Drive(Motor(1e-9)), links=links, start=placed.home, step=step, placed=placed), placed


@every_linkage
@given(FORCES)
@settings(max_examples=5)
def test_hand_force_accelerates_the_apparent_inertia(links, force):
    """From rest the end effector gains J H^-1 J^T F T, in the axes of the device whichever way the base is turned."""
    rig, placed = held(links)
    home = np.array(placed.home)
    jacobian = placed.jacobians([home])[0]
    expected = jacobian @ np.linalg.solve(links.terms(home)["inertia"][0], jacobian.T @ force) * 1e-4
    rig.plant["hand_force"] = force
    speed = rig.run((0.0, 0.0), 1)[0]["speed"]
    np.testing.assert_allclose(jacobian @ speed, expected, rtol=1e-6, atol=1e-12)


@every_linkage
def test_work_of_the_hand_equals_the_kinetic_energy(links):
    """Without friction and weight, along a path of several centimetres; the error shrinks with the step."""
    errors = []
    for step in (2e-4, 1e-4, 5e-5):
        (rig, placed), work = held(links, step), 0.0
        for k in range(8):
            rig.plant["hand_force"] = force = 12.0 * np.array([math.cos(0.9 * k), math.sin(1.7 * k)])
            before = rig.plant["angle"].copy()
            rows = rig.run((0.0, 0.0), round(0.02 / step))
            way = placed.positions(rows["angle"][-1:]) - placed.positions(before)
            work += float(way[0] @ force)
        speed = rig.plant["speed"][0]
        energy = 0.5 * speed @ rig.inertia() @ speed
        assert energy > 0.01
        errors.append(abs(work - energy))
    assert errors[2] < 0.03 * energy
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.3)
    assert errors[1] / errors[2] == pytest.approx(2.0, rel=0.3)


# --- the arm built from settings --------------------------------------------------------------------------------------


CORNERS = [(x, y) for x in (-0.2, 0.0, 0.2) for y in (-0.15, 0.0, 0.15)]
kinds = st.sampled_from(KINDS)


def push(body, force, steps=500):
    """Return the plant after `steps` from rest under a force on the end effector [N]."""
    plant = np.zeros(1, PLANT)
    drives = body.new_plant(plant, (0.0, 0.0), 2e-4)
    plant["hand_force"] = force
    run_plant(plant, drives, np.zeros((steps, 2)), np.zeros(steps, PLANT))
    return plant


def place_of(body, plant):
    return body.linkage.positions(plant["angle"])[0]


@pytest.mark.parametrize("kind", KINDS)
def test_default_arm_reaches_the_default_workspace_and_no_larger_one(kind):
    body = ArmBody(kind=kind)
    body.linkage.require_workspace((-0.2, -0.15), (0.2, 0.15))
    for place in CORNERS:
        np.testing.assert_allclose(body.linkage.positions([body.angles(*place)])[0], place, atol=1e-12)
    with pytest.raises(ConfigurationError, match="workspace"):
        body.linkage.require_workspace((-0.7, -0.15), (0.7, 0.15))


@given(st.floats(0.1, 5.0), st.floats(0.1, 5.0), st.floats(0.1, 1.0))
def test_outer_link_inertia_includes_the_handle(rod, handle, length):
    body = ArmBody(outer_mass=rod, handle_mass=handle, outer_length=length)
    found = body.links.terms((0.3, 1.7))["inertia"][0, 1, 1]
    assert found == pytest.approx(length**2 * (rod / 3.0 + handle))


@given(kinds, st.sampled_from(CORNERS))
def test_apparent_mass_at_the_handle_is_positive_definite(kind, place):
    body = ArmBody(kind=kind)
    alone, together = body.mass_at(*place, rotors=False), body.mass_at(*place)
    assert 0.3 < np.linalg.eigvalsh(alone)[0]  # at least the handle
    assert np.linalg.eigvalsh(together - alone)[0] > 0.0
    heavier = ArmBody(kind=kind, handle_mass=1.3).mass_at(*place, rotors=False)
    np.testing.assert_allclose(heavier - alone, np.eye(2), atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_free_arm_accelerates_by_its_apparent_mass(kind):
    body = ArmBody(kind=kind, coupling="rigid", kinetic_friction=0.0, static_friction=0.0, viscosity=0.0)
    force, steps = np.array((3.0, -2.0)), 50
    plant = push(body, force, steps)
    time = steps * 2e-4
    expected = np.linalg.solve(body.mass_at(0.0, 0.0), force) * 0.5 * time**2
    np.testing.assert_allclose(place_of(body, plant), expected, rtol=0.03)


@pytest.mark.parametrize("kind", KINDS)
def test_joints_hold_up_to_their_friction_for_every_coupling(kind):
    for coupling in ("gear", "spring", "impact", "rigid"):
        body = ArmBody(kind=kind, coupling=coupling, asymmetry=0.0)
        lever = np.abs(body.linkage.jacobians([body.linkage.home])[0].T @ (1.0, 0.0)).max()
        weak, strong = 0.95 * 11.0 / lever, 1.1 * 11.0 / lever
        held = push(body, (weak, 0.0))
        np.testing.assert_array_equal(held["angle"][0], body.linkage.home)
        rotors = 0.0 if coupling != "rigid" else 1.0
        slips = push(body, (strong + rotors, 0.0))
        assert np.hypot(*place_of(body, slips)) > 1e-6


def test_friction_differs_with_the_direction():
    body = ArmBody(asymmetry=0.2)
    forward, backward = body.drives[0].friction, body.drives[0].backward_friction
    assert (forward.kinetic_force, backward.kinetic_force) == pytest.approx((12.0, 8.0))


@given(st.floats(-1.0, 1.0).filter(lambda speed: abs(speed) > 0.02), st.floats(0.5, 2.0))
def test_model_friction_matches_the_true_friction_of_a_moving_joint(speed, part):
    body = ArmBody(model_friction=part)
    drive = body.drives[0]
    law = drive.friction if speed > 0.0 else drive.backward_friction
    level = law.kinetic_force + (law.static_force - law.kinetic_force) * math.exp(-abs(speed) / 0.03)
    true = math.copysign(level, speed) + 3.0 * speed
    believed = body.model_joints[0].friction(speed)
    assert believed == pytest.approx(part * true, abs=0.3 * part)


def test_model_errors_scale_the_model_parameters():
    body = ArmBody(model_inertia=1.5, model_stiffness=0.5)
    true = body.links.terms((0.2, 1.5))["inertia"]
    np.testing.assert_allclose(body.model_links.terms((0.2, 1.5))["inertia"], 1.5 * true)
    joint = body.model_joints[0]
    assert joint.motor_inertia == pytest.approx(1.5 * 6e-5)
    assert joint.stiffness.stiffness == pytest.approx(1.5e4)


@given(st.sampled_from(("gear", "spring")), st.floats(-50.0, 50.0))
def test_model_twist_matches_the_true_twist_under_load(coupling, torque):
    body = ArmBody(coupling=coupling)
    true = body.drives[0].twist(torque)
    assert body.model_joints[0].stiffness.twist(torque) == pytest.approx(true, abs=1.1e-4)


def test_encoder_setting_selects_side_and_resolution():
    assert ArmBody().resolution == pytest.approx(math.tau / 8192 / 100)
    assert ArmBody(encoder="both", joint_counts=3600).resolution == pytest.approx(math.tau / 3600)
    assert ArmBody(encoder="joint").drives[0].encoder == "joint"


def test_rotation_turns_the_arm_and_not_the_device_axes():
    body = ArmBody(rotation=90.0, gravity=5.0)
    np.testing.assert_allclose(body.linkage.positions([body.angles(0.1, 0.05)])[0], (0.1, 0.05), atol=1e-12)
    plant = push(body, (0.0, 0.0), 0)
    inner, outer = (angle + math.pi / 2.0 for angle in body.linkage.home)
    weight = 5.0 * 0.4 * np.array(((1.0 + 1.3) * math.cos(inner), (0.5 + 0.3) * math.cos(outer)))
    np.testing.assert_allclose(plant["load"][0], weight, rtol=1e-12)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"kind": "scara"}, r"device\.arm\.kind = 'scara': must be one of parallel-link, serial, five-bar"),
        ({"elbow": 0}, r"device\.arm\.elbow = 0: must be 1 \(left\) or -1 \(right\)"),
        ({"reduction": 0.0}, r"device\.arm\.reduction = 0\.0: .*greater than 0"),
        ({"static_friction": 5.0}, r"static_friction = 5\.0: must be at least device\.arm\.kinetic_friction = 10 N m"),
        ({"encoder_counts": 10.5}, r"encoder_counts = 10\.5: must be a whole number"),
        ({"friction": 3.0}, r"unknown setting 'device\.arm\.friction'.*kinetic_friction"),
    ],
)
def test_invalid_settings_are_rejected(table, message):
    with pytest.raises(ConfigurationError, match=message):
        build(ArmBody, table, "device.arm")
