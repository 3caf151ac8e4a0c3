"""The four elements against the discrete constraints they solve (Kikuuwe et al. 2006, section III)."""

from __future__ import annotations

import copy
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haptics import (
    CompliantAdmittance,
    Coulomb,
    InertialImpedance,
    Law,
    MasslessImpedance,
    RigidAdmittance,
    Stribeck,
    simulate,
)
from haptics.errors import AmbiguousLawWarning, ConfigurationError
from tests.haptics.references import inclusion_residual, norms, steepest
from tests.haptics.strategies import (
    KINDS,
    LAWS,
    PHYSICS,
    Grip,
    Run,
    before,
    equations,
    largest,
    laws,
    log_floats,
    make,
    reference_mobility,
    reference_run,
    stepped,
    wandering,
)

GRIP = Grip()
NAN, INF = float("nan"), float("inf")
every_kind = pytest.mark.parametrize("kind", KINDS)
every_law = pytest.mark.parametrize("name", LAWS)
_RUNS: dict[tuple[str, str], Run] = {}


def run_of(kind: str, name: str) -> Run:
    """Return the 3000 random steps of model `kind` with law `name`, stepped once for all tests."""
    if (kind, name) not in _RUNS:
        _RUNS[kind, name] = stepped(make(kind, LAWS[name]), wandering(kind))
    return _RUNS[kind, name]


# ---- the constraints


@every_law
@every_kind
def test_every_step_solves_the_equations_of_the_model(kind: str, name: str) -> None:
    run = run_of(kind, name)
    for left_over in equations(kind, GRIP, wandering(kind), run, np.zeros(2)):
        assert largest(left_over) <= 1e-11
    residual = inclusion_residual(LAWS[name], run.velocity, run.friction_force)
    assert residual.max() <= 1e-11  # (13), (32), (39)
    assert 0.05 < run.sticking.mean() < 0.9, "the input must make the element stick and slide"


@every_law
@every_kind
def test_trajectory_equals_the_independent_reference(kind: str, name: str) -> None:
    run, expected = run_of(kind, name), reference_run(kind, LAWS[name], GRIP, wandering(kind))
    for column in ("output", "friction_force", "displacement", "velocity"):
        assert largest(getattr(run, column) - getattr(expected, column)) <= 1e-9
    np.testing.assert_array_equal(run.sticking, expected.sticking)


@settings(PHYSICS, max_examples=75)
@given(st.data(), st.sampled_from(KINDS), laws())
def test_any_parameters_solve_the_equations(data: st.DataObject, kind: str, law: Law) -> None:
    grip = Grip(
        data.draw(log_floats(0.02, 20.0)),
        data.draw(log_floats(10.0, 1e6)),
        data.draw(st.one_of(st.just(0.0), log_floats(0.1, 2000.0))),
        data.draw(st.sampled_from([1e-4, 2.5e-4, 1e-3, 4e-3])),
    )
    mobility = reference_mobility(kind, grip)
    if mobility >= 0.9 * steepest(law):
        return
    size = law.breakaway_force * (1.0 if kind in "AD" else min(mobility, 1.0))
    inputs = size * np.random.default_rng(data.draw(st.integers(0, 10**6))).uniform(-3, 3, (30, 2))
    v0 = np.array([0.02, -0.01])
    element = make(kind, law, grip)
    element.reset(velocity=(0.02, -0.01))
    run = stepped(element, inputs)
    scale = max(law.breakaway_force, largest(run.friction_force), largest(run.output) if kind == "B" else 0.0)
    momentum = grip.mass / grip.period * max(largest(run.velocity), largest(inputs))
    for left_over in equations(kind, grip, inputs, run, v0):
        assert largest(left_over) <= 1e-11 * max(scale, momentum, 1.0)
    assert inclusion_residual(law, run.velocity, run.friction_force).max() <= 1e-11 * scale


@every_kind
def test_mobility_is_how_far_the_velocity_falls_per_newton(kind: str) -> None:
    assert make(kind, LAWS["coulomb"]).mobility == pytest.approx(reference_mobility(kind, GRIP), rel=1e-12)


@every_law
@every_kind
def test_sticking_is_a_velocity_of_exactly_zero(kind: str, name: str) -> None:
    run = run_of(kind, name)
    np.testing.assert_array_equal(run.sticking, (run.velocity == 0.0).all(axis=1))


# ---- energy


@every_law
@every_kind
def test_no_energy_comes_from_the_element(kind: str, name: str) -> None:
    """At every time, energy taken in >= spring energy + kinetic energy held; friction itself never gives any."""
    run, inputs = run_of(kind, name), wandering(kind)
    taken = np.cumsum((inputs * run.output).sum(axis=1)) * GRIP.period
    mass_velocity = {"A": run.output, "B": run.velocity, "C": 0.0 * inputs, "D": run.output}[kind]
    held = 0.5 * GRIP.stiffness * norms(run.displacement) ** 2 + 0.5 * GRIP.mass * norms(mass_velocity) ** 2
    assert np.all((run.friction_force * run.velocity).sum(axis=1) >= 0.0)
    assert np.all(taken - held >= -1e-12 * np.maximum(1.0, held))


@every_law
def test_energy_identity_of_the_rigid_element(name: str) -> None:
    """``.5M(v_k^2 - v_{k-1}^2) = T (h_k - f_k) v_k - .5M |v_k - v_{k-1}|^2`` at every step."""
    run, h = run_of("A", name), wandering("A")
    v, last = run.output, before(run.output)
    gained = 0.5 * GRIP.mass * (norms(v) ** 2 - norms(last) ** 2)
    work = GRIP.period * ((h - run.friction_force) * v).sum(axis=1)
    lost = 0.5 * GRIP.mass * norms(v - last) ** 2
    np.testing.assert_allclose(gained, work - lost, rtol=0.0, atol=1e-13 * float(np.max(norms(v) ** 2)))


# ---- how the models are related


@every_law
def test_inertial_impedance_without_mass_is_the_massless_one(name: str) -> None:
    massless, massive = run_of("C", name), stepped(make("B", LAWS[name], Grip(mass=0.0)), wandering("C"))
    for column in ("output", "friction_force", "displacement", "velocity"):
        peak = max(1.0, largest(getattr(massless, column)))
        assert largest(getattr(massive, column) - getattr(massless, column)) <= 1e-14 * peak
    np.testing.assert_array_equal(massive.sticking, massless.sticking)


@every_law
def test_stiff_compliant_admittance_is_the_rigid_one(name: str) -> None:
    """First order in 1/K, down to 1e-6 m/s at K = 1e10 N/m."""
    rigid, inputs, errors = run_of("A", name), wandering("A"), []
    for stiffness in (1e8, 1e9, 1e10):
        soft = stepped(make("D", LAWS[name], Grip(stiffness=stiffness)), inputs)
        errors.append(max(largest(soft.output - rigid.output), largest(soft.velocity - rigid.output)))
    assert errors[2] <= 1e-6
    assert errors[0] / errors[1] == pytest.approx(10.0, rel=0.1)
    assert errors[1] / errors[2] == pytest.approx(10.0, rel=0.1)


def test_undamped_massless_impedance_is_the_clipped_spring() -> None:
    """With B = 0 and Coulomb friction, model C is Hayward and Armstrong's spring, clipped at the length F/K."""
    force, stiffness, inputs = 4.0, 6000.0, wandering("C")
    element, spring = MasslessImpedance(Coulomb(force), stiffness, 0.0), np.zeros(2)
    for u in inputs:
        spring = spring + 1e-3 * u
        length = norms(spring)[0]
        spring = spring * min(1.0, force / stiffness / length) if length > 0.0 else spring
        assert norms(element.step(u) - stiffness * spring)[0] <= 1e-12


@every_law
@every_kind
def test_a_turned_input_gives_the_turned_output(kind: str, name: str) -> None:
    turn = np.array([[np.cos(2.0), -np.sin(2.0)], [np.sin(2.0), np.cos(2.0)]])
    turned, run = simulate(make(kind, LAWS[name]), wandering(kind) @ turn.T), run_of(kind, name)
    for column in ("output", "friction_force", "displacement", "velocity"):
        assert largest(getattr(turned, column) - getattr(run, column) @ turn.T) <= 1e-10


@every_law
@every_kind
def test_one_dimension_stays_one_dimension(kind: str, name: str) -> None:
    """The second component stays exactly zero, and the first is what the scalar equations say."""
    inputs = wandering(kind) * [1.0, 0.0]
    run = simulate(make(kind, LAWS[name]), inputs)
    for column in ("output", "friction_force", "displacement", "velocity"):
        assert not np.any(getattr(run, column)[:, 1])
    expected = reference_run(kind, LAWS[name], GRIP, inputs)
    assert largest(run.output - expected.output) <= 1e-9


# ---- stick without drift


def test_massless_impedance_does_not_drift_when_shaken() -> None:
    """Below break-away the anchor of the spring, position - e, does not move at all; LuGre would."""
    element, dt = MasslessImpedance(Coulomb(4.0), 6000.0, 10.0), 1e-3
    t = np.arange(1, 20001) * dt
    wanted = 0.5e-3 * (1.0 - np.cos(2 * np.pi * 0.5 * np.minimum(t, 1.0))) / 2 + 0.05e-3 * np.sin(2 * np.pi * 17.0 * t)
    inputs = np.column_stack([np.diff(wanted, prepend=0.0) / dt, np.zeros(t.size)])
    run = simulate(element, inputs)
    assert 2.0 < np.abs(run.output[2000:, 0]).max() < 4.0
    assert np.all(run.sticking)
    assert not np.any(run.velocity)
    assert np.abs(np.cumsum(inputs[:, 0]) * dt - run.displacement[:, 0]).max() <= 1e-15


def test_a_pushed_mass_on_a_massless_impedance_does_not_creep() -> None:
    """A 0.2 kg body under 3 N + 0.8 N tremor on F = 4 N: it shakes on its spring, the contact never moves."""
    element, dt, mass = MasslessImpedance(Coulomb(4.0), 6000.0, 10.0), 1e-3, 0.2
    velocity, position, force, anchors = np.zeros(2), np.zeros(2), np.zeros(2), []
    for k in range(10000):
        push = 3.0 * min(1.0, k * dt / 0.5) + 0.8 * np.sin(2 * np.pi * 5.0 * k * dt) * (k * dt > 0.5)
        velocity = velocity + dt / mass * (np.array([push, 0.0]) - force)
        force = element.step(velocity)
        position = position + dt * velocity
        anchors.append(position - element.displacement)
        assert element.sticking
    assert largest(np.array(anchors)) <= 1e-15


@pytest.mark.parametrize("kind", ["A", "D"])
def test_admittances_rest_under_tremor(kind: str) -> None:
    """F = 6 N, M = 2 kg, a push of up to 4.5 N with tremor: the contact's velocity is 0.0, exactly and always."""
    t = np.arange(5000) * 1e-3
    push = 3.5 + np.sin(2 * np.pi * 9.0 * t)
    angle = 0.4 * np.sin(2 * np.pi * 0.7 * t)
    inputs = np.minimum(t / 0.2, 1.0)[:, None] * np.column_stack([push * np.cos(angle), push * np.sin(angle)])
    run = simulate(make(kind, Coulomb(6.0), Grip(mass=2.0, stiffness=2.5e5, damping=1000.0)), inputs)
    assert np.all(run.sticking)
    assert not np.any(run.velocity)


# ---- the handling of state


@every_law
@every_kind
def test_simulate_gives_the_same_bits_as_stepping(kind: str, name: str) -> None:
    run, batch = run_of(kind, name), simulate(make(kind, LAWS[name]), wandering(kind))
    for column in ("output", "friction_force", "displacement", "velocity", "sticking"):
        np.testing.assert_array_equal(getattr(batch, column), getattr(run, column))


@every_kind
def test_simulate_starts_from_the_present_state(kind: str) -> None:
    inputs, law = wandering(kind, 600), LAWS["stribeck"]
    whole, half = make(kind, law), make(kind, law)
    for element in (whole, half):
        element.reset(velocity=(0.2, -0.1))
    everything = stepped(whole, inputs)
    stepped(half, inputs[:400])
    np.testing.assert_array_equal(simulate(half, inputs[400:]).output, everything.output[400:])


@every_kind
def test_reset_restores_everything(kind: str) -> None:
    element, inputs = make(kind, LAWS["stribeck"]), wandering(kind, 500)
    first = stepped(element, inputs)
    element.reset()
    assert not np.any(element.displacement)
    np.testing.assert_array_equal(stepped(element, inputs).output, first.output)


@pytest.mark.parametrize("kind", ["A", "B", "D"])
def test_reset_gives_the_mass_its_velocity(kind: str) -> None:
    element, v0, inputs = make(kind, LAWS["coulomb"]), np.array([0.3, -0.2]), wandering(kind, 50)
    element.reset(velocity=(0.3, -0.2))
    run, expected = stepped(element, inputs), reference_run(kind, LAWS["coulomb"], GRIP, inputs, v0)
    assert largest(run.output - expected.output) <= 1e-11


@every_kind
def test_answers_are_not_overwritten_and_inputs_are_left_alone(kind: str) -> None:
    element, inputs = make(kind, LAWS["coulomb"]), wandering(kind, 20, seed=3) + 0.1
    kept_inputs, answers, copies = inputs.copy(), [], []
    for value in inputs:
        row = [element.step(value), element.friction_force, element.displacement, element.velocity]
        answers.append(row)
        copies.append([np.array(item) for item in row])
    simulate(element, inputs)
    np.testing.assert_array_equal(np.array(answers), np.array(copies))
    np.testing.assert_array_equal(inputs, kept_inputs)
    assert np.array(answers).shape == (20, 4, 2)


@pytest.mark.parametrize(
    ("kind", "causality"), [("A", "admittance"), ("B", "impedance"), ("C", "impedance"), ("D", "admittance")]
)
def test_causality_and_period(kind: str, causality: str) -> None:
    element = make(kind, LAWS["coulomb"], Grip(period=2e-3))
    assert element.causality == causality
    assert element.period == 2e-3
    assert make(kind, LAWS["coulomb"]).period == 1e-3


# ---- what is refused


@pytest.mark.parametrize(
    ("kind", "grip", "slowest"),
    [
        ("A", Grip(mass=2.0), 0.5e-3),
        ("C", Grip(stiffness=6000.0, damping=10.0), 62.5e-3),
        ("C", Grip(stiffness=3e4, damping=300.0), 1.0 / 330.0),
        ("B", Grip(mass=0.0), 62.5e-3),
        ("D", Grip(mass=1e9), 62.5e-3),
    ],
)
def test_condition_15_is_examined_when_built(kind: str, grip: Grip, slowest: float) -> None:
    """A drop of 1 N needs a Stribeck velocity above Z newtons; what happens below it is in `test_falling_laws`."""
    make(kind, Stribeck(4.0, 5.0, 1.001 * slowest), grip)
    with pytest.warns(AmbiguousLawWarning, match="condition 15"):
        make(kind, Stribeck(4.0, 5.0, 0.999 * slowest), grip)


GOOD: dict[str, tuple[type, dict[str, float]]] = {
    "A": (RigidAdmittance, {"mass": 1.0}),
    "B": (InertialImpedance, {"mass": 1.0, "stiffness": 6000.0, "damping": 10.0}),
    "C": (MasslessImpedance, {"stiffness": 6000.0, "damping": 10.0}),
    "D": (CompliantAdmittance, {"mass": 1.0, "stiffness": 6000.0, "damping": 10.0}),
}
BAD = [
    *[(kind, name, bad) for kind, (_, values) in GOOD.items() for name in values for bad in (-1.0, NAN, INF)],
    *[(kind, "period", bad) for kind in KINDS for bad in (0.0, -1e-3, NAN, INF)],
    ("A", "mass", 0.0),
    ("D", "mass", 0.0),
]


@pytest.mark.parametrize(("kind", "name", "bad"), BAD)
def test_bad_parameters_are_refused_by_name(kind: str, name: str, bad: float) -> None:
    element, values = GOOD[kind]
    changed: dict[str, Any] = {**values, name: bad}
    with pytest.raises(ConfigurationError, match=re.escape(name)) as caught:
        element(Coulomb(4.0), **changed)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("kind", ["B", "C", "D"])
def test_a_contact_that_nothing_holds_is_refused(kind: str) -> None:
    element, values = GOOD[kind]
    limp = {**values, "stiffness": 0.0, "damping": 0.0}
    if kind == "B":
        limp["mass"] = 0.0
    with pytest.raises(ConfigurationError):
        element(Coulomb(4.0), **limp)


def test_a_copied_element_goes_its_own_way() -> None:
    element = MasslessImpedance(Coulomb(4.0), 6000.0, 10.0)
    element.step((0.05, 0.0))
    twin = copy.copy(element)
    assert twin.step((0.05, 0.0)).tolist() == simulate(element, [(0.05, 0.0)]).output[0].tolist()
    before = element.displacement
    twin.step((0.1, 0.1))
    assert element.displacement.tolist() == before.tolist()
