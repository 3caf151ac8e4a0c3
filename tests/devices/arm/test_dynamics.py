"""The equations of motion of two links, held against mechanics: energy, momentum, geometry."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from devices.arm.mechanics.dynamics import TwoLinks
from haptics.errors import ConfigurationError

Array = NDArray[np.float64]

ANGLES = st.tuples(st.floats(-3.2, 3.2), st.floats(-3.2, 3.2)).map(np.array)
SPEEDS = st.tuples(st.floats(-5.0, 5.0), st.floats(-5.0, 5.0)).map(np.array)
ARMS = st.builds(
    TwoLinks,
    length_1=st.floats(0.1, 2.0),
    length_2=st.floats(0.1, 2.0),
    mass_1=st.floats(0.1, 10.0),
    mass_2=st.floats(0.1, 10.0),
    centre_1=st.floats(-0.5, 1.2),
    centre_2=st.floats(-0.5, 1.2),
    inertia_1=st.floats(0.01, 2.0),
    inertia_2=st.floats(0.01, 2.0),
    joint_inertia_1=st.floats(0.0, 4.0),
    joint_inertia_2=st.floats(0.0, 4.0),
    absolute=st.booleans(),
)
_TURN = np.array([[1.0, 0.0], [1.0, 1.0]])
"""From relative angles to absolute ones."""


def directions(arm: TwoLinks, q: Array) -> Array:
    """Angles of both links against the x axis."""
    return q if arm.absolute else _TURN @ q


def centres(arm: TwoLinks, q: Array) -> Array:
    """Centres of mass (2, 2), by geometry."""
    p = directions(arm, q)
    ways = np.column_stack((np.cos(p), np.sin(p)))
    elbow = arm.length_1 * ways[0]
    return np.array([arm.centre_1 * elbow, elbow + arm.centre_2 * arm.length_2 * ways[1]])


def slope(function, q: Array, step: float = 1e-6) -> Array:  # type: ignore[no-untyped-def]
    """Derivatives of an array with respect to both angles, along a new last axis."""
    return np.stack([(function(q + d) - function(q - d)) / (2.0 * step) for d in step * np.eye(2)], axis=-1)


def potential(arm: TwoLinks, q: Array) -> float:
    return float(arm.gravity * np.array([arm.mass_1, arm.mass_2]) @ centres(arm, q)[:, 1])


def kinetic(arm: TwoLinks, q: Array, w: Array) -> float:
    """Kinetic energy of two rods and of what turns with the joints [J]."""
    v = slope(lambda p: centres(arm, p), q) @ w
    turning = directions(arm, w)
    masses, rods = np.array([arm.mass_1, arm.mass_2]), np.array([arm.inertia_1, arm.inertia_2])
    joints = np.array([arm.joint_inertia_1, arm.joint_inertia_2])
    return float(0.5 * (masses @ np.sum(v * v, axis=1) + rods @ turning**2 + joints @ w**2))


@given(ARMS, ANGLES, SPEEDS)
def test_inertia_is_that_of_the_kinetic_energy_and_positive(arm: TwoLinks, q: Array, w: Array) -> None:
    matrix = arm.terms(q)["inertia"][0]
    assert 0.5 * w @ matrix @ w == pytest.approx(kinetic(arm, q, w), rel=1e-7, abs=1e-9)
    assert matrix[0, 1] == matrix[1, 0]
    assert np.linalg.eigvalsh(matrix).min() > 0.0


@given(ARMS, ANGLES, SPEEDS)
def test_coriolis_torques_follow_from_the_inertia(arm: TwoLinks, q: Array, w: Array) -> None:
    """Lagrange's equations: C w = dH/dt w - grad(w H w)/2; and dH/dt - 2 C is skew-symmetric."""
    change = slope(lambda p: arm.terms(p)["inertia"][0], q)
    coriolis = arm.terms(q, w)["coriolis"][0]
    rate = change @ w
    scale = 1.0 + np.abs(rate).max() * np.abs(w).max()
    expected = rate @ w - 0.5 * np.einsum("i,ijk,j->k", w, change, w)
    assert coriolis @ w == pytest.approx(expected, abs=1e-7 * scale)
    skew = rate - 2.0 * coriolis
    assert skew + skew.T == pytest.approx(np.zeros((2, 2)), abs=1e-7 * scale)


@given(ARMS, ANGLES)
def test_gravity_is_the_slope_of_the_potential_energy(arm: TwoLinks, q: Array) -> None:
    expected = slope(lambda p: np.array(potential(arm, p)), q)
    assert arm.terms(q)["gravity"][0] == pytest.approx(expected, abs=1e-6)


@given(ARMS, ANGLES, SPEEDS)
def test_jacobian_and_acceleration_of_the_end_effector(arm: TwoLinks, q: Array, w: Array) -> None:
    terms = arm.terms(q, w)[0]
    p = directions(arm, q)
    lengths = np.array([arm.length_1, arm.length_2])
    assert terms["position"] == pytest.approx([lengths @ np.cos(p), lengths @ np.sin(p)], abs=1e-12)
    assert terms["jacobian"] == pytest.approx(slope(lambda q: arm.terms(q)["position"][0], q), abs=1e-6)
    rate = slope(lambda q: arm.terms(q)["jacobian"][0], q) @ w
    assert terms["turning"] == pytest.approx(rate @ w, abs=1e-6)


@given(ARMS, ANGLES, SPEEDS)
def test_motors_on_the_base_move_the_same_links(arm: TwoLinks, q: Array, w: Array) -> None:
    shape = {name: getattr(arm, name) for name in arm.__dataclass_fields__}
    shape |= {"joint_inertia_1": 0.0, "joint_inertia_2": 0.0}
    try:
        relative, absolute = (TwoLinks(**(shape | {"absolute": flag})) for flag in (False, True))
    except ConfigurationError:
        assume(False)
    here, there = relative.terms(q, w)[0], absolute.terms(_TURN @ q, _TURN @ w)[0]
    assert here["inertia"] == pytest.approx(_TURN.T @ there["inertia"] @ _TURN, abs=1e-11)
    assert here["gravity"] == pytest.approx(_TURN.T @ there["gravity"], abs=1e-11)
    assert here["coriolis"] @ w == pytest.approx(_TURN.T @ there["coriolis"] @ _TURN @ w, abs=1e-8)
    assert here["position"] == pytest.approx(there["position"], abs=1e-12)
    assert here["jacobian"] == pytest.approx(there["jacobian"] @ _TURN, abs=1e-12)
    assert here["turning"] == pytest.approx(there["turning"], abs=1e-9)


@pytest.mark.parametrize("absolute", [False, True])
def test_a_free_arm_keeps_its_energy(absolute: bool) -> None:
    arm = TwoLinks(centre_1=0.5, centre_2=0.6, inertia_1=0.1, inertia_2=0.3, joint_inertia_1=0.2, absolute=absolute)

    def motion(_: float, state: Array) -> Array:
        terms = arm.terms(state[:2], state[2:])[0]
        torque = -terms["coriolis"] @ state[2:] - terms["gravity"]
        return np.concatenate((state[2:], np.linalg.solve(terms["inertia"], torque)))

    def energy(state: Array) -> float:
        return kinetic(arm, state[:2], state[2:]) + potential(arm, state[:2])

    run = solve_ivp(motion, (0.0, 2.0), [0.3, 0.8, 1.0, -2.0], rtol=1e-10, atol=1e-12)
    energies = [energy(state) for state in run.y.T]
    assert np.ptp(energies) < 1e-6 * np.ptp([potential(arm, state[:2]) for state in run.y.T])


def test_the_arm_of_the_paper() -> None:
    """Machado et al. 2002, Table I at q = 75, 75 degrees; rotors of 1 kg m^2 are part of the drives."""
    terms = TwoLinks().terms(np.radians((75.0, 75.0)))[0]
    c = np.cos(np.radians(75.0))
    assert terms["inertia"] == pytest.approx(np.array([[14.75 + 10.0 * c, 4.0 + 5.0 * c], [4.0 + 5.0 * c, 8.0]]))
    assert terms["jacobian"][1, 0] == pytest.approx(-0.434, abs=5e-4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"length_1": 0.0}, r"links.length_1 = 0.0: must be a finite number greater than 0 m"),
        ({"mass_2": 0.0, "joint_inertia_2": 0.0}, "a joint has no inertia"),
        ({"joint_inertia_1": 0.0, "joint_inertia_2": 0.0, "mass_1": 0.0}, "a joint has no inertia"),
        ({"gravity": np.nan}, "links.gravity = nan"),
        ({"absolute": "yes"}, "links.absolute = 'yes'"),
    ],
)
def test_arms_that_cannot_be(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        TwoLinks(**settings)


@pytest.mark.parametrize("angles", [0.0, (1.0, 2.0, 3.0), (np.nan, 0.0), "here"])
def test_poses_that_are_none(angles: object) -> None:
    with pytest.raises(ConfigurationError, match="must be pairs of finite numbers"):
        TwoLinks().terms(angles)
