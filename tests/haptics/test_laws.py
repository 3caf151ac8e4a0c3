"""Friction laws Phi and their implicit counterparts Phi_Z (Kikuuwe et al. 2006, (8), (16), (52))."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptics import Coulomb, CoulombViscous, Stribeck
from haptics.errors import ConfigurationError

from .strategies import (
    EPS,
    LAWS,
    PHYSICS,
    Array,
    Law,
    implicit_cases,
    inclusion_residual,
    laws,
    log_floats,
    norms,
    reference_implicit,
    reference_speed,
    sliding_force,
    slope,
    steepest,
    vectors,
)

NAN, INF = float("nan"), float("inf")
Case = tuple[Law, Array, float]


def scale(law: Law, *forces: Array) -> float:
    """Force [N] against which an error is judged."""
    return float(max(sliding_force(law, 0.0), *(norms(force)[0] for force in forces)))


# ---- the law itself


@PHYSICS
@given(laws(), vectors(log_floats(1e-9, 10.0)))
def test_the_law_has_the_direction_of_the_velocity_and_the_stated_magnitude(law: Law, velocity: Array) -> None:
    speed = norms(velocity)[0]
    expected = sliding_force(law, speed) * velocity / speed
    assert norms(law(velocity) - expected)[0] <= 1e-13 * scale(law, expected)


@PHYSICS
@given(laws())
def test_breakaway_force_is_the_limit_of_the_law_at_rest(law: Law) -> None:
    assert law.breakaway_force == pytest.approx(sliding_force(law, 0.0), rel=1e-15)
    assert norms(law(np.array([1e-15, 0.0])))[0] == pytest.approx(law.breakaway_force, rel=1e-9)


@PHYSICS
@given(laws())
def test_mobility_limit_is_where_condition_15_ends(law: Law) -> None:
    expected = steepest(law)
    if np.isinf(expected):
        assert law.mobility_limit == INF
    elif slope(law, 0.0) < -1e-9:
        assert law.mobility_limit == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("law", [Coulomb(3.0), CoulombViscous(3.0, 2.0), Stribeck(4.0, 5.0, 0.1, 20.0)])
def test_monotone_laws_have_no_limit(law: Law) -> None:
    assert law.mobility_limit == INF


def test_mobility_limit_of_the_measured_law_of_the_slope() -> None:
    """The limit follows from the law as it answers, not from its parameters."""
    law = Stribeck(4.0, 5.0, 0.1, 3.0)
    step = 1e-7
    fall = (norms(law(np.array([2 * step, 0.0])))[0] - norms(law(np.array([step, 0.0])))[0]) / step
    assert law.mobility_limit == pytest.approx(-1.0 / fall, rel=1e-5)


# ---- the implicit law: the constraint it solves


@PHYSICS
@given(implicit_cases())
def test_implicit_law_satisfies_the_inclusion(case: Case) -> None:
    law, x, mobility = case
    force = law.implicit(x, mobility)
    velocity = x - mobility * force
    if norms(x)[0] <= mobility * sliding_force(law, 0.0):
        velocity = np.zeros(2)
    assert inclusion_residual(law, velocity, force, mobility)[0] <= 1e-12 * scale(law, force)


@PHYSICS
@given(implicit_cases())
def test_implicit_law_equals_a_bracketed_solution(case: Case) -> None:
    law, x, mobility = case
    expected = reference_implicit(law, x, mobility)
    assert norms(law.implicit(x, mobility) - expected)[0] <= 1e-12 * scale(law, expected)


@PHYSICS
@given(implicit_cases())
def test_implicit_law_sticks_exactly_where_it_may(case: Case) -> None:
    """Inside ``|x| <= Z |Phi(+0)|`` the force holds the velocity at zero; outside it cannot."""
    law, x, mobility = case
    force, reach = law.implicit(x, mobility), mobility * sliding_force(law, 0.0)
    if norms(x)[0] <= reach:
        np.testing.assert_allclose(force, x / mobility, rtol=4 * EPS, atol=0.0)
    elif norms(x)[0] > reach * (1.0 + 1e-9):
        assert norms(x - mobility * force)[0] > 0.0


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
@pytest.mark.parametrize("mobility", [5e-4, 1 / 330, 1 / 16])
def test_force_is_continuous_and_greatest_at_the_stick_boundary(law: Law, mobility: float) -> None:
    edge = mobility * law.breakaway_force
    for x in (np.nextafter(edge, 0.0), edge, np.nextafter(edge, INF)):
        force = law.implicit(np.array([x, 0.0]), mobility)
        assert force[0] == pytest.approx(law.breakaway_force, rel=1e-13)
        assert force[1] == 0.0


@PHYSICS
@given(implicit_cases())
def test_implicit_law_is_odd(case: Case) -> None:
    law, x, mobility = case
    np.testing.assert_array_equal(law.implicit(-x, mobility), -law.implicit(x, mobility))


@PHYSICS
@given(implicit_cases(), st.floats(-np.pi, np.pi))
def test_implicit_law_turns_with_its_argument(case: Case, angle: float) -> None:
    law, x, mobility = case
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    force = turn @ law.implicit(x, mobility)
    assert norms(law.implicit(turn @ x, mobility) - force)[0] <= 1e-12 * scale(law, force)


@PHYSICS
@given(implicit_cases())
def test_friction_takes_power(case: Case) -> None:
    law, x, mobility = case
    force = law.implicit(x, mobility)
    rounding = 8 * EPS * norms(x)[0] * norms(force)[0]
    assert (x - mobility * force) @ force >= -rounding
    assert x @ force >= 0.0


@PHYSICS
@given(implicit_cases(share=0.5), st.floats(-np.pi, np.pi), st.floats(-3.0, 0.5))
def test_implicit_law_is_nonexpansive(case: Case, angle: float, exponent: float) -> None:
    """``Z |Phi_Z(x) - Phi_Z(y)| <= |x - y|``; for falling laws up to half the limit of (15), where Z slope is -1."""
    law, x, mobility = case
    other = x + (norms(x)[0] + 1e-9) * 10.0**exponent * np.array([np.cos(angle), np.sin(angle)])
    change = mobility * norms(law.implicit(x, mobility) - law.implicit(other, mobility))[0]
    rounding = 1e-13 * mobility * scale(law, law.implicit(x, mobility), law.implicit(other, mobility))
    assert change <= norms(x - other)[0] * (1.0 + 1e-12) + rounding


@PHYSICS
@given(implicit_cases())
def test_one_dimension_is_two_with_zero_second_component(case: Case) -> None:
    law, x, mobility = case
    force = law.implicit(np.array([norms(x)[0], 0.0]), mobility)
    assert force[1] == 0.0
    assert force[0] == pytest.approx(norms(law.implicit(x, mobility))[0], rel=1e-11)


# ---- Stribeck: hard corners and the numbers of EQUATIONS.md 3.2


@pytest.mark.parametrize("viscosity", [0.0, 0.3, 50.0])
@pytest.mark.parametrize("share", [0.5, 0.99, 1.0 - 1e-6, 1.0 - 1e-12])
@pytest.mark.parametrize("beyond", [1e-12, 1e-8, 1e-4, 0.1, 1.0, 1e2, 1e5])
def test_stribeck_near_the_limit_and_at_extreme_speeds(viscosity: float, share: float, beyond: float) -> None:
    law = Stribeck(2.0, 3.5, 0.02, viscosity)
    mobility = share * steepest(law)
    x = mobility * 3.5 * (1.0 + beyond) * np.array([0.6, -0.8])
    force = law.implicit(x, mobility)
    assert inclusion_residual(law, x - mobility * force, force, mobility)[0] <= 1e-12 * scale(law, force)
    speed = reference_speed(law, float(norms(x)[0]), mobility)
    condition = 1.0 / max(1.0 + mobility * slope(law, speed), EPS)
    expected = reference_implicit(law, x, mobility)
    assert norms(force - expected)[0] <= 1e-13 * scale(law, expected) * max(condition, 1.0)


@pytest.mark.parametrize("speed", [1e-9, 1e-4, 0.05, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("viscosity", [0.0, 3.0])
def test_stribeck_at_a_known_sliding_speed(speed: float, viscosity: float) -> None:
    """Put ``x = s + Z g(s)`` together from the speed s: the force must be g(s), however fast."""
    law, mobility = Stribeck(4.0, 5.0, 0.1, viscosity), 5e-4
    expected = sliding_force(law, speed)
    force = law.implicit(np.array([speed + mobility * expected, 0.0]), mobility)
    assert force[0] == pytest.approx(expected, rel=1e-12)


@PHYSICS
@given(log_floats(0.1, 50.0), log_floats(1e-3, 1.0), log_floats(0.01, 10.0), vectors(log_floats(1e-5, 10.0)))
def test_stribeck_without_a_peak_is_coulomb_viscous(force: float, speed: float, viscosity: float, x: Array) -> None:
    flat, plain = Stribeck(force, force, speed, viscosity), CoulombViscous(force, viscosity)
    expected = plain.implicit(x, 5e-3)
    assert norms(flat.implicit(x, 5e-3) - expected)[0] <= 1e-12 * scale(plain, expected)
    assert flat.mobility_limit == INF


@PHYSICS
@given(log_floats(0.1, 50.0), vectors(log_floats(1e-5, 10.0)))
def test_coulomb_viscous_without_viscosity_is_coulomb(force: float, x: Array) -> None:
    np.testing.assert_allclose(
        CoulombViscous(force, 0.0).implicit(x, 5e-3), Coulomb(force).implicit(x, 5e-3), rtol=1e-14, atol=0.0
    )


@PHYSICS
@given(log_floats(0.1, 50.0), vectors(log_floats(1e-3, 10.0)))
def test_coulomb_slides_with_its_force_to_the_last_digits(force: float, x: Array) -> None:
    mobility = 0.5 * norms(x)[0] / force
    assert norms(Coulomb(force).implicit(x, mobility))[0] == pytest.approx(force, rel=1e-15)


def approximation_46(law: Law, x: float, mobility: float) -> float:
    """Equation (46) of the paper, which must *not* be what the law answers."""
    return float(min(x / mobility, sliding_force(law, x)))


@pytest.mark.parametrize(
    ("mobility", "viscosity", "peak_of_46", "error_of_46"),
    [(5e-4, 0.0, 4.975, 0.005), (1 / 330, 0.0, 4.86, 0.028), (1 / 16, 0.0, 4.08, 0.19)],
)
def test_the_breakaway_peak_survives(mobility: float, viscosity: float, peak_of_46: float, error_of_46: float) -> None:
    law = Stribeck(4.0, 5.0, 0.1, viscosity)
    grid = np.linspace(0.0, 2.0, 4001)[1:]
    exact = np.array([law.implicit(np.array([x, 0.0]), mobility)[0] for x in grid])
    rough = np.array([approximation_46(law, x, mobility) for x in grid])
    assert law.implicit(np.array([5.0 * mobility, 0.0]), mobility)[0] == pytest.approx(5.0, rel=1e-15)
    assert law.implicit(np.array([4.9 * mobility, 0.0]), mobility)[0] == pytest.approx(4.9, rel=1e-15)
    crossing = reference_crossing(law, mobility)
    assert approximation_46(law, crossing, mobility) == pytest.approx(peak_of_46, rel=2e-3)
    assert np.max(np.abs(rough - exact) / exact) == pytest.approx(error_of_46, rel=0.03)


def reference_crossing(law: Law, mobility: float) -> float:
    """Where (46) lets go: the root of ``x / Z = Phi(x)``, by fixed-point iteration."""
    x = 0.0
    for _ in range(200):
        x = mobility * sliding_force(law, x)
    return x


def test_a_viscous_law_slips_where_46_never_does() -> None:
    law, mobility = Stribeck(4.0, 5.0, 0.1, 20.0), 1 / 16
    for x in np.linspace(5.001 * mobility, 5.0, 50):
        force = law.implicit(np.array([x, 0.0]), mobility)[0]
        assert force < x / mobility - 1e-6
        assert approximation_46(law, x, mobility) == x / mobility


# ---- values


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_laws_are_values(law: Law) -> None:
    assert law == dataclasses.replace(law)
    assert hash(law) == hash(dataclasses.replace(law))
    name = dataclasses.fields(law)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(law, name, 1.0)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_laws_leave_their_argument_alone_and_answer_afresh(law: Law) -> None:
    x = np.array([0.3, -0.4])
    slow, fast = law.implicit(0.1 * x, 0.01), law.implicit(x, 0.01)
    kept = fast.copy()
    law.implicit(-x, 0.01)
    law(x)
    np.testing.assert_array_equal(x, [0.3, -0.4])
    np.testing.assert_array_equal(fast, kept)
    assert slow.shape == fast.shape == law(x).shape == (2,)


BAD: list[tuple[type, dict[str, Any], str]] = [
    *[(Coulomb, {"force": bad}, "force") for bad in (-1.0, NAN, INF, -INF)],
    *[(CoulombViscous, {"force": bad, "viscosity": 1.0}, "force") for bad in (-1.0, NAN, INF)],
    *[(CoulombViscous, {"force": 1.0, "viscosity": bad}, "viscosity") for bad in (-1.0, NAN, INF)],
    *[
        (
            Stribeck,
            {"kinetic_force": 4.0, "static_force": 5.0, "stribeck_velocity": 0.1, "viscosity": 0.0} | change,
            name,
        )
        for change, name in (
            ({"kinetic_force": -4.0}, "kinetic_force"),
            ({"kinetic_force": NAN}, "kinetic_force"),
            ({"static_force": NAN}, "static_force"),
            ({"static_force": -5.0}, "static_force"),
            ({"static_force": 3.9}, "static_force"),
            ({"static_force": INF}, "static_force"),
            ({"stribeck_velocity": 0.0}, "stribeck_velocity"),
            ({"stribeck_velocity": -0.1}, "stribeck_velocity"),
            ({"stribeck_velocity": NAN}, "stribeck_velocity"),
            ({"viscosity": -1e-9}, "viscosity"),
            ({"viscosity": NAN}, "viscosity"),
        )
    ],
]


@pytest.mark.parametrize(("law", "values", "name"), BAD)
def test_bad_parameters_are_refused_by_name(law: type, values: dict[str, Any], name: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(name)) as caught:
        law(**values)
    assert isinstance(caught.value, ValueError)
