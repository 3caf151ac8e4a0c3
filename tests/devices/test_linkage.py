"""The five-bar linkage: its closure, and a real device's own kinematics."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.linkage import FiveBar
from devices.virtual.csv_table import read_table
from devices.virtual.recorded import linkage_of
from haptics.errors import ConfigurationError

RECORDING = Path(__file__).resolve().parents[3] / "shared" / "data" / "pantograph" / "icube_recording.csv"
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
    with pytest.raises(ConfigurationError, match=r"linkage\.base = 0\.0: .*greater than 0 m"):
        FiveBar(0.1, 0.165, 0.165, 0.1, 0.0)


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
