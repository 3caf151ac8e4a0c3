"""The handle on a force sensor: mass, centre and bias from simulated poses and from poses of a virtual arm."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import devices
from calibration.handle import BIASES, CENTRES, MASS, NAMES, RestingWrenches, identify_handle
from calibration.motions import Mover
from calibration.motions.arm import PoseMeasurement, Poses, plan_poses
from devices.arm.sensors.force_sensor import STANDARD_GRAVITY, Mounting, SensorSettings, turn
from haptics import Clock
from haptics.device import Causality
from haptics.errors import ConfigurationError, DeviceFault
from tests.haptics.doubles import BenchDevice

Array = np.ndarray[Any, Any]

NOBODY = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
BIAS = (2.0, -1.0, 3.0, 0.02, -0.05, 0.01)
ERRORS = 4.5
"""Limit of a deviation in one measurement, in standard errors."""

angles = st.floats(-180.0, 180.0)
wrenches = st.tuples(*[st.floats(-20.0, 20.0)] * 3, *[st.floats(-1.0, 1.0)] * 3)
centres = st.tuples(*[st.floats(-0.1, 0.1)] * 3)
tilts = st.floats(2.0, STANDARD_GRAVITY)
"""Gravity within the plane of the arm."""


def mounted(mass, centre, rotation, tilt):
    gravity = (0.0, -tilt, -math.sqrt(STANDARD_GRAVITY**2 - tilt**2))
    return Mounting(SensorSettings(rotation=rotation, handle_mass=mass, handle_centre=centre, gravity=gravity))


def shown(mounting, turns, errors=0.0, bias=BIAS):
    """Return the readings of the sensor with its flange turned by these angles [rad]."""
    flanges = [turn(2, angle) for angle in turns]
    weights = np.array([mounting.record["handle"][0] @ mounting.gravity(flange) for flange in flanges])
    gravity = np.array([mounting.gravity(flange) for flange in flanges])
    return RestingWrenches(np.arange(0.0, 2.0 * len(turns), 2.0), gravity, weights + np.array(bias) + errors)


def truth(mass, centre, bias=BIAS):
    return dict(zip(NAMES, (mass, *centre, *bias), strict=True))


def deviations(found, true):
    """Return the deviation of each value from the truth, in standard errors."""
    return {name: (value - true[name]) / found.errors[name] for name, value in found.values.items()}


@given(st.floats(0.05, 3.0), centres, st.tuples(angles, angles, angles), tilts, wrenches)
def test_exact_poses_give_every_parameter(mass, centre, rotation, tilt, bias):
    poses = shown(mounted(mass, centre, rotation, tilt), np.linspace(-0.8, 0.7, 7), bias=bias)
    assume(poses.wrench[:, 3:].any())  # else it is a sensor that shows no torques
    found, true = identify_handle(poses), truth(mass, centre, bias)
    assert not found.unknown
    assert found.values == pytest.approx(true, abs=1e-7)


@given(st.floats(0.0, 3.0), centres, angles, st.integers(0, 2**32 - 1))
def test_a_horizontal_plane_hides_the_weight(mass, centre, about_z, seed):
    errors = 1e-3 * np.random.default_rng(seed).standard_normal((8, 6))
    mounting = mounted(mass, centre, (0.0, 0.0, about_z), 0.0)
    found = identify_handle(shown(mounting, np.linspace(-1.0, 1.0, 8), errors))
    assert set(found.unknown) == {MASS, *CENTRES, "bias_force_z_n", "bias_torque_x_nm", "bias_torque_y_nm"}
    true = {name: value for name, value in truth(mass, centre).items() if name in found.values}
    assert max(map(abs, deviations(found, true).values())) < 6.0
    np.testing.assert_allclose(found.resting, mounting.record["handle"][0] @ mounting.gravity() + BIAS, atol=5e-3)


@given(st.floats(0.1, 2.0), centres, tilts)
def test_a_flange_that_does_not_turn_gives_no_mass(mass, centre, tilt):
    found = identify_handle(shown(mounted(mass, centre, (0.0, 0.0, 0.0), tilt), np.full(6, 0.3)))
    assert {MASS, *CENTRES} <= set(found.unknown)


def test_two_directions_of_the_flange_give_the_mass_but_not_its_centre():
    turns, errors = np.tile([-0.4, 0.4], 6), 1e-3 * np.random.default_rng(1).standard_normal((12, 6))
    found = identify_handle(shown(mounted(0.3, (0.01, 0.02, 0.05), (0.0, 0.0, 0.0), 9.0), turns, errors))
    assert found.values[MASS] == pytest.approx(0.3, abs=ERRORS * found.errors[MASS])
    assert {"centre_x_m", "centre_y_m"} & set(found.unknown)
    assert "centre_z_m" in found.values


@pytest.mark.parametrize(
    ("rotation", "words"), [((60.0, 0.0, 0.0), "the residual is"), ((0.0, 0.0, 180.0), "the mass is negative")]
)
def test_a_wrong_mounting_is_warned_of(rotation, words):
    turns, noise = np.linspace(-0.8, 0.8, 9), 1e-3 * np.random.default_rng(2).standard_normal((9, 6))
    told = shown(mounted(0.8, (0.0, 0.0, 0.05), (0.0, 0.0, 0.0), 9.8), turns, noise)
    true = shown(mounted(0.8, (0.0, 0.0, 0.05), rotation, 9.8), turns, noise)
    (warning,) = identify_handle(RestingWrenches(told.time, told.gravity, true.wrench)).warnings
    assert words in warning


def test_a_touched_handle_is_warned_of():
    poses = shown(mounted(0.3, (0.0, 0.0, 0.05), (0.0, 0.0, 0.0), 9.8), np.linspace(-0.8, 0.8, 9))
    poses.wrench[4, 1] += 3.0
    assert any("somebody touched the handle" in warning for warning in identify_handle(poses).warnings)


def test_a_sensor_without_torques_or_load_leaves_the_centre_unknown():
    noise, turns = 1e-3 * np.random.default_rng(2).standard_normal((9, 6)), np.linspace(-0.8, 0.8, 9)
    poses = shown(mounted(0.3, (0.0, 0.0, 0.05), (0.0, 0.0, 0.0), 9.8), turns, noise)
    poses.wrench[:, 3:] = 0.0
    found = identify_handle(poses)
    assert found.values[MASS] == pytest.approx(0.3, abs=5.0 * found.errors[MASS])
    assert set(found.unknown) == {*CENTRES, *BIASES[3:]}
    assert any("no torques" in warning for warning in found.warnings)
    noise = 1e-2 * np.random.default_rng(4).standard_normal((9, 6))
    found = identify_handle(shown(mounted(0.0, (0.0,) * 3, (0.0, 0.0, 0.0), 9.8), turns, noise))
    assert set(found.unknown) == set(CENTRES)
    assert any("the mass may be 0" in warning for warning in found.warnings)


def test_too_few_poses_are_refused():
    with pytest.raises(ConfigurationError, match="3 poses: must be at least 4"):
        identify_handle(shown(mounted(0.3, (0.0,) * 3, (0.0,) * 3, 9.8), np.linspace(0.0, 1.0, 3)))
    with pytest.raises(ConfigurationError, match=r"poses: there are 2 of them"):
        Poses(columns=2, rows=1, rounds=1)
    with pytest.raises(ConfigurationError, match=r"poses\.rows = 1\.5: must be a whole number"):
        Poses(rows=1.5)


# --- on arms ----------------------------------------------------------------------------------------------------------


def arm(clock, **changes):
    return devices.create_device("virtual-arm", {"hand": NOBODY, **changes}, clock=clock)


def mover(**changes):
    return Mover.of("virtual-arm", {"hand": NOBODY, **changes})


def vertical(centre, rotation=(0.0, 0.0, 0.0)):
    return {
        "arm": {"gravity": STANDARD_GRAVITY, "handle_mass": 0.3},
        "sensor": {"handle_centre": list(centre), "rotation": list(rotation)},
    }


def test_the_poses_are_held_within_the_workspace():
    clock, poses = Clock(1e-3), Poses(columns=3, rows=2, rounds=2)
    spec = arm(clock).spec
    places, holds = plan_poses(poses, spec, clock.period)
    assert (places >= spec.workspace_min).all() and (places <= spec.workspace_max).all()
    assert np.hypot(*np.diff(places, axis=0).T).max() <= poses.speed * clock.period * 1.001
    assert len(holds) == 12
    assert all(np.ptp(places[hold], axis=0).max() == 0.0 and hold.stop - hold.start == 500 for hold in holds)
    assert len({tuple(places[hold.start]) for hold in holds}) == 6


def test_a_device_without_a_force_sensor_is_refused(tmp_path):
    bench = Mover(lambda more, clock: BenchDevice(clock, Causality.ADMITTANCE), live=False)
    with pytest.raises(ConfigurationError, match="has no force sensor that carries a handle"):
        PoseMeasurement(Poses()).run(bench, tmp_path / "poses")


def test_a_held_arm_is_a_fault(tmp_path):
    """The arm is blocked with its force sensor at the end of its range."""
    point = [0.0, 0.0]
    held = {"name": "minimum-jerk", "points": [point, point], "rest": 60.0, "rest_force": 0.0, "rest_grip": 1.0}
    stopped = mover(hand=held | {"stiffness": 3000.0, "tremor": 0.0}, arm={"torque_limit": 0.3})
    with pytest.raises(DeviceFault, match="'approach' did not finish"):
        PoseMeasurement(Poses()).run(stopped, tmp_path / "poses")
    assert (tmp_path / "poses").exists()
