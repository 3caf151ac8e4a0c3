"""What a person says of an arm, and what is made of it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.arm.body import KINDS, ArmBody
from devices.arm.mechanics.plant import PLANT, step_plant
from haptics.errors import ConfigurationError
from haptics.jit import kernel
from haptics.settings import build

CORNERS = [(x, y) for x in (-0.2, 0.0, 0.2) for y in (-0.15, 0.0, 0.15)]
kinds = st.sampled_from(KINDS)


@kernel
def _run(plant, drives, torques, scratch, steps):
    for _ in range(steps):
        step_plant(plant[0], drives, torques, scratch)


def at_rest(body, place=(0.0, 0.0), step=2e-4):
    plant = np.zeros(1, PLANT)
    return plant, body.new_plant(plant, place, step)


def push(body, force, steps=500, torques=(0.0, 0.0), place=(0.0, 0.0)):
    """Return the plant after `steps` under a force on the end effector [N]."""
    plant, drives = at_rest(body, place)
    plant["hand_force"] = force
    _run(plant, drives, np.array(torques), np.zeros(4), steps)
    return plant


def place_of(body, plant):
    return body.linkage.positions(plant["angle"])[0]


@pytest.mark.parametrize("kind", KINDS)
def test_the_defaults_of_every_kind_reach_the_default_workspace(kind):
    body = ArmBody(kind=kind)
    body.require_workspace((-0.2, -0.15), (0.2, 0.15))
    for place in CORNERS:
        np.testing.assert_allclose(body.linkage.positions([body.angles(*place)])[0], place, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_workspace_out_of_reach_is_refused(kind):
    with pytest.raises(ConfigurationError, match="workspace"):
        ArmBody(kind=kind).require_workspace((-0.7, -0.15), (0.7, 0.15))


@given(st.floats(0.1, 5.0), st.floats(0.1, 5.0), st.floats(0.1, 1.0))
def test_an_outer_link_turns_like_a_rod_with_a_mass_at_its_end(rod, handle, length):
    body = ArmBody(outer_mass=rod, handle_mass=handle, outer_length=length)
    found = body.links.terms((0.3, 1.7))["inertia"][0, 1, 1]
    assert found == pytest.approx(length**2 * (rod / 3.0 + handle))


@given(kinds, st.sampled_from(CORNERS))
def test_what_is_felt_at_the_handle_is_a_mass(kind, place):
    body = ArmBody(kind=kind)
    alone, together = body.mass_at(*place, rotors=False), body.mass_at(*place)
    assert 0.3 < np.linalg.eigvalsh(alone)[0]  # at least the handle
    assert np.linalg.eigvalsh(together - alone)[0] > 0.0
    heavier = ArmBody(kind=kind, handle_mass=1.3).mass_at(*place, rotors=False)
    np.testing.assert_allclose(heavier - alone, np.eye(2), atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_free_arm_gives_way_to_a_force_as_its_mass_says(kind):
    body = ArmBody(kind=kind, coupling="rigid", kinetic_friction=0.0, static_friction=0.0, viscosity=0.0)
    force, steps = np.array((3.0, -2.0)), 50
    plant = push(body, force, steps)
    time = steps * 2e-4
    expected = np.linalg.solve(body.mass_at(0.0, 0.0), force) * 0.5 * time**2
    np.testing.assert_allclose(place_of(body, plant), expected, rtol=0.03)


@pytest.mark.parametrize("kind", KINDS)
def test_joints_hold_up_to_their_friction_whatever_the_coupling(kind):
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


def test_friction_that_is_not_there_costs_nothing():
    assert not ArmBody(kinetic_friction=0.0, static_friction=0.0, viscosity=0.0).drives[0].rubs


@given(st.floats(-1.0, 1.0).filter(lambda speed: abs(speed) > 0.02), st.floats(0.5, 2.0))
def test_the_control_believes_in_the_true_friction_where_a_joint_moves(speed, part):
    body = ArmBody(model_friction=part)
    drive = body.drives[0]
    law = drive.friction if speed > 0.0 else drive.backward_friction
    level = law.kinetic_force + (law.static_force - law.kinetic_force) * math.exp(-abs(speed) / 0.03)
    true = math.copysign(level, speed) + 3.0 * speed
    believed = body.model_joints[0].friction(speed)
    assert believed == pytest.approx(part * true, abs=0.3 * part)


def test_the_control_may_be_told_wrong():
    body = ArmBody(model_inertia=1.5, model_stiffness=0.5)
    true = body.links.terms((0.2, 1.5))["inertia"]
    np.testing.assert_allclose(body.model_links.terms((0.2, 1.5))["inertia"], 1.5 * true)
    joint = body.model_joints[0]
    assert joint.motor_inertia == pytest.approx(1.5 * 6e-5)
    assert joint.stiffness.stiffness == pytest.approx(1.5e4)


@given(st.sampled_from(("gear", "spring")), st.floats(-50.0, 50.0))
def test_the_control_believes_in_the_true_twist_of_a_gear_under_load(coupling, torque):
    body = ArmBody(coupling=coupling)
    true = body.drives[0].twist(torque)
    assert body.model_joints[0].stiffness.twist(torque) == pytest.approx(true, abs=1.1e-4)


def test_the_believed_twist_of_a_gear_is_the_true_one():
    body = ArmBody()
    torques = np.linspace(-40.0, 40.0, 9)
    true = [body.drives[0].twist(torque) for torque in torques]
    np.testing.assert_allclose(body.model_joints[0].stiffness.twist(torques), true, rtol=1e-12)


def test_encoders_are_where_they_are_said_to_be():
    assert ArmBody().resolution == pytest.approx(math.tau / 8192 / 100)
    assert ArmBody(encoder="both", joint_counts=3600).resolution == pytest.approx(math.tau / 3600)
    assert ArmBody(encoder="joint").drives[0].encoder == "joint"


def test_a_turned_base_turns_the_arm_and_not_the_device():
    body = ArmBody(rotation=90.0, gravity=5.0)
    np.testing.assert_allclose(body.linkage.positions([body.angles(0.1, 0.05)])[0], (0.1, 0.05), atol=1e-12)
    plant, _ = at_rest(body)
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
def test_wrong_settings_are_named(table, message):
    with pytest.raises(ConfigurationError, match=message):
        build(ArmBody, table, "device.arm")
