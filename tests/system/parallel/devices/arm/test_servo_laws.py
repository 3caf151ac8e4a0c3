"""Long computations for the topic of tests/devices/arm/test_servo_laws.py."""

from __future__ import annotations

import dataclasses

import pytest

from devices.arm.flatness.friction import SmoothCoulomb
from devices.arm.mechanics.joint import smooth_friction
from devices.arm.servo.gains import TwoMasses, stiffness
from devices.arm.servo.servo import link_inertias
from devices.arm.servo.settings import ServoSettings
from tests.devices.arm.servo_rig import GEAR, JOINT, LINKS, START, ServoRig
from tests.devices.arm.test_servo_laws import following


def test_on_the_joints_it_believes_in_flatness_follows_far_better_than_pid():
    wanted, commanded = following("flatness")
    pid = following("pid")[1]
    assert wanted < 0.02 * pid
    assert commanded < 0.03 * pid


def test_on_dry_friction_with_encoder_steps_and_a_weak_motor_still_by_a_factor_of_ten():
    assert 10.0 * following("flatness", "dry")[1] < following("pid", "dry")[1]


def test_a_rigid_feed_forward_does_not_see_the_twist_of_the_gearbox():
    """Encoders are on the motors: what the gearbox gives way under 10 N m of friction is all error."""
    twist = float(GEAR.twist(10.0))
    assert following("rigid")[1] > 0.5 * twist
    assert following("flatness")[1] < 0.1 * twist


def test_the_faster_the_servo_the_nearer_flatness_comes_to_its_reference():
    slow, fast = following("flatness", period=5e-4)[0], following("flatness", period=1e-4)[0]
    assert fast < 0.35 * slow


def test_model_based_feedback_is_better_than_a_conventional_one():
    assert 2.0 * following("flatness")[0] < following("flatness", feedback="conventional")[0]


FREE = dataclasses.replace(JOINT, friction=SmoothCoulomb(0.0, 20.0, 1.0))
"""Joints that are only slowed: nothing but the servo holds them."""


def give(law, force=(0.0, 60.0), **settings):
    """Return how far the joints give way to a hand in the end, (2,) [rad], and the servo."""
    servo = ServoSettings(law=law, **settings)
    rig = ServoRig(servo, encoders="both", joint=FREE, friction=smooth_friction(0.0, 20.0, 1.0))
    return rig.hold(3.0, force)["angle"][-1] - START, servo


@pytest.mark.parametrize("law", ["pid", "flatness", "fractional", "linearising"])
def test_a_servo_without_integrator_is_as_stiff_as_its_gains_and_its_gearbox(law):
    moved, servo = give(law, integral=0.0)
    loads = LINKS.terms(START)["jacobian"][0].T @ (0.0, 60.0)
    for way, load, inertia in zip(moved, loads, link_inertias(LINKS, START), strict=True):
        held = stiffness(servo, TwoMasses.of(FREE, inertia, servo.period, torque=load, drag=0.0))
        twist = 0.0 if law == "linearising" else float(GEAR.twist(load))  # that one sees the link
        assert way == pytest.approx(load / held + twist, rel=0.03)


def test_the_integrator_takes_the_whole_load_of_a_hand():
    without = abs(give("pid", integral=0.0)[0])
    assert (without > 2e-4).all()
    assert (abs(give("pid")[0]) < 0.01 * without).all()


@pytest.mark.parametrize("law", ["flatness", "linearising"])
def test_a_known_hand_does_not_push_the_joints_away(law):
    unknown = abs(give(law, integral=0.0)[0])
    assert (abs(give(law, integral=0.0, knows_hand=True)[0]) < 0.05 * unknown).all()
