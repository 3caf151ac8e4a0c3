"""Networks of masses, springs and model-C contacts: conservation, symmetries, stability number, use and errors."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass, fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from haptics import ConfigurationError, Coulomb, CoulombViscous, MasslessImpedance, Network, Stribeck, simulate
from haptics.elements.network import NetworkResult
from tests.haptics.strategies import Array, Law, log_floats, norms, wandering

LAWS: tuple[Law, ...] = (Coulomb(2.0), CoulombViscous(1.0, 3.0), Stribeck(1.0, 1.5, 0.05, 1.0))
FEW = settings(deadline=None, max_examples=6, derandomize=True)


@dataclass(frozen=True)
class Link:
    """A spring (law None) or contact between nodes 0 = wall, 1 = base, 2... = bodies."""

    first: int
    second: int
    stiffness: float
    damping: float
    law: Law | None = None


@dataclass(frozen=True)
class Plan:
    """What to build, so that it can be built in more than one way."""

    masses: tuple[float, ...]
    velocities: Array
    links: tuple[Link, ...]

    def build(self, turn=None, order=None):
        """Return the network, its velocities multiplied by `turn`, its bodies and links added in another `order`."""
        network = Network(1e-3)
        bodies = list(order) if order is not None else list(range(len(self.masses)))
        nodes = {0: network.wall, 1: network.base()}
        for i in bodies:
            start = self.velocities[i] if turn is None else turn @ self.velocities[i]
            nodes[i + 2] = network.body(self.masses[i], start)
        for link in self.links if order is None else self.links[::-1]:
            ends = nodes[link.first], nodes[link.second]
            if link.law is None:
                network.spring(*ends, link.stiffness, link.damping)
            else:
                network.contact(*ends, link.law, link.stiffness, link.damping)
        return network


@st.composite
def plans(draw, free=False):
    """Draw a network of up to six bodies that stays well within the limit of stability; `free` of wall and base."""
    count = draw(st.integers(2, 6))
    seed = draw(st.integers(0, 2**32 - 1))
    generator = np.random.default_rng(seed)
    masses = tuple(draw(log_floats(0.2, 5.0)) for _ in range(count))
    lowest = 2 if free else 0
    links: list[Link] = []
    for k in range(draw(st.integers(3, 10))):
        first, second = generator.choice(np.arange(lowest, count + 2), 2, replace=False)
        law = LAWS[k % 3] if k % 2 else None
        stiffness = 10.0 ** (generator.uniform(1.0, 3.0) if law is None else generator.uniform(3.5, 4.2))
        links.append(Link(int(first), int(second), stiffness, 0.2 * float(np.sqrt(stiffness)), law))
    for body in range(2, count + 2):
        if not free:
            links.append(Link(body, 0, 3000.0, 12.0, LAWS[body % 3]))
    velocities = generator.uniform(-0.5, 0.5, (count, 2))
    return Plan(masses, velocities, tuple(links))


def energy(plan, result):
    """Kinetic energy and energy of springs and contacts [J] at every step."""
    masses = np.array(plan.masses)
    total = 0.5 * np.einsum("m,kmi->k", masses, result.body_velocity**2)
    place = {i + 2: result.body_position[:, i] for i in range(len(masses))}
    contact = 0
    for link in plan.links:
        if link.law is None:
            rest = np.zeros_like(result.body_position[:, 0])
            stretch = place.get(link.first, rest) - place.get(link.second, rest)
        else:
            stretch = result.displacement[:, contact]
            contact += 1
        total += 0.5 * link.stiffness * np.sum(np.square(stretch), axis=1)
    return np.asarray(total)


# --- conservation and dissipation -------------------------------------------------------------------------------


@FEW
@given(plans(free=True), st.integers(0, 100))
def test_momentum_changes_by_the_external_impulse_alone(plan, seed):
    forces = np.random.default_rng(seed).uniform(-3.0, 3.0, (300, len(plan.masses), 2))
    network = plan.build()
    masses = np.array(plan.masses)
    start = masses @ network.body_velocity
    result = network.simulate(300, forces=forces)
    momentum = np.einsum("m,kmi->ki", masses, result.body_velocity)
    assert_allclose(momentum, start + 1e-3 * np.cumsum(forces.sum(axis=1), axis=0), rtol=0, atol=1e-11)


@FEW
@given(plans())
def test_free_network_loses_energy_until_the_contacts_hold(plan):
    network = plan.build()
    assert network.stability_number < 0.5
    result = network.simulate(8000)
    stored = energy(plan, result)
    assert np.all(np.einsum("kci,kci->kc", result.friction_force, result.sliding_velocity) >= 0.0)
    assert stored[-1] < stored[0]
    assert np.diff(stored[::500]).max() <= 1e-12 * stored[0]
    assert 0.5 * np.array(plan.masses) @ norms(result.body_velocity[-1]) ** 2 < 1e-3 * stored[0]


def test_undamped_spring_keeps_its_energy():
    network = Network()
    body = network.body(2.0, velocity=(0.3, 0.4))
    network.spring(body, network.wall, 500.0)
    run = network.simulate(200_000)
    stored = norms(run.body_velocity[:, 0]) ** 2 + 500.0 / 2.0 * norms(run.body_position[:, 0]) ** 2
    wave = 1e-3 * np.sqrt(500.0 / 2.0)
    assert np.ptp(stored) < 1.1 * wave * 0.25  # it swings with the phase of the motion
    assert stored[-1000:].mean() == pytest.approx(stored[:1000].mean(), rel=1e-4)  # and does not drift


def test_spring_relaxes_from_its_initial_stretch():
    network = Network()
    body = network.body(1.0, position=(3.0, -1.0))
    network.spring(body, network.wall, 100.0, damping=20.0, stretch=(0.1, 0.0))
    network.step()
    assert_allclose(network.body_velocity, [[-1e-3 * 100.0 * 0.1, 0.0]], rtol=1e-12)
    assert_allclose(network.simulate(3000).body_position[-1], [[2.9, -1.0]], atol=1e-9)


# --- symmetries -------------------------------------------------------------------------------------------------


@FEW
@given(plans(), st.floats(-np.pi, np.pi))
def test_motion_turns_with_the_coordinates(plan, angle):
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    motion = wandering("C", 400, seed=3)[:, None]
    ours = plan.build().simulate(400, base_velocity=motion)
    turned = plan.build(turn).simulate(400, base_velocity=motion @ turn.T)
    assert_allclose(turned.body_position, ours.body_position @ turn.T, rtol=0, atol=1e-9)
    assert_allclose(turned.friction_force, ours.friction_force @ turn.T, rtol=0, atol=1e-5)


# --- against single elements ------------------------------------------------------------------------------------


def test_five_thousand_contacts_are_five_thousand_elements():
    count, steps = 5000, 12
    generator = np.random.default_rng(4)
    velocity = generator.uniform(-0.01, 0.01, (steps, count, 2))
    stiffness, damping = 10.0 ** generator.uniform(3.0, 4.5, count), 10.0 ** generator.uniform(1.5, 2.5, count)
    network = Network()
    for i in range(count):
        network.contact(network.base(), network.wall, LAWS[i % 3], stiffness[i], damping[i])
    run = network.simulate(steps, base_velocity=velocity)
    assert 0.1 < run.sticking.mean() < 0.9
    for i in range(count):
        alone = simulate(MasslessImpedance(LAWS[i % 3], stiffness[i], damping[i]), velocity[:, i])
        assert np.array_equal(run.friction_force[:, i], alone.friction_force)
        assert np.array_equal(run.displacement[:, i], alone.displacement)
        assert np.array_equal(run.sliding_velocity[:, i], alone.velocity)
        assert np.array_equal(run.sticking[:, i], alone.sticking)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_mass_on_a_contact_is_figure_12b(law):
    """Fig. 12(b) and (60): a mass of 1 kg that receives the friction of a model-C element one step late."""
    push, start = 0.3 * wandering("A", 2000), np.array((0.3, -0.1))
    network = Network()
    network.contact(network.body(1.0, start), network.wall, law, 2e4, 100.0)
    run = network.simulate(2000, forces=push[:, None])
    element, velocity, friction = MasslessImpedance(law, 2e4, 100.0), start, np.zeros(2)
    expected = []
    for h in push:
        velocity = velocity + 1e-3 * (h - friction)
        friction = element.step(velocity)
        expected.append((velocity, friction))
    assert 0.05 < run.sticking.mean() < 0.95
    assert_allclose(run.body_velocity[:, 0], [velocity for velocity, _ in expected], rtol=0, atol=1e-12)
    assert_allclose(run.friction_force[:, 0], [friction for _, friction in expected], rtol=0, atol=1e-9)


# --- stability number ---------------------------------------------------------------------


@given(st.floats(0.05, 4.5), st.floats(0.05, 2.2))
def test_stability_number_of_one_mass(a, b):
    """Equation (63): stable if a + 2 b < 4."""
    network = Network()
    network.contact(network.body(1.0, (1.0, 0.0)), network.wall, Coulomb(1e300), 1e6 * a, 1e3 * b)
    assert network.stability_number == pytest.approx((a + 2.0 * b) / 4.0, rel=1e-12)


@FEW
@given(plans(), st.floats(0.2, 0.97), st.booleans())
def test_any_network_is_stable_exactly_below_one(plan, share, beyond):
    """Scaled to any side of the limit, sticking networks decay or grow."""
    held = tuple(Link(k.first, k.second, k.stiffness, k.damping, k.law and Coulomb(1e300)) for k in plan.links)
    wanted = 1.0 / share if beyond else share
    scale = wanted / Plan(plan.masses, plan.velocities, held).build().stability_number
    scaled = tuple(Link(k.first, k.second, scale * k.stiffness, scale * k.damping, k.law) for k in held)
    network = Plan(plan.masses, plan.velocities, scaled).build()
    assert network.stability_number == pytest.approx(wanted, rel=1e-9)
    speed = np.abs(network.simulate(3000).body_velocity).max(axis=(1, 2))
    assert (np.max(speed[-50:]) < speed[0]) == (not beyond)


def test_stability_number_of_a_long_chain():
    """Equal masses on a line of equal springs: largest eigenvalue 4 k/m sin^2(n pi/(2 (n + 1))) of a known matrix."""
    network, count = Network(), 3000
    previous = network.wall
    for _ in range(count):
        body = network.body(0.5)
        network.spring(previous, body, 1e5)
        previous = body
    network.spring(previous, network.wall, 1e5)
    assert network.stability_number == pytest.approx(1e-6 * 1e5 / 0.5, rel=1e-3)


# --- running ----------------------------------------------------------------------------------------------------


@FEW
@given(plans())
def test_simulation_equals_its_steps_to_the_bit(plan):
    network = plan.build()
    motion = wandering("C", 60)[:, None]
    forces = np.random.default_rng(1).uniform(-2.0, 2.0, (60, len(plan.masses), 2))
    network.step(motion[0], forces[0])
    run = network.simulate(59, motion[1:], forces[1:])
    for k in range(1, 60):
        network.step(motion[k], forces[k])
        for field in fields(NetworkResult):
            assert_array_equal(getattr(network, field.name), getattr(run, field.name)[k - 1])


def test_parts_can_be_added_between_steps():
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


# --- elsewhere --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("travel", [copy.deepcopy, lambda network: pickle.loads(pickle.dumps(network))])
def test_copied_network_is_independent(travel):
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


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda n, a, b: Network(0.0), r"network\.period = 0\.0: .* greater than 0 s"),
        (lambda n, a, b: n.body(0.0), r"body\.mass = 0\.0: .* greater than 0 kg"),
        (lambda n, a, b: n.body("heavy"), r"body\.mass = 'heavy'"),
        (lambda n, a, b: n.body(1.0, velocity=(1.0,)), r"body\.velocity of shape \(1,\)"),
        (lambda n, a, b: n.body(1.0, position=(np.nan, 0.0)), r"body\.position .*not finite"),
        (lambda n, a, b: n.spring(a, b, -1.0), r"spring\.stiffness = -1\.0: .* at least 0 N/m"),
        (lambda n, a, b: n.spring(a, b, 0.0), r"spring\.stiffness = 0 with spring\.damping = 0"),
        (lambda n, a, b: n.spring(a, b, 1.0, stretch="far"), r"spring\.stretch of type str"),
        (lambda n, a, b: n.spring(a, a, 1.0), r"spring\.first = spring\.second"),
        (lambda n, a, b: n.spring(a, 0, 1.0), r"spring\.second = 0: must be a body, a base or the wall"),
        (lambda n, a, b: n.contact(Network().wall, a, Coulomb(1.0), 1e4, 1.0), r"contact\.first = Node\(kind='wall'"),
        (lambda n, a, b: n.contact(a, b, 4.0, 1e4, 1.0), r"law = 4\.0: must be a friction law"),
        (lambda n, a, b: n.contact(a, b, Coulomb(1.0), 0.0, 0.0), r"element\.stiffness = 0 with element\.damping = 0"),
        (lambda n, a, b: n.step([(0.0, 0.0), (0.0, 0.0)]), r"base_velocity of shape \(2, 2\): must be \(1, 2\)"),
        (lambda n, a, b: n.step(forces=[(0.0, np.inf)]), r"forces holds a value that is not finite"),
        (lambda n, a, b: n.simulate(-1), r"steps = -1: must be a whole number, at least 0"),
        (lambda n, a, b: n.simulate(3, np.zeros((2, 1, 2))), r"base_velocity of shape \(2, 1, 2\): must be"),
        (lambda n, a, b: n.simulate(3, [[1.0], [1.0, 2.0]]), r"base_velocity of type list"),
        (lambda n, a, b: n.simulate(3, forces=np.zeros((1, 3))), r"forces of shape \(1, 3\): must be \(1, 2\)"),
    ],
)
def test_invalid_use_is_refused_by_name(act, words):
    network = Network()
    body, base = network.body(1.0), network.base()
    with pytest.raises(ConfigurationError, match=words):
        act(network, body, base)
    network.step()
    assert len(network.friction_force) == 0  # nothing was half added


def test_contact_beyond_condition_15_warns():
    network = Network()
    with pytest.warns(UserWarning, match="condition 15"):
        network.contact(network.body(1.0), network.base(), Stribeck(1.0, 2.0, 1e-3), 100.0, 1.0)
