"""The feed-forward of a real robot, as its authors computed it: six joints of an industrial robot, 10 s."""

from pathlib import Path

import numpy as np
import pytest

from devices.arm.flatness.friction import AsymmetricFriction
from devices.arm.flatness.joint import ElasticJoint, feed_forward
from devices.arm.flatness.stiffness import SmoothBacklash

RECORDING = Path(__file__).resolve().parents[4] / "shared" / "data" / "kuka_kr300" / "run_a.npz"
ORDERS = ("angle", "velocity", "acceleration", "jerk", "snap")


@pytest.fixture(scope="module")
def recording():
    if not RECORDING.is_file():
        pytest.skip(f"the recorded robot is not here ({RECORDING.name})")
    with np.load(RECORDING) as file:
        return dict(file)


def reference(recording, axis):
    """Return what the motor of one joint has to do, by the authors' parameters and our equations."""
    friction = AsymmetricFriction(
        recording["friction_coulomb"][axis],
        recording["friction_viscous"][axis],
        recording["friction_smoothness"][axis],
        recording["friction_asymmetry"][axis],
        recording["friction_a"][axis],
        recording["friction_b"][axis],
    )
    stiffness = SmoothBacklash(
        recording["stiffness"][axis], recording["backlash_half_width"][axis], recording["stiffness_smoothness"][axis]
    )
    joint = ElasticJoint(friction, stiffness, recording["gear_ratio"][axis], recording["motor_inertia"][axis])
    motion = np.stack([recording[f"link_{order}_ref"][:, axis] for order in ORDERS], axis=1)
    load = sum(recording[name][:, axis] for name in ("acceleration_torque", "coriolis_torque", "gravity_torque"))
    return feed_forward(joint, motion, recording["link_inertia"][:, axis], load)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_motor_angle_is_that_of_the_authors_up_to_where_home_is(recording, axis):
    off = reference(recording, axis).angle - recording["motor_angle_ref"][:, axis]
    assert np.ptp(off) < 1e-11


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_motor_velocity_is_that_of_the_authors(recording, axis):
    off = reference(recording, axis).velocity - recording["motor_velocity_ref"][:, axis]
    assert abs(off).max() < 1e-11


@pytest.mark.parametrize("axis", range(6))
def test_motor_torque_is_that_of_the_authors_but_for_their_rounding_and_rate_limit(recording, axis):
    ours = reference(recording, axis).torque - recording["motor_torque_ff_home"][axis]
    off = abs(ours - recording["motor_torque_ff"][:, axis])
    assert np.median(off) < 3e-5  # four digits were kept: 2.5e-5 at the median
    if axis < 3:
        assert (off < 6e-5).mean() > 0.85  # the rest is where they limited its rate
