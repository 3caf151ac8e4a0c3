"""Recordings of joints, from the files that people have."""

import numpy as np
import pytest

from calibration.data.reading import read_joint_recordings
from haptics.errors import ConfigurationError
from tests.calibration.simulated_joints import joint

COLUMNS = ("time_s", "velocity_deg_per_s", "torque_nm", "position_deg")


def robot_arrays(count=300, joints=2):
    time = 0.01 * np.arange(count)
    wave = np.sin(np.outer(time, np.arange(1.0, joints + 1.0)))
    names = ("motor_torque", "motor_velocity_link_side", "motor_angle_link_side", "link_acceleration_ref")
    names += ("link_inertia", "acceleration_torque", "coriolis_torque", "gravity_torque")
    constants = {"gear_ratio": 100.0, "motor_inertia": 1e-3, "gravity_torque_home": 7.0}
    return {
        "time": time,
        **{name: (number + 1.0) * wave for number, name in enumerate(names)},
        **{name: np.full(joints, value) for name, value in constants.items()},
    }


def test_columns_with_units_become_friction_in_the_direction_of_motion(tmp_path):
    seen = joint()
    table = np.column_stack((seen.time, np.degrees(seen.velocity), -seen.friction, np.degrees(seen.position)))
    np.savetxt(tmp_path / "j.csv", table, delimiter=",", header=",".join(COLUMNS), comments="", fmt="%.17g")
    (read,) = read_joint_recordings(str(tmp_path / "j.csv"))
    assert np.allclose(read.velocity, seen.velocity, atol=1e-12)
    assert np.array_equal(read.friction, seen.friction)
    assert np.allclose(read.position, seen.position, atol=1e-12)


def test_a_robots_recording_is_known_by_its_arrays(tmp_path):
    arrays = robot_arrays()
    np.savez(tmp_path / "r.npz", **arrays)
    read = read_joint_recordings(str(tmp_path / "r.npz"))
    assert [one.joint for one in read] == ["1", "2"]
    seen = read[1]
    assert np.allclose(seen.effort, -100.0 * arrays["motor_torque"][:, 1], atol=1e-9)
    rotor = 1e-3 * 100.0**2
    motion = (arrays["link_inertia"][:, 1] + rotor) * arrays["link_acceleration_ref"][:, 1]
    rest = 7.0 + sum(arrays[f"{name}_torque"][:, 1] for name in ("acceleration", "coriolis", "gravity"))
    assert np.allclose(seen.load, motion + rest, atol=1e-9)
    assert [one.joint for one in read_joint_recordings(str(tmp_path / "r.npz"), joints=("2",))] == ["2"]


def test_a_joint_that_a_robot_has_not_is_said(tmp_path):
    np.savez(tmp_path / "r.npz", **robot_arrays())
    with pytest.raises(ConfigurationError, match=r"unknown joint in .* '7'"):
        read_joint_recordings(str(tmp_path / "r.npz"), joints=("7",))


def test_a_recording_too_short_to_choose_terms_is_said(tmp_path):
    time = np.linspace(0.0, 1.0, 60)
    table = np.column_stack((time, np.sin(9.0 * time), np.cos(9.0 * time)))
    np.savetxt(tmp_path / "j.csv", table, delimiter=",", header="time_s,velocity_rad_per_s,torque_nm", comments="")
    with pytest.raises(ConfigurationError, match=r"j\.csv: 60 samples are too few to choose terms"):
        read_joint_recordings(str(tmp_path / "j.csv"))[0].require_terms()
