"""Friction laws Phi and their exact implicit counterparts Phi_Z (Kikuuwe et al. 2006, (8), (16), (52))."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptics import Coulomb, CoulombViscous, DeadZoneViscous, GaussianStribeck, Law, Stribeck
from tests.haptics.meetings import ALL_FAMILIES, EACH, REACHES, Meeting, every_family, isotropic_family, meetings
from tests.haptics.references import (
    EPS,
    Array,
    force_at,
    fullness,
    inclusion_residual,
    norms,
    reference_implicit,
    rubber,
    sliding_force,
    slope,
    steepest,
)
from tests.haptics.strategies import LAWS, PHYSICS, PLANAR, log_floats, vectors

NAN, INF = float("nan"), float("inf")
ALL = LAWS | PLANAR
every_law = pytest.mark.parametrize("law", ALL.values(), ids=ALL.keys())


def scale(law: Law, forces: Array) -> Array:
    """Force [N] against which an error is judged, (m,)."""
    return np.maximum(law.breakaway_force, norms(forces))


# ---- the law itself


@EACH
@every_family
@given(st.data(), vectors(log_floats(1e-12, 1e6)))
def test_the_law_is_what_its_docstring_says(family: str, data: st.DataObject, velocity: Array) -> None:
    law = data.draw(ALL_FAMILIES[family])
    expected = force_at(law, velocity)
    assert norms(law(velocity) - expected)[0] <= 1e-12 * scale(law, expected)[0]


@EACH
@every_family
@given(st.data())
def test_breakaway_force_is_the_greatest_limit_of_the_law_at_rest(family: str, data: st.DataObject) -> None:
    law = data.draw(ALL_FAMILIES[family])
    angles = np.append(np.linspace(0.0, 2 * np.pi, 721), getattr(law, "angle", 0.0) + np.arange(4) * np.pi / 2)
    limits = norms(law(1e-12 * np.column_stack([np.cos(angles), np.sin(angles)])))
    assert limits.max() == pytest.approx(law.breakaway_force, rel=1e-7)


@EACH
@every_family
@given(st.data())
def test_at_rest_the_force_of_a_body_left_alone_is_zero(family: str, data: st.DataObject) -> None:
    law = data.draw(ALL_FAMILIES[family])
    np.testing.assert_array_equal(law((0.0, 0.0)), [0.0, 0.0])
    np.testing.assert_array_equal(law.implicit((0.0, 0.0), 1e-6), [0.0, 0.0])


@EACH
@isotropic_family
@given(st.data())
def test_mobility_limit_is_where_condition_15_ends(family: str, data: st.DataObject) -> None:
    law = data.draw(ALL_FAMILIES[family])
    assert law.mobility_limit == pytest.approx(steepest(law), rel=1e-3 if law.name == "custom" else 1e-12)


@EACH
@isotropic_family
@given(st.data())
def test_slopes_enclose_every_slope_of_the_level(family: str, data: st.DataObject) -> None:
    law = data.draw(ALL_FAMILIES[family])
    speeds = np.geomspace(1e-6, 50.0, 400)
    found = np.array([slope(law, speed) for speed in speeds])
    least, greatest = law.slopes
    assert np.all(found >= least - 1e-3 * abs(least) - 1e-6)
    assert np.all(found <= greatest + 1e-3 * abs(greatest) + 1e-6)
    assert law.steepest_slope == max(abs(least), abs(greatest))
    if law.name != "custom":
        assert found.min() == pytest.approx(least, rel=2e-2, abs=1e-6)
        assert slope(law, 50.0) == pytest.approx(greatest, abs=1e-12)


# ---- the implicit law: the constraint it solves


@EACH
@every_family
@given(st.data())
def test_implicit_law_satisfies_the_inclusion(family: str, data: st.DataObject) -> None:
    """Force and velocity lie on the law, and together they make up x: ``f = Phi(v)``, ``v + Z f = x``."""
    meeting = data.draw(meetings(family))
    x = meeting.arguments()
    found = meeting.answers(x)
    size = scale(meeting.law, found.force)
    assert np.all(inclusion_residual(meeting.law, found.velocity, found.force) <= 1e-12 * size)
    left_over = norms(x - found.velocity - meeting.mobility * found.force)
    assert np.all(left_over <= 1e-13 * np.maximum(norms(x), meeting.mobility * size))


@EACH
@every_family
@given(st.data())
def test_implicit_law_equals_an_independent_solution(family: str, data: st.DataObject) -> None:
    meeting = data.draw(meetings(family))
    x = meeting.arguments()
    expected = np.array([reference_implicit(meeting.law, row, meeting.mobility) for row in x])
    found = meeting.law.implicit(x, meeting.mobility)
    assert np.all(norms(found - expected) <= 1e-12 * scale(meeting.law, expected))


@EACH
@every_family
@given(st.data())
def test_it_sticks_exactly_where_it_may(family: str, data: st.DataObject) -> None:
    """Sticking means a velocity of exactly zero, for x/Z in the set of forces at rest; elsewhere it slides."""
    meeting = data.draw(meetings(family))
    x = meeting.arguments()
    found = meeting.answers(x)
    certain = np.abs(REACHES - 1.0) > 8 * EPS
    np.testing.assert_array_equal(found.sticking[certain], REACHES[certain] < 1.0)
    np.testing.assert_array_equal(found.sticking, ~found.velocity.any(axis=1))
    np.testing.assert_allclose(
        found.force[found.sticking], x[found.sticking] / meeting.mobility, rtol=4 * EPS, atol=0.0
    )


@EACH
@every_family
@given(st.data())
def test_elements_and_law_give_the_same_force(family: str, data: st.DataObject) -> None:
    meeting = data.draw(meetings(family))
    x = meeting.arguments()
    np.testing.assert_array_equal(meeting.law.implicit(x, meeting.mobility), meeting.answers(x).force)


@EACH
@every_family
@given(st.data())
def test_friction_takes_power(family: str, data: st.DataObject) -> None:
    meeting = data.draw(meetings(family))
    x = meeting.arguments()
    found = meeting.answers(x)
    assert np.all((found.force * found.velocity).sum(axis=1) >= 0.0)
    assert np.all((found.force * x).sum(axis=1) >= 0.0)


@EACH
@every_family
@given(st.data(), st.floats(-np.pi, np.pi), st.floats(-6.0, 0.5))
def test_implicit_law_is_nonexpansive(family: str, data: st.DataObject, angle: float, exponent: float) -> None:
    """``Z |Phi_Z(x) - Phi_Z(y)| <= |x - y|``; for falling laws up to half the limit of (15), where Z slope is -1/2."""
    meeting = data.draw(meetings(family, share=0.5))
    x = meeting.arguments()
    y = x + (norms(x)[:, None] + 1e-9) * 10.0**exponent * np.array([np.cos(angle), np.sin(angle)])
    f, g = meeting.law.implicit(x, meeting.mobility), meeting.law.implicit(y, meeting.mobility)
    rounding = 1e-13 * meeting.mobility * np.maximum(scale(meeting.law, f), scale(meeting.law, g))
    assert np.all(meeting.mobility * norms(f - g) <= norms(x - y) * (1.0 + 1e-12) + rounding)


@EACH
@every_family
@given(st.data())
def test_force_is_continuous_at_the_edge_of_stick(family: str, data: st.DataObject) -> None:
    """From just inside to just outside it changes by no more than the way between, however the law falls."""
    meeting = data.draw(meetings(family))
    beside = np.flatnonzero(np.abs(REACHES - 1.0) <= 1.1e-6)
    direction = meeting.arguments()[beside[0]] / REACHES[beside[0]]
    forces = meeting.law.implicit(REACHES[beside, None] * direction, meeting.mobility)
    edge = direction / meeting.mobility
    assert fullness(meeting.law, edge) == pytest.approx(1.0, rel=1e-12)
    away = norms(forces - edge) / norms(edge)[0]
    assert np.all(away <= 100.0 * np.abs(REACHES[beside] - 1.0) + 1e-13)


# ---- symmetries and dimensions


@EACH
@isotropic_family
@given(st.data())
def test_implicit_law_is_odd(family: str, data: st.DataObject) -> None:
    meeting = data.draw(meetings(family))
    x = meeting.arguments()
    np.testing.assert_array_equal(
        meeting.law.implicit(-x, meeting.mobility), -meeting.law.implicit(x, meeting.mobility)
    )


@EACH
@every_family
@given(st.data(), st.floats(-np.pi, np.pi))
def test_implicit_law_turns_with_its_argument(family: str, data: st.DataObject, angle: float) -> None:
    """With the argument and, if the law has one, with its axis."""
    meeting = data.draw(meetings(family))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    law, x = meeting.law, meeting.arguments()
    turned = law
    if not law.isotropic:
        turned = dataclasses.replace(law, angle=float(np.remainder(law.angle + angle, 2 * np.pi)))  # type: ignore
    expected = law.implicit(x, meeting.mobility) @ turn.T
    change = norms(turned.implicit(x @ turn.T, meeting.mobility) - expected)
    assert np.all(change <= 1e-12 * scale(law, expected))


@EACH
@isotropic_family
@given(st.data(), st.sampled_from([1, 2, 3, 5]))
def test_every_dimension_is_the_problem_of_one(family: str, data: st.DataObject, dimensions: int) -> None:
    """The force is parallel to x and as large as that of a number of the same size; shapes are kept."""
    meeting = data.draw(meetings(family))
    x = meeting.arguments(dimensions).reshape(1, -1, dimensions)
    found = meeting.law.implicit(x, meeting.mobility)
    assert found.shape == x.shape
    sizes = np.linalg.norm(x, axis=-1, keepdims=True)
    alone = np.array([meeting.law.implicit(float(size), meeting.mobility) for size in sizes.ravel()])
    directions = np.divide(x, sizes, out=np.zeros_like(x), where=sizes > 0.0)
    np.testing.assert_allclose(found[0], alone[:, None] * directions[0], rtol=1e-11, atol=1e-13 * alone.max())
    np.testing.assert_allclose(
        meeting.law(x[0, -1]), meeting.law(float(sizes[0, -1, 0])) * directions[0, -1], rtol=1e-12
    )


# ---- the ends of the scale


@every_law
@pytest.mark.parametrize("mobility", [1e-9, 5e-4, 1 / 330, 1 / 16])
@pytest.mark.parametrize("size", [1e-12, 1e-9, 1e-6, 1e-3, 1.0, 1e3, 1e6])
def test_huge_and_tiny_arguments(law: Law, mobility: float, size: float) -> None:
    x = size * np.array([[0.6, -0.8], [-1.0, 0.0], [0.0, 1.0], [1.0, 1e-12], [-1e-12, 1.0]])
    expected = np.array([reference_implicit(law, row, mobility) for row in x])
    found = law.implicit(x, mobility)
    assert np.all(norms(found - expected) <= 1e-12 * scale(law, expected))


@every_law
def test_velocities_below_every_physical_one(law: Law) -> None:
    """Numbers so small that they have lost digits still have a direction and a force."""
    np.testing.assert_allclose(law(np.array([1e-310, 0.0])), law(np.array([1e-200, 0.0])), rtol=1e-9, atol=1e-9)
    if law.isotropic:
        assert law(5e-324) == pytest.approx(law.breakaway_force, rel=1e-9)


def test_the_next_numbers_beyond_the_edge_of_stick() -> None:
    """It slides there, or it sticks, but never does it half: sticking is a velocity of zero."""
    random = np.random.default_rng(3)
    for force, kinetic, width, share in random.uniform((0.1, 0.0, 1e-3, 0.01), (10.0, 0.9, 1.0, 0.9), (1000, 4)):
        law = GaussianStribeck(kinetic * force, force, width)
        meeting = Meeting(law, 1e-3 / (share * steepest(law)))
        edge = meeting.mobility * force
        found = meeting.answers(np.outer([edge, np.nextafter(edge, np.inf), edge * (1.0 + 2 * EPS)], [1.0, 0.0]))
        np.testing.assert_array_equal(found.sticking, ~found.velocity.any(axis=1))


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
@pytest.mark.parametrize("size", [1e-290, 1e-200, 1e-150, 1e150])
def test_sizes_whose_squares_do_not_exist(law: Law, size: float) -> None:
    direction = np.array([0.48, -0.6, 0.64])
    np.testing.assert_allclose(law(size * direction), sliding_force(law, size) * direction, rtol=1e-12)


@EACH
@isotropic_family
@given(st.data(), log_floats(1e-12, 1e6), st.floats(0.01, 0.9))
def test_a_known_sliding_speed_comes_back(family: str, data: st.DataObject, speed: float, share: float) -> None:
    """Put ``x = s + Z g(s)`` together from the speed s: the force must be g(s), however fast."""
    law = data.draw(ALL_FAMILIES[family])
    mobility = share * min(1.0, steepest(law))
    level = float(sliding_force(law, speed))
    rounding = 4 * EPS * max(speed, mobility * level) / mobility / (1.0 - share)
    assert law.implicit(speed + mobility * level, mobility) == pytest.approx(level, rel=1e-13, abs=rounding)


# ---- limits between laws


@PHYSICS
@given(log_floats(0.1, 50.0), log_floats(1e-3, 1.0), st.just(0.0) | log_floats(0.01, 10.0))
def test_without_a_peak_or_a_dead_zone_a_law_is_coulomb_viscous(force: float, speed: float, viscosity: float) -> None:
    plain = Meeting(CoulombViscous(force, viscosity), 0.2)
    x = plain.arguments()
    expected = plain.law.implicit(x, plain.mobility)
    flat = rubber(static=force, kinetic=force, width=speed, viscosity=viscosity)
    for law in (
        Stribeck(force, force, speed, viscosity),
        GaussianStribeck(force, force, speed, viscosity),
        DeadZoneViscous(force, viscosity, 0.0),
        flat,
    ):
        assert np.all(norms(law.implicit(x, plain.mobility) - expected) <= 1e-12 * scale(plain.law, expected)), law
        assert law.mobility_limit == INF


@PHYSICS
@given(log_floats(0.1, 50.0), log_floats(1e-3, 1.0))
def test_without_viscosity_it_is_coulomb_whose_force_is_exact(force: float, dead_zone: float) -> None:
    plain = Meeting(Coulomb(force), 0.2)
    x = plain.arguments()
    expected = plain.law.implicit(x, plain.mobility)
    np.testing.assert_allclose(norms(expected)[REACHES > 1.1], force, rtol=2 * EPS)
    for law in (CoulombViscous(force, 0.0), DeadZoneViscous(force, 0.0, dead_zone)):
        np.testing.assert_allclose(law.implicit(x, plain.mobility), expected, rtol=4 * EPS, atol=0.0)


@PHYSICS
@given(log_floats(0.1, 50.0), log_floats(0.01, 10.0), log_floats(1e-3, 1.0))
def test_inside_its_dead_zone_a_law_is_coulomb_and_far_outside_viscous(
    force: float, D: float, dead_zone: float
) -> None:
    law, mobility = DeadZoneViscous(force, D, dead_zone), 5e-3
    for speed in (0.1 * dead_zone, 0.999 * dead_zone):
        assert law.implicit(speed + mobility * force, mobility) == pytest.approx(force, rel=1e-13)
    fast = 1e6
    assert law.implicit(fast, mobility) == pytest.approx(
        CoulombViscous(force, D).implicit(fast, mobility) - D * dead_zone / (1.0 + mobility * D), rel=1e-12
    )
