"""What a motor controller with a position loop of its own is told: reference, motor angle and torque."""

import dataclasses

import numpy as np
import pytest

from devices.arm.flatness.friction import SmoothCoulomb
from devices.arm.flatness.joint import feed_forward
from devices.arm.flatness.stiffness import SmoothBacklash
from devices.arm.servo.references import MotorReferences
from devices.arm.servo.settings import ServoSettings
from haptics.errors import ConfigurationError
from tests.devices.arm.servo_rig import JOINT, LINKS, START, TICK, strokes

HANGING = dataclasses.replace(LINKS, gravity=9.81)


def told(law, joint=JOINT, commands=None, hand=(0.0, 0.0), **settings):
    """Return motion (n, 2, 5) and what the motors are told, three times (n, 2), for the `commands` of a stroke."""
    references = MotorReferences(ServoSettings(law=law, **settings), HANGING, (joint, joint), TICK)
    references.start(START)
    motion, answers = [], []
    for command in strokes(1.0) if commands is None else commands:
        answers.append([np.array(part) for part in references.step(command, hand)])
        motion.append(references.motion)
    return np.array(motion), *np.array(answers).swapaxes(0, 1)


def needed(motion):
    """Return what the links need for a motion, (n, 2) [N m], without friction: H q'' + C q' + G."""
    terms = HANGING.terms(motion[..., 0], motion[..., 1])
    inert = np.einsum("nij,nj->ni", terms["inertia"], motion[..., 2])
    return inert + np.einsum("nij,nj->ni", terms["coriolis"], motion[..., 1]) + terms["gravity"]


def test_rigid_torques_are_inverse_dynamics_friction_and_rotor():
    motion, angles, speeds, torques = told("rigid")
    rotor = JOINT.motor_inertia * JOINT.gear_ratio**2
    expected = needed(motion) + JOINT.friction(motion[..., 1]) + rotor * motion[..., 2]
    np.testing.assert_allclose(torques, expected, atol=1e-10)
    np.testing.assert_allclose(angles, motion[..., 0], rtol=1e-15)
    np.testing.assert_allclose(speeds, motion[..., 1], rtol=1e-15)


def test_flatness_asks_the_motors_for_the_twist_of_the_gears():
    motion, angles, _speeds, _torques = told("flatness")
    gear = needed(motion) + JOINT.friction(motion[..., 1])
    np.testing.assert_allclose(angles - motion[..., 0], JOINT.stiffness.twist(gear), atol=1e-12)


def test_speeds_asked_of_the_motors_are_the_rates_of_their_angles():
    """Of friction less steep at rest, or ticks would be too far apart to tell; the weight is held for constant."""
    joint = dataclasses.replace(JOINT, friction=SmoothCoulomb(10.0, 3.0, 5.0))
    _motion, angles, speeds, _torques = told("flatness", joint)
    np.testing.assert_allclose(np.gradient(angles, TICK, axis=0)[5:-5], speeds[5:-5], atol=0.01 * abs(speeds).max())


def test_flatness_torque_is_the_feed_forward_of_each_joint():
    motion, _angles, _speeds, torques = told("flatness")
    terms = HANGING.terms(motion[..., 0], motion[..., 1])
    inertia = terms["inertia"]
    for i in range(2):
        own, other = motion[:, i], motion[:, 1 - i]
        load = needed(motion)[:, i] - inertia[:, i, i] * own[:, 2]
        rates = {"load_rate": inertia[:, 0, 1] * other[:, 3], "load_acceleration": inertia[:, 0, 1] * other[:, 4]}
        wanted = feed_forward(JOINT, own, inertia[:, i, i], load, **rates)
        np.testing.assert_allclose(torques[:, i], wanted.torque * JOINT.gear_ratio, rtol=1e-9, atol=1e-9)


def test_pid_holds_the_weight_or_nothing():
    motion, angles, _speeds, torques = told("pid")
    np.testing.assert_allclose(torques, HANGING.terms(motion[..., 0])["gravity"], rtol=1e-12)
    np.testing.assert_allclose(angles, strokes(1.0), rtol=1e-15)
    assert not told("pid", holds_weight=False)[3].any()


@pytest.mark.parametrize("law", ["pid", "flatness", "rigid"])
def test_a_known_hand_bears_its_part(law):
    still, hand = np.tile(START, (2000, 1)), np.array([1.5, -2.0])
    without, known = told(law, commands=still, hand=hand)[3], told(law, commands=still, hand=hand, knows_hand=True)[3]
    np.testing.assert_allclose(known[-1] - without[-1], -hand, rtol=1e-9)


def test_without_a_smooth_reference_speeds_are_those_of_the_commands():
    references = MotorReferences(ServoSettings(holds_weight=False), LINKS, (JOINT, JOINT), 1e-3)
    references.start((0.5, 1.0))
    for command, expected in (((0.501, 1.0), (1.0, 0.0)), ((0.503, 0.999), (2.0, -1.0)), ((0.503, 0.999), (0.0, 0.0))):
        np.testing.assert_allclose(references.step(command)[1], expected, atol=1e-9)


@pytest.mark.parametrize("filtered", [1.0, 30.0, 1000.0])
def test_what_is_known_of_a_hand_comes_up_to_it_and_never_beyond(filtered):
    settings = ServoSettings(holds_weight=False, knows_hand=True, hand_filter=filtered)
    references = MotorReferences(settings, LINKS, (JOINT, JOINT), 1e-3)
    references.start(START)
    known = -np.array([references.step(START, (2.0, -3.0))[2] for _ in range(3000)]) / (2.0, -3.0)
    assert (np.diff(known, axis=0) >= -1e-12).all()
    np.testing.assert_allclose(known[-1], 1.0, rtol=1e-6)
    half = np.argmax(known[:, 0] > 0.5) * 1e-3
    assert half <= 1.68 / (2.0 * np.pi * filtered) + 2e-3, "two equal poles"


def test_a_known_hand_that_changes_twists_the_gears_at_a_rate():
    """The links stand still and carry the hand alone: the motors turn as the gears twist under it."""
    stiffness, rotor = 3e4, JOINT.motor_inertia * JOINT.gear_ratio**2
    joint = dataclasses.replace(JOINT, stiffness=SmoothBacklash(stiffness, 0.0), friction=SmoothCoulomb(0.0, 0.0, 1.0))
    references = MotorReferences(ServoSettings(law="flatness", knows_hand=True), LINKS, (joint, joint), TICK)
    references.start(START)
    phase = 2.0 * np.pi * 5.0 * TICK * np.arange(200)
    hands = np.column_stack((2.0 * np.sin(phase), -3.0 * np.sin(2.0 * phase)))
    angles, speeds, torques = np.array([references.step(START, hand) for hand in hands]).swapaxes(0, 1)
    moved = np.vstack((np.zeros((2, 2)), angles - START))
    rates = np.diff(moved, axis=0) / TICK
    assert abs(speeds).max() > 1e-3
    np.testing.assert_allclose(speeds, rates[1:], atol=1e-11)
    np.testing.assert_allclose(torques, stiffness * moved[2:] + rotor * np.diff(rates, axis=0) / TICK, atol=1e-7)


@pytest.mark.parametrize("law", ["linearising", "fractional"])
def test_laws_that_are_torques_have_no_references(law):
    with pytest.raises(ConfigurationError, match=f"servo.law = '{law}': must be one of pid, flatness, rigid"):
        MotorReferences(ServoSettings(law=law), LINKS, (JOINT, JOINT), TICK)
