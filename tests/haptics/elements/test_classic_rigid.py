"""Classic models: requirements on all of them, and the known faults of the models without a bristle."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haptics import Causality, Elliptic, Law, RigidAdmittance, State, simulate
from haptics.elements.classic import (
    CLASSICS,
    ExplicitCoulombAdmittance,
    Iwan,
    KarnoppAdmittance,
    KarnoppImpedance,
    QuinnAdmittance,
    QuinnImpedance,
    ViscousRampAdmittance,
    ViscousRampImpedance,
)
from haptics.errors import AmbiguousLawWarning, ConfigurationError
from haptics.friction.laws import Coulomb, CoulombViscous, DeadZoneViscous, GaussianStribeck, Stribeck
from haptics.records import ROW
from haptics.rendering.rendering import Rendering
from tests.haptics.doubles import make_spec
from tests.haptics.strategies import PHYSICS, before, laws, log_floats, norms, vectors, wandering

CLASSES = [cls for forms in CLASSICS.values() for cls in forms.values()]
IMPEDANCES = [cls for cls in CLASSES if cls.causality is Causality.IMPEDANCE]
ADMITTANCES = [cls for cls in CLASSES if cls.causality is Causality.ADMITTANCE]
LAWS: dict[str, Law] = {
    law.name: law
    for law in (
        Coulomb(4.0),
        CoulombViscous(4.0, 8.0),
        Stribeck(3.0, 4.0, 0.1, 2.0),
        GaussianStribeck(3.0, 4.0, 0.1, 2.0),
        DeadZoneViscous(4.0, 20.0, 0.05),
    )
}


def names(cls):
    """Names of the parameters, without the law."""
    return {field.name for field in dataclasses.fields(cls)} - {"law"}


every_class = pytest.mark.parametrize("cls", CLASSES)
every_law = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)


def build(cls, law, **values):
    """Build an element whose law may be ambiguous for it: only Iwan's solves a law at all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AmbiguousLawWarning)
        return cls(law, **values)


def inputs_of(cls, count=2000, seed=1):
    """Smooth random input in the plane that makes an element of default parameters stick and slide."""
    return wandering("A" if cls.causality is Causality.ADMITTANCE else "C", count, seed)


# ---- fair comparison: the force of the law


@every_law
@pytest.mark.parametrize("cls", IMPEDANCES)
@pytest.mark.parametrize("direction", [0.0, 2.2])
def test_steady_pull_gives_the_force_of_the_law(cls, law, direction):
    u = 0.1 * np.array([np.cos(direction), np.sin(direction)])
    run = simulate(build(cls, law), np.tile(u, (4000, 1)))
    np.testing.assert_allclose(run.output[-50:], np.tile(law(u), (50, 1)), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(run.friction_force[-50:], run.output[-50:], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(run.velocity[-50:], np.tile(u, (50, 1)), rtol=1e-9, atol=1e-12)
    assert not run.sticking[-50:].any()


@every_law
@pytest.mark.parametrize("cls", ADMITTANCES)
def test_sliding_mass_receives_the_force_of_the_law(cls, law):
    angle = np.linspace(0.0, 1.5, 1000)
    force = 9.0 * np.column_stack([np.cos(angle), np.sin(angle)])
    element = build(cls, law, mass=0.5)
    element.reset(velocity=(0.05, 0.0))
    run = simulate(element, force)
    last = before(run.velocity, np.array([0.05, 0.0]))
    np.testing.assert_allclose(run.friction_force, law(last), rtol=1e-9)
    np.testing.assert_allclose((run.velocity - last) * 0.5 / 1e-3, force - run.friction_force, atol=1e-9)  # (12)


# ---- vectors


@every_class
@pytest.mark.parametrize("angle", [np.pi, 0.5 * np.pi, 0.7])
def test_motion_turns_with_the_coordinates(cls, angle):
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    element, value = build(cls, LAWS["stribeck"]), inputs_of(cls)
    straight, turned = simulate(element, value), simulate(element, value @ turn.T)
    for column in ("output", "friction_force", "displacement", "velocity"):
        np.testing.assert_allclose(getattr(turned, column), getattr(straight, column) @ turn.T, atol=1e-8)
    assert (turned.sticking == straight.sticking).mean() > 0.99, "but for rounding at the very threshold"


@pytest.mark.parametrize("cls", [cls for cls in IMPEDANCES if "stiffness" in names(cls)])
def test_slip_and_stretch_add_up_to_the_motion(cls):
    value, element = inputs_of(cls), build(cls, LAWS["coulomb"])
    run = simulate(element, value)
    stretch = (run.displacement - before(run.displacement)) / 1e-3
    mass_moves_later = "mass" in names(cls)  # Fig. 12(a): the spring sees the velocity of the mass one step late
    slip = before(run.velocity) if mass_moves_later else run.velocity
    np.testing.assert_allclose(slip + stretch, value, atol=1e-11)


# ---- sticking


@every_class
def test_model_sticks_at_rest_and_not_while_sliding(cls):
    slide = 9.0 if cls.causality is Causality.ADMITTANCE else 0.2
    run = simulate(build(cls, LAWS["coulomb"]), np.repeat([[0.0, 0.0], [slide, 0.0]], [5, 300], axis=0))
    assert run.sticking[:5].all()
    assert not run.sticking[-100:].any()
    assert not run.friction_force[:5].any()


# ---- any parameters


@st.composite
def elements(draw):
    """Any model with any parameters of the physical world."""
    cls, law = draw(st.sampled_from(CLASSES)), draw(laws())
    values: dict[str, Any] = {}
    for field in dataclasses.fields(cls)[1:]:
        meta = field.metadata
        if field.name == "count":
            values["count"] = draw(st.integers(1, 12))
        elif field.name == "period":
            values["period"] = draw(st.sampled_from([1e-4, 1e-3, 4e-3]))
        elif np.isfinite(meta["maximum"]):
            values[field.name] = draw(st.floats(meta["minimum"], meta["maximum"]))
        else:
            low, high = {"mass": (0.05, 10.0), "threshold": (1e-3, 0.1)}.get(field.name, (1.0, 1e5))
            values[field.name] = draw(log_floats(low, high))
    return build(cls, law, **values)


def level_range(law, speed):
    """Greatest level of `law` up to `speed` [N]."""
    speeds = np.geomspace(1e-9, max(speed, 2e-9), 5000)  # the peak of a law with viscosity may lie close to rest
    return float(np.max(law(speeds[:, None]))) if speed > 0.0 else 0.0


@settings(PHYSICS, max_examples=75)
@given(elements(), st.integers(0, 10**6), log_floats(1e-4, 1.0))
def test_friction_stays_within_the_law_for_any_parameters(element, seed, size):
    scale = 20.0 * size if element.causality is Causality.ADMITTANCE else size
    run = simulate(element, scale * np.random.default_rng(seed).uniform(-1, 1, (40, 2)))
    assert np.isfinite(run.output).all()
    assert np.isfinite(run.velocity).all()
    fastest = max(norms(run.velocity).max(), scale * np.sqrt(2))
    most = max(element.law.breakaway_force, level_range(element.law, fastest))
    if "damping" not in names(type(element)) or "mass" in names(type(element)):
        assert norms(run.friction_force).max() <= most * (1 + 1e-6)
    else:
        spring = element.stiffness * norms(run.displacement).max()
        held = most * (1.0 + element.spread) if isinstance(element, Iwan) else element.law.breakaway_force
        assert spring <= held * (1 + 1e-9)


@every_class
def test_steps_copies_and_simulations_agree_to_the_bit(cls):
    element, value = build(cls, LAWS["coulomb"]), inputs_of(cls, 60)
    run = simulate(element, value)
    for k, row in enumerate(value):
        np.testing.assert_array_equal(element.step(row), run.output[k])
    twin = element.__copy__()
    np.testing.assert_array_equal(twin.step(value[0]), element.step(value[0]))
    element.reset()
    np.testing.assert_array_equal(simulate(element, value).output, run.output)


# ---- bad settings


@every_class
def test_planar_law_is_refused_where_it_cannot_be_used(cls):
    law = Elliptic(4.0, 2.0)
    if cls.model not in {"explicit-coulomb", "iwan"}:
        with pytest.raises(ConfigurationError, match=r"elliptic.*the same in all directions"):
            cls(law)
        return
    value = (9.0, 9.0) if cls.causality is Causality.ADMITTANCE else (0.1, 0.1)
    run = simulate(build(cls, law), np.tile(value, (2000, 1)))
    np.testing.assert_allclose(run.friction_force[-1], law(run.velocity[-1]), rtol=1e-6)


# ---- models without a bristle


F, T = 6.0, 1e-3
LAW = Coulomb(F)


def forces(*pieces):
    """Forces along the first axis, (n, 2) [N]: each piece is a force and its number of steps."""
    return np.concatenate([np.tile((force, 0.0), (count, 1)) for force, count in pieces])


def thrown(element, speed, value):
    """Velocity along the first axis (n,) [m/s] of a mass that starts with `speed`."""
    element.reset(velocity=(speed, 0.0))
    return simulate(element, value).velocity[:, 0]


# ---- explicit Coulomb


@pytest.mark.parametrize("speed", [0.1003, 0.0071])
def test_explicit_coulomb_chatters_at_rest(speed):
    v = thrown(ExplicitCoulombAdmittance(LAW, 2.0), speed, forces((0.0, 300)))
    rest = v[-200:]
    assert (rest[1:] * rest[:-1] < 0.0).all()
    np.testing.assert_allclose(np.abs(np.diff(rest)), T * F / 2.0, rtol=1e-9)
    assert thrown(RigidAdmittance(LAW, 2.0), speed, forces((0.0, 300)))[-1] == 0.0


# ---- viscous ramp


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_ramp_creeps_in_proportion_to_the_force(share):
    element = ViscousRampAdmittance(LAW, 2.0, threshold=0.005)
    run = simulate(element, forces((share * F, 1000)))
    np.testing.assert_allclose(run.velocity[-1], (0.005 * share, 0.0), rtol=1e-12)
    np.testing.assert_allclose(run.friction_force[-1], (share * F, 0.0), rtol=1e-12)
    assert run.sticking[-1], "it calls this static friction"


@pytest.mark.parametrize("law", [LAW, Stribeck(4.0, F, 0.05)])
def test_ramp_is_linear_up_to_the_threshold(law):
    element = ViscousRampImpedance(law, threshold=0.01)
    run = simulate(element, np.column_stack([np.linspace(0.0, 0.02, 2001), np.zeros(2001)]))
    force, speed = run.output[:, 0], np.linspace(0.0, 0.02, 2001)
    np.testing.assert_allclose(force[:1001], speed[:1001] * law(0.01) / 0.01, rtol=1e-9)
    np.testing.assert_allclose(force[1001:], law(speed[1001:, None])[:, 0], rtol=1e-12)
    np.testing.assert_array_equal(run.sticking, speed <= 0.01)


# ---- Karnopp


def test_karnopp_mass_rests_in_the_band():
    run_out = thrown(KarnoppAdmittance(LAW, 2.0, threshold=0.005), 0.1003, forces((0.0, 100), (5.9, 200), (-5.9, 200)))
    stop = int(np.argmax(run_out == 0.0))
    assert run_out[stop - 1] > 0.005, "the last velocity outside the band"
    assert stop == pytest.approx((0.1003 - 0.005) * 2.0 / F / T, abs=1)
    assert not run_out[stop:].any(), "whatever the force below break-away"


def test_karnopp_mass_starts_at_the_threshold():
    v = thrown(KarnoppAdmittance(LAW, 2.0, threshold=0.005), 0.0, forces((F + 1.0, 60)))
    start = int(np.argmax(v > 0.0))
    assert not v[:start].any()
    assert start == pytest.approx(0.005 / (T * 1.0 / 2.0), abs=1), "the time to reach the threshold unseen"
    assert v[start] >= 0.005
    np.testing.assert_allclose(np.diff(v[start:]), T * 1.0 / 2.0, rtol=1e-9)


@pytest.mark.parametrize("share", [0.4, 1.0])
def test_karnopp_drifts_with_its_residual_velocity(share):
    element = KarnoppAdmittance(LAW, 2.0, threshold=0.005, residual=share)
    v = thrown(element, 0.1003, forces((0.0, 100), (5.0, 300)))
    whole = thrown(KarnoppAdmittance(LAW, 2.0, threshold=0.005, residual=1.0), 0.1003, forces((0.0, 400)))
    assert 0.0 < whole[-1] <= 0.005
    np.testing.assert_allclose(v[-300:], share * whole[-1], rtol=1e-9)


def test_karnopp_chatters_over_a_narrow_band():
    too_narrow = 0.1 * T * F / 2.0
    v = thrown(KarnoppAdmittance(LAW, 2.0, threshold=too_narrow), 0.1003, forces((0.0, 300)))
    assert (v[-100:] * v[-101:-1] < 0.0).all()


def test_slow_pull_is_jerky_with_karnopp_and_smooth_with_quinn():
    pull = np.tile((0.004, 0.0), (8000, 1))
    karnopp, quinn = (simulate(cls(Coulomb(4.0)), pull) for cls in (KarnoppImpedance, QuinnImpedance))
    late = slice(4000, None)
    assert np.ptp(karnopp.output[late, 0]) > 0.1
    assert 0.5 < (karnopp.velocity[late, 0] == 0.0).mean() < 1.0
    np.testing.assert_allclose(quinn.output[late, 0], 4.0, rtol=1e-9)
    assert karnopp.velocity[late, 0].mean() == pytest.approx(0.004, rel=0.02), "on the mean it follows the pull"


@pytest.mark.parametrize("cls", [KarnoppImpedance, QuinnImpedance])
def test_pulled_mass_is_stable_up_to_the_stiffness_limit(cls):
    """Kikuuwe et al. 2006, (63) and Fig. 13: with B = 2 sqrt(K M) at 2.5e5 N/m, and no longer at 7.5e5 N/m."""
    ripple = {}
    for stiffness in (2.5e5, 7.5e5):
        element = cls(Coulomb(10.0), 1.0, stiffness, 2.0 * np.sqrt(stiffness))
        run = simulate(element, np.tile((0.1, 0.0), (3000, 1)))
        ripple[stiffness] = np.ptp(run.output[-500:, 0])
    assert ripple[2.5e5] < 1e-9
    assert ripple[7.5e5] > 10.0


# ---- Quinn


def quinn_force(v, h, threshold):
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
def test_quinn_force_is_continuous_in_velocity_and_force(v, h, dv, dh):
    threshold = 0.01
    jump = np.linalg.norm(quinn_force(v + dv, h + dh, threshold) - quinn_force(v, h, threshold))
    assert jump <= 2.5 * F / threshold * np.linalg.norm(dv) + np.linalg.norm(dh) * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_quinn_mass_rests_below_the_friction(share):
    v = thrown(QuinnAdmittance(LAW, 2.0, threshold=0.005), 0.1, forces((share * F, 10000)))
    assert abs(v[-1]) < 1e-15


@given(st.floats(-0.03, 0.03), st.floats(-12.0, 12.0))
def test_quinn_force_equals_the_paper(v, h):
    eps = 0.01
    q = v + eps * (np.sign(h) if abs(h) > F else h / F)  # (4b)
    expected = F * np.sign(q) if abs(q) > eps else F * q / eps  # (4a)
    force = quinn_force(np.array([v, 0.0]), np.array([h, 0.0]), eps)
    np.testing.assert_allclose(force, (expected, 0.0), rtol=1e-9, atol=1e-9)


@given(vectors(st.floats(0.0101, 1.0)), vectors(st.floats(0.0, 30.0)))
def test_quinn_force_opposes_fast_sliding(v, h):
    np.testing.assert_allclose(quinn_force(v, h, 0.005), LAW(v), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("cls", [ViscousRampAdmittance, QuinnAdmittance])
@pytest.mark.parametrize(("margin", "rests"), [(0.9, True), (1.1, False)])
def test_explicit_step_is_stable_up_to_its_momentum_limit(cls, margin, rests):
    threshold = T * F / (2.0 * 2.0) / margin  # T F = margin 2 M threshold
    v = thrown(cls(LAW, 2.0, threshold), 0.1003, forces((0.0, 2000)))
    assert (np.abs(v[-10:]) < 1e-12).all() == rests


# ---- behind the envelope


def reference_path(element, pushes):
    """Reference along the first axis (n,) [m] of a rendering on a bench device under `pushes` [N]."""
    rendering = Rendering(element, make_spec(Causality.ADMITTANCE))
    rows: np.ndarray = np.zeros(1, ROW)
    return np.array([rendering.tick(State(0.0, force=push), 0.0, rows, 0, (0, 0.0, 0.0, 0))[0] for push in pushes])


@pytest.mark.parametrize("cls", [forms[Causality.ADMITTANCE] for forms in CLASSICS.values() if len(forms) == 2])
def test_mass_stopped_by_the_envelope_keeps_no_momentum(cls):
    path = reference_path(cls(LAW), forces((12.0, 2000), (-12.0, 1000)))
    edge = make_spec().workspace_max[0]
    assert path[1999] == pytest.approx(edge, abs=1e-6), "pushed against the end of the workspace"
    assert path[2050] < edge - 1e-3, "it turns round at once"
