"""Friction laws Phi and their implicit counterparts Phi_Z, exact and in closed form (Kikuuwe et al. 2006)."""

from __future__ import annotations

import copy
import re
import warnings
from dataclasses import fields, replace
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from haptics import Asymmetric, ClosedForm, CustomLaw, Elliptic, Law, friction_law, simulate
from haptics.elements.models import RigidAdmittance
from haptics.elements.tables import make_law
from haptics.errors import AmbiguousLawWarning, ConfigurationError
from haptics.friction.kernels import CUSTOM, LAW, isotropic_forces, plane_forces
from haptics.friction.laws import (
    Coulomb,
    CoulombViscous,
    DeadZoneViscous,
    GaussianStribeck,
    Stribeck,
    require_solvable,
)
from tests.haptics.references import (
    EPS,
    force_at,
    fullness,
    inclusion_residual,
    norms,
    own_axes,
    reference_implicit,
    rubber,
    semi_axes,
    sliding_force,
    slope,
    steepest,
)
from tests.haptics.strategies import (
    ALL_FAMILIES,
    EACH,
    FAMILIES,
    KINDS,
    LAWS,
    PHYSICS,
    PLANAR,
    REACHES,
    Grip,
    Meeting,
    energy_balance,
    equations,
    every_family,
    isotropic_family,
    largest,
    laws,
    log_floats,
    make,
    meetings,
    planar_family,
    stepped,
    vectors,
    wandering,
)

NAN, INF = float("nan"), float("inf")
ALL = LAWS | PLANAR
every_law = pytest.mark.parametrize("law", ALL.values(), ids=ALL.keys())


def scale(law, forces):
    """Force [N] against which an error is judged, (m,)."""
    return np.maximum(law.breakaway_force, norms(forces))


# ---- the law itself


@EACH
@every_family
@given(st.data(), vectors(log_floats(1e-12, 1e6)))
def test_law_equals_its_formula_and_is_zero_at_rest(family, data, velocity):
    law = data.draw(ALL_FAMILIES[family])
    expected = force_at(law, velocity)
    assert norms(law(velocity) - expected)[0] <= 1e-12 * scale(law, expected)[0]
    np.testing.assert_array_equal(law((0.0, 0.0)), [0.0, 0.0])
    np.testing.assert_array_equal(law.implicit((0.0, 0.0), 1e-6), [0.0, 0.0])


@EACH
@every_family
@given(st.data())
def test_breakaway_force_is_the_greatest_limit_of_the_law_at_rest(family, data):
    law = data.draw(ALL_FAMILIES[family])
    angles = np.append(np.linspace(0.0, 2 * np.pi, 721), getattr(law, "angle", 0.0) + np.arange(4) * np.pi / 2)
    limits = norms(law(1e-12 * np.column_stack([np.cos(angles), np.sin(angles)])))
    assert limits.max() == pytest.approx(law.breakaway_force, rel=1e-7)


@EACH
@isotropic_family
@given(st.data())
def test_mobility_limit_and_slopes_match_the_derivative_of_the_level(family, data):
    law = data.draw(ALL_FAMILIES[family])
    assert law.mobility_limit == pytest.approx(steepest(law), rel=1e-3 if law.name == "custom" else 1e-12)
    found = np.array([slope(law, speed) for speed in np.geomspace(1e-6, 50.0, 400)])
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
def test_implicit_law_satisfies_the_inclusion_sticks_inside_the_resting_set_and_dissipates(family, data):
    """Force and velocity lie on the law and add up to x: ``f = Phi(v)``, ``v + Z f = x``.

    Sticking means a velocity of exactly zero, for x/Z in the set of forces at rest; elsewhere the contact slides.
    """
    meeting = data.draw(meetings(family))
    x = meeting.arguments()
    found = meeting.answers(x)
    size = scale(meeting.law, found.force)
    assert np.all(inclusion_residual(meeting.law, found.velocity, found.force) <= 1e-12 * size)
    left_over = norms(x - found.velocity - meeting.mobility * found.force)
    assert np.all(left_over <= 1e-13 * np.maximum(norms(x), meeting.mobility * size))
    assert np.all((found.force * found.velocity).sum(axis=1) >= 0.0)
    assert np.all((found.force * x).sum(axis=1) >= 0.0)
    stuck, certain = found.sticking, np.abs(REACHES - 1.0) > 8 * EPS
    np.testing.assert_array_equal(stuck[certain], REACHES[certain] < 1.0)
    np.testing.assert_array_equal(stuck, ~found.velocity.any(axis=1))
    np.testing.assert_allclose(found.force[stuck], x[stuck] / meeting.mobility, rtol=4 * EPS, atol=0.0)
    implicit = meeting.law.implicit(x, meeting.mobility)
    np.testing.assert_array_equal(implicit, found.force)
    expected = np.array([reference_implicit(meeting.law, row, meeting.mobility) for row in x])
    assert np.all(norms(implicit - expected) <= 1e-12 * scale(meeting.law, expected))


# ---- symmetries and dimensions


@EACH
@isotropic_family
@given(st.data(), st.sampled_from([1, 2, 3, 5]))
def test_every_dimension_reduces_to_the_scalar_problem(family, data, dimensions):
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
def test_implicit_law_handles_huge_and_tiny_arguments(law, mobility, size):
    x = size * np.array([[0.6, -0.8], [-1.0, 0.0], [0.0, 1.0], [1.0, 1e-12], [-1e-12, 1.0]])
    expected = np.array([reference_implicit(law, row, mobility) for row in x])
    found = law.implicit(x, mobility)
    assert np.all(norms(found - expected) <= 1e-12 * scale(law, expected))


@every_law
def test_subnormal_velocities_have_a_direction_and_a_force(law):
    np.testing.assert_allclose(law(np.array([1e-310, 0.0])), law(np.array([1e-200, 0.0])), rtol=1e-9, atol=1e-9)
    if law.isotropic:
        assert law(5e-324) == pytest.approx(law.breakaway_force, rel=1e-9)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
@pytest.mark.parametrize("size", [1e-290, 1e-200, 1e-150, 1e150])
def test_law_handles_sizes_whose_squares_overflow(law, size):
    for direction in (np.array([0.48, -0.6, 0.64]), np.array([0.6, -0.8])):
        np.testing.assert_allclose(law(size * direction), sliding_force(law, size) * direction, rtol=1e-12)
    in_the_plane = np.empty((1, 2))
    plane_forces(law.record, size * np.array([[0.6, -0.8]]), 0.0, in_the_plane)
    np.testing.assert_allclose(in_the_plane, sliding_force(law, size) * np.array([[0.6, -0.8]]), rtol=1e-12)


# --- values, arguments and parameters


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_scalar_argument_gives_a_scalar(law):
    assert isinstance(law(0.1), float)
    assert isinstance(law.implicit(-0.1, 1e-3), float)
    assert law.implicit(-0.1, 1e-3) == -law.implicit(np.array([0.1]), 1e-3)[0]


@every_law
def test_invalid_velocity_or_mobility_is_refused(law):
    for bad in ((NAN, 0.0), (0.0, INF), (-INF, NAN), "fast", [[1.0, 2.0], [3.0]], 1j, None, ()):
        for call in (law, lambda x: law.implicit(x, 1e-3)):
            with pytest.raises(ConfigurationError, match="velocity"):
                call(bad)
    for bad in (0.0, -1.0, NAN, INF, "fast", None, 1j):
        with pytest.raises(ConfigurationError, match="mobility"):
            law.implicit((0.1, 0.0), bad)


BUILT_IN = [law for law in ALL.values() if not isinstance(law, CustomLaw)]
FIELDS = [(law, field.name) for law in BUILT_IN for field in fields(law)]
FALLING = [LAWS["stribeck"], LAWS["gaussian"]]
BAD: list[tuple[Law, str, Any]] = [
    *((law, name, bad) for law, name in FIELDS for bad in (NAN, INF, "4", None, True)),
    *((law, name, -1e-9) for law, name in FIELDS if name != "angle"),
    *((law, name, bad) for law in FALLING for name, bad in (("stribeck_velocity", 0.0), ("static_force", 3.9))),
    *((law, name, 0.0) for law, name in FIELDS if name.startswith(("force_", "forward", "backward", "sideways"))),
    *((law, "angle", bad) for law in PLANAR.values() for bad in (6.4, -6.4)),
]


@pytest.mark.parametrize(("law", "name", "bad"), BAD)
def test_bad_parameters_are_refused_by_name(law, name, bad):
    with pytest.raises(ConfigurationError, match=re.escape(name)) as caught:
        replace(law, **{name: bad})
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)


def test_custom_law_record_without_address_gives_nan():
    """The kernel does not call address zero."""
    record, found = np.zeros(1, LAW), np.empty((2, 1))
    record["kind"] = CUSTOM
    for mobility in (0.0, 1e-3):
        isotropic_forces(record, np.array([[0.1], [-2.0]]), mobility, found)
        assert np.isnan(found).all()


# --- laws of the plane


CIRCLE = np.column_stack([np.cos(np.linspace(-np.pi, np.pi, 181)), np.sin(np.linspace(-np.pi, np.pi, 181))])


def resting_edge(law):
    """Forces on the edge of the set that rest allows, (181, 2) [N]."""
    own = np.array([semi_axes(law, c) * (c, s) for c, s in CIRCLE])
    return own @ own_axes(law)


# ---- the laws


@EACH
@planar_family
@given(st.data(), vectors(log_floats(1e-9, 10.0)))
def test_sliding_force_maximises_the_dissipation(family, data, velocity):
    """Principle of maximum dissipation: it fixes the position of the force on the ellipse."""
    law = data.draw(ALL_FAMILIES[family])
    dry = law(velocity) - law.viscosity * velocity
    speed = norms(velocity)[0]
    assert fullness(law, dry) == pytest.approx(1.0, rel=1e-9)
    assert np.all(resting_edge(law) @ velocity <= dry @ velocity + 1e-9 * law.breakaway_force * speed)


@pytest.mark.parametrize("law", [*ALL.values(), ClosedForm(Coulomb(4.0))])
def test_sticking_is_a_velocity_of_zero_beside_the_edge(law):
    """Rounding next to the edge gives either sticking or a nonzero speed."""
    meeting = Meeting(law, 0.015)
    edge = law.breakaway_force * CIRCLE if law.isotropic else resting_edge(law)
    for distance in range(-4, 9):
        found = meeting.answers(meeting.mobility * (1.0 + distance * EPS) * edge)
        np.testing.assert_array_equal(found.sticking, ~found.velocity.any(axis=1))


@pytest.mark.parametrize("law", PLANAR.values(), ids=PLANAR.keys())
def test_planar_law_is_solvable_at_any_mobility(law):
    assert law.mobility_limit == np.inf
    found = Meeting(law, 1e-6).answers(np.array([[3e4, -2e4], [1e4, 0.0]]))
    assert inclusion_residual(law, found.velocity, found.force).max() <= 1e-7 * norms(found.force).max()


@pytest.mark.parametrize("ratio", [30.0, 1e3, 1e6])
@pytest.mark.parametrize("mobility", [1e-4, 0.05])
def test_force_on_a_flat_ellipse_follows_its_normal(ratio, mobility):
    for law in (Elliptic(4.0, 4.0 / ratio), Elliptic(4.0 / ratio, 4.0), Asymmetric(4.0, 4.0 / ratio, 2.0)):
        meeting = Meeting(law, 1e-3 / mobility)
        x = meeting.arguments()
        found = meeting.answers(x)
        slips = ~found.sticking & (REACHES > 1.01)
        assert slips.sum() > 8
        for force, velocity in zip(found.force[slips], found.velocity[slips], strict=True):
            normal = force / semi_axes(law, force[0]) ** 2
            assert fullness(law, force) == pytest.approx(1.0, rel=1e-12)
            assert velocity / norms(velocity) == pytest.approx(normal / norms(normal), abs=1e-12)
        assert np.all(norms(x - found.velocity - mobility * found.force) <= 1e-14 * norms(x) + 1e-300)


# ---- refused arguments


@pytest.mark.parametrize("law", PLANAR.values(), ids=PLANAR.keys())
@pytest.mark.parametrize("shape", [(), (1,), (3,), (5, 3), (2, 1)])
def test_planar_law_needs_two_dimensions(law, shape):
    for call in (law, lambda x: law.implicit(x, 1e-3)):
        with pytest.raises(ConfigurationError, match="two dimensions"):
            call(np.ones(shape))
    assert law.implicit(np.ones((4, 3, 2)), 1e-3).shape == (4, 3, 2)


# --- closed-form approximations (46), (57), (59)


every_kind = pytest.mark.parametrize("kind", KINDS)


def rough(law, x, mobility):
    """The approximation of `law` at x (m, n), without the warning that it is one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AmbiguousLawWarning)
        return np.asarray(ClosedForm(law).implicit(x, mobility))


# ---- formulas


@EACH
@every_family
@given(st.data())
def test_closed_form_equals_46_57_and_59(family, data):
    """``Phi(x)`` while ``|x / Z| > |Phi(x)|``, else ``x / Z``; a law of the plane is turned towards x as in (59)."""
    meeting = data.draw(meetings(family, share=5.0))
    dimensions = data.draw(st.sampled_from([1, 2, 3, 5])) if family in FAMILIES else 2
    law, Z, x = meeting.law, meeting.mobility, meeting.arguments(dimensions)
    found = rough(law, x, Z)
    assert not found[0].any(), "the first argument is zero"
    for row, force in zip(x[1:], found[1:], strict=True):
        phi, size = force_at(law, row), float(np.linalg.norm(row))
        strength = float(np.linalg.norm(phi))
        expected = row / Z
        if size > Z * strength * (1.0 + 1e-12):
            expected = phi + Z * strength / size * (strength * row / size - phi)
        np.testing.assert_allclose(force, expected, rtol=1e-12 if law.isotropic else 1e-10, atol=1e-12 * strength)


@PHYSICS
@given(meetings("coulomb"))
def test_closed_form_of_coulomb_is_exact(meeting):
    x = meeting.arguments()
    exact = meeting.law.implicit(x, meeting.mobility)
    np.testing.assert_allclose(rough(meeting.law, x, meeting.mobility), exact, rtol=4 * EPS)


def test_closed_form_has_a_name_in_settings():
    table = {"kinetic_force": 4.0, "static_force": 5.0, "stribeck_velocity": 0.1}
    assert make_law({"name": "stribeck", **table}) == Stribeck(4.0, 5.0, 0.1)
    assert make_law({"name": "stribeck-closed-form", **table}) == ClosedForm(Stribeck(4.0, 5.0, 0.1))


# ---- properties


@EACH
@every_family
@given(st.data())
def test_closed_form_dissipates(family, data):
    meeting = data.draw(meetings(family, share=20.0))
    x = meeting.arguments()
    force = rough(meeting.law, x, meeting.mobility)
    velocity = x - meeting.mobility * force
    rounding = 8 * EPS * norms(x) * norms(force)
    assert np.all((velocity * force).sum(axis=1) >= -rounding)
    assert np.all((x * force).sum(axis=1) >= -rounding)


# ---- warnings


@PHYSICS
@given(st.sampled_from([Stribeck, GaussianStribeck]), log_floats(1e-3, 10.0), st.floats(0.0, 20.0))
def test_doubt_names_condition_48_where_it_fails(kind, speed, viscosity):
    """Where the slope of the law, whichever its sign, exceeds a tenth of 1/Z."""
    law = kind(4.0, 5.0, speed, viscosity)
    speeds = np.linspace(0.0, 5.0 * speed, 4001)
    steepest = np.abs(np.gradient(sliding_force(law, speeds), speeds)).max()
    for mobility, fine in ((0.09 / steepest, True), (0.112 / steepest, False)):
        assert (ClosedForm(law).ambiguity(mobility) == "") == fine


@every_kind
def test_element_with_a_poor_closed_form_warns(kind):
    with pytest.warns(AmbiguousLawWarning, match="condition 48"):
        made = make(kind, ClosedForm(Stribeck(4.0, 5.0, 0.1)), Grip(mass=0.05))
    with pytest.warns(AmbiguousLawWarning, match="poor approximation"):
        copy.copy(made)
    make(kind, ClosedForm(CoulombViscous(4.0, 1.0)), Grip(mass=0.05))
    make(kind, ClosedForm(DeadZoneViscous(4.0, 1.0, 0.1)), Grip(mass=0.05))
    make(kind, ClosedForm(rubber(static=4.1, kinetic=4.0, width=1.0)), Grip(mass=0.05))


def test_closed_form_is_single_valued_beyond_condition_15():
    law = ClosedForm(Stribeck(4.0, 5.0, 0.01))
    assert law.mobility_limit == np.inf
    assert "condition 15" not in law.ambiguity(1 / 16)
    assert "condition 48" in law.ambiguity(1 / 16)
    for planar in (Elliptic(4.0, 2.0, 0.3, 20.0), Asymmetric(4.0, 2.0, 3.0, 0.3, 20.0)):
        assert planar.slopes == (20.0, 20.0)
        assert ClosedForm(planar).ambiguity(1 / 250) == ""
        assert "condition 48" in ClosedForm(planar).ambiguity(1 / 150)


@pytest.mark.parametrize("bad", [3.0, None, "stribeck", ClosedForm(Coulomb(4.0)), Coulomb])
def test_closed_form_needs_an_exact_law(bad):
    with pytest.raises(ConfigurationError, match="exact law"):
        ClosedForm(bad)


def test_closed_form_keeps_the_properties_of_its_law():
    assert ClosedForm(Stribeck(4.0, 5.0, 0.1)).breakaway_force == 5.0
    velocity = np.array([0.02, -0.05])
    for law in (LAWS | PLANAR).values():
        np.testing.assert_array_equal(ClosedForm(law)(velocity), law(velocity))


# --- laws that fall with speed ----------------------------------------------------------------------------------------

# Up to the limit of condition (15) the answers are exact to the last digits. Beyond it up to three forces solve the
# equations of a step (Kikuuwe et al. 2006, Theorem 1 does not hold). The rule there: a contact that can stick sticks;
# otherwise it slides at the fastest solution.


@friction_law
def bell(speed, kinetic=4.0, static=5.0, width=0.1, viscosity=0.0):
    """The law of `GaussianStribeck` as a custom law."""
    return kinetic + (static - kinetic) * math.exp(-((speed / width) ** 2)) + viscosity * speed  # noqa: F821


def contact(law, mobility):
    """A rigid mass that meets `law` with `mobility`, which must be a power of two to be exact."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AmbiguousLawWarning)
        return RigidAdmittance(law, 2.0**-10 / mobility, 2.0**-10)


def answer(law, mobility, x):
    """Force [N], sliding speed [m/s] and sticking of a contact at the argument `x` [m/s] along the first axis."""
    element = contact(law, mobility)
    element.reset(velocity=(x, 0.0))
    element.step((0.0, 0.0))
    return float(element.friction_force[0]), float(element.velocity[0]), element.sticking


def sliding_speeds(law, mobility, x):
    """Every speed s > 0 with ``s + Z g(s) = x``, by a scan of 60000 speeds and a root search between them."""
    grid = np.union1d(np.linspace(0.0, x, 30001)[1:], x * np.geomspace(1e-9, 1.0, 30000))

    def excess(speed):
        return float(speed + mobility * sliding_force(law, speed) - x)

    values = grid + mobility * sliding_force(law, grid) - x
    changes = np.flatnonzero((values[:-1] < 0.0) != (values[1:] < 0.0))
    return [float(brentq(excess, grid[k], grid[k + 1], xtol=1e-300, rtol=4 * EPS)) for k in changes]


# ---- up to the limit


def exact_speed(law, mobility, x):
    """Solve ``s + Z g(s) = x`` for the outermost s in 50 digits, by halving from where the left side turns up."""
    kinetic, static, width, viscosity, Z, r = map(
        Decimal, (law.kinetic_force, law.static_force, law.stribeck_velocity, law.viscosity, mobility, x)
    )
    power = 2 if isinstance(law, GaussianStribeck) else 1
    low, high = Decimal(0), r
    for _ in range(160):
        s = (low + high) / 2
        level = kinetic + (static - kinetic) * (-((s / width) ** power)).exp() + viscosity * s
        low, high = (s, high) if s + Z * level < r else (low, s)
    return high


@pytest.mark.parametrize("viscosity", [0.0, 3.0])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99, 0.999, 1 - 1e-6, 1 - 1e-8, 1 - 1e-12])
@pytest.mark.parametrize("kind", [Stribeck, GaussianStribeck])
def test_speeds_are_exact_to_the_last_digits_near_the_limit(kind, share, viscosity):
    """For 1 to 48 halvings of the distance to the edge of stick; x - Z F_s is exact for these numbers.

    Lambert's W would give the speed of `Stribeck` to the last digits of x, so to none of a small speed.
    """
    Z = 2.0**-4
    fall_over_unit_speed = 1.0 / steepest(kind(4.0, 5.0, 1.0))
    law = kind(4.0, 5.0, fall_over_unit_speed / (share / Z + viscosity), viscosity)
    assert Z / law.mobility_limit == pytest.approx(share, abs=1e-15)
    with localcontext() as context:
        context.prec = 50
        for halvings in (1, 2, 4, 8, 16, 24, 32, 40, 44, 46, 48):
            x = 0.3125 * (1.0 + 2.0**-halvings)
            force, speed, sticking = answer(law, Z, x)
            expected = exact_speed(law, Z, x)
            flatness = 1.0 + Z * slope(law, float(expected))
            digits = float(expected) if kind is Stribeck else x  # the search sees x, not the distance to the edge
            assert not sticking
            assert abs(float(Decimal(speed) - expected)) <= 4 * EPS * digits / flatness
            assert force == pytest.approx(sliding_force(law, speed), rel=4 * EPS)


# ---- beyond it


@st.composite
def ambiguous(draw):
    """Draw a falling law and a mobility, a power of two, from the limit of (15) to a thousand times that."""
    kinetic, ratio, width = draw(log_floats(0.1, 20.0)), draw(st.floats(1.05, 3.0)), draw(log_floats(1e-3, 0.3))
    viscosity = draw(st.just(0.0) | log_floats(0.01, 1.0)) * kinetic * (ratio - 1.0) / width
    numbers = kinetic, kinetic * ratio, width, 0.5 * viscosity
    law = draw(st.sampled_from([Stribeck, GaussianStribeck, rubber]))
    made = rubber(**dict(zip(rubber().parameters, (numbers[1], *numbers[::2], numbers[3]), strict=True)))
    made = made if law is rubber else law(*numbers)
    return made, float(2.0 ** np.ceil(np.log2(1.01 * steepest(made)) + draw(st.integers(0, 10))))


@PHYSICS
@given(ambiguous(), log_floats(1e-3, 100.0))
def test_contact_takes_the_fastest_sliding(case, beyond):
    law, mobility = case
    x = mobility * law.breakaway_force * (1.0 + beyond)
    force, speed, sticking = answer(law, mobility, x)
    assert not sticking
    assert speed == pytest.approx(max(sliding_speeds(law, mobility, x)), rel=1e-9)
    assert force == pytest.approx(sliding_force(law, speed), rel=1e-12)
    assert speed + mobility * force == pytest.approx(x, rel=1e-13)


@PHYSICS
@given(ambiguous(), st.floats(0.0, 1.0))
def test_contact_that_can_stick_sticks(case, share):
    law, mobility = case
    edge = mobility * law.breakaway_force
    for x in (share * edge, edge):
        assert answer(law, mobility, x) == (x / mobility, 0.0, True)
    assert not answer(law, mobility, float(np.nextafter(edge, np.inf)))[2]


@pytest.mark.parametrize(("mobility", "x"), [(2.0**-4, 0.3126), (2.0**-5, 0.15641)])
def test_contact_takes_the_fastest_of_three_speeds(mobility, x):
    """The bell of the Gaussian law is flat at rest: beyond the edge of stick three speeds are possible.

    At the second mobility the two upper ones lie near each other: a custom law finds them by a fine search only.
    """
    law = GaussianStribeck(4.0, 5.0, 0.02)
    speeds = sliding_speeds(law, mobility, x)
    assert len(speeds) == 3
    assert answer(law, mobility, x)[1] == pytest.approx(speeds[2], rel=1e-12)
    twin = bell(kinetic=4.0, static=5.0, width=0.02)
    assert answer(twin, mobility, x)[1] == pytest.approx(speeds[2], rel=1e-12)


@PHYSICS
@given(log_floats(0.1, 20.0), log_floats(1e-3, 0.3), st.floats(1.02, 1.25))
def test_fastest_sliding_is_taken_until_it_vanishes(force, width, excess):
    """Above the least x of fast sliding the contact slides fast, below it slowly."""
    mobility = 2.0**-4
    law = GaussianStribeck(0.0, 0.1, 1.0)
    drop = excess * steepest(law) * 0.1 * width / mobility
    law = GaussianStribeck(force, force + drop, width)
    bottom = width * float(brentq(lambda u: 1.0 + mobility * slope(law, u * width), np.sqrt(0.5), 3.0, xtol=1e-15))
    least = bottom + mobility * float(sliding_force(law, bottom))
    for share in (1e-3, 1e-5, 1e-7):
        above, below = (answer(law, mobility, least + sign * share * mobility * drop)[1] for sign in (1.0, -1.0))
        assert bottom < above < bottom + 5.0 * width * np.sqrt(share / (excess - 1.0))
        assert 0.0 < below < bottom


# ---- elements beyond the limit


STEEP: dict[str, Law] = {
    "stribeck": Stribeck(4.0, 5.0, 0.01),
    "gaussian": GaussianStribeck(4.0, 5.0, 0.01, 1.0),
    "custom": rubber(static=5.0, kinetic=3.0, width=0.01, viscosity=0.5),
}
SLIPPERY = Grip(mass=0.05, stiffness=1500.0, damping=5.0)


def element(kind, law, grip=SLIPPERY):
    with pytest.warns(AmbiguousLawWarning):
        return make(kind, law, grip)


@pytest.mark.parametrize("name", STEEP)
@every_kind
def test_elements_solve_their_equations_and_create_no_energy_beyond_the_limit(kind, name):
    law, inputs = STEEP[name], wandering(kind, 2000)
    run = stepped(element(kind, law), inputs)
    for left_over in equations(kind, SLIPPERY, inputs, run, np.zeros(2)):
        assert largest(left_over) <= 1e-11
    assert inclusion_residual(law, run.velocity, run.friction_force).max() <= 1e-11
    np.testing.assert_array_equal(run.sticking, (run.velocity == 0.0).all(axis=1))
    assert 0.02 < run.sticking.mean() < 0.98
    assert np.all((run.friction_force * run.velocity).sum(axis=1) >= 0.0)
    assert energy_balance(kind, SLIPPERY, inputs, run).min() >= -1e-12


def extremes():
    """Yield extreme inputs, (40, 2) each."""
    random = np.random.default_rng(7)
    for size in (1e-300, 1e-12, 1e-3, 1.0, 1e6):
        yield size * random.normal(size=(40, 2))
    yield np.repeat([[1e6, -1e6], [0.0, 0.0], [-1e-12, 0.0], [0.0, -1e6]], 10, axis=0)


@PHYSICS
@given(
    st.sampled_from(KINDS),
    st.one_of(*ALL_FAMILIES.values(), ambiguous().map(lambda case: case[0]), laws().map(ClosedForm)),
    log_floats(1e-3, 1e3),
    log_floats(1e-2, 1e7),
    st.just(0.0) | log_floats(1e-3, 1e4),
)
def test_elements_never_return_nan(kind, law, mass, stiffness, damping):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AmbiguousLawWarning)
        made = make(kind, law, Grip(mass, stiffness, damping))
    for inputs in extremes():
        run = simulate(made, inputs)
        for column in (run.output, run.friction_force, run.displacement, run.velocity):
            assert np.isfinite(column).all()
        power = (run.friction_force * run.velocity).sum(axis=1)
        rounding = 4 * EPS * norms(run.friction_force) * made.mobility * norms(run.friction_force)
        assert np.all(power >= -rounding)


# ---- warnings


@every_kind
@pytest.mark.parametrize("law", STEEP.values(), ids=STEEP.keys())
def test_element_beyond_the_limit_warns_and_names_the_remedy(kind, law):
    with pytest.warns(AmbiguousLawWarning, match="larger stiffness, damping or mass, or a higher rate") as caught:
        made = make(kind, law, SLIPPERY)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert f"{made.mobility:.4g}" in message and f"{law.mobility_limit:.4g}" in message
    assert "condition 15" in message


def test_implicit_law_warns_and_the_strict_check_refuses():
    law = STEEP["stribeck"]
    with pytest.warns(AmbiguousLawWarning, match="condition 15"):
        law.implicit((0.1, 0.0), 0.01)
    law.implicit((0.1, 0.0), 0.0099)
    require_solvable(law, 0.0099)
    with pytest.raises(ConfigurationError, match="condition 15"):
        require_solvable(law, 0.01)
    for mobility in (-0.001, 0.0, np.nan):
        with pytest.raises(ConfigurationError, match=r"mobility = .*must be a finite number greater than 0"):
            require_solvable(law, mobility)
