"""Coupled joints: velocities and torques through the differential, and one motor at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from calibration.coupled import COUPLINGS, Coupling, decouple
from calibration.data.joint_recording import JointRecording
from haptics.errors import ConfigurationError
from tests.calibration.joints import KNEE, SOURCE, friction, swinging

SIDES = sorted(COUPLINGS)
VECTORS = arrays(np.float64, (5, 3), elements=st.floats(-100.0, 100.0))


@pytest.mark.parametrize("name", SIDES)
@given(velocity=VECTORS, torque=VECTORS)
def test_the_differential_loses_no_power_and_is_inverted_exactly(name, velocity, torque):
    coupling = COUPLINGS[name]
    joint_velocity, joint_torque = velocity @ coupling.matrix.T, torque @ np.linalg.inv(coupling.matrix)
    at_motors, at_joints = ((v * t).sum(axis=1) for v, t in ((velocity, torque), (joint_velocity, joint_torque)))
    np.testing.assert_allclose(at_joints, at_motors, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(coupling.motor_velocity(joint_velocity), velocity, atol=1e-11)
    np.testing.assert_allclose(coupling.motor_effort(joint_torque), torque, atol=1e-11)


def test_one_motor_of_the_torso_moves_the_joints_of_its_column():
    torso = COUPLINGS["icub-torso"]
    moved = torso.matrix.T != 0.0
    assert moved.sum(axis=1).tolist() == [1, 3, 3]  # the first turns the yaw alone, the others are a differential


LAWS = [
    {**KNEE, "coulomb": level, "static_forward": level + 0.5, "static_backward": level + 0.9}
    for level in (0.6, 0.85, 1.1)
]


def recorded(coupling, laws, noise=0.0):
    """Return recordings of the joints while each motor in turn is swung and the others are held."""
    _, _, swing, _ = swinging(duration=20.0)
    n = len(swing)
    velocity, torque = np.zeros((3 * n, 3)), np.zeros((3 * n, 3))
    for motor, law in enumerate(laws):
        velocity[motor * n : (motor + 1) * n, motor] = swing
        torque[:, motor] = -friction(velocity[:, motor], law)
    time = np.arange(3 * n) / 100.0
    joint_velocity, joint_torque = velocity @ coupling.matrix.T, torque @ np.linalg.inv(coupling.matrix)
    joint_torque += noise * np.random.default_rng(3).standard_normal(joint_torque.shape)
    return [
        JointRecording(name, True, time, joint_velocity[:, k], joint_torque[:, k], SOURCE)
        for k, name in enumerate(coupling.joints)
    ]


@pytest.mark.parametrize("name", SIDES)
def test_each_motor_sees_its_own_friction_alone(name):
    joints = recorded(COUPLINGS[name], LAWS)
    motors, reordered = decouple(joints, COUPLINGS[name]), decouple(joints[::-1], COUPLINGS[name])
    assert [motor.joint for motor in motors] == ["motor_a", "motor_b", "motor_c"]
    for motor, other, law in zip(motors, reordered, LAWS, strict=True):
        fast = np.abs(motor.velocity) > 1e-6
        np.testing.assert_allclose(motor.effort[fast], -friction(motor.velocity[fast], law), atol=1e-9)
        np.testing.assert_array_equal(motor.effort, other.effort)


def test_motors_that_never_move_alone_are_refused():
    torso = COUPLINGS["icub-torso"]
    time, _, swing, _ = swinging(duration=10.0)
    velocity = np.column_stack([swing, np.roll(swing, 200), np.roll(swing, 500)]) @ torso.matrix.T
    joints = [JointRecording(name, True, time, velocity[:, k], swing, SOURCE) for k, name in enumerate(torso.joints)]
    with pytest.raises(ConfigurationError, match="ever moves alone; hold all but one"):
        decouple(joints, torso)


@pytest.mark.parametrize(
    ("joints", "matrix", "message"),
    [
        (("a", "b"), np.ones((2, 2)), "must have an inverse"),
        (("a", "b"), np.eye(3), "n x n matrix"),
        (("a", "a"), np.eye(2), "different names"),
        (("a", "b"), np.full((2, 2), np.nan), "finite numbers"),
    ],
)
def test_invalid_couplings_are_refused(joints, matrix, message):
    with pytest.raises(ConfigurationError, match=message):
        Coupling(joints, ("m", "n"), matrix)
