"""Building and running networks: steps and runs, parts added later, other processes, errors."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal

from haptics import (
    ConfigurationError,
    Coulomb,
    Stribeck,
)
from haptics.elements.network.network import Network
from haptics.elements.network.parts import NetworkResult, Node
from tests.haptics.networks import FEW, Plan, both, plans
from tests.haptics.strategies import wandering

# --- running ----------------------------------------------------------------------------------------------------


@FEW
@given(plans())
def test_a_run_is_the_same_bits_as_its_steps_and_leaves_the_network_alone(plan: Plan) -> None:
    network = plan.build()
    motion = wandering("C", 60)[:, None]
    forces = np.random.default_rng(1).uniform(-2.0, 2.0, (60, len(plan.masses), 2))
    network.step(motion[0], forces[0])
    run = network.simulate(59, motion[1:], forces[1:])
    for k in range(1, 60):
        network.step(motion[k], forces[k])
        for field in fields(NetworkResult):
            assert_array_equal(getattr(network, field.name), getattr(run, field.name)[k - 1])


def test_constant_inputs_may_be_given_once() -> None:
    def build() -> Network:
        network = Network()
        body, base = network.body(1.0), network.base()
        network.contact(body, base, Coulomb(1.0), 1e4, 100.0)
        return network

    once = build().simulate(50, [(0.1, 0.0)], [(0.0, 2.0)])
    every = build().simulate(50, np.full((50, 1, 2), (0.1, 0.0)), np.full((50, 1, 2), (0.0, 2.0)))
    both(once, every, assert_array_equal)
    assert once.friction_force.any()


def test_parts_may_be_added_between_steps() -> None:
    network = Network()
    block = network.body(1.0, velocity=(1.0, 0.0))
    for _ in range(10):
        network.step()
    assert_allclose(network.body_velocity, [[1.0, 0.0]])
    brake = network.contact(block, network.wall, Coulomb(5.0), 1e4, 100.0)
    network.body(3.0)
    for _ in range(300):
        network.step()
    assert network.sticking[brake]
    assert network.body_position[block.index, 0] == pytest.approx(0.01 + 0.5 / 5.0, rel=0.02)


def test_no_steps_give_empty_arrays() -> None:
    network = Network()
    network.contact(network.body(1.0), network.wall, Coulomb(1.0), 1e4, 100.0)
    run = network.simulate(0)
    assert run.body_velocity.shape == run.friction_force.shape == (0, 1, 2)
    assert run.sticking.shape == (0, 1)


def test_an_empty_network_runs() -> None:
    assert Network().simulate(5).body_position.shape == (5, 0, 2)


def test_a_base_moves_as_it_is_told() -> None:
    network = Network()
    base = network.base()
    body = network.body(1.0)
    network.spring(body, base, 400.0, damping=40.0)
    run = network.simulate(2000, base_velocity=[(0.2, -0.1)])
    assert_allclose(run.body_velocity[-1, 0], (0.2, -0.1), atol=1e-6)


# --- elsewhere --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("travel", [copy.deepcopy, lambda network: pickle.loads(pickle.dumps(network))])
def test_a_copy_is_a_network_of_its_own(travel: Callable[[Network], Network]) -> None:
    network = Network(2e-3)
    block = network.body(1.0, velocity=(1.0, 0.0))
    network.contact(block, network.wall, Coulomb(5.0), 1e4, 100.0)
    twin = travel(network)
    assert twin.period == 2e-3
    network.step()
    assert_array_equal(twin.body_position, [[0.0, 0.0]])
    twin.step()
    assert_array_equal(twin.body_position, network.body_position)
    assert twin.contact(twin.body(1.0), twin.wall, Coulomb(1.0), 1e4, 100.0) == 1
    assert len(network.friction_force) == 1


# --- errors -----------------------------------------------------------------------------------------------------


def _pair() -> tuple[Network, Node, Node]:
    network = Network()
    return network, network.body(1.0), network.base()


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda n, a, b: Network(0.0), r"network\.period = 0\.0: .* greater than 0 s"),
        (lambda n, a, b: n.body(0.0), r"body\.mass = 0\.0: .* greater than 0 kg"),
        (lambda n, a, b: n.body("heavy"), r"body\.mass = 'heavy'"),
        (lambda n, a, b: n.body(1.0, velocity=(1.0,)), r"body\.velocity of shape \(1,\)"),
        (lambda n, a, b: n.body(1.0, position=(np.nan, 0.0)), r"body\.position .*not finite"),
        (lambda n, a, b: n.spring(a, b, -1.0), r"spring\.stiffness = -1\.0: .* at least 0 N/m"),
        (lambda n, a, b: n.spring(a, b, 1.0, np.inf), r"spring\.damping = inf"),
        (lambda n, a, b: n.spring(a, b, 0.0), r"spring\.stiffness = 0 with spring\.damping = 0"),
        (lambda n, a, b: n.spring(a, b, 1.0, stretch="far"), r"spring\.stretch of type str"),
        (lambda n, a, b: n.spring(a, a, 1.0), r"spring\.first = spring\.second"),
        (
            lambda n, a, b: n.spring(a, 0, 1.0),
            r"spring\.second = 0: must be a body, a base or the wall of this network",
        ),
        (lambda n, a, b: n.contact(Network().wall, a, Coulomb(1.0), 1e4, 1.0), r"contact\.first = Node\(kind='wall'"),
        (lambda n, a, b: n.contact(a, b, 4.0, 1e4, 1.0), r"law = 4\.0: must be a friction law"),
        (lambda n, a, b: n.contact(a, b, Coulomb(1.0), -1.0, 1.0), r"element\.stiffness = -1\.0"),
        (lambda n, a, b: n.contact(a, b, Coulomb(1.0), 0.0, 0.0), r"element\.stiffness = 0 with element\.damping = 0"),
        (lambda n, a, b: n.step([(0.0, 0.0), (0.0, 0.0)]), r"base_velocity of shape \(2, 2\): must be \(1, 2\)"),
        (lambda n, a, b: n.step(forces=[(0.0, np.inf)]), r"forces holds a value that is not finite"),
        (lambda n, a, b: n.simulate(-1), r"steps = -1: must be a whole number, at least 0"),
        (lambda n, a, b: n.simulate(2.5), r"steps = 2\.5"),
        (
            lambda n, a, b: n.simulate(3, np.zeros((2, 1, 2))),
            r"base_velocity of shape \(2, 1, 2\): must be \(3, 1, 2\)",
        ),
        (lambda n, a, b: n.simulate(3, [[1.0], [1.0, 2.0]]), r"base_velocity of type list"),
        (lambda n, a, b: n.simulate(3, forces=np.zeros((1, 3))), r"forces of shape \(1, 3\): must be \(1, 2\)"),
    ],
)
def test_what_is_wrong_is_said(act: Callable[[Network, Node, Node], Any], words: str) -> None:
    network, body, base = _pair()
    with pytest.raises(ConfigurationError, match=words):
        act(network, body, base)
    network.step()
    assert len(network.friction_force) == 0  # nothing was half added


def test_a_wrong_law_for_a_mobile_contact_is_named() -> None:
    network, body, base = _pair()
    with pytest.warns(UserWarning, match="condition 15"):
        network.contact(body, base, Stribeck(1.0, 2.0, 1e-3), 100.0, 1.0)


def test_the_period_is_fixed_since_the_parts_are_made_for_it() -> None:
    network, body, base = _pair()
    network.contact(body, base, Coulomb(1.0), 1e4, 100.0)
    with pytest.raises(AttributeError, match="cannot assign to field 'period'"):
        network.period = -1.0  # type: ignore[misc]
    assert network.period == 1e-3
