"""Laws that fall with speed: up to the limit of condition (15) to the last digits, and beyond it by a fixed rule.

Beyond the limit up to three forces solve the equations of a step (Kikuuwe et al. 2006, Theorem 1 does not hold). The
rule: a contact that can stick sticks; otherwise it slides at the fastest solution.
"""

from __future__ import annotations

import warnings
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from haptics import ClosedForm, GaussianStribeck, Law, RigidAdmittance, Stribeck, friction_law, simulate
from haptics.errors import AmbiguousLawWarning, ConfigurationError
from haptics.friction.laws import require_solvable
from tests.haptics.references import EPS, inclusion_residual, norms, rubber, sliding_force, slope, steepest
from tests.haptics.strategies import (
    ALL_FAMILIES,
    KINDS,
    PHYSICS,
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

every_kind = pytest.mark.parametrize("kind", KINDS)
Falling = Stribeck | GaussianStribeck


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
