"""The classic models without a bristle, and the faults they are known for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptics import Coulomb, Stribeck, simulate
from haptics.device import Causality, State
from haptics.elements.classic.models import (
    CLASSICS,
    ExplicitCoulombAdmittance,
    ExplicitCoulombImpedance,
    KarnoppAdmittance,
    KarnoppImpedance,
    QuinnAdmittance,
    QuinnImpedance,
    ViscousRampAdmittance,
    ViscousRampImpedance,
)
from haptics.elements.models import Element, RigidAdmittance
from haptics.records import ROW
from haptics.rendering.rendering import Rendering
from tests.haptics.doubles import make_spec
from tests.haptics.strategies import PHYSICS, Array, norms, vectors

F, T = 6.0, 1e-3
LAW = Coulomb(F)


def forces(*pieces: tuple[float, int]) -> Array:
    """Forces along the first axis, (n, 2) [N]: each piece is a force and its number of steps."""
    return np.concatenate([np.tile((force, 0.0), (count, 1)) for force, count in pieces])


def thrown(element: Element, speed: float, value: Array) -> Array:
    """Velocity along the first axis (n,) [m/s] of a mass that starts with `speed`."""
    element.reset(velocity=(speed, 0.0))
    return simulate(element, value).velocity[:, 0]


# ---- explicit Coulomb


@pytest.mark.parametrize("speed", [0.1003, 0.0071])
def test_explicit_coulomb_changes_sign_at_every_step_once_it_should_rest(speed: float) -> None:
    v = thrown(ExplicitCoulombAdmittance(LAW, 2.0), speed, forces((0.0, 300)))
    rest = v[-200:]
    assert (rest[1:] * rest[:-1] < 0.0).all()
    np.testing.assert_allclose(np.abs(np.diff(rest)), T * F / 2.0, rtol=1e-9)
    assert thrown(RigidAdmittance(LAW, 2.0), speed, forces((0.0, 300)))[-1] == 0.0


def test_explicit_coulomb_turns_velocity_noise_into_full_force() -> None:
    noise = 1e-6 * np.random.default_rng(0).standard_normal((100, 2))
    run = simulate(ExplicitCoulombImpedance(LAW), noise)
    np.testing.assert_allclose(norms(run.output), F)
    assert not run.sticking.any()


# ---- viscous ramp


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_the_ramp_creeps_at_its_threshold_times_the_share_of_the_force(share: float) -> None:
    element = ViscousRampAdmittance(LAW, 2.0, threshold=0.005)
    run = simulate(element, forces((share * F, 1000)))
    np.testing.assert_allclose(run.velocity[-1], (0.005 * share, 0.0), rtol=1e-12)
    np.testing.assert_allclose(run.friction_force[-1], (share * F, 0.0), rtol=1e-12)
    assert run.sticking[-1], "it calls this static friction"


@pytest.mark.parametrize("law", [LAW, Stribeck(4.0, F, 0.05)])
def test_the_ramp_is_a_straight_line_that_meets_the_law(law: Coulomb | Stribeck) -> None:
    element = ViscousRampImpedance(law, threshold=0.01)
    run = simulate(element, np.column_stack([np.linspace(0.0, 0.02, 2001), np.zeros(2001)]))
    force, speed = run.output[:, 0], np.linspace(0.0, 0.02, 2001)
    np.testing.assert_allclose(force[:1001], speed[:1001] * law(0.01) / 0.01, rtol=1e-9)
    np.testing.assert_allclose(force[1001:], law(speed[1001:, None])[:, 0], rtol=1e-12)
    np.testing.assert_array_equal(run.sticking, speed <= 0.01)


# ---- Karnopp


def test_karnopps_mass_comes_to_rest_in_the_band_and_stays_there() -> None:
    run_out = thrown(KarnoppAdmittance(LAW, 2.0, threshold=0.005), 0.1003, forces((0.0, 100), (5.9, 200), (-5.9, 200)))
    stop = int(np.argmax(run_out == 0.0))
    assert run_out[stop - 1] > 0.005, "the last velocity outside the band"
    assert stop == pytest.approx((0.1003 - 0.005) * 2.0 / F / T, abs=1)
    assert not run_out[stop:].any(), "whatever the force below break-away"


def test_karnopps_mass_jumps_off_at_the_threshold() -> None:
    v = thrown(KarnoppAdmittance(LAW, 2.0, threshold=0.005), 0.0, forces((F + 1.0, 60)))
    start = int(np.argmax(v > 0.0))
    assert not v[:start].any()
    assert start == pytest.approx(0.005 / (T * 1.0 / 2.0), abs=1), "the time to reach the threshold unseen"
    assert v[start] >= 0.005
    np.testing.assert_allclose(np.diff(v[start:]), T * 1.0 / 2.0, rtol=1e-9)


@pytest.mark.parametrize("share", [0.4, 1.0])
def test_karnopps_model_to_the_letter_drifts_with_its_residual_velocity(share: float) -> None:
    element = KarnoppAdmittance(LAW, 2.0, threshold=0.005, residual=share)
    v = thrown(element, 0.1003, forces((0.0, 100), (5.0, 300)))
    whole = thrown(KarnoppAdmittance(LAW, 2.0, threshold=0.005, residual=1.0), 0.1003, forces((0.0, 400)))
    assert 0.0 < whole[-1] <= 0.005
    np.testing.assert_allclose(v[-300:], share * whole[-1], rtol=1e-9)


def test_karnopps_mass_jumps_over_a_band_that_is_too_narrow() -> None:
    too_narrow = 0.1 * T * F / 2.0
    v = thrown(KarnoppAdmittance(LAW, 2.0, threshold=too_narrow), 0.1003, forces((0.0, 300)))
    assert (v[-100:] * v[-101:-1] < 0.0).all()


def test_a_pull_below_karnopps_threshold_goes_on_in_jerks_where_quinns_is_smooth() -> None:
    pull = np.tile((0.004, 0.0), (8000, 1))
    karnopp, quinn = (simulate(cls(Coulomb(4.0)), pull) for cls in (KarnoppImpedance, QuinnImpedance))
    late = slice(4000, None)
    assert np.ptp(karnopp.output[late, 0]) > 0.1
    assert 0.5 < (karnopp.velocity[late, 0] == 0.0).mean() < 1.0
    np.testing.assert_allclose(quinn.output[late, 0], 4.0, rtol=1e-9)
    assert karnopp.velocity[late, 0].mean() == pytest.approx(0.004, rel=0.02), "on the mean it follows the pull"


@pytest.mark.parametrize("cls", [KarnoppImpedance, QuinnImpedance])
def test_the_pulled_mass_is_stable_up_to_the_stiffness_that_the_delay_allows(
    cls: type[KarnoppImpedance] | type[QuinnImpedance],
) -> None:
    """Kikuuwe et al. 2006, (63) and Fig. 13: with B = 2 sqrt(K M) at 2.5e5 N/m, and no longer at 7.5e5 N/m."""
    ripple = {}
    for stiffness in (2.5e5, 7.5e5):
        element = cls(Coulomb(10.0), 1.0, stiffness, 2.0 * np.sqrt(stiffness))
        run = simulate(element, np.tile((0.1, 0.0), (3000, 1)))
        ripple[stiffness] = np.ptp(run.output[-500:, 0])
    assert ripple[2.5e5] < 1e-9
    assert ripple[7.5e5] > 10.0


# ---- Quinn


def quinn_force(v: Array, h: Array, threshold: float) -> Array:
    element = QuinnAdmittance(LAW, 2.0, threshold)
    element.reset(velocity=v)
    element.step(h)
    return element.friction_force


@PHYSICS
@given(
    vectors(st.floats(0.0, 0.05)),
    vectors(st.floats(0.0, 12.0)),
    vectors(st.floats(1e-9, 1e-4)),
    vectors(st.floats(1e-9, 1e-2)),
)
def test_quinns_force_is_continuous_in_velocity_and_force(v: Array, h: Array, dv: Array, dh: Array) -> None:
    threshold = 0.01
    jump = np.linalg.norm(quinn_force(v + dv, h + dh, threshold) - quinn_force(v, h, threshold))
    assert jump <= 2.5 * F / threshold * np.linalg.norm(dv) + np.linalg.norm(dh) * (1 + 1e-6) + 1e-9


def test_karnopps_force_is_not() -> None:
    jumps = []
    for speed in (0.00499, 0.00501):
        element = KarnoppAdmittance(LAW, 2.0, 0.005)
        element.reset(velocity=(speed, 0.0))
        element.step((1.0, 0.0))
        jumps.append(element.friction_force[0])
    assert jumps == [1.0, F]


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_quinns_mass_comes_to_rest_under_any_force_below_the_friction(share: float) -> None:
    v = thrown(QuinnAdmittance(LAW, 2.0, threshold=0.005), 0.1, forces((share * F, 10000)))
    assert abs(v[-1]) < 1e-15


@given(st.floats(-0.03, 0.03), st.floats(-12.0, 12.0))
def test_quinns_force_on_a_line_is_that_of_the_paper(v: float, h: float) -> None:
    eps = 0.01
    q = v + eps * (np.sign(h) if abs(h) > F else h / F)  # (4b)
    expected = F * np.sign(q) if abs(q) > eps else F * q / eps  # (4a)
    force = quinn_force(np.array([v, 0.0]), np.array([h, 0.0]), eps)
    np.testing.assert_allclose(force, (expected, 0.0), rtol=1e-9, atol=1e-9)


@given(vectors(st.floats(0.0101, 1.0)), vectors(st.floats(0.0, 30.0)))
def test_fast_sliding_friction_has_the_direction_of_the_velocity(v: Array, h: Array) -> None:
    np.testing.assert_allclose(quinn_force(v, h, 0.005), LAW(v), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("cls", [ViscousRampAdmittance, QuinnAdmittance])
@pytest.mark.parametrize(("margin", "rests"), [(0.9, True), (1.1, False)])
def test_the_explicit_step_is_stable_up_to_twice_the_momentum_at_the_threshold(
    cls: type[ViscousRampAdmittance] | type[QuinnAdmittance], margin: float, rests: bool
) -> None:
    threshold = T * F / (2.0 * 2.0) / margin  # T F = margin 2 M threshold
    v = thrown(cls(LAW, 2.0, threshold), 0.1003, forces((0.0, 2000)))
    assert (np.abs(v[-10:]) < 1e-12).all() == rests


# ---- behind the envelope


def pushed(element: Element, pushes: Array) -> Array:
    """Reference along the first axis (n,) [m] of a rendering on a bench device under `pushes` [N]."""
    rendering = Rendering(element, make_spec(Causality.ADMITTANCE))
    rows: np.ndarray = np.zeros(1, ROW)
    return np.array([rendering.tick(State(0.0, force=push), 0.0, rows, 0, (0, 0.0, 0.0, 0))[0] for push in pushes])


@pytest.mark.parametrize("cls", [forms[Causality.ADMITTANCE] for forms in CLASSICS.values() if len(forms) == 2])
def test_a_mass_that_the_envelope_stops_keeps_no_momentum(cls: type[Element]) -> None:
    path = pushed(cls(LAW), forces((12.0, 2000), (-12.0, 1000)))  # type: ignore[call-arg]
    edge = make_spec().workspace_max[0]
    assert path[1999] == pytest.approx(edge, abs=1e-6), "pushed against the end of the workspace"
    assert path[2050] < edge - 1e-3, "it turns round at once"


def test_karnopps_rendering_stands_still_where_explicit_coulombs_trembles() -> None:
    pushes = forces((12.0, 50), (np.sqrt(0.5), 200))
    assert not np.diff(pushed(KarnoppAdmittance(LAW), pushes))[-50:].any()
    assert np.diff(pushed(ExplicitCoulombAdmittance(LAW), pushes))[-50:].all()
