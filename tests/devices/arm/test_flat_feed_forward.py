"""The feed-forward of an elastic joint against 60 digits, the paper's own program, and the equations it inverts."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.arm.flatness.friction import AsymmetricFriction, SmoothCoulomb, SmoothStribeck
from devices.arm.flatness.joint import ElasticJoint, feed_forward
from devices.arm.flatness.reference import point_to_point
from devices.arm.flatness.stiffness import LostMotion, RampBacklash, SmoothBacklash
from haptics.errors import ConfigurationError

from .decimals import exact, inverse, motor, tanh

JOINT_1 = ElasticJoint(SmoothCoulomb(200.0, 800.0, 500.0), SmoothBacklash(8.4225e6, 0.3e-3, 0.02), 1798 / 7, 0.0138)
KNEE, RAMP = JOINT_1.stiffness, RampBacklash(8.4225e6, 0.3e-3, 3e5)
COULOMB, STRIBECK = JOINT_1.friction, SmoothStribeck(150.0, 260.0, 0.05, 800.0, 90.0)
ASYMMETRIC = AsymmetricFriction(29.9, 2024.4, 10.0, -200.5, 264.6, 31572.0)


def smooth_coulomb(w):
    return 800 * w + 400 / (1 + (-500 * w).exp()) - 200


def stribeck(w):
    bell = (-((w / exact(0.05)) ** 2)).exp()
    return (150 + 110 * bell) * tanh(800 * w) + 90 * w


def asymmetric(w):
    return exact(-200.5) + exact(2024.4) * w + exact(29.9) * tanh(10 * w) + exact(264.6) * tanh(31572 * w)


def knee(tau):
    return tau / exact(8.4225e6) + 2 * exact(0.3e-3) / (1 + (exact(-0.02) * tau).exp()) - exact(0.3e-3)


def ramp_torque(x):
    c, phi, r = exact(8.4225e6), exact(0.3e-3), abs(x)
    decay = (-3 * r / phi).exp()
    return (c * (r - phi + decay * (phi + 2 * r + 3 * r * r / (2 * phi)))).copy_sign(x) + 300000 * x


def ramp(tau):
    return inverse(ramp_torque, tau, float(RAMP.twist(float(tau))))


LAWS = {
    "the paper's": (COULOMB, smooth_coulomb, KNEE, knee),
    "asymmetric": (ASYMMETRIC, asymmetric, KNEE, knee),
    "stribeck, ramp": (STRIBECK, stribeck, RAMP, ramp),
}


def slow(scale):
    """Numbers of either sign, small ones too."""
    return st.floats(-1.0, 1.0).map(lambda x: scale * x**3)


@pytest.mark.parametrize("laws", LAWS.values(), ids=LAWS.keys())
@settings(deadline=None, max_examples=5, derandomize=True)
@given(
    motion=st.tuples(slow(1.0), slow(0.6), slow(1.0), slow(2.5), slow(6.0)),
    load=st.tuples(slow(600.0), slow(900.0), slow(3000.0)),
)
def test_motor_reference_is_that_of_60_digits(laws, motion, load):
    friction, friction_60, stiffness, twist_60 = laws
    joint = ElasticJoint(friction, stiffness, 1798 / 7, 0.0138)
    ours = feed_forward(joint, [motion], 2500.0, load[0], load_rate=load[1], load_acceleration=load[2])
    angle, velocity, torque = motor(list(motion), 2500.0, list(load), friction_60, twist_60, 1798 / 7, 0.0138)
    u, J = 1798 / 7, 0.0138
    assert ours.angle[0] == pytest.approx(angle, rel=1e-12, abs=1e-12 * u)
    assert ours.velocity[0] == pytest.approx(velocity, rel=1e-9, abs=1e-9)
    # The torque in the gearbox is known to 1e-16 of its largest part; the steepest law here multiplies that.
    assert ours.torque[0] == pytest.approx(torque, rel=1e-9, abs=1e-9 + J * u * 1e-16 * abs(ours.acceleration[0]))


def printed_program(q, p, rest):
    """Return torque, angle and velocity of Appendix C, with t[20] the cube it must be (a square is printed)."""
    q0, q1, q2, q3, q4 = q
    M, J, u, c, qB, sE, sF, f_v, f_c = p
    e1, e2 = min(math.exp(-q1 * sF), 1e30), min(math.exp(-2.0 * q1 * sF), 1e30)
    t18 = 1.0 / (e1 + 1.0)
    t20 = t18**3
    t22, t23 = 2.0 * f_c * q2 * sF * e1 * t18**2, 2.0 * f_c * q3 * sF * e1 * t18**2
    t24, t25 = 2.0 * f_c * q2**2 * sF**2 * e1 * t18**2, 4.0 * f_c * q2**2 * sF**2 * e2 * t20
    t26 = M * q2 + f_v * q1 - f_c + 2.0 * f_c * t18 + rest
    t29 = M * q3 + f_v * q2 + t22
    t32 = M * q4 + f_v * q3 + t23 + t25 - t24
    t33 = min(math.exp(-sE * t26), 1e30)
    t34 = t33 + 1.0
    t35 = 1.0 / t34**2
    bent = 2.0 * qB * sE * t33 * t35 * t32 - 2.0 * qB * sE**2 * t29**2 * t33 * t35
    bent += 4.0 * qB * sE**2 * t29**2 / t34**3 * min(math.exp(-2.0 * sE * t26), 1e30)
    torque = t26 / u + J * u * (q2 + t32 / c + bent)
    angle = u * (q0 - qB + t26 / c + 2.0 * qB / t34)
    return torque, angle, u * (q1 + t29 / c + 2.0 * qB * sE * t29 * t33 * t35)


@settings(deadline=None, max_examples=50, derandomize=True)
@given(motion=st.tuples(slow(1.0), slow(0.2), slow(1.0), slow(2.5), slow(6.0)), rest=slow(600.0))
def test_paper_s_program_gives_the_same_once_its_square_is_a_cube(motion, rest):
    numbers = (2500.0, 0.0138, 1798 / 7, 8.4225e6, 0.3e-3, 0.02, 500.0, 800.0, 200.0)
    torque, angle, velocity = printed_program(motion, numbers, rest)
    ours = feed_forward(JOINT_1, [motion], 2500.0, rest)
    assert ours.torque[0] == pytest.approx(torque, rel=1e-9, abs=1e-8)
    assert ours.angle[0] == pytest.approx(angle, rel=1e-12, abs=1e-10)
    assert ours.velocity[0] == pytest.approx(velocity, rel=1e-11, abs=1e-10)


def test_reference_is_consistent_in_time():
    """The derivatives belong to the angle: integrated over a whole motion they give it back."""
    time = np.linspace(0.0, 2.0, 200001)
    ours = feed_forward(JOINT_1, point_to_point(time, 0.0, 0.35, 2.0), 2500.0)
    step = time[1]
    for value, rate, tolerance in ((ours.angle, ours.velocity, 1e-9), (ours.velocity, ours.acceleration, 1e-6)):
        summed = value[0] + np.concatenate(([0.0], np.cumsum(0.5 * step * (rate[1:] + rate[:-1]))))
        np.testing.assert_allclose(summed, value, atol=tolerance * abs(value).max())


def test_pose_dependent_load_needs_its_rates():
    """With M(t) and a load that changes, only the rates make the velocity the derivative of the angle."""
    time = np.linspace(0.0, 2.0, 20001)
    motion = point_to_point(time, 0.0, 0.35, 2.0)
    q2, q3, q4 = motion[:, 2], motion[:, 3], motion[:, 4]
    M, M1, M2 = 2000.0 + 500.0 * np.sin(time), 500.0 * np.cos(time), -500.0 * np.sin(time)
    g, g1, g2 = 300.0 * np.cos(3.0 * time), -900.0 * np.sin(3.0 * time), -2700.0 * np.cos(3.0 * time)
    rates = {"load_rate": M1 * q2 + g1, "load_acceleration": M2 * q2 + 2.0 * M1 * q3 + g2}
    exact_one, paper = feed_forward(JOINT_1, motion, M, g, **rates), feed_forward(JOINT_1, motion, M, g)
    inner = slice(100, -100)
    slope = np.gradient(exact_one.angle, time)[inner]
    second = np.gradient(np.gradient(exact_one.angle, time), time)[inner]
    assert abs(exact_one.velocity[inner] - slope).max() < 2e-3
    assert abs(paper.velocity[inner] - slope).max() > 0.05
    assert abs(exact_one.acceleration[inner] - second).max() < 0.01 * abs(second).max()
    assert q4.any()


def test_equations_of_both_masses_are_met():
    motion = point_to_point(np.linspace(0.0, 2.0, 101), 0.0, 0.35, 2.0)
    ours = feed_forward(JOINT_1, motion, 2500.0, 40.0)
    twist = ours.angle / JOINT_1.gear_ratio - motion[:, 0]
    torque = JOINT_1.stiffness.torque(twist)
    np.testing.assert_allclose(
        torque, 2500.0 * motion[:, 2] + 40.0 + JOINT_1.friction(motion[:, 1]), rtol=1e-8, atol=1e-6
    )
    np.testing.assert_allclose(
        0.0138 * ours.acceleration + ours.gear_torque / JOINT_1.gear_ratio, ours.torque, rtol=1e-12
    )


def test_stiff_gearbox_is_a_rigid_one():
    motion = point_to_point(np.linspace(0.0, 2.0, 101), 0.0, 0.35, 2.0)
    stiff = dataclasses.replace(JOINT_1, stiffness=SmoothBacklash(1e14, 0.0))
    elastic, rigid = feed_forward(stiff, motion, 2500.0), feed_forward(stiff, motion, 2500.0, rigid=True)
    np.testing.assert_allclose(elastic.torque, rigid.torque, atol=1e-4)
    whole = (2500.0 + 0.0138 * stiff.gear_ratio**2) * motion[:, 2] + stiff.friction(motion[:, 1])
    np.testing.assert_allclose(rigid.torque, whole / stiff.gear_ratio, rtol=1e-12)


def test_motor_that_turns_against_its_link():
    motion = point_to_point(np.linspace(0.0, 2.0, 101), 0.0, 0.35, 2.0)
    against = dataclasses.replace(JOINT_1, gear_ratio=-JOINT_1.gear_ratio)
    same, opposite = feed_forward(JOINT_1, motion, 2500.0), feed_forward(against, motion, 2500.0)
    np.testing.assert_array_equal(opposite.torque, -same.torque)
    np.testing.assert_array_equal(opposite.angle, -same.angle)


@pytest.mark.parametrize("stiffness", [RampBacklash(8e6, 3e-4), LostMotion(8e6, 8e5, 1.5e-4, 1.5e-4)])
def test_law_that_no_motor_can_follow_is_refused(stiffness):
    with pytest.raises(ConfigurationError, match=r"joint\.stiffness = .*no motor can follow it"):
        feed_forward(dataclasses.replace(JOINT_1, stiffness=stiffness), np.zeros((3, 5)), 2500.0)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((np.zeros((3, 4)), 1.0), r"motion of shape \(3, 4\): must be \(n, 5\)"),
        ((np.full((3, 5), np.nan), 1.0), r"motion of shape \(3, 5\): must be finite"),
        ((np.zeros((3, 5)), 0.0), r"inertia = 0\.0: must be greater than 0"),
        ((np.zeros((3, 5)), 1.0, [1.0, 2.0]), r"load of shape \(2,\): must be a number or \(3,\)"),
    ],
)
def test_wrong_arguments_are_named(arguments, reason):
    with pytest.raises(ConfigurationError, match=reason):
        feed_forward(JOINT_1, *arguments)


def test_impossible_joint_is_named():
    with pytest.raises(ConfigurationError, match=r"joint\.friction = 3\.0: must be a SmoothFriction"):
        ElasticJoint(3.0, KNEE, 100.0, 0.01)
    with pytest.raises(ConfigurationError, match=r"joint\.gear_ratio = 0\.0: must not be 0"):
        ElasticJoint(COULOMB, KNEE, 0.0, 0.01)
    with pytest.raises(ConfigurationError, match=r"joint\.motor_inertia = 0\.0: .*greater than 0 kg m\^2"):
        ElasticJoint(COULOMB, KNEE, 100.0, 0.0)
