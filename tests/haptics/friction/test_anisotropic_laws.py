"""Laws whose force depends on the direction: convex sets of forces at rest, power, limits, the four elements."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptics import Asymmetric, ClosedForm, Coulomb, CoulombViscous, Elliptic, Law, simulate
from haptics.errors import ConfigurationError
from haptics.friction import kernels as friction_kernels
from tests.haptics.meetings import ALL_FAMILIES, EACH, PLANAR_FAMILIES, REACHES, Meeting, meetings, planar_family
from tests.haptics.references import EPS, Array, Planar, fullness, inclusion_residual, norms, own_axes, semi_axes
from tests.haptics.strategies import (
    KINDS,
    PHYSICS,
    PLANAR,
    Grip,
    before,
    equations,
    largest,
    log_floats,
    make,
    reference_run,
    stepped,
    vectors,
    wandering,
)

NAN, INF = float("nan"), float("inf")
every_kind = pytest.mark.parametrize("kind", KINDS)
every_law = pytest.mark.parametrize("name", PLANAR)
CIRCLE = np.column_stack([np.cos(np.linspace(-np.pi, np.pi, 181)), np.sin(np.linspace(-np.pi, np.pi, 181))])


def resting_edge(law: Planar) -> Array:
    """Forces on the edge of the set that rest allows, (181, 2) [N]."""
    own = np.array([semi_axes(law, c) * (c, s) for c, s in CIRCLE])
    return own @ own_axes(law)


# ---- the laws


@EACH
@planar_family
@given(st.data(), vectors(log_floats(1e-9, 10.0)))
def test_while_sliding_no_force_of_rest_takes_more_power(
    family: str, data: st.DataObject, velocity: np.ndarray
) -> None:
    """Principle of maximum dissipation; it says both where on the ellipse the force lies and that it lies on it."""
    law = data.draw(ALL_FAMILIES[family])
    dry = law(velocity) - law.viscosity * velocity
    speed = norms(velocity)[0]
    assert fullness(law, dry) == pytest.approx(1.0, rel=1e-9)
    assert np.all(resting_edge(law) @ velocity <= dry @ velocity + 1e-9 * law.breakaway_force * speed)


@EACH
@planar_family
@given(st.data())
def test_stuck_forces_are_those_of_rest_and_no_others(family: str, data: st.DataObject) -> None:
    meeting = data.draw(meetings(family))
    edge = resting_edge(meeting.law)[::6]  # type: ignore[arg-type]
    inside, outside = (meeting.answers(share * meeting.mobility * edge) for share in (0.999, 1.001))
    np.testing.assert_allclose(inside.force, 0.999 * edge, rtol=1e-13, atol=1e-14 * norms(edge).max())
    assert inside.sticking.all()
    assert not inside.velocity.any()
    assert not outside.sticking.any()
    assert norms(outside.velocity).min() > 0.0


@pytest.mark.parametrize("law", [*PLANAR.values(), ClosedForm(Coulomb(4.0))])
def test_beside_the_edge_of_stick_sliding_has_a_speed(law: Law) -> None:
    """Whatever rounding makes of the numbers next to the edge: sticking is a velocity of zero, and nothing else is."""
    meeting = Meeting(law, 0.015)
    edge = 4.0 * CIRCLE if isinstance(law, ClosedForm) else resting_edge(law)  # type: ignore[arg-type]
    for distance in range(-4, 9):
        found = meeting.answers(meeting.mobility * (1.0 + distance * EPS) * edge)
        np.testing.assert_array_equal(found.sticking, ~found.velocity.any(axis=1))


@EACH
@pytest.mark.parametrize("family", ["coulomb", "viscous", "dead-zone", *PLANAR_FAMILIES])
@given(st.data(), st.floats(-np.pi, np.pi), st.floats(-6.0, 1.0))
def test_laws_that_never_fall_are_firmly_nonexpansive(
    family: str, data: st.DataObject, angle: float, exponent: float
) -> None:
    """``Z |f - g|^2 <= (x - y)(f - g)``: the counterpart of a monotone law is a resolvent."""
    meeting = data.draw(meetings(family))
    x = meeting.arguments()
    y = x + (norms(x)[:, None] + 1e-9) * 10.0**exponent * np.array([np.cos(angle), np.sin(angle)])
    f, g = meeting.law.implicit(x, meeting.mobility), meeting.law.implicit(y, meeting.mobility)
    product = ((x - y) * (f - g)).sum(axis=1)
    rounding = 1e-13 * np.maximum(norms(f), norms(g)) * (norms(x - y) + meeting.mobility * norms(f - g))
    assert np.all(meeting.mobility * norms(f - g) ** 2 <= product + rounding)


def test_they_are_solvable_at_any_mobility() -> None:
    for law in PLANAR.values():
        assert law.mobility_limit == INF
        found = Meeting(law, 1e-6).answers(np.array([[3e4, -2e4], [1e4, 0.0]]))
        assert inclusion_residual(law, found.velocity, found.force).max() <= 1e-7 * norms(found.force).max()


@pytest.mark.parametrize("ratio", [30.0, 1e3, 1e6])
@pytest.mark.parametrize("mobility", [1e-4, 0.05])
def test_very_flat_ellipses(ratio: float, mobility: float) -> None:
    """The force stays on the ellipse and the velocity along its normal, however sharp its ends."""
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


@pytest.mark.parametrize("ratio", [0.2, 30.0, 1e3, 1e6])
def test_while_sliding_the_force_is_on_the_ellipse_to_the_last_digits(ratio: float) -> None:
    law, mobility = Elliptic(4.0, 4.0 / ratio), 2.0**-6
    edge = np.array([semi_axes(law, c) * (c, s) for c, s in CIRCLE])
    for reach in (1.001, 1.1, 2.0, 10.0, 1e3, 1e6):
        force = law.implicit(reach * mobility * edge, mobility) / (4.0, 4.0 / ratio)
        np.testing.assert_allclose(norms(force), 1.0, rtol=8 * EPS)


class _Counting:
    """The module `math`, counting its square roots: one in each round of the search."""

    roots = 0

    def __getattr__(self, name: str) -> Any:
        self.roots += name == "sqrt"
        return getattr(math, name)


@pytest.mark.parametrize("ratio", [1.0, 1.5, 3.0, 10.0, 1e3])
def test_the_search_for_the_nearest_point_ends_in_a_few_rounds(ratio: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding must not keep it going: a step of an element has to take about the same time always."""
    counting, random = _Counting(), np.random.default_rng(3)
    for name in ("_semi_axes", "_implicit_elliptic"):
        found = getattr(friction_kernels, name)
        monkeypatch.setattr(friction_kernels, name, getattr(found, "py_func", found))
    monkeypatch.setattr(friction_kernels, "math", counting)
    law = Elliptic(5.0, 5.0 / ratio)
    directions, reaches = random.uniform(-np.pi, np.pi, 1500), 1.0 + 10.0 ** random.uniform(-4.0, 2.0, 1500)
    most = 0
    for angle, reach in zip(directions, reaches, strict=True):
        counting.roots = 0
        u, w = reach * 5.0 * np.cos(angle), reach * 5.0 / ratio * np.sin(angle)
        friction_kernels._implicit_elliptic(law.record.view(np.recarray)[0], float(u), float(w), 1.0)
        most = max(most, counting.roots)
    assert 1 <= most <= 20


# ---- limits and mirrors


@PHYSICS
@given(log_floats(0.1, 50.0), st.floats(-6.2, 6.2), st.just(0.0) | log_floats(0.01, 100.0))
def test_with_equal_axes_they_are_coulomb_viscous(force: float, angle: float, viscosity: float) -> None:
    plain = Meeting(CoulombViscous(force, viscosity), 0.02)
    x = plain.arguments()
    expected = plain.law.implicit(x, plain.mobility)
    for law in (Elliptic(force, force, angle, viscosity), Asymmetric(force, force, force, angle, viscosity)):
        found = law.implicit(x, plain.mobility)
        assert np.all(norms(found - expected) <= 1e-12 * np.maximum(force, norms(expected)))
        assert norms(law(x[-3]) - plain.law(x[-3]))[0] <= 1e-12 * norms(plain.law(x[-3]))[0]


@PHYSICS
@given(log_floats(0.5, 50.0), log_floats(0.1, 10.0), st.floats(-6.2, 6.2), st.just(0.0) | log_floats(0.01, 100.0))
def test_as_strong_backwards_as_forwards_it_is_elliptic(force: float, ratio: float, angle: float, D: float) -> None:
    elliptic = Meeting(Elliptic(force, force * ratio, angle, D), 0.02)
    x = elliptic.arguments()
    found = Asymmetric(force, force, force * ratio, angle, D).implicit(x, elliptic.mobility)
    np.testing.assert_array_equal(found, elliptic.law.implicit(x, elliptic.mobility))


@EACH
@planar_family
@given(st.data())
def test_mirrors(family: str, data: st.DataObject) -> None:
    """Elliptic is odd; asymmetric is odd with its forces exchanged, and so it is turned by half a turn."""
    meeting = data.draw(meetings(family))
    law, Z, x = meeting.law, meeting.mobility, meeting.arguments()
    mirrored = law
    if isinstance(law, Asymmetric):
        mirrored = dataclasses.replace(law, forward_force=law.backward_force, backward_force=law.forward_force)
        turned = dataclasses.replace(law, angle=law.angle - np.sign(law.angle + 1e-9) * np.pi)
        change = norms(turned.implicit(x, Z) - mirrored.implicit(x, Z))
        assert np.all(change <= 1e-12 * np.maximum(law.breakaway_force, norms(x) / Z))
    np.testing.assert_allclose(mirrored.implicit(-x, Z), -law.implicit(x, Z), rtol=4 * EPS, atol=0.0)


@PHYSICS
@given(log_floats(0.1, 50.0), log_floats(0.1, 50.0), log_floats(0.1, 50.0), log_floats(1e-4, 1.0))
def test_along_an_axis_each_is_a_law_of_one_dimension(one: float, two: float, three: float, mobility: float) -> None:
    asymmetric, elliptic = Asymmetric(one, two, three), Elliptic(one, two)
    for reach in (0.5, 0.999, 1.001, 2.0, 1e3):
        for direction, force, law in (
            ((1.0, 0.0), one, asymmetric),
            ((-1.0, 0.0), two, asymmetric),
            ((0.0, 1.0), three, asymmetric),
            ((0.0, -1.0), three, asymmetric),
            ((1.0, 0.0), one, elliptic),
            ((0.0, -1.0), two, elliptic),
        ):
            x = reach * mobility * force * np.array(direction)
            expected = Coulomb(force).implicit(x, mobility)
            assert norms(law.implicit(x, mobility) - expected)[0] <= 1e-13 * force


def test_the_angle_is_that_of_the_strong_axis() -> None:
    law = Elliptic(6.0, 2.0, np.pi / 6)
    along = np.array([np.cos(np.pi / 6), np.sin(np.pi / 6)])
    across = np.array([-along[1], along[0]])
    np.testing.assert_allclose(law(0.1 * along), 6.0 * along, atol=1e-14)
    np.testing.assert_allclose(law(0.1 * across), 2.0 * across, atol=1e-14)


# ---- in the four elements


@every_law
@every_kind
def test_elements_solve_their_equations_with_them(kind: str, name: str) -> None:
    grip, law, inputs = Grip(), PLANAR[name], wandering(kind, 1500)
    run, expected = stepped(make(kind, law, grip), inputs), reference_run(kind, law, grip, inputs)
    for left_over in equations(kind, grip, inputs, run, np.zeros(2)):
        assert largest(left_over) <= 1e-11
    assert inclusion_residual(law, run.velocity, run.friction_force).max() <= 1e-11
    for column in ("output", "friction_force", "displacement", "velocity"):
        assert largest(getattr(run, column) - getattr(expected, column)) <= 1e-9
    np.testing.assert_array_equal(run.sticking, expected.sticking)
    np.testing.assert_array_equal(run.sticking, (run.velocity == 0.0).all(axis=1))
    assert 0.05 < run.sticking.mean() < 0.95


@every_law
@every_kind
def test_no_energy_comes_from_an_element_with_them(kind: str, name: str) -> None:
    grip, inputs = Grip(), wandering(kind)
    run = simulate(make(kind, PLANAR[name], grip), inputs)
    taken = np.cumsum((inputs * run.output).sum(axis=1)) * grip.period
    mass_velocity = {"A": run.output, "B": run.velocity, "C": 0.0 * inputs, "D": run.output}[kind]
    held = 0.5 * grip.stiffness * norms(run.displacement) ** 2 + 0.5 * grip.mass * norms(mass_velocity) ** 2
    assert np.all((run.friction_force * run.velocity).sum(axis=1) >= 0.0)
    assert np.all(taken - held >= -1e-12 * np.maximum(1.0, held))


def test_a_block_pushed_across_the_grain_drifts_along_it() -> None:
    """Ever more force at 45 degrees: the block gives way along the weak axis first."""
    law = Elliptic(2.0, 6.0)
    push = np.linspace(0.0, 8.0, 4000)[:, None] * np.array([1.0, 1.0]) / np.sqrt(2.0)
    run = simulate(make("A", law, Grip(mass=0.3)), push)
    away = before(run.sticking[:, None].repeat(2, axis=1).astype(float))[:, 0] > run.sticking
    start = int(np.flatnonzero(away)[0])
    assert norms(push[start])[0] == pytest.approx(12.0 / np.sqrt(20.0), rel=1e-3)
    assert run.velocity[start, 0] > 5.0 * run.velocity[start, 1] > 0.0


# ---- what is refused


GOOD: dict[type[Law], dict[str, float]] = {
    Elliptic: {"force_x": 4.0, "force_y": 2.0, "angle": 0.0, "viscosity": 0.0},
    Asymmetric: {"forward_force": 4.0, "backward_force": 2.0, "sideways_force": 3.0, "angle": 0.0, "viscosity": 0.0},
}
BAD: list[tuple[type[Law], str, Any]] = [
    *((law, name, bad) for law, good in GOOD.items() for name in good for bad in (NAN, INF, "4", None)),
    *((law, name, bad) for law, good in GOOD.items() for name in good if "force" in name for bad in (0.0, -1.0)),
    *((law, "viscosity", -1e-9) for law in GOOD),
    *((law, "angle", bad) for law in GOOD for bad in (6.4, -6.4)),
]


@pytest.mark.parametrize(("law", "name", "bad"), BAD)
def test_bad_parameters_are_refused_by_name(law: type[Law], name: str, bad: Any) -> None:
    law(**GOOD[law])
    with pytest.raises(ConfigurationError, match=re.escape(name)):
        law(**GOOD[law] | {name: bad})


@pytest.mark.parametrize("law", PLANAR.values(), ids=PLANAR.keys())
@pytest.mark.parametrize("shape", [(), (1,), (3,), (5, 3), (2, 1)])
def test_they_exist_in_the_plane_only(law: Law, shape: tuple[int, ...]) -> None:
    for call in (law, lambda x: law.implicit(x, 1e-3)):
        with pytest.raises(ConfigurationError, match="two dimensions"):
            call(np.ones(shape))
    assert law.implicit(np.ones((4, 3, 2)), 1e-3).shape == (4, 3, 2)
