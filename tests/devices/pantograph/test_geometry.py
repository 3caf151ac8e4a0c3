"""Mechanisms, settings and the mathematics of a tick, without any board."""

import functools
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import devices
from devices.common.driver_kernels import estimate_velocity
from devices.common.velocity import VelocitySettings, fill_velocity, prepare_velocity
from devices.emulators.hapi.arms import PROFILES, Arms
from devices.pantograph.kernels import PANTOGRAPH, drive_motors, fill_mechanism, place_handle
from devices.pantograph.mechanisms import CLEARANCE, MAX_TORQUE, MECHANISMS
from haptics.errors import ConfigurationError, DeviceOpenError
from haptics.jit import kernel

every_mechanism = pytest.mark.parametrize("name", MECHANISMS)
unit = st.floats(-1.0, 1.0)


@kernel
def take_angles(record, time, left, right):
    """Take the angles of the inner links [degree] at `time` [s]."""
    s = record[0]
    s.now = time
    place_handle(s, left, right)
    estimate_velocity(s)


@kernel
def take_force(record, fx, fy):
    """Compute the torques for a force [N]."""
    drive_motors(record[0], fx, fy)


def new_record(mechanism):
    """Return the record of a pantograph, (1,), whose position has a resolution of 10 um."""
    record = np.zeros(1, PANTOGRAPH)
    fill_velocity(record["estimator"], VelocitySettings(), 1e-5, 1e-3)
    fill_mechanism(record, mechanism)
    return record


@functools.cache
def data_sheet(name):
    return devices.create_device("pantograph", {"mechanism": name}).spec


@functools.cache
def emulated_arms(name):
    return Arms(PROFILES[name], {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}, mass=0.1, damping=0.5)


def record_at(name, position):
    mechanism = MECHANISMS[name]
    record = new_record(mechanism)
    prepare_velocity(record["estimator"])
    angles = np.degrees(mechanism.linkage.joints([np.array(position) + mechanism.centre]))[0]
    take_angles(record, 0.0, *angles)
    return record


@every_mechanism
def test_workspace_is_clear_of_singular_poses(name):
    mechanism = MECHANISMS[name]
    axes = (
        np.linspace(-half, half, 41) + middle
        for half, middle in zip(mechanism.half_size, mechanism.centre, strict=True)
    )
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    joints = mechanism.linkage.joints(grid)
    np.testing.assert_allclose(mechanism.linkage.positions(joints), grid, atol=1e-12)
    clearance = mechanism.linkage.clearance(joints)
    assert clearance[:, 0].min() > CLEARANCE
    assert clearance[:, 1].min() > 0.1


@every_mechanism
def test_home_pose_can_be_held_and_is_clear_of_where_motors_do_not_hold(name):
    mechanism = MECHANISMS[name]
    home = np.radians([mechanism.home])
    assert np.isfinite(mechanism.linkage.positions(home)).all()
    assert mechanism.linkage.clearance(home)[0, 0] > CLEARANCE


@every_mechanism
@given(x=unit, y=unit, direction=st.floats(0.0, 2.0 * math.pi))
def test_largest_force_of_the_data_sheet_needs_no_more_torque_than_there_is(name, x, y, direction):
    mechanism = MECHANISMS[name]
    record = record_at(name, np.array((x, y)) * mechanism.half_size)
    largest = data_sheet(name).max_force
    force = largest * np.array((math.cos(direction), math.sin(direction)))
    take_force(record, *force)
    torques = record["torques"][0]
    assert np.abs(torques).max() <= MAX_TORQUE
    jacobian = mechanism.linkage.jacobians(record["angles"])[0]
    np.testing.assert_allclose(np.linalg.solve(jacobian.T, torques), force, rtol=0.01, atol=1e-9)


@every_mechanism
@given(x=unit, y=unit, fx=unit, fy=unit)
def test_the_emulated_arms_feel_the_force_that_was_asked_for(name, x, y, fx, fy):
    mechanism = MECHANISMS[name]
    position = 0.99 * np.array((x, y)) * mechanism.half_size
    arms = emulated_arms(name)
    arms.joystick._record["handle"] = position
    record = record_at(name, position)
    take_force(record, fx, fy)
    np.testing.assert_allclose(arms.force(tuple(record["torques"][0])), (fx, fy), atol=1e-6)


@given(direction=st.floats(0.0, 2.0 * math.pi), excess=st.floats(2.0, 100.0))
def test_too_large_a_force_keeps_its_direction(direction, excess):
    record = record_at("gen-1", (0.01, 0.02))
    force = excess * 10.0 * np.array((math.cos(direction), math.sin(direction)))
    take_force(record, *force)
    torques = record["torques"][0]
    assert np.abs(torques).max() == pytest.approx(MAX_TORQUE)
    felt = np.linalg.solve(MECHANISMS["gen-1"].linkage.jacobians(record["angles"])[0].T, torques)
    assert felt[0] * force[1] - felt[1] * force[0] == pytest.approx(0.0, abs=1e-9 * np.hypot(*force))
    assert felt @ force > 0.0


def folded_record(between):
    """A gen-1 pantograph whose outer links make an angle with this sine: the elbows are close to each other."""
    half = 0.07 * math.sin(math.asin(between) / 2.0)
    angle = math.degrees(math.acos((0.01 - half) / 0.05))
    record = new_record(MECHANISMS["gen-1"])
    take_angles(record, 0.0, angle, 180.0 - angle)
    return record


@pytest.mark.parametrize(
    ("clearance", "part"), [(1.5, 1.0), (1.001, 1.0), (0.75, 0.5), (0.6, 0.2), (0.4999, 0.0), (0.1, 0.0)]
)
def test_force_fades_away_towards_the_pose_that_motors_do_not_hold(clearance, part):
    linkage = MECHANISMS["gen-1"].linkage
    record = folded_record(clearance * CLEARANCE)
    assert linkage.clearance(record["angles"])[0, 0] == pytest.approx(clearance * CLEARANCE)
    take_force(record, 1e-3, 2e-3)
    expected = part * linkage.jacobians(record["angles"])[0].T @ (1e-3, 2e-3)
    np.testing.assert_allclose(record["torques"][0], expected, atol=1e-12)


def test_elbows_in_one_point_give_no_position_and_no_torque():
    record = new_record(MECHANISMS["2diy"])
    with np.errstate(invalid="ignore", divide="ignore"):  # uncompiled, NumPy would have something to say
        take_angles(record, 0.0, 90.0, 90.0)
        take_force(record, 1.0, 1.0)
    assert np.isnan(record["position"][0]).all()
    np.testing.assert_array_equal(record["torques"][0], (0.0, 0.0))


def test_velocity_begins_anew_with_the_clock():
    record = record_at("gen-1", (0.0, 0.0))
    left, right = np.degrees(record["angles"][0])
    for tick in range(20):
        take_angles(record, 5.0 + tick * 1e-3, left + 0.1 * tick, right)
    velocity = record["estimator"]["velocity"][0]
    assert np.hypot(*velocity) > 0.01
    take_angles(record, 0.0, left, right)
    np.testing.assert_array_equal(velocity, (0.0, 0.0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mechanism": "gen-2"}, r"device\.mechanism = 'gen-2': must be one of gen-1, 2diy, 2diy-38mm"),
        ({"port": 3}, r"device\.port = 3: must be a serial port"),
        ({"resyncs": 1.5}, r"device\.resyncs = 1\.5: must be a whole number"),
        ({"watchdog": 5.0}, r"device\.watchdog = 5\.0: .*at most 1 s"),
        (
            {"reply_timeout": 0.06},
            r"device\.reply_timeout = 0\.06 s: must be at most half of device\.watchdog = 0\.1 s",
        ),
        ({"hand": {"name": "mouse"}}, r"device\.hand: only an emulated pantograph has a hand"),
        ({"emulated": True, "port": "/dev/ttyACM0"}, r"device\.port = .*brings its own"),
        ({"emulated": True, "hand": {"name": "foot"}}, r"unknown hand 'foot'"),
        ({"velocity_window": 4}, r"device\.velocity_window = 4: only device\.velocity_estimator = 'difference'"),
    ],
)
def test_wrong_setting_is_named_with_what_is_allowed(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        devices.create_device("pantograph", settings)


def test_opening_without_the_word_that_the_arms_are_home_says_what_to_do():
    with pytest.raises(DeviceOpenError, match=re.escape("device.at_home=true")):
        devices.create_device("pantograph").open()
