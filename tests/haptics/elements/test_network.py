"""Networks of masses, springs and model-C contacts: conservation, dissipation, symmetries, single elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from haptics import (
    Coulomb,
    MasslessImpedance,
    RigidAdmittance,
    simulate,
)
from haptics.elements.network.network import Network
from tests.haptics.networks import FEW, LAWS, Link, Plan, both, energy, plans
from tests.haptics.strategies import Array, Law, norms, wandering

# --- conservation and dissipation -------------------------------------------------------------------------------


@FEW
@given(plans(free=True), st.integers(0, 100))
def test_momentum_changes_by_the_external_impulse_alone(plan: Plan, seed: int) -> None:
    forces = np.random.default_rng(seed).uniform(-3.0, 3.0, (300, len(plan.masses), 2))
    network = plan.build()
    masses = np.array(plan.masses)
    start = masses @ network.body_velocity
    result = network.simulate(300, forces=forces)
    momentum = np.einsum("m,kmi->ki", masses, result.body_velocity)
    assert_allclose(momentum, start + 1e-3 * np.cumsum(forces.sum(axis=1), axis=0), rtol=0, atol=1e-11)


@FEW
@given(plans())
def test_what_is_left_alone_loses_energy_until_the_contacts_hold_it(plan: Plan) -> None:
    network = plan.build()
    assert network.stability_number < 0.5
    result = network.simulate(8000)
    stored = energy(plan, result)
    assert np.all(np.einsum("kci,kci->kc", result.friction_force, result.sliding_velocity) >= 0.0)
    assert stored[-1] < stored[0]
    assert np.diff(stored[::500]).max() <= 1e-12 * stored[0]
    assert 0.5 * np.array(plan.masses) @ norms(result.body_velocity[-1]) ** 2 < 1e-3 * stored[0]


def test_an_undamped_spring_keeps_its_energy() -> None:
    network = Network()
    body = network.body(2.0, velocity=(0.3, 0.4))
    network.spring(body, network.wall, 500.0)
    run = network.simulate(200_000)
    stored = norms(run.body_velocity[:, 0]) ** 2 + 500.0 / 2.0 * norms(run.body_position[:, 0]) ** 2
    wave = 1e-3 * np.sqrt(500.0 / 2.0)
    assert np.ptp(stored) < 1.1 * wave * 0.25  # it swings with the phase of the motion
    assert stored[-1000:].mean() == pytest.approx(stored[:1000].mean(), rel=1e-4)  # and does not drift


def test_a_spring_pulls_from_its_stretch_towards_where_it_relaxes() -> None:
    network = Network()
    body = network.body(1.0, position=(3.0, -1.0))
    network.spring(body, network.wall, 100.0, damping=20.0, stretch=(0.1, 0.0))
    network.step()
    assert_allclose(network.body_velocity, [[-1e-3 * 100.0 * 0.1, 0.0]], rtol=1e-12)
    assert_allclose(network.simulate(3000).body_position[-1], [[2.9, -1.0]], atol=1e-9)


@FEW
@given(plans())
def test_friction_stays_within_its_level(plan: Plan) -> None:
    only = Plan(
        plan.masses,
        4.0 * plan.velocities,
        tuple(Link(k.first, k.second, k.stiffness, k.damping, Coulomb(2.5) if k.law else None) for k in plan.links),
    )
    run = only.build().simulate(500, base_velocity=[(0.7, -0.4)])
    size = np.hypot(run.friction_force[..., 0], run.friction_force[..., 1])
    assert size.max() <= 2.5 * (1.0 + 4e-16)
    assert_allclose(size[~run.sticking], 2.5, rtol=4e-16)
    assert not run.sliding_velocity[run.sticking].any()


# --- symmetries -------------------------------------------------------------------------------------------------


@FEW
@given(plans(), st.randoms(use_true_random=False))
def test_the_order_of_building_does_not_matter(plan: Plan, random: Any) -> None:
    count = len(plan.masses)
    order = random.sample(range(count), count)
    ours = plan.build().simulate(400, base_velocity=[(0.2, 0.1)])
    other = plan.build(order=order).simulate(400, base_velocity=[(0.2, 0.1)])
    assert_allclose(other.body_position, ours.body_position[:, order], rtol=0, atol=1e-9)
    assert_allclose(other.friction_force[:, ::-1], ours.friction_force, rtol=0, atol=1e-5)


@FEW
@given(plans(), st.floats(-np.pi, np.pi))
def test_turning_everything_turns_the_motion(plan: Plan, angle: float) -> None:
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    motion = wandering("C", 400, seed=3)[:, None]
    ours = plan.build().simulate(400, base_velocity=motion)
    turned = plan.build(turn).simulate(400, base_velocity=motion @ turn.T)
    assert_allclose(turned.body_position, ours.body_position @ turn.T, rtol=0, atol=1e-9)
    assert_allclose(turned.friction_force, ours.friction_force @ turn.T, rtol=0, atol=1e-5)


def test_a_contact_may_be_named_from_either_end() -> None:
    runs = []
    for swap in (False, True):
        network = Network()
        ends = network.body(1.0, velocity=(0.4, 0.1)), network.base()
        network.contact(*(ends[::-1] if swap else ends), Coulomb(3.0), 1e4, 100.0)
        runs.append(network.simulate(500, base_velocity=[(0.1, -0.1)]))
    assert_array_equal(runs[0].body_velocity, runs[1].body_velocity)
    assert_array_equal(runs[0].friction_force, -runs[1].friction_force)


def test_a_motion_along_a_line_stays_on_it() -> None:
    network = Network()
    body, base = network.body(1.0, velocity=(0.4, 0.0)), network.base()
    network.spring(body, network.wall, 100.0)
    network.contact(body, base, LAWS[2], 1e4, 100.0)
    run = network.simulate(500, base_velocity=[(0.1, 0.0)])
    assert not run.body_position[..., 1].any() and not run.friction_force[..., 1].any()


# --- against single elements ------------------------------------------------------------------------------------


def test_five_thousand_contacts_are_five_thousand_elements() -> None:
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


def test_networks_that_do_not_touch_do_not_know_of_each_other() -> None:
    together, starts = Network(), np.random.default_rng(2).uniform(-0.3, 0.3, (40, 2))

    def oscillator(network: Network, i: int) -> None:
        body = network.body(1.0 + 0.1 * i, starts[i])
        network.spring(body, network.wall, 200.0 + i)
        network.contact(body, network.wall, LAWS[i % 3], 2e4, 150.0)

    for i in range(40):
        oscillator(together, i)
    run = together.simulate(300)
    for i in range(40):
        alone = Network()
        oscillator(alone, i)
        single = alone.simulate(300)
        both(single, run, lambda one, many, name, i=i: assert_array_equal(one[:, 0], many[:, i], name))


def _delayed_mass(law: Law, stiffness: float, damping: float, start: Array, push: Array) -> tuple[Array, Array]:
    """Fig. 12(b) and (60) by hand: a mass of 1 kg that feels the friction of a model-C element one step late."""
    element, velocity, friction = MasslessImpedance(law, stiffness, damping), np.array(start), np.zeros(2)
    velocities, frictions = np.zeros_like(push), np.zeros_like(push)
    for k, h in enumerate(push):
        velocity = velocity + 1e-3 * (h - friction)
        friction = element.step(velocity)
        velocities[k], frictions[k] = velocity, friction
    return velocities, frictions


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_one_mass_on_one_contact_is_figure_12b(law: Law) -> None:
    push, start = 0.3 * wandering("A", 2000), np.array((0.3, -0.1))
    network = Network()
    network.contact(network.body(1.0, start), network.wall, law, 2e4, 100.0)
    run = network.simulate(2000, forces=push[:, None])
    velocities, frictions = _delayed_mass(law, 2e4, 100.0, start, push)
    assert 0.05 < run.sticking.mean() < 0.95
    assert_allclose(run.body_velocity[:, 0], velocities, rtol=0, atol=1e-12)
    assert_allclose(run.friction_force[:, 0], frictions, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("stiffness", "signs"), [(8.3e4, 1), (7.5e5, 99)])
def test_figure_14_on_the_right(stiffness: float, signs: int) -> None:
    """The stiff contact vibrates for ever: it changes its sign at each of the last 100 steps but the first."""
    network = Network()
    damping = 2.0 * np.sqrt(stiffness)
    network.contact(network.body(1.0, (1.0, 0.0)), network.wall, Coulomb(7.0), stiffness, damping)
    tail = network.simulate(400).body_velocity[-100:, 0, 0]
    assert np.count_nonzero(np.diff(np.sign(tail))) <= signs
    assert (np.ptp(tail) > 6e-3) == (network.stability_number > 1.0) == (signs == 99)


def test_stiff_contacts_tend_to_the_rigid_one() -> None:
    """Ten times the stiffness, a tenth of the period: the motion comes nearer to model A, which has no compliance."""
    duration, errors = 0.6, []
    fine = RigidAdmittance(Coulomb(2.0), 1.0, period=1e-6)

    def push(time: Array) -> Array:
        return 4.0 * np.column_stack((np.sin(20.0 * time), 0.5 * np.cos(33.0 * time)))

    exact = simulate(fine, push(1e-6 * np.arange(1, 600_001))).velocity
    for period, stiffness in ((1e-3, 2e4), (1e-4, 2e5), (1e-5, 2e6)):
        steps = round(duration / period)
        network = Network(period)
        network.contact(network.body(1.0), network.wall, Coulomb(2.0), stiffness, np.sqrt(stiffness))
        run = network.simulate(steps, forces=push(period * np.arange(1, steps + 1))[:, None])
        every = round(period / 1e-6)
        errors.append(np.abs(run.body_velocity[:, 0] - exact[every - 1 :: every]).max())
    assert errors[1] < 0.4 * errors[0] and errors[2] < 0.4 * errors[1]
    assert errors[2] < 2e-3
