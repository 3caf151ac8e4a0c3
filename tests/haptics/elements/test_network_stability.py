"""The stability number of a network, beside what the network does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptics import (
    Coulomb,
)
from haptics.elements.network.network import Network
from tests.haptics.networks import FEW, Link, Plan, plans


@pytest.mark.parametrize("seed", range(40))
def test_one_mass_is_stable_exactly_below_one(seed: int) -> None:
    """Equation (63): a + 2 b < 4, seen in what the network does."""
    generator = np.random.default_rng(seed)
    a, b = generator.uniform(0.05, 4.5), generator.uniform(0.05, 2.2)
    network = Network()
    network.contact(network.body(1.0, (1.0, 0.0)), network.wall, Coulomb(1e300), 1e6 * a, 1e3 * b)
    assert network.stability_number == pytest.approx((a + 2.0 * b) / 4.0, rel=1e-12)
    if abs(network.stability_number - 1.0) > 0.02:
        speed = np.abs(network.simulate(400).body_velocity[:, 0, 0])
        assert (speed[360:].max() < speed[20:60].max()) == (network.stability_number < 1.0)


@FEW
@given(plans(), st.floats(0.2, 0.97), st.booleans())
def test_any_network_is_stable_exactly_below_one(plan: Plan, share: float, beyond: bool) -> None:
    """Scaled to any side of the limit, sticking networks decay or grow."""
    held = tuple(Link(k.first, k.second, k.stiffness, k.damping, k.law and Coulomb(1e300)) for k in plan.links)
    wanted = 1.0 / share if beyond else share
    scale = wanted / Plan(plan.masses, plan.velocities, held).build().stability_number
    scaled = tuple(Link(k.first, k.second, scale * k.stiffness, scale * k.damping, k.law) for k in held)
    network = Plan(plan.masses, plan.velocities, scaled).build()
    assert network.stability_number == pytest.approx(wanted, rel=1e-9)
    speed = np.abs(network.simulate(3000).body_velocity).max(axis=(1, 2))
    assert (np.max(speed[-50:]) < speed[0]) == (not beyond)


def test_the_stability_number_of_a_long_chain() -> None:
    """Equal masses on a line of equal springs: largest eigenvalue 4 k/m sin^2(n pi/(2 (n + 1))) of a known matrix."""
    network, count = Network(), 3000
    previous = network.wall
    for _ in range(count):
        body = network.body(0.5)
        network.spring(previous, body, 1e5)
        previous = body
    network.spring(previous, network.wall, 1e5)
    assert network.stability_number == pytest.approx(1e-6 * 1e5 / 0.5, rel=1e-3)


def test_the_stability_number_of_nothing_is_zero() -> None:
    network = Network()
    assert network.stability_number == 0.0
    network.body(1.0)
    assert network.stability_number == 0.0
