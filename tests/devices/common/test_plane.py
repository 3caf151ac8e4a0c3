"""Devices with three axes, used in a plane: choice of the plane, workspace, projection and held axis."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.common.plane import (
    APPROACH,
    Plane,
    PlaneSettings,
    estimate_in_plane,
    place_in_plane,
    plane_fields,
    spread_force,
)
from devices.common.velocity import fill_velocity, prepare_velocity
from devices.touch.device import Touch
from haptics.errors import ConfigurationError
from haptics.jit import kernel
from haptics.settings import build

MIDDLE = (0.02, -0.01, 0.05)


def settings(**changes):
    return build(PlaneSettings, changes, "device")


@pytest.mark.parametrize(
    ("plane", "axes"),
    [
        ("xy", [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
        ("xz", [[1, 0, 0], [0, 0, 1], [0, 1, 0]]),
        ("x-z", [[1, 0, 0], [0, 0, -1], [0, 1, 0]]),
        ("-yz", [[0, -1, 0], [0, 0, 1], [1, 0, 0]]),
    ],
)
def test_axes_of_a_named_plane(plane, axes):
    chosen = Plane.of(settings(plane=plane, origin=list(MIDDLE)))
    assert chosen.axes.tolist() == axes
    assert tuple(chosen.middle) == MIDDLE


def test_three_points_define_an_inclined_plane():
    middle = np.array([0.01, 0.02, 0.03])
    x, y = np.array([3.0, 0.0, 4.0]) / 5.0, np.array([0.0, 1.0, 0.0])
    points = [*middle, *(middle + 0.05 * x), *(middle + 0.02 * x + 0.04 * y)]
    chosen = Plane.of(settings(plane_points=points))
    assert chosen.axes == pytest.approx(np.array([x, y, np.cross(x, y)]))
    assert chosen.middle == pytest.approx(middle)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"plane": "xx"}, "two different axes"),
        ({"plane": "x"}, "two different axes"),
        ({"plane": "ab"}, "two different axes"),
        ({"plane_points": [0, 0, 0, 0.1, 0, 0, 0.2, 0, 0]}, "not on a line"),
        ({"plane_points": [0, 0, 0, 0, 0, 0, 0, 0.1, 0]}, "not on a line"),
        ({"plane_points": [0, 0, 0]}, "nine numbers"),
        ({"plane_points": [0, 0, 0, 0.1, 0, 0, 0, float("nan"), 0]}, "nine numbers"),
        ({"plane_points": [0, 0, 0, 0.1, 0, 0, 0, 0.1, 0], "origin": [0.1, 0, 0]}, "only one of them"),
        ({"origin": [0, 0]}, "three numbers"),
        ({"origin": [0, 0, 9.0]}, "at most 0.5 m"),
    ],
)
def test_invalid_plane_is_refused(changes, words):
    with pytest.raises(ConfigurationError, match=words):
        settings(**changes)


unit = st.floats(-1.0, 1.0)


@given(st.tuples(*[unit] * 6), st.tuples(*[st.floats(0.02, 0.2)] * 3))
def test_rectangle_lies_in_the_box_and_touches_it(numbers, half):
    x, y = np.array(numbers[:3]), np.array(numbers[3:])
    if np.linalg.norm(np.cross(x, y)) < 0.1:
        return
    plane = Plane.of(settings(plane_points=[0.0, 0.0, 0.0, *(0.4 * x), *(0.4 * y)]))
    across, along = plane.extent(half)
    corners = np.array([[sx * across, sy * along] for sx in (-1, 1) for sy in (-1, 1)]) @ plane.axes[:2]
    share = np.abs(corners) / half
    assert share.max() == pytest.approx(1.0, abs=1e-9)


def test_rectangle_in_a_plane_almost_along_an_axis():
    plane = Plane.of(settings(plane_points=[0.0, 0.0, 0.0, 0.1, 1e-312, 0.0, 0.0, 0.1, 0.0]))
    assert plane.extent((0.08, 0.06, 0.035)) == pytest.approx((0.08, 0.06))


def test_rectangle_in_a_plane_of_two_axes_is_the_side_of_the_box():
    assert Plane.of(settings(plane="xz")).extent((0.08, 0.06, 0.035)) == pytest.approx((0.08, 0.035))


@kernel
def step(s, time, x, y):
    s.now = time
    place_in_plane(s, 1)
    estimate_in_plane(s)
    s.compensation.total[0], s.compensation.total[1] = x, y
    spread_force(s)


@pytest.fixture
def record():
    """Record of a driver on an inclined plane, with a held axis."""
    own = settings(plane_points=[0.0, 0.0, 0.05, 0.04, 0.0, 0.08, 0.0, 0.05, 0.05])
    record = np.zeros(1, plane_fields(3, 3))
    plane = Plane.of(own)
    record["axes"], record["middle"], record["period"] = plane.axes, plane.middle, 1e-3
    record["hold_stiffness"], record["hold_damping"], record["hold_limit"] = 300.0, 0.0, 2.0
    for name in ("estimator", "lift"):
        fill_velocity(record[name], own, 1e-5, 1e-3)
        prepare_velocity(record[name])
    channels = np.zeros(2)
    record["channels"][0][:2] = channels
    return record, plane


def test_position_and_force_are_projected(record):
    record, plane = record
    record["assistance"] = 0.0
    point = plane.middle + np.array([0.012, -0.02, 0.003]) @ plane.axes
    record["sample"][0][1:4] = point
    step(record[0], 0.0, 1.5, -2.0)
    assert record["position"][0] == pytest.approx([0.012, -0.02])
    assert record["height"][0] == pytest.approx(0.003)
    assert record["given"][0][:3] == pytest.approx(np.array([1.5, -2.0, 0.0]) @ plane.axes)


def test_held_axis_approaches_slowly_and_its_force_is_limited(record):
    record, plane = record
    record["assistance"] = 1.0
    height = 0.02
    record["sample"][0][1:4] = plane.middle + height * plane.axes[2]
    record["held_at"] = height
    forces = []
    for tick in range(500):
        step(record[0], 1e-3 * tick, 0.0, 0.0)
        forces.append(record["given"][0][:3] @ plane.axes[2])
    assert forces[0] == pytest.approx(-300.0 * APPROACH * 1e-3)
    assert forces[100] == pytest.approx(-300.0 * APPROACH * 0.101)
    assert forces[-1] == pytest.approx(-2.0)
    assert np.abs(np.array(record["given"][0][:3]) - forces[-1] * plane.axes[2]).max() < 1e-12


def test_position_that_is_not_finite_gives_no_force_and_a_new_set_point(record):
    record, plane = record
    record["assistance"], record["hold_rate"] = 1.0, 10.0
    above = plane.middle + 0.004 * plane.axes[2]

    def normal(tick, point):
        record["sample"][0][1:4] = point
        step(record[0], 1e-3 * tick, 0.5, 0.0)
        return record["given"][0][:3] @ plane.axes[2]

    assert normal(0, above) < 0.0
    for share in (0.5, 0.0):  # as the servo sets it
        record["assistance"] = share
        assert normal(1, np.full(3, np.nan)) == pytest.approx(0.0, abs=1e-12)
    record["assistance"] = 0.1
    assert [normal(2, above), normal(3, above)] == pytest.approx([0.0, -0.1 * 300.0 * APPROACH * 1e-3], rel=0.02)


def test_holding_force_at_its_limit_is_reported_where_the_axis_is_not_held():
    device = Touch({"hold_force": 1.5})
    held, moving, pushed = (1.5e-3, 1.4, 0.0), (0.5e-3, -1.5, 0.0), (-4e-3, 1.5, 0.0)
    for channels in ([held, pushed], [moving, pushed], np.empty((0, 3))):
        assert device.review(np.array(channels)) == ""
    assert "device.hold_force = 1.5 N: the handle is 4 mm beside the plane" in device.review(np.array([pushed, pushed]))
    assert Touch({"hold_force": 0.0}).review(np.array([(-4e-3, 0.0, 0.0)])) == ""
