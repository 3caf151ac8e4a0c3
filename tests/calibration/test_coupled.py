"""Coupled joints: velocities and torques through the differential, and one motor at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from calibration.coupled import COUPLINGS, Coupling, decouple
from calibration.data.joint_recording import JointRecording
from haptics.errors import ConfigurationError
from tests.calibration.hand_moved import KNEE
from tests.calibration.measured import SOURCE, Array, friction, swinging

SIDES = sorted(COUPLINGS)
VECTORS = arrays(np.float64, (5, 3), elements=st.floats(-100.0, 100.0))


@pytest.mark.parametrize("name", SIDES)
@given(velocity=VECTORS, torque=VECTORS)
def test_no_power_is_lost_in_the_differential(name: str, velocity: Array, torque: Array) -> None:
    coupling = COUPLINGS[name]
    at_motors = (velocity * torque).sum(axis=1)
    at_joints = (coupling.joint_velocity(velocity) * coupling.joint_effort(torque)).sum(axis=1)
    np.testing.assert_allclose(at_joints, at_motors, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("name", SIDES)
@given(vector=VECTORS)
def test_there_and_back_changes_nothing(name: str, vector: Array) -> None:
    coupling = COUPLINGS[name]
    np.testing.assert_allclose(coupling.motor_velocity(coupling.joint_velocity(vector)), vector, atol=1e-11)
    np.testing.assert_allclose(coupling.motor_effort(coupling.joint_effort(vector)), vector, atol=1e-11)


@pytest.mark.parametrize("name", SIDES)
def test_the_torque_of_a_motor_is_its_column_times_the_torques_of_the_joints(name: str) -> None:
    coupling = COUPLINGS[name]
    torque = np.array([1.0, -2.0, 3.0])
    for motor in range(3):
        assert coupling.motor_effort(torque)[motor] == pytest.approx(coupling.matrix[:, motor] @ torque)


def test_one_motor_of_the_torso_alone_moves_the_joints_that_its_column_names() -> None:
    torso = COUPLINGS["icub-torso"]
    moved = torso.joint_velocity(np.eye(3)) != 0.0
    assert moved.sum(axis=1).tolist() == [1, 3, 3]  # the first turns the yaw alone, the others are a differential


LAWS = [
    {**KNEE, "coulomb": level, "static_forward": level + 0.5, "static_backward": level + 0.9}
    for level in (0.6, 0.85, 1.1)
]


def recorded(coupling: Coupling, laws: list[dict[str, float]], noise: float = 0.0) -> list[JointRecording]:
    """Return what is measured of the joints while each motor in turn is swung and the others are held."""
    _, _, swing, _ = swinging(duration=20.0)
    n = len(swing)
    velocity, torque = np.zeros((3 * n, 3)), np.zeros((3 * n, 3))
    for motor, law in enumerate(laws):
        velocity[motor * n : (motor + 1) * n, motor] = swing
        torque[:, motor] = -friction(velocity[:, motor], law)
    time = np.arange(3 * n) / 100.0
    joint_velocity, joint_torque = coupling.joint_velocity(velocity), coupling.joint_effort(torque)
    joint_torque += noise * np.random.default_rng(3).standard_normal(joint_torque.shape)
    return [
        JointRecording(name, True, time, joint_velocity[:, k], joint_torque[:, k], SOURCE)
        for k, name in enumerate(coupling.joints)
    ]


@pytest.mark.parametrize("name", SIDES)
def test_each_motor_sees_its_own_friction_alone(name: str) -> None:
    motors = decouple(recorded(COUPLINGS[name], LAWS), COUPLINGS[name])
    assert [motor.joint for motor in motors] == ["motor_a", "motor_b", "motor_c"]
    for motor, law in zip(motors, LAWS, strict=True):
        fast = np.abs(motor.velocity) > 1e-6
        np.testing.assert_allclose(motor.effort[fast], -friction(motor.velocity[fast], law), atol=1e-9)


def test_the_order_of_the_joints_in_the_file_does_not_matter() -> None:
    torso = COUPLINGS["icub-torso"]
    joints = recorded(torso, LAWS)
    for one, other in zip(decouple(joints, torso), decouple(joints[::-1], torso), strict=True):
        np.testing.assert_array_equal(one.effort, other.effort)


def test_motors_that_never_move_alone_are_refused() -> None:
    torso = COUPLINGS["icub-torso"]
    time, _, swing, _ = swinging(duration=10.0)
    velocity = torso.joint_velocity(np.column_stack([swing, np.roll(swing, 200), np.roll(swing, 500)]))
    joints = [JointRecording(name, True, time, velocity[:, k], swing, SOURCE) for k, name in enumerate(torso.joints)]
    with pytest.raises(ConfigurationError, match="ever moves alone; hold all but one"):
        decouple(joints, torso)


def test_a_missing_joint_is_named() -> None:
    torso = COUPLINGS["icub-torso"]
    with pytest.raises(ConfigurationError, match=r"has no joint torso_pitch.*such as torso_yaw\.torque_nm"):
        decouple(recorded(torso, LAWS)[:2], torso)


@pytest.mark.parametrize(
    ("joints", "matrix", "says"),
    [
        (("a", "b"), np.ones((2, 2)), "must have an inverse"),
        (("a", "b"), np.eye(3), "n x n matrix"),
        (("a", "a"), np.eye(2), "different names"),
        (("a", "b"), np.full((2, 2), np.nan), "finite numbers"),
    ],
)
def test_what_is_no_coupling_is_refused(joints: tuple[str, ...], matrix: Array, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        Coupling(joints, ("m", "n"), matrix)
