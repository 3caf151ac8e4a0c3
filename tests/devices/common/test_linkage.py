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


@given(left=st.floats(-0.5, 0.5), right=st.floats(-0.5, 0.5))
def test_links_keep_their_lengths(left, right):
    end = PANTOGRAPH.positions([[left, right]])[0]
    q1, q5 = left + PANTOGRAPH.left_offset, right + PANTOGRAPH.right_offset
    elbow_left = 0.1 * np.array((math.cos(q1), math.sin(q1)))
    elbow_right = np.array((0.085 + 0.1 * math.cos(q5), 0.1 * math.sin(q5)))
    assert math.dist(end, elbow_left) == pytest.approx(0.165)
    assert math.dist(end, elbow_right) == pytest.approx(0.165)
    across = elbow_right - elbow_left
    assert across[0] * (end - elbow_left)[1] - across[1] * (end - elbow_left)[0] > 0.0  # the far one of the two


def test_mirrored_angles_put_the_end_on_the_axis_of_symmetry():
    linkage = FiveBar(0.1, 0.165, 0.165, 0.1, 0.085)
    end = linkage.positions([[2.5, math.pi - 2.5]])[0]
    half = 0.0425 - 0.1 * math.cos(2.5)
    np.testing.assert_allclose(end, (0.0425, 0.1 * math.sin(2.5) + math.sqrt(0.165**2 - half**2)), rtol=1e-12)


def test_passive_joints_point_from_the_elbows_to_the_end():
    joints = np.array([[0.1, -0.2], [-0.3, 0.05]])
    end, passive = PANTOGRAPH.positions(joints), PANTOGRAPH.passive_joints(joints)
    for (left, right), (third, fourth), point in zip(joints, passive, end, strict=True):
        q1, q5 = left + PANTOGRAPH.left_offset, right + PANTOGRAPH.right_offset
        for base, inner, turn in ((0.0, q1, third), (0.085, q5, fourth)):
            reached = np.array((base + 0.1 * math.cos(inner), 0.1 * math.sin(inner)))
            reached += 0.165 * np.array((math.cos(inner + turn), math.sin(inner + turn)))
            np.testing.assert_allclose(reached, point, atol=1e-12)


def test_linkage_that_cannot_be_closed_gives_nan():
    linkage = FiveBar(0.1, 0.02, 0.02, 0.1, 0.085)
    assert np.isnan(linkage.positions([[math.pi, 0.0]])).all()


def test_impossible_length_is_named():
    with pytest.raises(ConfigurationError, match=r"linkage\.left_inner = 0\.0: .*greater than 0 m"):
        FiveBar(0.0, 0.165, 0.165, 0.1, 0.085)
    with pytest.raises(ConfigurationError, match=r"linkage\.base = -0\.1: .*at least 0 m"):
        FiveBar(0.1, 0.165, 0.165, 0.1, -0.1)


@pytest.mark.parametrize("side", [0, 2, 0.5])
def test_impossible_side_is_named(side):
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
    columns = []
    for axis in np.eye(2):
        columns.append((function([point + step * axis]) - function([point - step * axis]))[0] / (2.0 * step))
    return np.column_stack(columns)


@given(linkage=linkages, joints=angles)
def test_jacobian_is_the_derivative_of_the_position(linkage, joints):
    assume(away_from_singularities(linkage, joints))
    numeric = central_differences(linkage.positions, np.array(joints))
    np.testing.assert_allclose(linkage.jacobians([joints])[0], numeric, atol=1e-6)


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("shape", SHAPES)
def test_jacobian_is_right_in_every_region_also_with_the_end_below_both_elbows(shape, side):
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
def test_inverse_gives_the_joints_back(linkage, joints):
    assume(away_from_singularities(linkage, joints))
    end = linkage.positions([joints])[0]
    elbows = []
    for motor, angle in ((0.0, joints[0] + linkage.left_offset), (linkage.base, joints[1] + linkage.right_offset)):
        reach = end - (motor, 0.0)
        assume(np.hypot(*reach) > 1e-3)
        elbows.append(1 if reach[0] * math.sin(angle) - reach[1] * math.cos(angle) > 0.0 else -1)
    back = linkage.joints([end], tuple(elbows))[0]
    np.testing.assert_allclose(np.exp(1j * back), np.exp(1j * np.array(joints)), atol=1e-9)


@pytest.mark.parametrize("elbows", [(1, -1), (1, 1), (-1, 1), (-1, -1)])
@given(linkage=linkages, joints=angles)
def test_every_arm_ends_where_the_inverse_was_asked_to_however_it_bends(elbows, linkage, joints):
    assume(away_from_singularities(linkage, joints))
    asked = linkage.positions([joints])
    assume(all(np.hypot(*(asked[0] - (motor, 0.0))) > 1e-3 for motor in (0.0, linkage.base)))
    bent = linkage.joints(asked, elbows)
    assert np.isfinite(bent).all()
    assume(linkage.clearance(bent)[0, 0] > 1e-3)  # elbows in one point, say, hold the end nowhere
    ends = np.concatenate([dataclasses.replace(linkage, side=side).positions(bent) for side in (1, -1)])
    assert np.hypot(*(ends - asked).T).min() < 1e-6


def test_out_of_reach_gives_nan():
    assert np.isnan(PANTOGRAPH.joints([(0.0425, 0.3)])).all()


@given(linkage=linkages, joints=angles, force=st.tuples(st.floats(-5.0, 5.0), st.floats(-5.0, 5.0)))
def test_torques_do_the_work_of_the_force(linkage, joints, force):
    assume(away_from_singularities(linkage, joints))
    closed = close_linkage(joints[0] + linkage.left_offset, joints[1] + linkage.right_offset, *linkage.shape)
    torques = np.array(motor_torques(*force, *closed[2:]))
    np.testing.assert_allclose(torques, linkage.jacobians([joints])[0].T @ force, atol=1e-9)


def test_clearance_is_one_at_right_angles_and_zero_in_line():
    linkage = FiveBar(0.1, 0.1, 0.1, 0.1, 0.1)
    square = math.acos(0.5 - math.sqrt(0.5))  # then the elbows are the diagonal of a square apart
    assert linkage.clearance([(square, math.pi - square)])[0, 0] == pytest.approx(1.0)
    stretched = linkage.joints([np.array((0.1, 0.1 * math.sqrt(3.0))) * (1.0 - 1e-10)])
    assert linkage.clearance(stretched)[0, 1] == pytest.approx(0.0, abs=1e-4)
    flat = math.acos(-0.5) - 1e-9
    assert linkage.clearance([(flat, math.pi - flat)])[0, 0] == pytest.approx(0.0, abs=1e-3)


def test_the_two_sides_are_mirror_images_about_the_line_of_the_elbows():
    joints = [(2.4, 0.7)]
    up, down = (dataclasses.replace(PANTOGRAPH, side=side).positions(joints)[0] for side in (1, -1))
    elbows = [
        np.array((base, 0.0)) + 0.1 * np.array((math.cos(q), math.sin(q)))
        for base, q in ((0.0, 2.4 + 2.5656), (0.085, 0.7 + 0.576))
    ]
    line = elbows[1] - elbows[0]
    np.testing.assert_allclose((up + down) / 2.0 - elbows[0], line / 2.0, atol=1e-12)
    assert line @ (up - down) == pytest.approx(0.0, abs=1e-12)


def test_published_value_of_the_icube_needle_pantograph():
    linkage = FiveBar(0.1, 0.165, 0.165, 0.1, 0.085)
    np.testing.assert_allclose(linkage.positions([(math.pi - 0.5, 0.5)])[0], (0.0425, 0.149223285959824), atol=1e-15)


@pytest.mark.skipif(not RECORDING.exists(), reason="the real recordings are not there: ../shared/data is missing")
def test_real_pantograph_logged_the_same_passive_joints():
    table = read_table(str(RECORDING))
    motors, passive = table.find(("joint1", "joint2")), table.find(("joint3", "joint4"))
    # The device logs passive joints one sample late. Where it lost a sample, the row after is two samples late instead.
    in_step = np.diff(table.times()) < 0.015
    assert in_step.mean() > 0.999
    ours = linkage_of(table).passive_joints(motors)
    difference = np.degrees(ours[:-1] - passive[1:])[in_step]
    assert np.abs(difference).max() < 0.05
