"""Laws that fall with speed: up to the limit of condition (15) to the last digits, and beyond it by a fixed rule.

Beyond the limit up to three forces solve the equations of a step (Kikuuwe et al. 2006, Theorem 1 does not hold). The
rule: what can stick does stick; else the fastest sliding is taken.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from apps.settings.config import complete
from haptics import ClosedForm, Element, GaussianStribeck, Law, RigidAdmittance, Stribeck, friction_law, simulate
from haptics.errors import AmbiguousLawWarning, ConfigurationError
from haptics.friction.law import require_solvable
from tests.haptics.meetings import ALL_FAMILIES, EACH, Meeting, meetings
from tests.haptics.references import EPS, Array, inclusion_residual, norms, rubber, sliding_force, slope, steepest
from tests.haptics.strategies import (
    KINDS,
    PHYSICS,
    Grip,
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
    """The law of `GaussianStribeck`, as somebody might write it."""
    return kinetic + (static - kinetic) * math.exp(-((speed / width) ** 2)) + viscosity * speed  # noqa: F821


def contact(law: Law, mobility: float) -> Element:
    """A rigid mass that meets `law` with `mobility`, which must be a power of two to be exact."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AmbiguousLawWarning)
        return RigidAdmittance(law, 2.0**-10 / mobility, 2.0**-10)


def answer(law: Law, mobility: float, x: float) -> tuple[float, float, bool]:
    """Force [N], sliding speed [m/s] and sticking of a contact at the argument `x` [m/s] along the first axis."""
    element = contact(law, mobility)
    element.reset(velocity=(x, 0.0))
    element.step((0.0, 0.0))
    return float(element.friction_force[0]), float(element.velocity[0]), element.sticking


def sliding_speeds(law: Law, mobility: float, x: float) -> list[float]:
    """Every speed s > 0 with ``s + Z g(s) = x``, by a scan of 60000 speeds and a root search between them."""
    grid = np.union1d(np.linspace(0.0, x, 30001)[1:], x * np.geomspace(1e-9, 1.0, 30000))

    def excess(speed: float) -> float:
        return float(speed + mobility * sliding_force(law, speed) - x)

    values = grid + mobility * sliding_force(law, grid) - x
    changes = np.flatnonzero((values[:-1] < 0.0) != (values[1:] < 0.0))
    return [float(brentq(excess, grid[k], grid[k + 1], xtol=1e-300, rtol=4 * EPS)) for k in changes]


# ---- up to the limit


def exact_speed(law: Falling, mobility: float, x: float) -> Decimal:
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
def test_speeds_are_right_to_the_last_digits_near_the_limit(
    kind: type[Falling], share: float, viscosity: float
) -> None:
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


@EACH
@pytest.mark.parametrize("family", ["stribeck", "gaussian", "custom"])
@given(st.data())
def test_up_to_the_limit_every_pair_lies_on_the_law(family: str, data: st.DataObject) -> None:
    meeting = data.draw(meetings(family, share=1.0 - 1e-9))
    x = meeting.arguments()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AmbiguousLawWarning)  # of a custom law the limit is known to three digits
        found = meeting.answers(x)
    size = np.maximum(meeting.law.breakaway_force, norms(found.force))
    assert np.all(inclusion_residual(meeting.law, found.velocity, found.force) <= 1e-12 * size)
    left_over = norms(x - found.velocity - meeting.mobility * found.force)
    assert np.all(left_over <= 1e-13 * np.maximum(norms(x), meeting.mobility * size))


@PHYSICS
@given(log_floats(0.1, 20.0), log_floats(1e-3, 0.3), st.floats(0.0, 0.9))
def test_the_last_mobility_and_the_last_argument_before_the_edges(force: float, width: float, share: float) -> None:
    """The next number below the limit of (15), and the next numbers above the edge of stick."""
    for law in (Stribeck(share * force, force, width), GaussianStribeck(share * force, force, width)):
        mass = 1e-3 / np.nextafter(law.mobility_limit, 0.0) * (1.0 + 4 * EPS)
        meeting = Meeting(law, mass)
        assert meeting.mobility < law.mobility_limit
        edge = meeting.mobility * force
        x = np.array([[np.nextafter(edge, np.inf), 0.0], [edge * (1.0 + 4 * EPS), 0.0], [edge * (1.0 + 1e-14), 0.0]])
        found = meeting.answers(x)
        assert np.all(norms(x - found.velocity - meeting.mobility * found.force) <= 1e-13 * edge)
        assert np.all(inclusion_residual(law, found.velocity, found.force) <= 1e-13 * force)


# ---- beyond it


@st.composite
def ambiguous(draw: st.DrawFn) -> tuple[Law, float]:
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
def test_the_fastest_sliding_is_taken(case: tuple[Law, float], beyond: float) -> None:
    law, mobility = case
    x = mobility * law.breakaway_force * (1.0 + beyond)
    force, speed, sticking = answer(law, mobility, x)
    assert not sticking
    assert speed == pytest.approx(max(sliding_speeds(law, mobility, x)), rel=1e-9)
    assert force == pytest.approx(sliding_force(law, speed), rel=1e-12)
    assert speed + mobility * force == pytest.approx(x, rel=1e-13)


@PHYSICS
@given(ambiguous(), st.floats(0.0, 1.0))
def test_what_can_stick_sticks_though_it_could_slide(case: tuple[Law, float], share: float) -> None:
    law, mobility = case
    x = share * mobility * law.breakaway_force
    assert answer(law, mobility, x) == (x / mobility, 0.0, True)


def test_three_solutions_of_one_step() -> None:
    """Stick and two speeds of sliding solve the step; it sticks. Just past the edge the slow sliding is gone too."""
    law, mobility = Stribeck(4.0, 5.0, 0.02), 2.0**-4
    assert mobility > law.mobility_limit
    slow, fast = sliding_speeds(law, mobility, 0.305)
    for speed in (slow, fast):
        assert speed + mobility * sliding_force(law, speed) == pytest.approx(0.305, rel=1e-14)
    assert answer(law, mobility, 0.305) == (0.305 / mobility, 0.0, True)
    force, speed, sticking = answer(law, mobility, 0.3126)
    assert not sticking
    assert speed > fast
    assert force < 4.2


@pytest.mark.parametrize(("mobility", "x"), [(2.0**-4, 0.3126), (2.0**-5, 0.15641)])
def test_three_speeds_of_sliding(mobility: float, x: float) -> None:
    """The bell of the Gaussian law is flat at rest: beyond the edge of stick three speeds are possible.

    At the second mobility the two upper ones lie near each other: a custom law finds them by a fine search only.
    """
    law = GaussianStribeck(4.0, 5.0, 0.02)
    speeds = sliding_speeds(law, mobility, x)
    assert len(speeds) == 3
    assert answer(law, mobility, x)[1] == pytest.approx(speeds[2], rel=1e-12)
    twin = bell(kinetic=4.0, static=5.0, width=0.02)
    assert answer(twin, mobility, x)[1] == pytest.approx(speeds[2], rel=1e-12)


@pytest.mark.parametrize("law", [Stribeck(4.0, 5.0, 0.02), GaussianStribeck(4.0, 5.0, 0.02), rubber(width=0.02)])
def test_at_the_very_edge_of_stick_it_sticks_though_it_could_slide(law: Law) -> None:
    mobility = 2.0**-4
    assert mobility > law.mobility_limit
    assert answer(law, mobility, 5.0 * mobility) == (5.0, 0.0, True)
    assert not answer(law, mobility, float(np.nextafter(5.0 * mobility, 1.0)))[2]


@pytest.mark.parametrize(("kinetic", "static"), [(0.89, 1.93), (0.6, 1.97), (0.12, 1.57), (0.37, 1.39)])
def test_beside_the_edge_of_stick_it_sticks_or_has_a_speed(kinetic: float, static: float) -> None:
    """Rounding puts the level of these laws at rest above the static force: what just exceeds it finds no speed."""
    assert kinetic + (static - kinetic) > static
    law, mobility = GaussianStribeck(kinetic, static, 1.0), 2.0**-4
    for number in range(-2, 4):
        x = static * mobility * (1.0 + number * EPS)
        _, speed, sticking = answer(law, mobility, x)
        assert sticking == (speed == 0.0)


@PHYSICS
@given(log_floats(0.1, 20.0), log_floats(1e-3, 0.3), st.floats(1.02, 1.25))
def test_the_fastest_sliding_is_taken_up_to_where_it_vanishes(force: float, width: float, excess: float) -> None:
    """Just above the least x that lets it slide fast it does; just below, only slow sliding is left."""
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


@PHYSICS
@given(st.floats(1.05, 3.0), log_floats(1e-3, 0.3), st.floats(0.0, 0.5), st.integers(0, 8), log_floats(1e-4, 10.0))
def test_a_custom_law_finds_what_the_gaussian_law_knows(
    ratio: float, width: float, damping: float, doublings: int, beyond: float
) -> None:
    """As long as the outermost stretch below x is not narrower than the grid of its search."""
    law = GaussianStribeck(2.0, 2.0 * ratio, width, damping * (ratio - 1.0) / width)
    twin = bell(kinetic=2.0, static=2.0 * ratio, width=width, viscosity=damping * (ratio - 1.0) / width)
    mobility = float(2.0 ** np.ceil(np.log2(1.01 * steepest(law)) + doublings))
    x = mobility * law.static_force * (1.0 + beyond)
    speeds = sliding_speeds(law, mobility, x)
    _, speed, sticking = answer(twin, mobility, x)
    assert not sticking
    assert min(abs(speed / known - 1.0) for known in speeds) <= 1e-9
    if len(speeds) == 1 or speeds[2] - speeds[1] > x / 500:
        assert speed == pytest.approx(answer(law, mobility, x)[1], rel=1e-9)


# ---- elements beyond the limit


STEEP: dict[str, Law] = {
    "stribeck": Stribeck(4.0, 5.0, 0.01),
    "gaussian": GaussianStribeck(4.0, 5.0, 0.01, 1.0),
    "custom": rubber(static=5.0, kinetic=3.0, width=0.01, viscosity=0.5),
}
SLIPPERY = Grip(mass=0.05, stiffness=1500.0, damping=5.0)


def element(kind: str, law: Law, grip: Grip = SLIPPERY) -> Element:
    with pytest.warns(AmbiguousLawWarning):
        return make(kind, law, grip)


@pytest.mark.parametrize("name", STEEP)
@every_kind
def test_elements_solve_their_equations_beyond_the_limit(kind: str, name: str) -> None:
    law, inputs = STEEP[name], wandering(kind, 2000)
    run = stepped(element(kind, law), inputs)
    for left_over in equations(kind, SLIPPERY, inputs, run, np.zeros(2)):
        assert largest(left_over) <= 1e-11
    assert inclusion_residual(law, run.velocity, run.friction_force).max() <= 1e-11
    np.testing.assert_array_equal(run.sticking, (run.velocity == 0.0).all(axis=1))
    assert 0.02 < run.sticking.mean() < 0.98


@pytest.mark.parametrize("name", STEEP)
@every_kind
def test_energy_is_still_taken_beyond_the_limit(kind: str, name: str) -> None:
    inputs = wandering(kind)
    run = simulate(element(kind, STEEP[name]), inputs)
    taken = np.cumsum((inputs * run.output).sum(axis=1)) * SLIPPERY.period
    mass_velocity = {"A": run.output, "B": run.velocity, "C": 0.0 * inputs, "D": run.output}[kind]
    held = 0.5 * SLIPPERY.stiffness * norms(run.displacement) ** 2 + 0.5 * SLIPPERY.mass * norms(mass_velocity) ** 2
    assert np.all((run.friction_force * run.velocity).sum(axis=1) >= 0.0)
    assert np.all(taken - held >= -1e-12 * np.maximum(1.0, held))


def extremes(kind: str) -> Iterator[Array]:
    """Yield inputs that nobody gives on purpose, (40, 2) each."""
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
def test_no_element_ever_answers_nan(kind: str, law: Law, mass: float, stiffness: float, damping: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AmbiguousLawWarning)
        made = make(kind, law, Grip(mass, stiffness, damping))
    for inputs in extremes(kind):
        run = simulate(made, inputs)
        for column in (run.output, run.friction_force, run.displacement, run.velocity):
            assert np.isfinite(column).all()
        power = (run.friction_force * run.velocity).sum(axis=1)
        rounding = 4 * EPS * norms(run.friction_force) * made.mobility * norms(run.friction_force)
        assert np.all(power >= -rounding)


# ---- what a person is told


@every_kind
@pytest.mark.parametrize("law", STEEP.values(), ids=STEEP.keys())
def test_building_such_an_element_warns_and_says_what_to_do(kind: str, law: Law) -> None:
    with pytest.warns(AmbiguousLawWarning, match="larger stiffness, damping or mass, or a higher rate") as told:
        made = make(kind, law, SLIPPERY)
    assert len(told) == 1
    said = str(told[0].message)
    assert f"{made.mobility:.4g}" in said
    assert f"{law.mobility_limit:.4g}" in said
    assert "condition 15" in said
    assert "\n" not in said


def test_the_law_itself_warns_too_and_the_strict_check_refuses() -> None:
    law = STEEP["stribeck"]
    with pytest.warns(AmbiguousLawWarning, match="condition 15"):
        law.implicit((0.1, 0.0), 0.01)
    law.implicit((0.1, 0.0), 0.0099)
    require_solvable(law, 0.0099)
    with pytest.raises(ConfigurationError, match="condition 15"):
        require_solvable(law, 0.01)


SESSION = {"session": {"model": "C"}, "device": {"name": "virtual-joystick"}}


@pytest.mark.parametrize("name", ["stribeck", "gaussian-stribeck"])
def test_a_session_refuses_it_and_so_does_its_slider(name: str) -> None:
    steep = {"name": name, "kinetic_force": 4.0, "static_force": 5.0, "stribeck_velocity": 0.04}
    with pytest.raises(ConfigurationError, match="condition 15"):
        complete({**SESSION, "law": steep})
    gentle = complete({**SESSION, "law": {**steep, "stribeck_velocity": 0.08}})
    with pytest.raises(ConfigurationError, match="condition 15"):
        gentle.with_parameter("law.static_force", 6.5)
    assert gentle.with_parameter("law.static_force", 5.1).law["static_force"] == 5.1
