"""From what a sensor measures to the force of the hand, against plain mechanics in the axes of the world."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.arm.sensors.mounting import Mounting, SensorSettings, turn
from haptics.errors import ConfigurationError

numbers = st.floats(-20.0, 20.0)
triples = st.tuples(numbers, numbers, numbers)
angles = st.floats(-180.0, 180.0)
orientations = st.builds(
    lambda x, y, z: turn(2, math.radians(z)) @ turn(0, math.radians(x)) @ turn(1, math.radians(y)),
    angles, angles, angles,
)  # fmt: skip
settings = st.builds(
    SensorSettings,
    rotation=st.tuples(angles, angles, angles),
    handle_mass=st.floats(0.0, 5.0),
    handle_centre=st.tuples(*[st.floats(-0.2, 0.2)] * 3),
    gravity=triples,
)


def in_sensor_axes(own, orientation, offset, force, torque):
    """What a sensor would show: everything computed in the world's axes, then seen along its own."""
    x, y, z = (turn(axis, math.radians(angle)) for axis, angle in enumerate(own.rotation))
    axes = orientation @ z @ y @ x
    weight = own.handle_mass * np.array(own.gravity)
    centre = axes @ np.array(own.handle_centre)
    total = np.concatenate([axes.T @ (force + weight), axes.T @ (torque + np.cross(centre, weight))])
    return total + offset


@given(own=settings, orientation=orientations, force=triples, torque=triples)
def test_the_weight_of_the_handle_is_not_the_hands_force(own, orientation, force, torque):
    measured = in_sensor_axes(own, orientation, 0.0, np.array(force), np.array(torque))
    np.testing.assert_allclose(Mounting(own).hand(measured, orientation), [*force, *torque], atol=1e-9)


@given(own=settings, at_tare=orientations, later=orientations, force=triples, offset=st.tuples(triples, triples))
def test_a_tare_holds_in_every_other_pose(own, at_tare, later, force, offset):
    offset = np.concatenate(offset)
    mounting = Mounting(own)
    mounting.tare(in_sensor_axes(own, at_tare, offset, np.zeros(3), np.zeros(3)), at_tare)
    measured = in_sensor_axes(own, later, offset, np.array(force), np.zeros(3))
    np.testing.assert_allclose(mounting.hand(measured, later), [*force, 0.0, 0.0, 0.0], atol=1e-9)


@given(axis=st.integers(0, 2), angle=st.floats(-7.0, 7.0))
def test_a_turn_is_a_rotation_about_its_axis(axis, angle):
    matrix = turn(axis, angle)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(matrix) == pytest.approx(1.0)
    np.testing.assert_array_equal(matrix @ np.eye(3)[axis], np.eye(3)[axis])
    np.testing.assert_allclose(turn(axis, 0.5 * angle) @ turn(axis, 0.5 * angle), matrix, atol=1e-12)


def test_a_turn_is_anticlockwise():
    np.testing.assert_allclose(turn(2, math.pi / 2) @ [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(turn(0, math.pi / 2) @ [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], atol=1e-15)


def test_without_an_orientation_the_flange_counts_as_the_world():
    mounting = Mounting(SensorSettings(rotation=(0.0, 0.0, 90.0), handle_mass=0.0))
    np.testing.assert_allclose(mounting.hand([2.0, 0, 0, 0, 0, 1.0]), [0, 2.0, 0, 0, 0, 1.0], atol=1e-15)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rotation": (1.0, 2.0)}, "device.sensor.rotation = (1.0, 2.0): must be three finite numbers."),
        ({"gravity": "down"}, "device.sensor.gravity = 'down': must be three finite numbers."),
        ({"handle_centre": (0.0, math.nan, 0.0)}, "device.sensor.handle_centre"),
        ({"handle_mass": -1.0}, "device.sensor.handle_mass = -1.0: must be a finite number at least 0 kg"),
        (
            {"tare_samples": 20.5},
            "device.sensor.tare_samples = 20.5: must be a whole number at least 10 and at most 10000.",
        ),
    ],
)
def test_wrong_settings_say_so(wrong, message):
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        SensorSettings(**wrong)
