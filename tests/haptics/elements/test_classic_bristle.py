"""The classic models with a bristle: closed-form results, and which of them drift."""

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from haptics import Asymmetric, Coulomb, CoulombViscous, Elliptic, MasslessImpedance, Stribeck, simulate
from haptics.elements.classic import Dahl, Elastoplastic, HaywardArmstrong, Iwan, LuGre, ResetIntegrator
from haptics.elements.models import write_parameters
from haptics.errors import AmbiguousLawWarning
from tests.haptics.strategies import PHYSICS, laws, norms, wandering

F, K, T = 4.0, 6000.0, 1e-3
LAW = Coulomb(F)
LIMIT = F / K
"""Deflection at break-away [m]."""


def along(steps, period=T):
    """Velocities (n, 2) [m/s] whose samples are ways of `steps` [m] along the first axis."""
    way = np.asarray(steps, dtype=float)
    return np.column_stack([way, np.zeros(len(way))]) / period


# ---- drift


def contact_drift(element, bias, amplitude, cycles=40):
    """Way of the contact in each of the later cycles [m], of 1 kg under a force that swings at 5 Hz, (cycles,)."""
    count, position, speed, force = 200, 0.0, 0.0, 0.0
    contact = np.zeros(2 * cycles * count)
    for k in range(len(contact)):
        ramp = min(k / (4 * count), 1.0)
        speed += T * (ramp * (bias + amplitude * np.sin(2 * np.pi * k / count)) - force) / 1.0
        position += T * speed
        force = element.step((speed, 0.0))[0]
        contact[k] = position - element.displacement[0]
    return np.diff(contact[cycles * count - 1 :: count])


DRIFT = {
    "lugre": (LuGre(LAW), 7.07),
    "dahl": (Dahl(LAW), 6.88),
    "hayward-armstrong": (HaywardArmstrong(LAW), 2.72),
    "elastoplastic": (Elastoplastic(LAW), 0.513),
}
"""Models that drift when the force swings over 2.5 +- 1 N, below the 4 N of break-away, and how fast [mm/s]."""


@pytest.mark.parametrize("name", DRIFT)
def test_some_models_drift_evenly_below_break_away(name):
    element, speed = DRIFT[name]
    element.reset()
    drift = contact_drift(element, 2.5, 1.0)
    np.testing.assert_allclose(drift, drift.mean(), rtol=0.01)
    assert drift.mean() * 5.0 * 1e3 == pytest.approx(speed, rel=0.01)


@pytest.mark.parametrize(
    "element",
    [MasslessImpedance(LAW, K, 10.0), ResetIntegrator(LAW), HaywardArmstrong(LAW, creep=0.0), Iwan(LAW)],
    ids=lambda element: element.model,
)
def test_other_models_do_not_drift(element):
    assert np.abs(contact_drift(element, 2.5, 1.0)).max() < 1e-9


def test_elastoplastic_bristle_does_not_drift_in_its_elastic_share():
    assert np.abs(contact_drift(Elastoplastic(LAW), 2.0, 0.5)).max() < 1e-15
    assert np.abs(contact_drift(LuGre(LAW), 2.0, 0.5)).min() > 1e-4


# ---- Dahl and LuGre: exact for a velocity that is constant over each sample


def test_dahl_loop_is_exponential_in_the_path():
    steps = np.random.default_rng(3).uniform(0.0, 0.3 * LIMIT, 400)
    steps[200:] *= -1.0
    run = simulate(Dahl(LAW), along(steps))
    way = np.cumsum(np.abs(steps))
    rising = F * -np.expm1(-way[:200] / LIMIT)
    falling = -F + (F + rising[-1]) * np.exp(-(way[200:] - way[199]) / LIMIT)
    np.testing.assert_allclose(run.output[:, 0], np.concatenate([rising, falling]), atol=1e-11)
    loop = np.abs(run.velocity[:, 0]) <= np.abs(steps) / T
    assert loop[:200].all(), "a bristle that is being loaded slips less than it is moved"


def test_lugre_is_dahl_with_a_damper():
    value = wandering("C")
    lugre, dahl = simulate(LuGre(LAW, K, 10.0), value), simulate(Dahl(LAW, K), value)
    np.testing.assert_array_equal(lugre.displacement, dahl.displacement)
    rate = np.diff(lugre.displacement, axis=0, prepend=np.zeros((1, 2))) / T
    np.testing.assert_allclose(lugre.output, dahl.output + 10.0 * rate, atol=1e-11)


# ---- vectors: on a circle the force lags behind the motion


@pytest.mark.parametrize("radius", [0.04, 0.01, 0.002])
@pytest.mark.parametrize(
    ("element", "lag", "level"),
    [
        (Dahl(LAW, K, T / 20), np.arctan, np.cos),
        (LuGre(LAW, K, 0.0, T / 20), np.arctan, np.cos),
        (Elastoplastic(LAW, K, 0.0, period=T / 20), np.arcsin, np.ones_like),
        (HaywardArmstrong(LAW, K, 0.0, period=T / 20), np.arcsin, np.ones_like),
        (ResetIntegrator(LAW, K, 0.0, period=T / 20), np.arcsin, np.ones_like),
        (Iwan(LAW, K, 0.0, 1, period=T / 20), np.arcsin, np.ones_like),
    ],
    ids=["dahl", "lugre", "elastoplastic", "hayward-armstrong", "reset-integrator", "model-c"],
)
def test_force_lags_on_a_circle_by_the_bristle_length(element, lag, level, radius):
    """A bristle of limit L on a radius R: of the exponential models tan(lag) = L/R, of the others sin(lag) = L/R."""
    turn = 0.1 / radius * T / 20 * np.arange(1, 200000 if radius > 0.01 else 40000)
    run = simulate(element, 0.1 * np.column_stack([np.cos(turn), np.sin(turn)]))
    angle = np.arctan2(run.output[-1, 1], run.output[-1, 0])
    expected = lag(LIMIT / radius)
    behind = np.mod(turn[-1] - angle, 2 * np.pi)
    assert np.degrees(behind) == pytest.approx(np.degrees(expected), abs=0.1)
    assert norms(run.output[-1])[0] == pytest.approx(F * level(expected), rel=1e-3)


# ---- elastoplastic and Hayward-Armstrong: the differential equation, as the period goes to zero


def dupont(z, share):
    """Slip as a part of the motion of an elastoplastic bristle that is being loaded."""
    x = z / LIMIT
    if x <= share:
        return 0.0
    alpha = 0.5 + 0.5 * np.sin(np.pi * (x - (1 + share) / 2) / (1 - share)) if x < 1.0 else 1.0
    return float(alpha * x)


def hayward(z, share):
    """Creep as a part of the motion."""
    x = abs(z) / LIMIT
    return float(x**9 / (share**8 + x**8))


@pytest.mark.parametrize(
    ("cls", "slip"), [(Elastoplastic, dupont), (HaywardArmstrong, hayward)], ids=["elastoplastic", "hayward-armstrong"]
)
def test_loading_follows_the_differential_equation_to_first_order(cls, slip):
    share = 0.5
    solution = solve_ivp(lambda _, z: 1.0 - slip(z[0], share), (0.0, LIMIT), [0.0], rtol=1e-10, atol=1e-14)
    setting = {"elastic_share": share} if cls is Elastoplastic else {"stick_share": share}
    errors = []
    for count in (100, 200, 400):
        run = simulate(cls(LAW, K, **setting), along(np.full(count, LIMIT / count)))
        errors.append(abs(run.displacement[-1, 0] - solution.y[0, -1]) / LIMIT)
    assert errors[0] < 0.01
    assert errors[1] == pytest.approx(errors[0] / 2, rel=0.1)
    assert errors[2] == pytest.approx(errors[1] / 2, rel=0.1)


def test_elastoplastic_bristle_is_elastic_first_and_when_released():
    run = simulate(Elastoplastic(LAW, K, 0.0, 0.75), along([0.1 * LIMIT] * 20 + [-0.1 * LIMIT] * 16))
    np.testing.assert_allclose(run.output[:7, 0], 0.1 * F * np.arange(1, 8), rtol=1e-12)
    assert run.sticking[:7].all() and not run.sticking[8:20].any() and run.sticking[20:].all()
    assert (run.velocity[run.sticking] == 0.0).all()
    np.testing.assert_allclose(np.diff(run.output[19:, 0]), -0.1 * F, rtol=1e-9)


@settings(PHYSICS, max_examples=15)
@given(st.floats(100.0, 1e5), st.floats(0.5, 8.0), st.integers(0, 10**6))
def test_hayward_armstrong_without_creep_is_model_c_without_damping(stiffness, force, seed):
    """Kikuuwe et al. 2006, section III-C, for Coulomb's law; in two dimensions too (section III-F)."""
    law, value = Coulomb(force), wandering("C", 300, seed)
    classic = simulate(HaywardArmstrong(law, stiffness, creep=0.0), value)
    model_c = simulate(MasslessImpedance(law, stiffness, 0.0), value)
    np.testing.assert_allclose(classic.output, model_c.output, rtol=0, atol=1e-13 * force)
    np.testing.assert_allclose(classic.velocity, model_c.velocity, rtol=0, atol=1e-12)
    assert (classic.sticking == model_c.sticking).mean() > 0.99


@pytest.mark.parametrize("cls", [Dahl, LuGre, Elastoplastic, HaywardArmstrong, ResetIntegrator])
def test_viscosity_is_not_stored_in_the_bristle(cls):
    run = simulate(cls(CoulombViscous(F, 20.0)), along([LIMIT] * 60 + [0.0] * 5))
    np.testing.assert_allclose(run.displacement[59:, 0], LIMIT, rtol=1e-9)
    np.testing.assert_allclose(run.output[59:, 0], [F + 20.0 * LIMIT / T] + [F] * 5, rtol=1e-9)


# ---- reset integrator


@pytest.mark.parametrize("stiction", [0.0, 0.3])
def test_reset_integrator_force_jumps_at_break_away_and_reversal(stiction):
    damping, step = 50.0, 0.0099 * LIMIT
    ways = along([step] * 200 + [-step] * 20)
    run = simulate(ResetIntegrator(LAW, K, damping, stiction), ways)
    slip = int(np.argmin(run.sticking))
    assert run.output[slip - 1, 0] == pytest.approx((1 + stiction) * F + damping * step / T, rel=0.02)
    np.testing.assert_allclose(run.output[slip:200, 0], F, rtol=1e-12)
    assert run.sticking[200], "the first step back sticks"
    drop = run.output[200, 0] - run.output[199, 0]
    assert drop == pytest.approx(stiction * F - damping * step / T, abs=0.02 * F)


# ---- Iwan


@settings(PHYSICS, max_examples=15)
@given(laws(), st.floats(100.0, 1e5), st.floats(0.0, 300.0), st.floats(0.0, 0.99), st.integers(0, 10**6))
@pytest.mark.filterwarnings("ignore::haptics.errors.AmbiguousLawWarning")
def test_iwan_with_one_element_is_model_c_to_the_bit(law, k, b, spread, seed):
    value = wandering("C", 200, seed)
    one, model_c = simulate(Iwan(law, k, b, 1, spread), value), simulate(MasslessImpedance(law, k, b), value)
    for column in ("output", "friction_force", "displacement", "velocity", "sticking"):
        np.testing.assert_array_equal(getattr(one, column), getattr(model_c, column))


@pytest.mark.parametrize("change", [{}, {"spread": 0.9}, {"stiff_share": 0.5, "stiff_stiffness": 10.0}])
def test_iwan_warns_at_the_mobility_of_its_most_mobile_element(change):
    mobility = Iwan(LAW, K, 10.0, **change).mobility
    for factor in (1.01, 0.99):
        law = Stribeck(4.0, 5.0, factor * mobility)  # condition (15) holds for Stribeck velocities above 1 N * Z
        with pytest.warns(AmbiguousLawWarning) if factor < 1.0 else contextlib.nullcontext():
            Iwan(law, K, 10.0, **change)


@pytest.mark.parametrize("count", [2, 5, 12])
def test_iwan_without_spread_is_model_c(count):
    value = wandering("C", 1000)
    together, one = simulate(Iwan(LAW, K, 10.0, count, 0.0), value), simulate(MasslessImpedance(LAW, K, 10.0), value)
    np.testing.assert_allclose(together.output, one.output, atol=1e-11)


def stop_operators(way, limits, stiffnesses):
    """Sum of forces [N] of elastic-plastic stop operators without damping, over a `way` (n,) [m] from rest."""
    force, total = np.zeros(len(limits)), np.empty(len(way))
    for k, step in enumerate(np.diff(way, prepend=0.0)):
        force = np.clip(force + stiffnesses * step, -limits, limits)
        total[k] = force.sum()
    return total


@pytest.mark.parametrize(
    ("count", "spread", "share"),
    [(2, 0.5, 0.0), (6, 0.8, 0.0), (12, 0.95, 0.0), (6, 0.0, 0.4), (6, 0.8, 0.1), (6, 0.8, 0.95)],
)
def test_iwan_is_a_sum_of_stop_operators(count, spread, share):
    """Springs that yield in turn, the first one at (1 - spread) F, and one more for the stiff share."""
    way = 3.0 * LIMIT * np.concatenate([np.sin(0.05 * np.arange(300)), 0.4 * np.sin(15.0 + 0.07 * np.arange(300))])
    run = simulate(Iwan(LAW, K, 0.0, count, spread, share, 20_000.0), along(np.diff(way, prepend=0.0)))
    limits = np.append((1.0 - share) * (1.0 + spread * np.linspace(-1, 1, count)) / count, share) * F
    springs = np.append(np.full(count, K / count), 20_000.0)
    np.testing.assert_allclose(run.output[:, 0], stop_operators(way, limits, springs), atol=1e-11)
    first = np.min(limits[limits > 0.0] / springs[limits > 0.0])
    assert way[np.argmin(run.sticking) - 1] <= first * (1 + 1e-9) < way[np.argmin(run.sticking)] * (1 + 1e-9)


def test_iwan_breakaway_is_that_of_the_law():
    law = Stribeck(3.0, F, 0.1)
    run = simulate(Iwan(law, K, 50.0, 6, 0.8), along(np.full(4000, 1e-3 * LIMIT)))
    assert run.output[:, 0].max() == pytest.approx(F, rel=2e-3)
    assert norms(run.output).max() <= F


def test_added_iwan_element_starts_without_tension():
    """Six of eight loaded elements are removed; six new ones start without tension."""
    element, at_rest = Iwan(LAW, K, 0.0, 8, 0.0), (0.0, 0.0)
    for _ in range(100):
        loaded = element.step((0.005 * LIMIT / T, 0.0))
    assert loaded[0] == pytest.approx(0.5 * F)
    forces = []
    for count in (2, 8):
        write_parameters(Iwan(LAW, K, 0.0, count, 0.0), element._record)
        forces.append(element.step(at_rest)[0])
    assert forces == pytest.approx([0.5 * F, 0.5 * F * 2 / 8])
    assert element.displacement[0] == pytest.approx(0.5 * LIMIT * 2 / 8)


@pytest.mark.parametrize(
    "law",
    [LAW, CoulombViscous(3.0, 8.0), Stribeck(3.0, F, 0.3, 2.0), Elliptic(4.0, 2.0, 0.3), Asymmetric(4.0, 2.5, 3.0)],
    ids=lambda law: str(law.name),
)
def test_iwan_with_a_stiff_share_slides_with_the_force_of_the_law(law):
    u = np.array([-0.12, 0.05])
    run = simulate(Iwan(law, K, 12.0, 6, 0.8, 0.4, 20_000.0), np.tile(u, (1500, 1)))
    assert not run.sticking[-1]
    np.testing.assert_allclose(run.velocity[-1], u, rtol=1e-12)
    np.testing.assert_allclose(run.output[-1], law(u), rtol=1e-11)


@pytest.mark.parametrize("settings", [{}, {"stiff_share": 0.9}, {"stiff_share": 0.3}, {"stiff_share": 0.3, "count": 1}])
def test_iwan_mobility_is_that_of_its_most_mobile_element(settings):
    element = Iwan(LAW, 2000.0, 10.0, **settings)
    count, stiff = element.count, element.stiff_share
    rise = element.spread * np.linspace(-1, 1, count) if count > 1 else np.zeros(1)
    shares = np.append((1.0 - stiff) * (1.0 + rise) / count, stiff)
    springs = np.append(np.full(count, element.stiffness / count), element.stiff_stiffness)
    dampers = 10.0 * np.append(np.full(count, (1.0 - stiff) / count), stiff)
    assert element.mobility == pytest.approx((shares / (dampers + T * springs)).max(), rel=1e-12)
    assert element.coupling_stiffness == pytest.approx(springs[shares > 0.0].sum())
