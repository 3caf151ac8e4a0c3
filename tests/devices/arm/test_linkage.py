"""An arm's linkages in the axes of the device: geometry, its inverse and derivatives, and what is within reach."""

from __future__ import annotations

import cmath
import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from devices.arm.mechanics.linkage import PlacedLinkage, SerialTwoLink
from devices.arm.mechanics.linkage_kernels import bend, turning_acceleration
from devices.common.linkage import FiveBar
from devices.virtual.hands.csv_table import read_table
from devices.virtual.hands.recorded import linkage_of
from haptics.errors import ConfigurationError
from haptics.jit import kernel

Array = NDArray[np.float64]

RECORDING = Path(__file__).resolve().parents[4] / "shared" / "data" / "pantograph" / "icube_recording.csv"

ANGLE = st.floats(-math.pi, math.pi)
LENGTH = st.floats(0.1, 1.0)
JOINTS = st.tuples(ANGLE, ANGLE).map(np.array)
PLACE = {
    "centre": st.tuples(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0)),
    "rotation": ANGLE,
}
SERIAL = st.builds(PlacedLinkage, st.builds(SerialTwoLink, LENGTH, LENGTH, st.booleans()), **PLACE)
BARS = st.builds(
    FiveBar, *[LENGTH] * 4, st.floats(0.0, 0.4), st.floats(-1.0, 1.0), st.floats(-1.0, 1.0), st.sampled_from((1, -1))
)
PARALLEL = st.builds(PlacedLinkage, BARS, **PLACE)

ARMS = {
    "relative": PlacedLinkage(SerialTwoLink(0.4, 0.35), (0.0, 0.5), 0.3),
    "absolute": PlacedLinkage(SerialTwoLink(0.4, 0.35, absolute=True), (0.0, 0.5), 0.3, (-1, -1)),
    "five-bar": PlacedLinkage(FiveBar(0.3, 0.4, 0.4, 0.3, 0.15), (0.075, 0.45), 0.3),
}
every_arm = pytest.mark.parametrize("arm", ARMS.values(), ids=ARMS)


def clear(arm: PlacedLinkage, q: Array, least: float = 0.05) -> bool:
    return bool((arm.clearance([q]) > least).all())  # nan is not


def elbows_of(arm: PlacedLinkage, q: Array) -> tuple[int, int]:
    """On which side of the way from its motor to the end effector each elbow is."""
    end = arm.positions([q])[0]
    record = arm.record[0]
    sides = []
    for angle, length, motor in zip(
        q + record["offsets"], record["lengths"][[0, 3]], (np.zeros(2), record["motor"]), strict=True
    ):
        way = end + record["centre"] - motor
        elbow = length * np.array((math.cos(angle), math.sin(angle)))
        assume(np.hypot(*way) > 1e-2)
        sides.append(1 if way[0] * elbow[1] - way[1] * elbow[0] > 0.0 else -1)
    return sides[0], sides[1]


def same_angles(a: Array, b: Array, tolerance: float) -> None:
    np.testing.assert_allclose(np.exp(1j * a), np.exp(1j * b), atol=tolerance)


# --- geometry -------------------------------------------------------------------------------------------------------


@given(SERIAL, JOINTS)
def test_two_links_follow_one_another_from_a_turned_base(arm: PlacedLinkage, q: Array) -> None:
    links = arm.linkage
    assert isinstance(links, SerialTwoLink)
    first = cmath.rect(1.0, q[0])
    second = cmath.rect(1.0, q[1]) * (1.0 if links.absolute else first)
    end = links.length_1 * first + links.length_2 * second - complex(*arm.centre)
    end *= cmath.rect(1.0, arm.rotation)
    np.testing.assert_allclose(arm.positions([q])[0], (end.real, end.imag), atol=1e-12)


@given(PARALLEL, JOINTS)
def test_a_five_bar_linkage_is_turned_and_shifted_as_a_whole(arm: PlacedLinkage, q: Array) -> None:
    assume(clear(arm, q))
    there = complex(*(arm.linkage.positions([q])[0] - arm.centre)) * cmath.rect(1.0, arm.rotation)
    np.testing.assert_allclose(arm.positions([q])[0], (there.real, there.imag), atol=1e-9)


@given(st.one_of(SERIAL, PARALLEL), JOINTS)
def test_jacobian_is_the_derivative_of_the_position(arm: PlacedLinkage, q: Array) -> None:
    assume(clear(arm, q))
    steps = 1e-6 * np.eye(2)
    numeric = (arm.positions(q + steps) - arm.positions(q - steps)).T / 2e-6
    np.testing.assert_allclose(arm.jacobians([q])[0], numeric, atol=1e-6)


@pytest.mark.parametrize("rotation", [0.0, 1.0, math.pi])
@pytest.mark.parametrize("side", [1, -1])
def test_jacobian_is_right_wherever_the_end_is_also_below_both_elbows(side: int, rotation: float) -> None:
    bars = FiveBar(0.3, 0.42, 0.4, 0.28, 0.15, side=side)
    arm = PlacedLinkage(bars, rotation=rotation)
    grid = np.linspace(-math.pi, math.pi, 25)
    joints = np.array([(left, right) for left in grid for right in grid])
    joints = joints[(arm.clearance(joints) > 0.05).all(axis=1)]
    ends = bars.positions(joints)[:, 1]
    where = ends > 0.3 * np.sin(joints[:, 0]), ends > 0.28 * np.sin(joints[:, 1])
    assert set(zip(*where, strict=True)) == {(False, False), (False, True), (True, False), (True, True)}
    columns = [(arm.positions(joints + d) - arm.positions(joints - d)) / 2e-6 for d in 1e-6 * np.eye(2)]
    np.testing.assert_allclose(arm.jacobians(joints), np.stack(columns, axis=-1), atol=1e-6)


@kernel
def _fill_turning(linkage: Any, joints: Any, speeds: Any, results: Any) -> None:
    """Fill `results`, (n, 3), with the angle between two links and the acceleration that the speeds alone cause."""
    s = linkage[0]
    for k in range(len(joints)):
        q1, q2, w1, w2 = joints[k, 0], joints[k, 1], speeds[k, 0], speeds[k, 1]
        results[k, 0] = bend(s, q1, q2)
        results[k, 1], results[k, 2] = turning_acceleration(s, q1, q2, w1, w2)


@every_arm
def test_at_steady_joint_speeds_the_end_is_accelerated_as_its_path_bends(arm: PlacedLinkage) -> None:
    generator, step = np.random.default_rng(3), 1e-4
    joints = np.array(arm.home) + generator.uniform(-0.4, 0.4, (40, 2))
    speeds, found = generator.uniform(-2.0, 2.0, (40, 2)), np.empty((40, 3))
    _fill_turning(arm.record, joints, speeds, found)
    ways = [arm.positions(joints + k * step * speeds) for k in (-1, 0, 1)]
    np.testing.assert_allclose(found[:, 1:], (ways[0] - 2.0 * ways[1] + ways[2]) / step**2, atol=1e-5)


@pytest.mark.parametrize("name", ["relative", "absolute"])
def test_the_bend_is_the_angle_from_the_inner_to_the_outer_link(name: str) -> None:
    arm, found = ARMS[name], np.empty((20, 3))
    joints = np.random.default_rng(4).uniform(-3.0, 3.0, (20, 2))
    _fill_turning(arm.record, joints, np.zeros((20, 2)), found)
    inner = joints[:, 0] + arm.rotation
    elbow = 0.4 * np.column_stack((np.cos(inner), np.sin(inner))) - arm.record[0]["centre"]
    outer = np.arctan2(*(arm.positions(joints) - elbow).T[::-1])
    same_angles(found[:, 0], outer - inner, 1e-9)


# --- the inverse ----------------------------------------------------------------------------------------------------


@given(st.one_of(SERIAL, PARALLEL), JOINTS)
def test_inverse_gives_the_joints_back_however_the_arm_bends(arm: PlacedLinkage, q: Array) -> None:
    assume(clear(arm, q))
    bent = dataclasses.replace(arm, elbows=elbows_of(arm, q))
    same_angles(bent.joints(bent.positions([q]))[0], q, 1e-9)


@given(st.one_of(SERIAL, PARALLEL), st.tuples(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0)))
def test_inverse_puts_the_end_where_it_was_asked_to(arm: PlacedLinkage, end: tuple[float, float]) -> None:
    joints = arm.joints([end])
    assume(np.isfinite(joints).all() and clear(arm, joints[0], 1e-3))
    np.testing.assert_allclose(arm.positions(joints)[0], end, atol=1e-9)


@given(SERIAL, ANGLE, st.sampled_from((0.0, math.pi)))
def test_inverse_gives_stretched_and_folded_arms_back(arm: PlacedLinkage, first: float, bend: float) -> None:
    """At the very edge of what is within reach: rounding must not take the pose away."""
    links = arm.linkage
    assert isinstance(links, SerialTwoLink)
    assume(bend == 0.0 or abs(links.length_1 - links.length_2) > 1e-3)
    q = np.array((first, first + bend if links.absolute else bend))
    same_angles(arm.joints(arm.positions([q]))[0], q, 1e-5)


def test_relative_angles_are_negative_with_the_elbow_to_the_left() -> None:
    links = SerialTwoLink(1.0, 1.0)
    left, right = (PlacedLinkage(links, elbows=(elbow, 1)).joints([(1.0, 0.0)])[0] for elbow in (1, -1))
    assert left == pytest.approx((math.pi / 3.0, -2.0 * math.pi / 3.0))
    assert right == pytest.approx(-left)


@every_arm
def test_out_of_reach_is_no_number(arm: PlacedLinkage) -> None:
    assert np.isnan(arm.joints([(2.0, 0.0)])).all()
    assert np.isnan(arm.joints([(math.nan, 0.0)])).all()


def test_a_folded_arm_does_not_reach_its_base() -> None:
    for outer in (0.3, 0.4):
        assert np.isnan(PlacedLinkage(SerialTwoLink(0.4, outer)).joints([(0.0, 0.0)])).all()


def test_a_five_bar_linkage_is_not_assembled_anew() -> None:
    """Below its elbows it reaches with the elbows it has, but only if it is put together to the other side."""
    here, there = (PlacedLinkage(FiveBar(0.3, 0.4, 0.4, 0.3, 0.15, side=side)) for side in (1, -1))
    end = [(0.075, -0.1)]
    assert np.isnan(here.joints(end)).all()
    np.testing.assert_allclose(there.positions(there.joints(end)), end, atol=1e-12)


@every_arm
@pytest.mark.parametrize("rotation", np.linspace(-7.0, 7.0, 15))
def test_angles_do_not_jump_within_the_workspace_however_the_base_is_turned(
    arm: PlacedLinkage, rotation: float
) -> None:
    turned = dataclasses.replace(arm, rotation=rotation)
    way = np.linspace(0.0, 2.0 * math.pi, 200)
    joints = turned.joints(0.1 * np.column_stack((np.cos(way), np.sin(3.0 * way))))
    assert np.abs(np.diff(joints, axis=0)).max() < 0.1
    np.testing.assert_allclose(turned.home, turned.joints([(0.0, 0.0)])[0])
    np.testing.assert_allclose(turned.positions([turned.home])[0], 0.0, atol=1e-12)


@pytest.mark.skipif(not RECORDING.exists(), reason="the real recordings are not there: ../shared/data is missing")
def test_every_pose_of_a_real_pantograph_comes_back_from_where_its_end_was() -> None:
    table = read_table(str(RECORDING))
    motors = table.find(("joint1", "joint2"))
    arm = PlacedLinkage(linkage_of(table), rotation=0.5)
    np.testing.assert_allclose(arm.joints(arm.positions(motors)), motors, atol=1e-9)


# --- singular poses and the workspace -------------------------------------------------------------------------------


@given(SERIAL, JOINTS)
def test_clearance_of_two_links_is_their_jacobian_for_their_lengths(arm: PlacedLinkage, q: Array) -> None:
    links = arm.linkage
    assert isinstance(links, SerialTwoLink)
    area = abs(np.linalg.det(arm.jacobians([q])[0]))
    assert arm.clearance([q])[0, 0] == pytest.approx(area / (links.length_1 * links.length_2), abs=1e-12)


@every_arm
@given(
    st.tuples(st.floats(-0.2, 0.2), st.floats(-0.2, 0.2)), st.tuples(st.floats(0.01, 0.3), st.floats(0.01, 0.3)), ANGLE
)
def test_least_clearance_is_that_of_the_worst_place(
    arm: PlacedLinkage, lower: tuple[float, float], size: tuple[float, float], rotation: float
) -> None:
    arm = dataclasses.replace(arm, rotation=rotation)
    upper = lower[0] + size[0], lower[1] + size[1]
    axes = [np.linspace(a, b, 23) for a, b in zip(lower, upper, strict=True)]
    joints = arm.joints(np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2))
    found = arm.least_clearance(lower, upper)
    if np.isfinite(joints).all():
        worst = arm.clearance(joints).min()
        assert found <= worst + 1e-9
        assert found == pytest.approx(worst, abs=0.1)
    else:
        assert found == 0.0


def test_nearest_and_farthest_place_tell_how_near_two_links_come_to_a_singular_pose() -> None:
    arm = PlacedLinkage(SerialTwoLink(0.3, 0.4), (0.0, 0.5))
    assert arm.least_clearance((-1e-9, -1e-9), (1e-9, 1e-9)) == pytest.approx(1.0)
    assert arm.least_clearance((-0.1, -0.1), (0.1, 0.199999)) == pytest.approx(0.0, abs=0.1)
    assert arm.least_clearance((-0.1, -0.1), (0.1, 0.2)) == 0.0
    assert arm.least_clearance((-0.1, -0.6), (0.1, 0.1)) == 0.0


@every_arm
def test_a_workspace_is_refused_where_the_arm_does_not_come_or_nearly_not(arm: PlacedLinkage) -> None:
    arm.require_workspace((-0.08, -0.08), (0.08, 0.08), 0.2)
    with pytest.raises(ConfigurationError, match=r"from \(-1, -0\.1\) to \(0\.1, 0\.1\) m .* not all within reach"):
        arm.require_workspace((-1.0, -0.1), (0.1, 0.1), 0.1)
    least = arm.least_clearance((-0.1, -0.1), (0.1, 0.1))
    assert 0.0 < least < 0.99
    with pytest.raises(ConfigurationError, match=f"comes within {least:.3g} of a singular pose .* 0.99 is needed"):
        arm.require_workspace((-0.1, -0.1), (0.1, 0.1), 0.99)
    for corner in ((-0.1, 0.2), (math.nan, 1.0)):
        with pytest.raises(ConfigurationError, match="must be the corners of a rectangle"):
            arm.require_workspace((-0.1, 0.2), corner, 0.1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"centre": (0.0, math.inf)}, r"centre = \(0.0, inf\)"),
        ({"rotation": math.nan}, "rotation = nan"),
        ({"elbows": (1, 0)}, r"elbows = \(1, 0\)"),
    ],
)
def test_places_that_cannot_be(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        PlacedLinkage(SerialTwoLink(1.0, 1.0), **settings)  # type: ignore[arg-type]


def test_links_without_length() -> None:
    with pytest.raises(ConfigurationError, match=r"linkage\.length_2 = 0\.0: must be a finite number greater than 0 m"):
        SerialTwoLink(1.0, 0.0)
