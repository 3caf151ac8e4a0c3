"""The dynamics of a five-bar linkage, held against its rods: energy of each, Lagrange's equations, free motion."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from devices.arm.hybrid.control import FractionalLaw, Hybrid
from devices.arm.hybrid.simulation import simulate_hybrid
from devices.arm.mechanics.dynamics import LINKS
from devices.arm.mechanics.five_bar import FiveBarLinks
from devices.arm.mechanics.joint import Drive
from devices.arm.mechanics.linkage import PlacedLinkage
from devices.arm.mechanics.plant import PLANT, new_plant, weight
from devices.arm.mechanics.surface import Surface
from devices.common.linkage import FiveBar
from haptics.errors import ConfigurationError

Array = NDArray[Any]

LENGTH = st.floats(0.2, 1.0)
FOURS = [st.tuples(*[st.floats(low, high)] * 4) for low, high in ((0.1, 5.0), (-0.3, 1.2), (0.0, 0.5))]
BARS = st.builds(
    FiveBar, *[LENGTH] * 4, st.floats(0.0, 0.4), st.floats(-1.0, 1.0), st.floats(-1.0, 1.0), st.sampled_from((1, -1))
)
ARMS = st.builds(
    FiveBarLinks,
    BARS,
    *FOURS,
    st.floats(0.0, 2.0),
    joint_inertia_1=st.floats(0.01, 1.0),
    joint_inertia_2=st.floats(0.01, 1.0),
)
ANGLES = st.tuples(st.floats(-math.pi, math.pi), st.floats(-math.pi, math.pi)).map(np.array)
SPEEDS = st.tuples(st.floats(-5.0, 5.0), st.floats(-5.0, 5.0)).map(np.array)

ARM = FiveBarLinks(
    FiveBar(0.3, 0.4, 0.45, 0.32, 0.15),
    masses=(1.0, 0.6, 0.7, 1.1),
    centres=(0.4, 0.5, 0.45, 0.35),
    inertias=(0.01, 0.008, 0.009, 0.012),
    tip_mass=0.5,
    joint_inertia_2=0.02,
)


def joints_and_rods(arm: FiveBarLinks, q: Array) -> tuple[Array, Array]:
    """End effector, (2,), and the ends of the four rods, (4, 2, 2): rod, end, coordinate; at complex angles as well.

    By trigonometry: the end effector is the third corner of a triangle with known sides.
    """
    bars = arm.bars
    left = bars.left_inner * np.array([np.cos(q[0] + bars.left_offset), np.sin(q[0] + bars.left_offset)])
    motor = np.array([bars.base, 0.0])
    right = motor + bars.right_inner * np.array([np.cos(q[1] + bars.right_offset), np.sin(q[1] + bars.right_offset)])
    way = right - left
    distance = np.sqrt(way @ way)
    cosine = (bars.left_outer**2 + distance**2 - bars.right_outer**2) / (2.0 * bars.left_outer * distance)
    sine = bars.side * np.sqrt(1.0 - cosine**2)
    turned = np.array([-way[1], way[0]])
    end = left + bars.left_outer / distance * (cosine * way + sine * turned)
    origin = np.zeros(2)
    rods = np.array([[origin, left], [left, end], [right, end], [motor, right]])
    return end, rods


def slopes(function: Any, q: Array) -> Array:
    """Derivatives of an array with respect to both angles along a new last axis, by complex steps, exact."""
    return np.stack([np.imag(function(q + 1e-30j * d)) / 1e-30 for d in np.eye(2)], axis=-1)


def energy_form(arm: FiveBarLinks, q: Array) -> Array:
    """Twice the kinetic energy as a quadratic form in the joint speeds, rod by rod: centre and turning of each."""
    form = np.diag([arm.joint_inertia_1, arm.joint_inertia_2])
    rates = _rod_rates(arm, q)
    lengths = (arm.bars.left_inner, arm.bars.left_outer, arm.bars.right_outer, arm.bars.right_inner)
    _, rods = joints_and_rods(arm, q)
    for i, length in enumerate(lengths):
        c = arm.centres[i]
        centre = (1.0 - c) * rates[i, 0] + c * rates[i, 1]
        along = (rods[i, 1] - rods[i, 0]) / length
        change = (rates[i, 1] - rates[i, 0]) / length
        turning = along[0] * change[1] - along[1] * change[0]
        form = form + arm.masses[i] * centre.T @ centre + arm.inertias[i] * np.outer(turning, turning)
    return np.asarray(form + arm.tip_mass * rates[1, 1].T @ rates[1, 1])


def _rod_rates(arm: FiveBarLinks, q: Array) -> Array:
    """Derivatives of the ends of the rods, (4, 2, 2, 2): rod, end, coordinate, joint."""
    return slopes(lambda p: joints_and_rods(arm, p)[1], q)


def potential(arm: FiveBarLinks, q: Array) -> Any:
    end, rods = joints_and_rods(arm, q)
    c = np.array(arm.centres)
    heights = (1.0 - c) * rods[:, 0, 1] + c * rods[:, 1, 1]
    return arm.gravity * (np.array(arm.masses) @ heights + arm.tip_mass * end[1])


def clear(arm: FiveBarLinks, q: Array) -> bool:
    return bool((arm.bars.clearance([q]) > 0.1).all())


@given(ARMS, ANGLES)
def test_inertia_is_that_of_the_rods_and_positive(arm: FiveBarLinks, q: Array) -> None:
    assume(clear(arm, q))
    matrix = arm.terms(q)["inertia"][0]
    np.testing.assert_allclose(matrix, energy_form(arm, q), rtol=1e-9, atol=1e-10)
    assert matrix[0, 1] == matrix[1, 0]
    assert np.linalg.eigvalsh(matrix).min() > 0.0


@given(ARMS, ANGLES, SPEEDS)
def test_coriolis_torques_follow_from_the_inertia(arm: FiveBarLinks, q: Array, w: Array) -> None:
    """Lagrange's equations: C w = dH/dt w - grad(w H w)/2; and dH/dt - 2 C is skew-symmetric."""
    assume(clear(arm, q))
    steps = 1e-5 * np.eye(2)
    change = np.stack([_slope_of_inertia(arm, q, step) for step in steps], axis=-1)
    coriolis = arm.terms(q, w)["coriolis"][0]
    rate = change @ w
    scale = 1e-6 * (1.0 + np.abs(change).max()) * (1.0 + w @ w)
    np.testing.assert_allclose(coriolis @ w, rate @ w - 0.5 * np.einsum("i,ijk,j->k", w, change, w), atol=scale)
    skew = rate - 2.0 * coriolis
    np.testing.assert_allclose(skew + skew.T, 0.0, atol=scale)


def _slope_of_inertia(arm: FiveBarLinks, q: Array, step: Array) -> Array:
    """Fourth-order central difference."""
    h = [energy_form(arm, q + k * step) for k in (-2.0, -1.0, 1.0, 2.0)]
    return np.asarray((h[0] - 8.0 * h[1] + 8.0 * h[2] - h[3]) / (12.0 * step.sum()))


@given(ARMS, ANGLES)
def test_gravity_is_the_slope_of_the_potential_energy(arm: FiveBarLinks, q: Array) -> None:
    assume(clear(arm, q))
    np.testing.assert_allclose(arm.terms(q)["gravity"][0], slopes(lambda p: potential(arm, p), q), atol=1e-9)


@given(ARMS, ANGLES, SPEEDS)
def test_jacobian_and_acceleration_of_the_end_effector(arm: FiveBarLinks, q: Array, w: Array) -> None:
    assume(clear(arm, q))
    terms = arm.terms(q, w)[0]
    end = joints_and_rods(arm, q)[0]
    np.testing.assert_allclose(terms["position"], end, atol=1e-12)
    np.testing.assert_allclose(terms["jacobian"], slopes(lambda p: joints_and_rods(arm, p)[0], q), atol=1e-9)
    step = 1e-6 * w
    rate = (arm.terms(q + step)["jacobian"][0] - arm.terms(q - step)["jacobian"][0]) / 2e-6
    np.testing.assert_allclose(terms["turning"], rate @ w, atol=1e-5 * (1.0 + np.abs(rate).max()) * (1.0 + w @ w))


@pytest.mark.parametrize("side", [1, -1])
def test_a_free_linkage_keeps_its_energy(side: int) -> None:
    arm = dataclasses.replace(ARM, bars=dataclasses.replace(ARM.bars, side=side))

    def motion(_: float, state: Array) -> Array:
        terms = arm.terms(state[:2], state[2:])[0]
        torque = -terms["coriolis"] @ state[2:] - terms["gravity"]
        return np.concatenate((state[2:], np.linalg.solve(terms["inertia"], torque)))

    def energy(state: Array) -> float:
        return float(0.5 * state[2:] @ energy_form(arm, state[:2]) @ state[2:] + potential(arm, state[:2]))

    run = solve_ivp(motion, (0.0, 0.25), [2.2 * side, 0.9 * side, -3.0, 3.0], rtol=1e-10, atol=1e-12)
    assert (arm.bars.clearance(run.y[:2].T) > 0.05).all()
    assert np.ptp([potential(arm, state[:2]) for state in run.y.T]) > 0.5
    assert np.ptp([energy(state) for state in run.y.T]) < 1e-8


def test_gravity_stays_upright_when_the_base_is_turned() -> None:
    """The device's y axis points up: a base turned by half a turn hangs."""
    q, record = np.array([2.2, 0.9]), np.zeros(1, PLANT)
    hung = PlacedLinkage(ARM.bars, (0.1, 0.4), math.pi)
    new_plant(record, ARM, (Drive(), Drive()), Surface(), (q[0], q[1]), placed=hung)
    end = -(ARM.bars.positions([q])[0] - hung.centre)
    np.testing.assert_allclose(hung.positions([q])[0], end, atol=1e-12)
    np.testing.assert_allclose(weight(record), -ARM.terms(q)["gravity"][0], atol=1e-12)


def test_hybrid_control_presses_with_it_as_it_does_with_two_links() -> None:
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


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"masses": (1.0, 1.0, 1.0)}, r"links\.masses = \(1\.0, 1\.0, 1\.0\): must be four numbers from 0 "),
        ({"masses": (1.0, -1.0, 1.0, 1.0)}, r"links\.masses"),
        ({"centres": (1.0, math.nan, 1.0, 1.0)}, r"links\.centres"),
        ({"inertias": 1.0}, r"links\.inertias = 1\.0"),
        ({"tip_mass": -1.0}, r"links\.tip_mass = -1\.0"),
        ({"masses": (0.0, 1.0, 1.0, 1.0), "inertias": (0.0,) * 4}, "no inertia about its motor"),
        (
            {"masses": (1.0, 1.0, 1.0, 0.0), "inertias": (0.0,) * 4, "joint_inertia_2": 0.0},
            "no inertia about its motor",
        ),
    ],
)
def test_linkages_that_cannot_be(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        dataclasses.replace(ARM, **settings)


def test_the_placed_linkage_must_be_that_of_the_links() -> None:
    with pytest.raises(ConfigurationError, match=r"placed\.linkage = FiveBar\(left_inner=1\.0"):
        ARM.fill(np.zeros(1, LINKS), PlacedLinkage(FiveBar(1.0, 1.0, 1.0, 1.0, 0.0)))
