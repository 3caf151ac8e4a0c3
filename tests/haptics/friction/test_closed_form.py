"""The closed-form approximations (46), (57), (59) of Kikuuwe et al. 2006: what they are, and how far off."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptics import (
    Asymmetric,
    ClosedForm,
    Coulomb,
    CoulombViscous,
    DeadZoneViscous,
    Elliptic,
    GaussianStribeck,
    Law,
    Stribeck,
    simulate,
)
from haptics.elements.tables import LAWS as BY_NAME
from haptics.elements.tables import make_law
from haptics.errors import AmbiguousLawWarning, ConfigurationError
from tests.haptics.meetings import EACH, Meeting, every_family, isotropic_family, meetings, planar_family
from tests.haptics.references import EPS, Array, force_at, norms, rubber, sliding_force
from tests.haptics.strategies import KINDS, LAWS, PHYSICS, PLANAR, Grip, log_floats, make, wandering

every_kind = pytest.mark.parametrize("kind", KINDS)


def rough(law: Law, x: Array, mobility: float) -> Array:
    """The approximation of `law` at x (m, n), without the warning that it is one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AmbiguousLawWarning)
        return np.asarray(ClosedForm(law).implicit(x, mobility))


def letting_go(law: Law, mobility: float) -> float:
    """Solve ``x / Z = g(x)`` for the edge of stick of (46) [m/s]; the law must be flat enough."""
    x = 0.0
    for _ in range(300):
        x = mobility * float(sliding_force(law, x))
    return x


# ---- what it is


@EACH
@isotropic_family
@given(st.data(), st.sampled_from([1, 2, 3, 5]))
def test_isotropic_laws_are_answered_at_x_instead_of_at_v(family: str, data: st.DataObject, dimensions: int) -> None:
    """(46), (57): ``Phi(x)`` while ``|x / Z| > |Phi(x)|``, else ``x / Z``."""
    meeting = data.draw(meetings(family, share=5.0))
    law, Z, x = meeting.law, meeting.mobility, meeting.arguments(dimensions)
    found = rough(law, x, Z)
    for row, force in zip(x, found, strict=True):
        size = float(np.linalg.norm(row))
        expected = row / Z if size <= Z * sliding_force(law, size) else sliding_force(law, size) * row / size
        np.testing.assert_allclose(force, expected, rtol=1e-12, atol=0.0)


@EACH
@planar_family
@given(st.data())
def test_other_laws_are_answered_by_59(family: str, data: st.DataObject) -> None:
    meeting = data.draw(meetings(family))
    law, Z, x = meeting.law, meeting.mobility, meeting.arguments()
    found = rough(law, x, Z)
    for row, force in zip(x[1:], found[1:], strict=True):
        phi, size = force_at(law, row), norms(row)[0]
        strength = norms(phi)[0]
        expected = row / Z
        if size > Z * strength * (1.0 + 1e-12):
            expected = phi + Z * strength / size * (strength * row / size - phi)
        np.testing.assert_allclose(force, expected, rtol=1e-10, atol=1e-12 * strength)


@PHYSICS
@given(meetings("coulomb"))
def test_of_coulomb_friction_it_is_no_approximation(meeting: Meeting) -> None:
    x = meeting.arguments()
    exact = meeting.law.implicit(x, meeting.mobility)
    np.testing.assert_allclose(rough(meeting.law, x, meeting.mobility), exact, rtol=4 * EPS)


@pytest.mark.parametrize("law", (LAWS | PLANAR).values(), ids=(LAWS | PLANAR).keys())
def test_it_is_never_the_default(law: Law) -> None:
    """Every other law is solved exactly: at moderate mobility its answer is far from the approximation."""
    if isinstance(law, Coulomb):
        return
    x = Meeting(law, 0.016).arguments()
    exact, found = rough(law, x, 1 / 16), law.implicit(x, 1 / 16)
    assert norms(exact - found).max() > 0.01 * law.breakaway_force
    assert not any(issubclass(cls, ClosedForm) for cls in BY_NAME.values())


def test_in_settings_it_has_a_name_of_its_own() -> None:
    table = {"kinetic_force": 4.0, "static_force": 5.0, "stribeck_velocity": 0.1}
    assert make_law({"name": "stribeck", **table}) == Stribeck(4.0, 5.0, 0.1)
    assert make_law({"name": "stribeck-closed-form", **table}) == ClosedForm(Stribeck(4.0, 5.0, 0.1))


# ---- what it promises


@EACH
@every_family
@given(st.data())
def test_it_is_continuous(family: str, data: st.DataObject) -> None:
    """At the edge of stick and everywhere else, however the law falls: neighbours have neighbouring forces."""
    meeting = data.draw(meetings(family, share=20.0))
    law, Z = meeting.law, meeting.mobility
    direction = np.array([0.6, -0.8])
    sizes = Z * law.breakaway_force * np.geomspace(1e-3, 1e3, 400)
    for x in sizes[:, None] * direction, sizes[:, None] * direction[::-1]:
        f, g = rough(law, x, Z), rough(law, x * (1.0 + 1e-9), Z)
        steepest = max(law.steepest_slope, getattr(law, "viscosity", 0.0)) + 1.0 / Z
        assert np.all(norms(f - g) <= 1e-9 * (20.0 * norms(f) + 20.0 * steepest * norms(x)))


@EACH
@every_family
@given(st.data())
def test_it_takes_power_everywhere(family: str, data: st.DataObject) -> None:
    meeting = data.draw(meetings(family, share=20.0))
    x = meeting.arguments()
    force = rough(meeting.law, x, meeting.mobility)
    velocity = x - meeting.mobility * force
    rounding = 8 * EPS * norms(x) * norms(force)
    assert np.all((velocity * force).sum(axis=1) >= -rounding)
    assert np.all((x * force).sum(axis=1) >= -rounding)


def test_sticking_is_a_velocity_of_zero_beside_the_edge() -> None:
    random = np.random.default_rng(4)
    for force, mobility, angle in random.uniform((0.1, 1e-3, -np.pi), (10.0, 0.1, np.pi), (500, 3)):
        meeting = Meeting(ClosedForm(Coulomb(force)), 1e-3 / mobility)
        edge = meeting.mobility * force * (1.0 + EPS * np.arange(5.0))
        found = meeting.answers(np.outer(edge, [np.cos(angle), np.sin(angle)]))
        np.testing.assert_array_equal(found.sticking, ~found.velocity.any(axis=1))


@every_kind
@pytest.mark.parametrize("name", [*LAWS, *PLANAR])
def test_no_energy_comes_from_an_element_with_it(kind: str, name: str) -> None:
    grip, inputs = Grip(), wandering(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AmbiguousLawWarning)
        run = simulate(make(kind, ClosedForm((LAWS | PLANAR)[name]), grip), inputs)
    taken = np.cumsum((inputs * run.output).sum(axis=1)) * grip.period
    mass_velocity = {"A": run.output, "B": run.velocity, "C": 0.0 * inputs, "D": run.output}[kind]
    held = 0.5 * grip.stiffness * norms(run.displacement) ** 2 + 0.5 * grip.mass * norms(mass_velocity) ** 2
    assert np.all(taken - held >= -1e-12 * np.maximum(1.0, held))


# ---- how far off it is


@pytest.mark.parametrize(
    ("mobility", "peak", "error"), [(5e-4, 4.975, 0.005), (1 / 330, 4.86, 0.028), (1 / 16, 4.08, 0.19)]
)
def test_it_loses_the_breakaway_peak_that_the_exact_law_keeps(mobility: float, peak: float, error: float) -> None:
    """A law of 4 to 5 N over 0.1 m/s in models A (M = 2), C (3e4, 300) and C (6000, 10) of the paper's experiments."""
    law, grid = Stribeck(4.0, 5.0, 0.1), np.linspace(0.0, 2.0, 8001)[1:, None]
    exact, found = law.implicit(grid, mobility)[:, 0], rough(law, grid, mobility)[:, 0]
    assert law.implicit(5.0 * mobility, mobility) == pytest.approx(5.0, rel=1e-15)
    edge = np.array([[letting_go(law, mobility)]])
    assert rough(law, edge, mobility)[0, 0] == pytest.approx(peak, rel=2e-3)
    assert found.max() <= rough(law, edge, mobility)[0, 0] * (1.0 + 1e-12)
    assert np.max(np.abs(found - exact) / exact) == pytest.approx(error, rel=0.03)


def test_a_viscous_law_slips_where_the_approximation_never_does() -> None:
    law, mobility = Stribeck(4.0, 5.0, 0.1, 20.0), 1 / 16
    x = np.linspace(5.001 * mobility, 5.0, 50)[:, None]
    assert np.all(law.implicit(x, mobility) < x / mobility - 1e-6)
    np.testing.assert_array_equal(rough(law, x, mobility), x / mobility)


def test_59_is_far_off_for_an_ellipse_of_two_to_one() -> None:
    """Two fifths of the force at worst; where x is small, or far greater than Z times the force, it is right."""
    law, mobility = Elliptic(4.0, 2.0), 1 / 16
    angles = np.linspace(0.0, np.pi / 2, 181)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])

    def error(reach: float) -> float:
        x = reach * mobility * circle
        exact = law.implicit(x, mobility)
        return float(np.max(norms(rough(law, x, mobility) - exact) / norms(exact)))

    assert max(map(error, np.linspace(2.0, 6.0, 81))) == pytest.approx(0.42, abs=0.02)
    assert error(1.9) <= 1e-14
    assert error(1e3) < 5e-3
    assert error(1e4) < 5e-4


# ---- what a person is told


@PHYSICS
@given(st.sampled_from([Stribeck, GaussianStribeck]), log_floats(1e-3, 10.0), st.floats(0.0, 20.0))
def test_the_warning_says_where_condition_48_fails(kind: type[Stribeck], speed: float, viscosity: float) -> None:
    """Where the slope of the law, whichever its sign, exceeds a tenth of 1/Z."""
    law = kind(4.0, 5.0, speed, viscosity)
    speeds = np.linspace(0.0, 5.0 * speed, 4001)
    steepest = np.abs(np.gradient(sliding_force(law, speeds), speeds)).max()
    for mobility, fine in ((0.09 / steepest, True), (0.112 / steepest, False)):
        assert (ClosedForm(law).doubt(mobility) == "") == fine


@every_kind
def test_building_an_element_where_it_is_poor_warns(kind: str) -> None:
    with pytest.warns(AmbiguousLawWarning, match="condition 48"):
        made = make(kind, ClosedForm(Stribeck(4.0, 5.0, 0.1)), Grip(mass=0.05))
    with pytest.warns(AmbiguousLawWarning, match="poor approximation"):
        copy.copy(made)
    make(kind, ClosedForm(CoulombViscous(4.0, 1.0)), Grip(mass=0.05))
    make(kind, ClosedForm(DeadZoneViscous(4.0, 1.0, 0.1)), Grip(mass=0.05))
    make(kind, ClosedForm(rubber(static=4.1, kinetic=4.0, width=1.0)), Grip(mass=0.05))


@pytest.mark.parametrize("law", [Elliptic(4.0, 2.0, 0.3, 20.0), Asymmetric(4.0, 2.0, 3.0, 0.3, 20.0)])
def test_viscosity_counts_in_laws_of_the_plane_too(law: Law) -> None:
    assert law.slopes == (20.0, 20.0)
    assert ClosedForm(law).doubt(1 / 250) == ""
    assert "condition 48" in ClosedForm(law).doubt(1 / 150)


def test_beyond_condition_15_it_is_single_valued_and_says_48_only() -> None:
    law = ClosedForm(Stribeck(4.0, 5.0, 0.01))
    assert law.mobility_limit == np.inf
    assert "condition 15" not in law.doubt(1 / 16)
    assert "condition 48" in law.doubt(1 / 16)


@pytest.mark.parametrize("bad", [3.0, None, "stribeck", ClosedForm(Coulomb(4.0)), Coulomb])
def test_only_an_exact_law_can_be_approximated(bad: object) -> None:
    with pytest.raises(ConfigurationError, match="exact law"):
        ClosedForm(bad)  # type: ignore[arg-type]


def test_its_shape_is_that_of_its_law() -> None:
    assert ClosedForm(Coulomb(4.0)).isotropic
    assert not ClosedForm(Asymmetric(4.0, 3.0, 2.0)).isotropic
    assert ClosedForm(Stribeck(4.0, 5.0, 0.1)).breakaway_force == 5.0
    velocity = np.array([0.02, -0.05])
    for law in (LAWS | PLANAR).values():
        np.testing.assert_array_equal(ClosedForm(law)(velocity), law(velocity))
