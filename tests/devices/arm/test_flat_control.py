"""Servo laws of an elastic joint on its two masses: what each is worth when the model is right, and when it is not."""

import dataclasses
import math

import numpy as np
import pytest

from devices.arm.flatness.control import FeedForwardServo, LinearisingServo
from devices.arm.flatness.control_kernels import prepare, servo_torque
from devices.arm.flatness.friction import SmoothCoulomb
from devices.arm.flatness.joint import MOTION, ElasticJoint, feed_forward
from devices.arm.flatness.joint_kernels import FLAT
from devices.arm.flatness.reference import point_to_point
from devices.arm.flatness.simulation import Circumstances, simulate_joint
from devices.arm.flatness.stiffness import LostMotion, RampBacklash, SmoothBacklash
from haptics.errors import ConfigurationError

JOINT_1 = ElasticJoint(SmoothCoulomb(200.0, 800.0, 500.0), SmoothBacklash(8.4225e6, 0.3e-3, 0.02), 1798 / 7, 0.0138)
INERTIA, PERIOD = 2500.0, 2e-5
HELD = Circumstances(hold=round(0.8e-3 / PERIOD))
ALONE, RIGID = FeedForwardServo("elastic", "none"), FeedForwardServo("rigid", "none")


def run(law, joint=JOINT_1, circumstances=None, model=None, degrees=20.0, load=0.0):
    """Simulate a turn of the link in 2 s, and half a second of rest after it."""
    motion = point_to_point(np.arange(0.0, 2.5 + PERIOD / 4, PERIOD / 2), 0.0, math.radians(degrees), 2.0)
    return simulate_joint(joint, law, motion, INERTIA, PERIOD, load, model=model, circumstances=circumstances)


def worst(result):
    """Return the largest error [deg]."""
    return math.degrees(abs(result.error).max())


def oscillation(result):
    """Return the torque in the gearbox beyond what the motion asks for, peak to peak [N m]."""
    return np.ptp(result.gear_torque - result.reference_gear_torque)


def test_elastic_feed_forward_follows_exactly_and_does_not_excite_the_gearbox():
    result = run(ALONE)
    assert worst(result) < 2e-6
    assert oscillation(result) < 0.3


def test_nothing_but_rounding_is_left_of_the_error_while_the_reference_is_smooth():
    """There and back again without a rest between: the fourth derivative does not jump where they meet."""
    time = np.arange(0.0, 2.0 + PERIOD / 2, PERIOD)
    there = point_to_point(time, 0.0, 0.35, 2.0)
    back = point_to_point(time, 0.35, 0.0, 2.0)
    result = simulate_joint(JOINT_1, ALONE, np.vstack((there, back[1:])), INERTIA, 2 * PERIOD)
    assert abs(result.error).max() < 1e-12


def test_rigid_feed_forward_is_off_and_excites_the_gearbox():
    result = run(RIGID)
    assert 0.03 < worst(result) < 0.3
    assert 1000.0 < oscillation(result) < 2500.0


@pytest.mark.parametrize("ratio", [0.9, 1.1])
@pytest.mark.parametrize("law", [ALONE, RIGID])
def test_wrong_inertia_ruins_both_alike(law, ratio):
    assert 1.0 < worst(run(law, circumstances=Circumstances(inertia_ratio=ratio))) < 2.0


def test_any_stiffness_law_is_followed_if_it_is_the_joint_s_own():
    joint = dataclasses.replace(JOINT_1, stiffness=RampBacklash(8.4225e6, 0.3e-3, 3e5))
    assert worst(run(ALONE, joint)) < 2e-6
    assert worst(run(ALONE, joint, model=JOINT_1)) > 1e-3  # (11) is not the inverse of (9)


def test_model_based_feedback_leaves_the_feed_forward_alone_and_conventional_feedback_does_not():
    alone, model_based = run(ALONE, circumstances=HELD), run(FeedForwardServo(), circumstances=HELD)
    conventional = run(FeedForwardServo(feedback="conventional"), circumstances=HELD)
    rigid = run(FeedForwardServo("rigid", "conventional"), circumstances=HELD)
    assert worst(alone) < 0.02
    assert worst(model_based) < 1.5 * worst(alone)
    assert 1.5 * worst(alone) < worst(conventional) < worst(rigid) < 0.06


def test_feedback_holds_against_a_disturbance():
    """Static error of a proportional law: D/(u^2 K_P K_V), and the twist that the model does not foresee."""
    disturbed = Circumstances(disturbance=-200.0)
    result = run(FeedForwardServo(position_gain=200.0), circumstances=disturbed, degrees=0.0, load=500.0)
    expected = 200.0 / (JOINT_1.gear_ratio**2 * 200.0 * 0.015)
    assert 10.0 * math.degrees(expected) == pytest.approx(0.58, abs=0.005)
    assert result.error[-1] == pytest.approx(expected, rel=0.1)


def test_exact_linearisation_forgets_an_error_like_its_four_poles():
    motion = np.zeros((20001, 5))
    motion[1:, 0] = 0.01  # the joint begins at 0
    result = simulate_joint(JOINT_1, LinearisingServo("elastic", 20.0), motion, INERTIA, 1e-4, 900.0)
    bt = 20.0 * result.time
    expected = 0.01 * np.exp(-bt) * (1.0 + bt + bt**2 / 2.0 + bt**3 / 6.0)
    np.testing.assert_allclose(result.error[1:], expected[1:], atol=2e-6)


def test_exact_linearisation_follows_exactly():
    assert worst(run(LinearisingServo("elastic", 20.0))) < 1e-6


def test_rigid_linearisation_is_for_rigid_joints():
    stiff = dataclasses.replace(JOINT_1, stiffness=SmoothBacklash(1e9, 0.0))
    assert worst(run(LinearisingServo("rigid", 2.0), stiff)) < 1e-3
    assert worst(run(LinearisingServo("rigid", 5.0))) > 10.0


def test_joint_keeps_still_where_its_load_is_held():
    result = run(ALONE, degrees=0.0, load=1500.0)
    np.testing.assert_allclose(result.position, 0.0, atol=1e-14)
    np.testing.assert_allclose(result.motor_torque, 1500.0 / JOINT_1.gear_ratio, rtol=1e-12)


def torque_of(law: FeedForwardServo, joint: ElasticJoint, motion, inertia: float, load: float, *measured: float):
    """Motor torque in one tick."""
    control, row = law.record(joint), np.zeros(1, FLAT)
    for name, value in zip(MOTION, motion, strict=True):
        row[name] = value
    row["inertia"], row["load"] = inertia, load
    prepare(control[0], row[0])
    return servo_torque(control[0], row[0], *measured)


def test_a_tick_is_feed_forward_and_feedback():
    other = ElasticJoint(SmoothCoulomb(150.0, 500.0, 300.0), SmoothBacklash(8.9e6, 0.3e-3, 0.015), 1872 / 7, 0.0177)
    for joint, motion, inertia, load, measured in (
        (JOINT_1, (0.1, 0.2, 0.3, 0.4, 0.5), 2500.0, 100.0, (0.099, 0.19, 25.0, 50.0)),
        (other, (0.2, -0.1, 0.5, 0.1, 0.0), 1700.0, -50.0, (0.21, -0.11, 55.0, -29.0)),
    ):
        ours = feed_forward(joint, np.array([motion]), inertia, load)
        velocity = joint.gear_ratio * 20.0 * (motion[0] - measured[0]) + ours.velocity[0] - measured[3]
        torque = torque_of(FeedForwardServo(), joint, motion, inertia, load, *measured)
        assert torque == pytest.approx(ours.torque[0] + 0.015 * velocity, rel=1e-12)


def test_servo_law_without_feed_forward_is_the_feedback_alone():
    law = FeedForwardServo("none", "conventional")
    torque = torque_of(law, JOINT_1, (0.1, 0.2, 0.0, 0.0, 0.0), 2500.0, 100.0, 0.1, 0.0, 0.0, 0.0)
    assert torque == pytest.approx(0.015 * JOINT_1.gear_ratio * 0.2)


def test_wrong_servo_is_named():
    with pytest.raises(
        ConfigurationError, match=r"servo\.feed_forward = 'flat': must be one of elastic, none|none, el"
    ):
        FeedForwardServo("flat")
    with pytest.raises(ConfigurationError, match=r"servo\.bandwidth = 0\.0: .*greater than 0 rad/s"):
        LinearisingServo("elastic", 0.0)
    with pytest.raises(ConfigurationError, match=r"servo\.feedback = 'model-based': with feed_forward = 'rigid' must"):
        FeedForwardServo("rigid")
    broken = dataclasses.replace(JOINT_1, stiffness=LostMotion(8e6, 8e5, 1.5e-4, 1.5e-4))
    with pytest.raises(ConfigurationError, match="no motor can follow it"):
        FeedForwardServo("none", "model-based").record(broken)
    with pytest.raises(ConfigurationError, match="no motor can follow it"):
        LinearisingServo().record(broken)


def test_joint_that_no_feed_forward_can_follow_still_has_its_feedback():
    broken = dataclasses.replace(JOINT_1, stiffness=LostMotion(8e6, 8e5, 1.5e-4, 1.5e-4))
    for fed in ("none", "rigid"):
        result = run(FeedForwardServo(fed, "conventional"), broken)
        assert np.isfinite(result.error).all()


def test_wrong_simulation_is_named():
    with pytest.raises(ConfigurationError, match="motion has 4 rows: must be odd"):
        simulate_joint(JOINT_1, ALONE, np.zeros((4, 5)), 1.0, 1e-3)
    with pytest.raises(ConfigurationError, match=r"period = 0\.0: must be greater than 0 s"):
        simulate_joint(JOINT_1, ALONE, np.zeros((3, 5)), 1.0, 0.0)
    with pytest.raises(ConfigurationError, match=r"circumstances\.inertia_ratio = 0\.0"):
        Circumstances(inertia_ratio=0.0)
