"""Kinematics and dynamics of serial and five-bar linkages."""

import cmath
import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from devices.arm.hybrid import FractionalLaw, Hybrid, simulate_hybrid
from devices.arm.mechanics.drive import Drive
from devices.arm.mechanics.dynamics import FiveBarLinks, TwoLinks
from devices.arm.mechanics.linkage import PlacedLinkage, SerialTwoLink, turning_acceleration
from devices.arm.mechanics.plant import Surface
from devices.common.linkage import FiveBar
from devices.virtual.hands.csv_table import read_table
from devices.virtual.hands.recorded import linkage_of
from haptics.errors import ConfigurationError
from haptics.jit import kernel

RECORDING = Path(__file__).resolve().parents[4] / "shared" / "data" / "pantograph" / "icube_recording.csv"

ANGLE = st.floats(-math.pi, math.pi)
LENGTH = st.floats(0.1, 1.0)
JOINTS = st.tuples(ANGLE, ANGLE).map(np.array)
PLACE = {"centre": st.tuples(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0)), "rotation": ANGLE}
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


def clear(arm, q, least=0.05):
    return bool((arm.clearance([q]) > least).all())  # nan is not


def elbows_of(arm, q):
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


def same_angles(a, b, tolerance):
    np.testing.assert_allclose(np.exp(1j * a), np.exp(1j * b), atol=tolerance)


# --- geometry -------------------------------------------------------------------------------------------------------


@given(SERIAL, JOINTS)
def test_serial_linkage_positions_match_complex_arithmetic(arm, q):
    links = arm.linkage
    first = cmath.rect(1.0, q[0])
    second = cmath.rect(1.0, q[1]) * (1.0 if links.absolute else first)
    end = links.length_1 * first + links.length_2 * second - complex(*arm.centre)
    end *= cmath.rect(1.0, arm.rotation)
    np.testing.assert_allclose(arm.positions([q])[0], (end.real, end.imag), atol=1e-12)


@given(PARALLEL, JOINTS)
def test_five_bar_linkage_is_placed_as_a_rigid_body(arm, q):
    assume(clear(arm, q))
    there = complex(*(arm.linkage.positions([q])[0] - arm.centre)) * cmath.rect(1.0, arm.rotation)
    np.testing.assert_allclose(arm.positions([q])[0], (there.real, there.imag), atol=1e-9)


@given(st.one_of(SERIAL, PARALLEL), JOINTS)
def test_jacobian_is_the_derivative_of_the_position(arm, q):
    assume(clear(arm, q))
    steps = 1e-6 * np.eye(2)
    numeric = (arm.positions(q + steps) - arm.positions(q - steps)).T / 2e-6
    np.testing.assert_allclose(arm.jacobians([q])[0], numeric, atol=1e-6)


@kernel
def _fill_turning(linkage, joints, speeds, results):
    """Fill `results`, (n, 2), with the acceleration of the end effector that the speeds alone cause."""
    for k in range(len(joints)):
        results[k, 0], results[k, 1] = turning_acceleration(
            linkage[0], joints[k, 0], joints[k, 1], speeds[k, 0], speeds[k, 1]
        )


@every_arm
def test_turning_acceleration_matches_the_path_curvature(arm):
    generator, step = np.random.default_rng(3), 1e-4
    joints = np.array(arm.home) + generator.uniform(-0.4, 0.4, (40, 2))
    speeds, found = generator.uniform(-2.0, 2.0, (40, 2)), np.empty((40, 2))
    _fill_turning(arm.record, joints, speeds, found)
    ways = [arm.positions(joints + k * step * speeds) for k in (-1, 0, 1)]
    np.testing.assert_allclose(found, (ways[0] - 2.0 * ways[1] + ways[2]) / step**2, atol=1e-5)


# --- the inverse ----------------------------------------------------------------------------------------------------


@given(st.one_of(SERIAL, PARALLEL), JOINTS)
def test_inverse_returns_the_joints_for_every_elbow(arm, q):
    assume(clear(arm, q))
    bent = dataclasses.replace(arm, elbows=elbows_of(arm, q))
    same_angles(bent.joints(bent.positions([q]))[0], q, 1e-9)


@given(SERIAL, ANGLE, st.sampled_from((0.0, math.pi)))
def test_inverse_works_for_stretched_and_folded_arms(arm, first, bend):
    """At the edge of the reach rounding must not lose the pose."""
    links = arm.linkage
    assume(bend == 0.0 or abs(links.length_1 - links.length_2) > 1e-3)
    q = np.array((first, first + bend if links.absolute else bend))
    same_angles(arm.joints(arm.positions([q]))[0], q, 1e-5)


@every_arm
def test_inverse_is_nan_out_of_reach(arm):
    assert np.isnan(arm.joints([(2.0, 0.0)])).all()
    assert np.isnan(arm.joints([(math.nan, 0.0)])).all()


def test_inverse_is_nan_at_the_base():
    for outer in (0.3, 0.4):
        assert np.isnan(PlacedLinkage(SerialTwoLink(0.4, outer)).joints([(0.0, 0.0)])).all()


def test_inverse_does_not_change_the_five_bar_assembly():
    """Below its elbows it reaches with the elbows it has, but only if it is put together to the other side."""
    here, there = (PlacedLinkage(FiveBar(0.3, 0.4, 0.4, 0.3, 0.15, side=side)) for side in (1, -1))
    end = [(0.075, -0.1)]
    assert np.isnan(here.joints(end)).all()
    np.testing.assert_allclose(there.positions(there.joints(end)), end, atol=1e-12)


@every_arm
@pytest.mark.parametrize("rotation", np.linspace(-7.0, 7.0, 15))
def test_inverse_is_continuous_for_every_base_rotation(arm, rotation):
    turned = dataclasses.replace(arm, rotation=rotation)
    way = np.linspace(0.0, 2.0 * math.pi, 200)
    joints = turned.joints(0.1 * np.column_stack((np.cos(way), np.sin(3.0 * way))))
    assert np.abs(np.diff(joints, axis=0)).max() < 0.1
    np.testing.assert_allclose(turned.home, turned.joints([(0.0, 0.0)])[0])
    np.testing.assert_allclose(turned.positions([turned.home])[0], 0.0, atol=1e-12)


@pytest.mark.skipif(not RECORDING.exists(), reason="the real recordings are not there: ../shared/data is missing")
def test_inverse_returns_the_recorded_poses_of_a_real_pantograph():
    table = read_table(str(RECORDING))
    motors = table.find(("joint1", "joint2"))
    arm = PlacedLinkage(linkage_of(table), rotation=0.5)
    np.testing.assert_allclose(arm.joints(arm.positions(motors)), motors, atol=1e-9)


# --- singular poses and the workspace -------------------------------------------------------------------------------


@given(SERIAL, JOINTS)
def test_serial_clearance_is_the_normalised_jacobian(arm, q):
    links = arm.linkage
    area = abs(np.linalg.det(arm.jacobians([q])[0]))
    assert arm.clearance([q])[0, 0] == pytest.approx(area / (links.length_1 * links.length_2), abs=1e-12)


@every_arm
@given(
    st.tuples(st.floats(-0.2, 0.2), st.floats(-0.2, 0.2)), st.tuples(st.floats(0.01, 0.3), st.floats(0.01, 0.3)), ANGLE
)
def test_least_clearance_is_the_minimum_over_the_workspace(arm, lower, size, rotation):
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


@every_arm
def test_workspace_out_of_reach_or_near_a_singularity_is_rejected(arm):
    arm.require_workspace((-0.08, -0.08), (0.08, 0.08), 0.2)
    with pytest.raises(ConfigurationError, match=r"from \(-1, -0\.1\) to \(0\.1, 0\.1\) m .* not all within reach"):
        arm.require_workspace((-1.0, -0.1), (0.1, 0.1), 0.1)
    least = arm.least_clearance((-0.1, -0.1), (0.1, 0.1))
    assert 0.0 < least < 0.99
    with pytest.raises(ConfigurationError, match=f"comes within {least:.3g} of a singular pose .* 0.99 is needed"):
        arm.require_workspace((-0.1, -0.1), (0.1, 0.1), 0.99)


PLACED = PlacedLinkage(SerialTwoLink(0.4, 0.35))
BARS_PLACED = PlacedLinkage(FiveBar(0.3, 0.4, 0.4, 0.3, 0.15))


@pytest.mark.parametrize(("distance", "reached"), [(0.7, True), (0.7 + 1e-6, False), (0.1, True), (0.1 - 1e-6, False)])
@pytest.mark.parametrize("absolute", [False, True])
def test_reach_ends_within_a_micrometre(distance, reached, absolute):
    arm = PlacedLinkage(SerialTwoLink(0.4, 0.3, absolute))
    ends = distance * np.array([[1.0, 0.0], [0.6, -0.8], [-0.28, 0.96]])
    assert (np.isfinite(arm.joints(ends)) == reached).all()


@pytest.mark.parametrize("arm", [BARS_PLACED, PLACED], ids=["five-bar", "serial"])
def test_workspace_with_exactly_the_least_clearance_is_accepted(arm):
    lower, upper = (0.0, 0.35), (0.15, 0.5)
    least = arm.least_clearance(lower, upper)
    assert least > 0.1
    arm.require_workspace(lower, upper, least)
    with pytest.raises(ConfigurationError, match="comes within"):
        arm.require_workspace(lower, upper, least * (1.0 + 1e-9))


# --- dynamics ---------------------------------------------------------------------------------------------------------


RODS = {f"length_{i}": st.floats(0.1, 2.0) for i in (1, 2)} | {f"mass_{i}": st.floats(0.1, 10.0) for i in (1, 2)}
RODS |= {f"centre_{i}": st.floats(-0.5, 1.2) for i in (1, 2)} | {f"inertia_{i}": st.floats(0.01, 2.0) for i in (1, 2)}
TWO_LINKS = st.builds(
    TwoLinks, joint_inertia_1=st.floats(0.0, 4.0), joint_inertia_2=st.floats(0.0, 4.0), absolute=st.booleans(), **RODS
)
FIVE_BARS = st.builds(
    FiveBarLinks,
    BARS,
    *[st.tuples(*[st.floats(low, high)] * 4) for low, high in ((0.1, 5.0), (-0.3, 1.2), (0.0, 0.5))],
    st.floats(0.0, 2.0),
    joint_inertia_1=st.floats(0.01, 1.0),
    joint_inertia_2=st.floats(0.01, 1.0),
)
SPEEDS = st.tuples(st.floats(-5.0, 5.0), st.floats(-5.0, 5.0)).map(np.array)
ARM = FiveBarLinks(
    FiveBar(0.3, 0.4, 0.45, 0.32, 0.15),
    masses=(1.0, 0.6, 0.7, 1.1),
    centres=(0.4, 0.5, 0.45, 0.35),
    inertias=(0.01, 0.008, 0.009, 0.012),
    tip_mass=0.5,
)


def rods_of(arm, q):
    """Ends of the rods, (n, 2, 2): rod, end, coordinate; also for complex angles. The last but one ends at the handle.

    A five-bar linkage by trigonometry: the end effector is the third corner of a triangle with known sides.
    """
    origin = np.zeros(2)
    if isinstance(arm, TwoLinks):
        p = q if arm.absolute else np.cumsum(q)
        elbow = arm.length_1 * np.array([np.cos(p[0]), np.sin(p[0])])
        end = elbow + arm.length_2 * np.array([np.cos(p[1]), np.sin(p[1])])
        return np.array([[origin, elbow], [elbow, end]])
    bars = arm.bars
    left = bars.left_inner * np.array([np.cos(q[0] + bars.left_offset), np.sin(q[0] + bars.left_offset)])
    motor = np.array([bars.base, 0.0])
    right = motor + bars.right_inner * np.array([np.cos(q[1] + bars.right_offset), np.sin(q[1] + bars.right_offset)])
    way = right - left
    distance = np.sqrt(way @ way)
    cosine = (bars.left_outer**2 + distance**2 - bars.right_outer**2) / (2.0 * bars.left_outer * distance)
    sine = bars.side * np.sqrt(1.0 - cosine**2)
    end = left + bars.left_outer / distance * (cosine * way + sine * np.array([-way[1], way[0]]))
    return np.array([[origin, left], [left, end], [right, end], [motor, right]])


def masses_of(arm):
    """Masses, centres along the rods, inertias and lengths of the rods, and the mass at the end effector."""
    if isinstance(arm, TwoLinks):
        pairs = ((getattr(arm, f"{name}_{i}") for i in (1, 2)) for name in ("mass", "centre", "inertia", "length"))
        return *(np.array(list(pair)) for pair in pairs), 0.0
    lengths = (arm.bars.left_inner, arm.bars.left_outer, arm.bars.right_outer, arm.bars.right_inner)
    return *map(np.array, (arm.masses, arm.centres, arm.inertias, lengths)), arm.tip_mass


def slopes(function, q):
    """Derivatives of an array with respect to both angles along a new last axis, by complex steps, exact."""
    return np.stack([np.imag(function(q + 1e-30j * d)) / 1e-30 for d in np.eye(2)], axis=-1)


def energy_form(arm, q):
    """Twice the kinetic energy as a quadratic form in the joint speeds, rod by rod: centre and turning of each."""
    form = np.diag([arm.joint_inertia_1, arm.joint_inertia_2])
    rods, rates = rods_of(arm, q), slopes(lambda p: rods_of(arm, p), q)
    *parts, tip = masses_of(arm)
    for (mass, c, inertia, length), rod, rate in zip(np.transpose(parts), rods, rates, strict=True):
        centre = (1.0 - c) * rate[0] + c * rate[1]
        along, change = (rod[1] - rod[0]) / length, (rate[1] - rate[0]) / length
        turning = along[0] * change[1] - along[1] * change[0]
        form = form + mass * centre.T @ centre + inertia * np.outer(turning, turning)
    return form + tip * rates[1, 1].T @ rates[1, 1]


def potential(arm, q):
    masses, c, _, _, tip = masses_of(arm)
    rods = rods_of(arm, q)
    return arm.gravity * (masses @ ((1.0 - c) * rods[:, 0, 1] + c * rods[:, 1, 1]) + tip * rods[1, 1, 1])


def require_regular(arm, q):
    if isinstance(arm, FiveBarLinks):
        assume((arm.bars.clearance([q]) > 0.1).all())


every_linkage = pytest.mark.parametrize("links", [TWO_LINKS, FIVE_BARS], ids=["two links", "five-bar"])


@every_linkage
@given(st.data())
def test_inertia_matrix_is_the_kinetic_energy_and_positive_definite(links, data):
    arm, q = data.draw(links), data.draw(JOINTS)
    require_regular(arm, q)
    matrix = arm.terms(q)["inertia"][0]
    np.testing.assert_allclose(matrix, energy_form(arm, q), rtol=1e-9, atol=1e-10)
    assert matrix[0, 1] == matrix[1, 0]
    assert np.linalg.eigvalsh(matrix).min() > 0.0


@every_linkage
@given(st.data())
def test_coriolis_matrix_follows_from_the_inertia(links, data):
    """Lagrange's equations: C w = dH/dt w - grad(w H w)/2; and dH/dt - 2 C is skew-symmetric."""
    arm, q, w = data.draw(links), data.draw(JOINTS), data.draw(SPEEDS)
    require_regular(arm, q)
    change = []
    for step in 1e-5 * np.eye(2):  # fourth-order central differences
        h = [energy_form(arm, q + k * step) for k in (-2.0, -1.0, 1.0, 2.0)]
        change.append((h[0] - 8.0 * h[1] + 8.0 * h[2] - h[3]) / 12e-5)
    change = np.stack(change, axis=-1)
    coriolis, rate = arm.terms(q, w)["coriolis"][0], change @ w
    scale = 1e-6 * (1.0 + np.abs(change).max()) * (1.0 + w @ w)
    if isinstance(arm, TwoLinks):
        scale = 1e-7 * (1.0 + np.abs(rate).max() * np.abs(w).max())
    np.testing.assert_allclose(coriolis @ w, rate @ w - 0.5 * np.einsum("i,ijk,j->k", w, change, w), atol=scale)
    skew = rate - 2.0 * coriolis
    np.testing.assert_allclose(skew + skew.T, 0.0, atol=scale)


@every_linkage
@given(st.data())
def test_gravity_torques_are_the_slope_of_the_potential_energy(links, data):
    arm, q = data.draw(links), data.draw(JOINTS)
    require_regular(arm, q)
    np.testing.assert_allclose(arm.terms(q)["gravity"][0], slopes(lambda p: potential(arm, p), q), atol=1e-9)


@every_linkage
@given(st.data())
def test_jacobian_and_acceleration_of_the_end_effector(links, data):
    arm, q, w = data.draw(links), data.draw(JOINTS), data.draw(SPEEDS)
    require_regular(arm, q)
    terms = arm.terms(q, w)[0]
    np.testing.assert_allclose(terms["position"], rods_of(arm, q)[1, 1], atol=1e-12)
    np.testing.assert_allclose(terms["jacobian"], slopes(lambda p: rods_of(arm, p)[1, 1], q), atol=1e-9)
    step = 1e-6 * w
    rate = (arm.terms(q + step)["jacobian"][0] - arm.terms(q - step)["jacobian"][0]) / 2e-6
    scale = 1e-6 if isinstance(arm, TwoLinks) else 1e-5 * (1.0 + np.abs(rate).max()) * (1.0 + w @ w)
    np.testing.assert_allclose(terms["turning"], rate @ w, atol=scale)


def test_default_links_are_the_arm_of_machado_2002():
    """Machado et al. 2002, Table I at q = 75, 75 degrees; rotors of 1 kg m^2 are part of the drives."""
    terms = TwoLinks().terms(np.radians((75.0, 75.0)))[0]
    c = np.cos(np.radians(75.0))
    assert terms["inertia"] == pytest.approx(np.array([[14.75 + 10.0 * c, 4.0 + 5.0 * c], [4.0 + 5.0 * c, 8.0]]))
    assert terms["jacobian"][1, 0] == pytest.approx(-0.434, abs=5e-4)


def test_hybrid_control_works_with_a_five_bar_linkage():
    """Under its weight, with the gains of Machado et al. 2002, Table II (CF), on their surface."""
    control = Hybrid(FractionalLaw.sampled(1e5, 0.5, 17, 1e-3), FractionalLaw.sampled(1e3, -0.2, 17, 1e-3))
    surface = Surface(0.03, 1.0, 400.0, math.pi / 2.0)
    drives = Drive(), Drive()
    run = simulate_hybrid(ARM, drives, surface, control, start=(2.2, 0.9), force=1.0, duration=1.0, substeps=20)
    assert run.rows["force"][-1] == pytest.approx(1.0, abs=2e-3)
    assert np.abs(run.rows["along"]).max() < 1e-3
    left, right = ARM.bars.joints([(0.3, math.sqrt(0.7**2 - 0.3**2) - 1e-9)])[0]
    with pytest.raises(ConfigurationError, match="in one line there"):
        simulate_hybrid(ARM, drives, surface, control, start=(left, right), force=1.0, duration=0.5)


# --- invalid settings -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("linkage", "settings", "message"),
    [
        (PLACED.linkage, {"length_2": 0.0}, r"linkage\.length_2 = 0\.0: must be a finite number greater than 0 m"),
        (TwoLinks(), {"length_1": 0.0}, r"links.length_1 = 0.0: must be a finite number greater than 0 m"),
        (TwoLinks(), {"mass_2": 0.0, "joint_inertia_2": 0.0}, "a joint has no inertia"),
        (TwoLinks(), {"gravity": np.nan}, "links.gravity = nan"),
        (TwoLinks(), {"absolute": "yes"}, "links.absolute = 'yes'"),
        (ARM, {"tip_mass": -1.0}, r"links\.tip_mass = -1\.0"),
        (ARM, {"masses": (0.0, 1.0, 1.0, 1.0), "inertias": (0.0,) * 4}, "no inertia about its motor"),
        (ARM, {"masses": (1.0, 1.0, 1.0, 0.0), "inertias": (0.0,) * 4}, "no inertia about its motor"),
    ],
)
def test_invalid_linkages_are_rejected(linkage, settings, message):
    with pytest.raises(ConfigurationError, match=message):
        dataclasses.replace(linkage, **settings)


@pytest.mark.parametrize("angles", [0.0, (1.0, 2.0, 3.0), (np.nan, 0.0)])
def test_invalid_poses_are_rejected(angles):
    with pytest.raises(ConfigurationError, match="must be pairs of finite numbers"):
        TwoLinks().terms(angles)
