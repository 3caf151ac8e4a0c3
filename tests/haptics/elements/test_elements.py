"""The four elements against the discrete constraints they solve (Kikuuwe et al. 2006, section III)."""

from __future__ import annotations

import dataclasses
import functools
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haptics import AmbiguousLawWarning, ConfigurationError, Coulomb, Stribeck, simulate
from haptics.elements.classic import Iwan
from haptics.elements.tables import MODELS
from tests.haptics.references import inclusion_residual, steepest
from tests.haptics.strategies import (
    KINDS,
    LAWS,
    PHYSICS,
    PLANAR,
    Grip,
    energy_balance,
    equations,
    largest,
    laws,
    log_floats,
    make,
    stepped,
    wandering,
)

GRIP = Grip()
COLUMNS = ("output", "friction_force", "displacement", "velocity")
every_kind = pytest.mark.parametrize("kind", KINDS)
ALL = LAWS | PLANAR
every_law = pytest.mark.parametrize("name", ALL)
isotropic_law = pytest.mark.parametrize("name", LAWS)


@functools.cache
def run_of(kind, name):
    """Return the 3000 random steps of model `kind` with law `name`, stepped once for all tests."""
    return stepped(make(kind, ALL[name]), wandering(kind))


# ---- the constraints


@every_law
@every_kind
def test_every_step_solves_the_equations_of_the_model(kind, name):
    run = run_of(kind, name)
    for left_over in equations(kind, GRIP, wandering(kind), run, np.zeros(2)):
        assert largest(left_over) <= 1e-11
    assert inclusion_residual(ALL[name], run.velocity, run.friction_force).max() <= 1e-11  # (13), (32), (39)
    np.testing.assert_array_equal(run.sticking, (run.velocity == 0.0).all(axis=1))
    assert 0.05 < run.sticking.mean() < 0.9, "the input must make the element stick and slide"


def mobility_of(kind, grip):
    """How far the sliding velocity falls per newton of friction, Z [m/(N s)]."""
    inertia, coupling = grip.mass / grip.period, grip.stiffness * grip.period + grip.damping
    match kind:
        case "A":
            return 1.0 / inertia
        case "B":
            return 1.0 / (inertia + coupling)
        case "C":
            return 1.0 / coupling
    return 1.0 / inertia + 1.0 / coupling


@every_kind
def test_mobility_is_that_of_mass_spring_and_damper(kind):
    assert make(kind, LAWS["coulomb"]).mobility == pytest.approx(mobility_of(kind, GRIP), rel=1e-12)


@settings(PHYSICS, max_examples=75)
@given(st.data(), st.sampled_from(KINDS), laws())
def test_any_parameters_solve_the_equations(data, kind, law):
    grip = Grip(
        data.draw(log_floats(0.02, 20.0)),
        data.draw(log_floats(10.0, 1e6)),
        data.draw(st.one_of(st.just(0.0), log_floats(0.1, 2000.0))),
        data.draw(st.sampled_from([1e-4, 2.5e-4, 1e-3, 4e-3])),
    )
    mobility = mobility_of(kind, grip)
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


# ---- energy


@every_law
@every_kind
def test_element_creates_no_energy(kind, name):
    """At every time the energy taken in covers spring and kinetic energy; friction itself never gives any."""
    run = run_of(kind, name)
    assert np.all((run.friction_force * run.velocity).sum(axis=1) >= 0.0)
    assert energy_balance(kind, GRIP, wandering(kind), run).min() >= -1e-12


# ---- how the models are related


@isotropic_law
def test_inertial_impedance_without_mass_is_the_massless_one(name):
    massless, massive = run_of("C", name), stepped(make("B", LAWS[name], Grip(mass=0.0)), wandering("C"))
    for column in COLUMNS:
        peak = max(1.0, largest(getattr(massless, column)))
        assert largest(getattr(massive, column) - getattr(massless, column)) <= 1e-14 * peak
    np.testing.assert_array_equal(massive.sticking, massless.sticking)


@isotropic_law
def test_stiff_compliant_admittance_is_the_rigid_one(name):
    """First order in 1/K, down to 1e-6 m/s at K = 1e10 N/m."""
    rigid, inputs, errors = run_of("A", name), wandering("A"), []
    for stiffness in (1e8, 1e9, 1e10):
        soft = stepped(make("D", LAWS[name], Grip(stiffness=stiffness)), inputs)
        errors.append(max(largest(soft.output - rigid.output), largest(soft.velocity - rigid.output)))
    assert errors[2] <= 1e-6
    assert errors[0] / errors[1] == pytest.approx(10.0, rel=0.1)
    assert errors[1] / errors[2] == pytest.approx(10.0, rel=0.1)


@isotropic_law
@every_kind
def test_turned_input_gives_the_turned_output(kind, name):
    turn = np.array([[np.cos(2.0), -np.sin(2.0)], [np.sin(2.0), np.cos(2.0)]])
    turned, run = simulate(make(kind, LAWS[name]), wandering(kind) @ turn.T), run_of(kind, name)
    for column in COLUMNS:
        assert largest(getattr(turned, column) - getattr(run, column) @ turn.T) <= 1e-10


# ---- stick without drift


@pytest.mark.parametrize("kind", ["A", "D"])
def test_admittances_rest_under_tremor(kind):
    """F = 6 N, M = 2 kg, a push of up to 4.5 N with tremor: the contact's velocity is 0.0, exactly and always."""
    t = np.arange(5000) * 1e-3
    push = 3.5 + np.sin(2 * np.pi * 9.0 * t)
    angle = 0.4 * np.sin(2 * np.pi * 0.7 * t)
    inputs = np.minimum(t / 0.2, 1.0)[:, None] * np.column_stack([push * np.cos(angle), push * np.sin(angle)])
    run = simulate(make(kind, Coulomb(6.0), Grip(mass=2.0, stiffness=2.5e5, damping=1000.0)), inputs)
    assert np.all(run.sticking)
    assert not np.any(run.velocity)


# ---- the handling of state


@every_kind
def test_simulate_continues_from_the_state_with_the_same_bits_and_reset_restores_it(kind):
    element, inputs = make(kind, LAWS["stribeck"]), wandering(kind, 600)
    element.reset(velocity=(0.2, -0.1))
    whole = stepped(element, inputs)
    element.reset(velocity=(0.2, -0.1))
    assert not np.any(element.displacement)
    stepped(element, inputs[:400])
    rest = simulate(element, inputs[400:])
    for column in (*COLUMNS, "sticking"):
        np.testing.assert_array_equal(getattr(rest, column), getattr(whole, column)[400:])


@every_kind
def test_results_are_not_overwritten_and_inputs_are_kept(kind):
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


# ---- refused settings


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
def test_condition_15_is_checked_when_built(kind, grip, slowest):
    """A drop of 1 N needs a Stribeck velocity above Z newtons; see `test_laws` for smaller ones."""
    make(kind, Stribeck(4.0, 5.0, 1.001 * slowest), grip)
    with pytest.warns(AmbiguousLawWarning, match="condition 15"):
        make(kind, Stribeck(4.0, 5.0, 0.999 * slowest), grip)


def outside(bounds):
    """Finite values that violate the declared `bounds` of a parameter."""
    limits = bounds["above"], bounds["minimum"] - 1.0, bounds["maximum"] + 1.0
    return [limit for limit in limits if math.isfinite(limit)]


REFUSED = [
    (cls, field.name, value)
    for forms in MODELS.values()
    for cls in forms.values()
    for field in dataclasses.fields(cls)[1:]
    for value in (math.nan, math.inf, *outside(field.metadata))
]
"""Every parameter of every class just outside its bounds."""


def required(cls):
    """Return valid values of the parameters that have no default."""
    valid = {"mass": 1.0, "stiffness": 6000.0, "damping": 10.0}
    return {field.name: valid[field.name] for field in dataclasses.fields(cls) if field.name in valid}


@pytest.mark.parametrize(("cls", "name", "value"), [*REFUSED, (Iwan, "count", 2.5)])
def test_bad_parameter_is_refused_by_name(cls, name, value):
    with pytest.raises(ConfigurationError, match=re.escape(f"element.{name} = ")):
        cls(LAWS["coulomb"], **{**required(cls), name: value})


@pytest.mark.parametrize(("kind", "mass"), [("B", 0.0), ("C", 1.0), ("D", 1.0)])
def test_contact_without_mass_stiffness_and_damping_is_refused(kind, mass):
    with pytest.raises(ConfigurationError, match=r"element\.stiffness = 0 with element\.damping = 0"):
        make(kind, LAWS["coulomb"], Grip(mass, stiffness=0.0, damping=0.0))
