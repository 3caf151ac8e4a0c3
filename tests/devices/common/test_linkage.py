"""The five-bar linkage: its closure, and a real device's own kinematics."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from devices.common.linkage import FiveBar, close_linkage, motor_torques
from devices.virtual.hands.csv_table import read_table
from devices.virtual.hands.recorded import linkage_of
from haptics.errors import ConfigurationError

RECORDING = Path(__file__).resolve().parents[4] / "shared" / "data" / "pantograph" / "icube_recording.csv"
PANTOGRAPH = FiveBar(0.1, 0.165, 0.165, 0.1, 0.085, 2.5656, 0.576)


@pytest.mark.parametrize("side", [1, -1])
@given(left=st.floats(-0.5, 0.5), right=st.floats(-0.5, 0.5))
def test_links_keep_their_lengths_and_side(side, left, right):
    end = dataclasses.replace(PANTOGRAPH, side=side).positions([[left, right]])[0]
    q1, q5 = left + PANTOGRAPH.left_offset, right + PANTOGRAPH.right_offset
    elbow_left = 0.1 * np.array((math.cos(q1), math.sin(q1)))
    elbow_right = np.array((0.085 + 0.1 * math.cos(q5), 0.1 * math.sin(q5)))
    assert math.dist(end, elbow_left) == pytest.approx(0.165)
    assert math.dist(end, elbow_right) == pytest.approx(0.165)
    across = elbow_right - elbow_left
    assert side * (across[0] * (end - elbow_left)[1] - across[1] * (end - elbow_left)[0]) > 0.0


def test_open_linkage_and_positions_out_of_reach_give_nan():
    linkage = FiveBar(0.1, 0.02, 0.02, 0.1, 0.085)
    assert np.isnan(linkage.positions([[math.pi, 0.0]])).all()
    assert np.isnan(PANTOGRAPH.joints([(0.0425, 0.3)])).all()


def test_invalid_linkages_are_rejected():
    with pytest.raises(ConfigurationError, match=r"linkage\.left_inner = 0\.0: .*greater than 0 m"):
        FiveBar(0.0, 0.165, 0.165, 0.1, 0.085)
    with pytest.raises(ConfigurationError, match=r"linkage\.base = -0\.1: .*at least 0 m"):
        FiveBar(0.1, 0.165, 0.165, 0.1, -0.1)
    for side in (0, 2, 0.5):
        with pytest.raises(ConfigurationError, match=r"linkage\.side = "):
            FiveBar(0.1, 0.165, 0.165, 0.1, 0.085, side=side)


# --- the Jacobian, the inverse and the singularities -----------------------------------------------------------------

lengths = st.floats(0.04, 0.2)
angles = st.tuples(st.floats(-math.pi, math.pi), st.floats(-math.pi, math.pi))
linkages = st.builds(
    FiveBar,
    *[lengths] * 4,
    st.floats(0.0, 0.1),
    st.floats(-1.0, 1.0),
    st.floats(-1.0, 1.0),
    side=st.sampled_from((1, -1)),
)
SHAPES = (
    PANTOGRAPH,
    FiveBar(0.05, 0.07, 0.07, 0.05, 0.02),
    FiveBar(0.07, 0.09, 0.09, 0.07, 0.0),
    FiveBar(0.063, 0.075, 0.07, 0.06, 0.025),
)


def away_from_singularities(linkage, joints, clearance=0.05):
    return bool((linkage.clearance([joints]) > clearance).all())  # nan is not


def central_differences(function, point, step=1e-6):
    """Return the derivatives of ``function((1, 2) array) -> (1, 2) array`` at `point`, one column per argument."""
    steps = step * np.eye(2)
    return (function(point + steps) - function(point - steps)).T / (2.0 * step)


@given(linkage=linkages, joints=angles)
def test_jacobian_is_the_derivative_of_the_position(linkage, joints):
    assume(away_from_singularities(linkage, joints))
    numeric = central_differences(linkage.positions, np.array(joints))
    np.testing.assert_allclose(linkage.jacobians([joints])[0], numeric, atol=1e-6)


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("shape", SHAPES)
def test_jacobian_is_correct_in_every_region(shape, side):
    linkage = dataclasses.replace(shape, left_offset=0.0, right_offset=0.0, side=side)
    grid = np.linspace(-math.pi, math.pi, 25)
    joints = np.array([(left, right) for left in grid for right in grid])
    joints = joints[(linkage.clearance(joints) > 0.05).all(axis=1)]
    elbows = [shape.left_inner * np.sin(joints[:, 0]), shape.right_inner * np.sin(joints[:, 1])]
    above, below = (linkage.positions(joints)[:, 1] - elbow for elbow in elbows)
    regions = set(zip(above > 0.0, below > 0.0, strict=True))
    assert regions == {(False, False), (False, True), (True, False), (True, True)}
    numeric = [central_differences(linkage.positions, pair) for pair in joints]
    np.testing.assert_allclose(linkage.jacobians(joints), numeric, atol=1e-6)


@given(linkage=linkages, joints=angles)
def test_inverse_returns_the_joints(linkage, joints):
    assume(away_from_singularities(linkage, joints))
    end = linkage.positions([joints])[0]
    elbows = []
    for motor, angle in ((0.0, joints[0] + linkage.left_offset), (linkage.base, joints[1] + linkage.right_offset)):
        reach = end - (motor, 0.0)
        assume(np.hypot(*reach) > 1e-3)
        elbows.append(1 if reach[0] * math.sin(angle) - reach[1] * math.cos(angle) > 0.0 else -1)
    back = linkage.joints([end], tuple(elbows))[0]
    np.testing.assert_allclose(np.exp(1j * back), np.exp(1j * np.array(joints)), atol=1e-9)


@given(linkage=linkages, joints=angles, force=st.tuples(st.floats(-5.0, 5.0), st.floats(-5.0, 5.0)))
def test_motor_torques_are_the_transposed_jacobian(linkage, joints, force):
    assume(away_from_singularities(linkage, joints))
    closed = close_linkage(joints[0] + linkage.left_offset, joints[1] + linkage.right_offset, *linkage.shape)
    torques = np.array(motor_torques(*force, *closed[2:]))
    np.testing.assert_allclose(torques, linkage.jacobians([joints])[0].T @ force, atol=1e-9)


def test_clearance_is_one_at_right_angles_and_zero_when_singular():
    linkage = FiveBar(0.1, 0.1, 0.1, 0.1, 0.1)
    square = math.acos(0.5 - math.sqrt(0.5))  # then the elbows are the diagonal of a square apart
    assert linkage.clearance([(square, math.pi - square)])[0, 0] == pytest.approx(1.0)
    stretched = linkage.joints([np.array((0.1, 0.1 * math.sqrt(3.0))) * (1.0 - 1e-10)])
    assert linkage.clearance(stretched)[0, 1] == pytest.approx(0.0, abs=1e-4)
    flat = math.acos(-0.5) - 1e-9
    assert linkage.clearance([(flat, math.pi - flat)])[0, 0] == pytest.approx(0.0, abs=1e-3)


def test_position_matches_the_published_value_of_the_icube_pantograph():
    linkage = FiveBar(0.1, 0.165, 0.165, 0.1, 0.085)
    np.testing.assert_allclose(linkage.positions([(math.pi - 0.5, 0.5)])[0], (0.0425, 0.149223285959824), atol=1e-15)


@pytest.mark.skipif(not RECORDING.exists(), reason="the real recordings are not there: ../shared/data is missing")
def test_passive_joints_match_the_log_of_a_real_pantograph():
    table = read_table(str(RECORDING))
    motors, passive = table.find(("joint1", "joint2")), table.find(("joint3", "joint4"))
    # The device logs passive joints one sample late. Where it lost a sample, the row after is two samples late instead.
    in_step = np.diff(table.times()) < 0.015
    assert in_step.mean() > 0.999
    linkage = linkage_of(table)
    ends, inner = linkage.positions(motors), motors + np.array((linkage.left_offset, linkage.right_offset))
    bases, lengths = np.array((0.0, linkage.base)), np.array((linkage.left_inner, linkage.right_inner))
    outer = ends[:, :1] - bases - lengths * np.cos(inner), ends[:, 1:] - lengths * np.sin(inner)
    ours = (np.arctan2(outer[1], outer[0]) - inner + np.pi) % (2.0 * np.pi) - np.pi
    difference = np.degrees(ours[:-1] - passive[1:])[in_step]
    assert np.abs(difference).max() < 0.05
