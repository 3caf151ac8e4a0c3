"""The bounds: exact where they claim to be, and right about what an element really does."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from haptics.design import (
    CRITICAL_NONOSCILLATORY,
    CRITICAL_STABLE,
    Coupling,
    Handle,
    PositionServo,
    SampledArm,
    contact_eigenvalues,
    contact_is_nonoscillatory,
    contact_is_stable,
    count_jump,
    critical_stiffness,
    damping_limit,
    growth,
    hold_buzz,
    mass_limit,
    mass_rule,
    sliding_mass_limit,
    sliding_matrix,
    smallest_force,
    smallest_stribeck_velocity,
    stiffness_limit,
    stiffness_rule,
    stuck_matrix,
)
from haptics.elements.models import CompliantAdmittance, Element, InertialImpedance, MasslessImpedance, RigidAdmittance
from haptics.errors import ConfigurationError
from haptics.friction.laws import Coulomb, CoulombViscous, GaussianStribeck, Stribeck
from tests.haptics.design.plants import decays, held_path
from tests.haptics.strategies import log_floats

T = 1e-3


# --- (63): a mass held by a sticking model C -------------------------------------------------------------------------


def matrix_63(coupling: Coupling, mass: float) -> np.ndarray:
    K, B, T = coupling.stiffness, coupling.damping, coupling.period
    return np.array(((1.0 - T * T * K / mass, T - T * T * B / mass), (-T * K / mass, 1.0 - T * B / mass)))


def random_contacts(count: int) -> list[tuple[Coupling, float]]:
    generator = np.random.default_rng(63)
    a, b = 5.0 * generator.uniform(0.0, 1.0, count) ** 3, generator.uniform(0.0, 2.5, count)
    masses, periods = 10.0 ** generator.uniform(-2, 2, count), 10.0 ** generator.uniform(-4, -2, count)
    return [(Coupling(x * m / t**2, y * m / t, t), float(m)) for x, y, m, t in zip(a, b, masses, periods, strict=True)]


def test_the_predicates_agree_with_the_eigenvalues() -> None:
    contacts = random_contacts(20_000)
    eigenvalues = np.linalg.eigvals([matrix_63(coupling, mass) for coupling, mass in contacts])
    size = np.abs(eigenvalues).max(axis=1)
    real = np.abs(eigenvalues.imag).max(axis=1) == 0.0
    inside = real & (eigenvalues.real.min(axis=1) > 0.0) & (eigenvalues.real.max(axis=1) < 1.0)
    # Beside a boundary the eigenvalues have too few digits: two that meet have half of them.
    apart = np.abs(eigenvalues[:, 0] - eigenvalues[:, 1])
    clear = (np.abs(size - 1.0) > 1e-9) & (apart > 1e-6) & (np.abs(eigenvalues).min(axis=1) > 1e-9)
    assert clear.mean() > 0.99
    stable = np.array([contact_is_stable(*contact) for contact in contacts])
    quiet = np.array([contact_is_nonoscillatory(*contact) for contact in contacts])
    assert np.count_nonzero((stable != (size < 1.0)) & clear) == 0
    assert np.count_nonzero((quiet != inside) & clear) == 0
    assert 0.2 < stable.mean() < 0.8 and 0.1 < quiet.mean() < 0.8
    ours = np.array([contact_eigenvalues(*contact) for contact in contacts[:2000]])
    np.testing.assert_allclose(np.sort_complex(ours), np.sort_complex(eigenvalues[:2000]), atol=1e-7)


def test_two_real_eigenvalues_of_one_sign_may_both_be_negative() -> None:
    coupling = Coupling(3.0 / T**2, 0.5 / T)
    assert (contact_eigenvalues(coupling, 1.0).real < 0.0).all()
    assert not contact_is_nonoscillatory(coupling, 1.0)


@pytest.mark.parametrize("coupling", [Coupling(0.0, 100.0), Coupling(1e5, 0.0)])
def test_without_stiffness_or_without_damping_the_mass_does_not_come_to_rest(coupling: Coupling) -> None:
    assert np.abs(contact_eigenvalues(coupling, 1.0)).max() == pytest.approx(1.0, abs=1e-12)
    assert not contact_is_stable(coupling, 1.0)


def test_the_dashed_and_the_black_curve_of_figure_14() -> None:
    dashed, black = (contact_eigenvalues(Coupling(K, 2.0 * math.sqrt(K)), 1.0) for K in (2.5e5, 7.5e5))
    np.testing.assert_allclose(sorted(dashed.real), [0.0, 0.75], atol=1e-12)
    assert black.real.min() == pytest.approx(-1.13, abs=5e-3)


@pytest.mark.parametrize(
    ("share", "predicate"), [(CRITICAL_NONOSCILLATORY, contact_is_nonoscillatory), (CRITICAL_STABLE, contact_is_stable)]
)
def test_critical_damping_is_good_up_to_its_bound(share: float, predicate: Callable[[Coupling, float], bool]) -> None:
    bound = critical_stiffness(2.0, T, nonoscillatory=predicate is contact_is_nonoscillatory)
    assert bound == pytest.approx(share * 2.0 / T**2)
    for factor, expected in ((0.999, True), (1.001, False)):
        K = factor * bound
        # B^2 = 4 K M has a double eigenvalue in continuous time only: here (a + b)^2 >= 4 a holds with room to spare.
        assert predicate(Coupling(K, 2.0 * math.sqrt(K * 2.0)), 2.0) is expected


@pytest.mark.parametrize(("share", "comes_to_rest"), [(0.95, True), (1.05, False)])
def test_a_real_element_holds_a_mass_up_to_the_stability_bound(share: float, comes_to_rest: bool) -> None:
    K, M = share * critical_stiffness(1.0, T, nonoscillatory=False), 1.0
    element = MasslessImpedance(Coulomb(1e12), K, 2.0 * math.sqrt(K * M), T)
    velocity, force, path = 0.01, 0.0, []
    for _ in range(120):
        velocity -= T / M * force  # (60)
        force = float(element.step((velocity, 0.0))[0])
        path.append(velocity)
    assert decays(np.array(path)) is comes_to_rest


# --- models B and C on a device ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("delay", "limit"), [(0, 19e3), (1, 6.3e3), (2, 3.7e3)])
def test_the_largest_stiffness_on_a_light_joystick(delay: int, limit: float) -> None:
    assert stiffness_limit(Handle(0.2, 0.0, delay * T), 10.0) == pytest.approx(limit, rel=0.01)


def handles() -> st.SearchStrategy[Handle]:
    own = st.one_of(st.just(0.0), log_floats(0.01, 10.0))
    return st.builds(Handle, log_floats(0.05, 5.0), own, st.floats(0.0, 4e-3))


@settings(max_examples=10)
@given(handle=handles(), damping=log_floats(0.3, 100.0), below=st.floats(0.01, 0.999), above=st.floats(1.001, 100.0))
def test_every_stiffness_below_the_limit_is_stable_and_none_above(
    handle: Handle, damping: float, below: float, above: float
) -> None:
    limit = stiffness_limit(handle, damping)
    if limit == 0.0:
        assert damping > 0.999 * damping_limit(handle)
        assert growth(stuck_matrix(Coupling(above * stiffness_rule(handle, damping), damping), handle)) > 1.0
    else:
        assert growth(stuck_matrix(Coupling(below * limit, damping), handle)) < 1.0
        assert growth(stuck_matrix(Coupling(above * limit, damping), handle)) > 1.0


@settings(max_examples=10)
@given(handle=handles(), damping=log_floats(0.3, 100.0), more=st.floats(1.05, 3.0))
def test_own_damping_helps_and_delay_hurts(handle: Handle, damping: float, more: float) -> None:
    assume(handle.damping * T < 0.1 * handle.mass)
    limit = stiffness_limit(handle, damping)
    assert stiffness_limit(Handle(handle.mass, handle.damping + more, handle.delay), damping) >= limit
    assert stiffness_limit(Handle(handle.mass, handle.damping, handle.delay + more * T), damping) <= limit


@settings(max_examples=7)
@given(mass=log_floats(0.05, 5.0), delay=st.floats(0.0, 4e-3), damping=log_floats(0.3, 30.0))
def test_a_bare_handle_keeps_below_the_rule_of_thumb_and_a_heavy_one_reaches_it(
    mass: float, delay: float, damping: float
) -> None:
    light, heavy = Handle(mass, 0.0, delay), Handle(1e5, 0.0, delay)
    rule = stiffness_rule(light, damping)
    assert stiffness_limit(light, damping) <= rule
    assert stiffness_limit(heavy, damping) == pytest.approx(rule, rel=2e-3)


@settings(max_examples=5)
@given(handle=handles())
def test_beyond_the_damping_limit_no_stiffness_is_stable(handle: Handle) -> None:
    most = damping_limit(handle)
    assert stiffness_limit(handle, 0.99 * most) > 0.0
    assert stiffness_limit(handle, 1.01 * most) == 0.0


def test_without_any_damping_no_stiffness_is_stable() -> None:
    assert stiffness_limit(Handle(0.2), 0.0) == 0.0


def held(element: Element, handle: Handle, ticks: int) -> bool:
    return decays(held_path(handle, lambda v: float(element.step((v, 0.0))[0]), element.period, ticks))


@pytest.mark.parametrize(
    "handle", [Handle(0.2), Handle(0.2, 1.0, 0.5e-3), Handle(0.05, 0.2, 1.3e-3), Handle(1.0, 0.0, 2e-3)]
)
def test_a_real_element_holds_a_handle_up_to_the_limit(handle: Handle) -> None:
    limit = stiffness_limit(handle, 8.0)
    assert held(MasslessImpedance(Coulomb(1e12), 0.98 * limit, 8.0), handle, 600)
    assert not held(MasslessImpedance(Coulomb(1e12), 1.02 * limit, 8.0), handle, 600)


@pytest.mark.parametrize("mass", [0.02, 0.2, 2.0])
@pytest.mark.parametrize("handle", [Handle(0.2, 1.0, 0.5e-3), Handle(0.05, 0.2, 1.3e-3), Handle(1.0, 0.1, 2e-3)])
def test_the_limit_of_sticking_is_enough_for_a_sliding_model_b(handle: Handle, mass: float) -> None:
    element = InertialImpedance(Coulomb(0.0), mass, 0.9 * stiffness_limit(handle, 8.0), 8.0)
    stretch = []

    def force(velocity: float) -> float:
        pull = float(element.step((velocity, 0.0))[0])
        stretch.append(float(element.displacement[0]))
        return pull

    held_path(handle, force, T, 800)
    assert decays(np.array(stretch))


# --- models A and D on an arm -----------------------------------------------------------------------------------------


def servos(**fixed: object) -> st.SearchStrategy[PositionServo]:
    given = {
        "frequency": log_floats(5.0, 80.0),
        "damping_ratio": st.floats(0.5, 1.5),
        "grip_stiffness": log_floats(50.0, 2000.0),
        "grip_damping": log_floats(2.0, 50.0),
    }
    return st.builds(PositionServo, **(given | {name: st.just(value) for name, value in fixed.items()}))


@settings(max_examples=7)
@given(servo=servos(), share=st.floats(0.1, 0.99), more=st.floats(1.01, 50.0))
def test_a_mass_above_the_limit_is_steady_and_one_below_swings(servo: PositionServo, share: float, more: float) -> None:
    limit = mass_limit(servo)
    assume(math.isfinite(limit))
    assert growth(sliding_matrix(more * limit, servo, T)) < 1.0
    assert growth(sliding_matrix(share * limit, servo, T)) > 1.0


@settings(max_examples=5)
@given(servo=servos())
def test_a_fast_rate_comes_to_the_rule_of_thumb(servo: PositionServo) -> None:
    rule = mass_rule(servo)
    assume(rule < 50.0 or math.isinf(rule))
    surplus = 2.0 * math.pi * servo.frequency * servo.grip_damping - 2.0 * servo.damping_ratio * servo.grip_stiffness
    assume(abs(surplus) > 0.02 * servo.grip_stiffness)
    assert mass_limit(servo, 2e-5) == pytest.approx(rule, rel=0.02)


@settings(max_examples=5)
@given(servo=servos(damping_ratio=1.0), more=st.floats(1.1, 3.0))
def test_a_stiffer_grip_or_a_slower_servo_needs_more_mass(servo: PositionServo, more: float) -> None:
    limit = mass_limit(servo)
    stiffer = PositionServo(servo.frequency, 1.0, False, 0.0, more * servo.grip_stiffness, servo.grip_damping)
    slower = PositionServo(servo.frequency / more, 1.0, False, 0.0, servo.grip_stiffness, servo.grip_damping)
    assert mass_limit(stiffer) >= limit
    assert mass_limit(slower) >= limit


def test_what_a_servo_of_25_hz_in_a_firm_grasp_needs_is_of_the_size_that_the_paper_found() -> None:
    """Below 2 kg it "tended to produce oscillatory behaviour, especially with a firm grasp" (section V-A)."""
    assert 0.5 < mass_limit(PositionServo(25.0, grip_stiffness=1500.0, grip_damping=20.0)) < 4.0


def test_knowing_the_velocity_of_the_reference_takes_the_lag_away() -> None:
    late, told = (PositionServo(30.0, 1.0, knows) for knows in (False, True))
    assert mass_limit(told) < 0.05 * mass_limit(late)


def test_a_late_arm_in_a_stiff_grip_is_not_steady_with_any_mass() -> None:
    servo = PositionServo(10.0, grip_stiffness=2000.0, grip_damping=10.0)
    assert mass_limit(servo) == mass_rule(servo) == math.inf


def test_a_hand_without_stiffness_asks_nothing_unless_a_handle_has_mass() -> None:
    assert mass_limit(PositionServo(5.0, grip_stiffness=0.0)) == 0.0
    late = [mass_limit(PositionServo(30.0, 0.3, True, 5e-3, grip_stiffness=0.0, handle_mass=m)) for m in (0.3, 0.6)]
    assert late[0] > 0.3
    assert late[1] > 1.5 * late[0]


def prompt_arm(stiffness: tuple[float, float], damping: tuple[float, float]) -> SampledArm:
    """Return an arm that is at a tick where it was told at the last one, in a grip that differs along x and y."""
    transition, command, force = np.zeros((4, 4)), np.vstack((np.eye(2), np.zeros((2, 2)))), np.zeros((2, 4))
    transition[2:, :2] = np.eye(2)  # where it was before
    force[:, :2] = -np.diag(stiffness) - np.diag(damping) / T
    force[:, 2:] = np.diag(damping) / T
    return SampledArm(transition, command, force, T)


@settings(max_examples=5)
@given(
    stiffness=st.tuples(log_floats(50.0, 3000.0), log_floats(50.0, 3000.0)),
    damping=st.tuples(log_floats(5.0, 50.0), log_floats(5.0, 50.0)),
    other=log_floats(0.1, 10.0),
)
def test_the_limit_of_a_prompt_arm_is_that_of_a_mass_with_a_late_force(
    stiffness: tuple[float, float], damping: tuple[float, float], other: float
) -> None:
    """Its force comes a period late, as in (63): a + 2 b < 4."""
    arm = prompt_arm(stiffness, damping)
    limit = max(T * T * k + 2.0 * T * b for k, b in zip(stiffness, damping, strict=True)) / 4.0
    found = sliding_mass_limit([arm])
    assert limit <= found * (1.0 + 1e-3)
    assert found == pytest.approx(limit, rel=2e-3)
    assert growth(arm.sliding(1.01 * found)) < 1.0 < growth(arm.sliding(0.99 * found))
    pose = prompt_arm((other * stiffness[0], other * stiffness[1]), (other * damping[0], other * damping[1]))
    assert sliding_mass_limit([arm, pose]) == pytest.approx(max(1.0, other) * limit, rel=2e-3)


def test_an_arm_that_no_mass_helps_and_one_that_every_mass_suits() -> None:
    unstable = SampledArm(np.diag((1.1, 0.5)), np.eye(2), -np.eye(2), T)
    assert sliding_mass_limit([unstable]) == math.inf
    assert sliding_mass_limit([prompt_arm((1.0, 1.0), (0.01, 0.01))]) == 0.0


# --- behind an encoder ------------------------------------------------------------------------------------------------


def test_the_parameters_of_the_paper_behind_a_coarse_encoder() -> None:
    coupling, handle = Coupling(6000.0, 10.0), Handle(0.2, resolution=100e-6)
    assert count_jump(coupling, handle) == pytest.approx(1.6)
    assert hold_buzz(coupling, handle) == pytest.approx(1.0)
    assert smallest_force(coupling, handle) == pytest.approx(3.2)


@settings(max_examples=10)
@given(stiffness=log_floats(100.0, 5e4), damping=log_floats(0.5, 100.0), resolution=log_floats(1e-6, 1e-3))
def test_a_count_slips_a_real_element_exactly_where_the_rule_says(
    stiffness: float, damping: float, resolution: float
) -> None:
    """A contact that is held with F - jump survives one count more if the jump is a little smaller, else it slips."""
    coupling = Coupling(stiffness, damping)
    jump = count_jump(coupling, Handle(1.0, resolution=resolution))
    hold = 0.5
    for room, sticks in ((1.001, True), (0.999, False)):
        element = MasslessImpedance(Coulomb(hold + room * jump), stiffness, damping, T)
        steps = 1000
        for _ in range(steps):  # slowly up to the holding force; the damper has its part until the next tick
            element.step((hold / stiffness / steps / T, 0.0))
        element.step((0.0, 0.0))
        assume(element.sticking and element.friction_force[0] == pytest.approx(hold, rel=1e-9))
        element.step((resolution / T, 0.0))
        assert element.sticking is sticks


@settings(max_examples=5)
@given(damping=log_floats(0.5, 100.0), resolution=log_floats(1e-6, 1e-3))
def test_a_flickering_encoder_makes_a_damper_buzz(damping: float, resolution: float) -> None:
    element = MasslessImpedance(Coulomb(1e9), 0.0, damping, T)
    forces = [float(element.step((step * resolution / T, 0.0))[0]) for step in (1, -1, 1, -1, 0)]
    buzz = hold_buzz(Coupling(0.0, damping), Handle(1.0, resolution=resolution))
    np.testing.assert_allclose(np.abs(forces), [buzz] * 4 + [0.0], rtol=1e-12)


# --- laws that fall ---------------------------------------------------------------------------------------------------

FALLS = Stribeck(4.0, 5.0, 0.5)


@pytest.mark.parametrize(
    ("element", "speed"),
    [
        (MasslessImpedance(FALLS, 6000.0, 10.0), 62.5e-3),
        (MasslessImpedance(FALLS, 3e4, 300.0), 3e-3),
        (RigidAdmittance(FALLS, 2.0), 0.5e-3),
    ],
)
def test_the_smallest_stribeck_velocity_of_a_fall_of_one_newton(element: Element, speed: float) -> None:
    assert smallest_stribeck_velocity(element.law, element.mobility) == pytest.approx(speed, rel=0.02)


@settings(max_examples=10)
@given(
    kind=st.sampled_from([Stribeck, GaussianStribeck]),
    fall=log_floats(0.01, 10.0),
    viscosity=st.one_of(st.just(0.0), log_floats(0.01, 20.0)),
    mobility=log_floats(1e-4, 1.0),
)
def test_a_law_with_the_smallest_velocity_is_just_at_its_limit(
    kind: type[Stribeck] | type[GaussianStribeck], fall: float, viscosity: float, mobility: float
) -> None:
    speed = smallest_stribeck_velocity(kind(1.0, 1.0 + fall, 1e-4, viscosity), mobility)
    assert kind(1.0, 1.0 + fall, speed, viscosity).mobility_limit == pytest.approx(mobility)


def test_a_law_that_never_falls_may_have_any_stribeck_velocity() -> None:
    element = CompliantAdmittance(Stribeck(4.0, 5.0, 0.5, viscosity=10.0), 2.0, 2e4, 400.0)
    assert smallest_stribeck_velocity(element.law, element.mobility) == 0.0


def test_a_law_without_a_stribeck_velocity_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="must be one with a stribeck_velocity"):
        smallest_stribeck_velocity(CoulombViscous(4.0, 1.0), 0.01)


@pytest.mark.parametrize("mass", [0.0, -1.0, math.nan, math.inf])
def test_a_mass_must_be_one(mass: float) -> None:
    with pytest.raises(ConfigurationError, match=r"mass = .*: must be a finite number greater than 0 kg"):
        contact_is_stable(Coupling(100.0, 1.0), mass)
