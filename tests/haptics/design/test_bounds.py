"""Stability bounds: matrices of sampled loops, limits against exactly integrated devices, and measured device files."""

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from haptics import Causality, ConfigurationError, Coulomb, CoulombViscous, GaussianStribeck, Stribeck
from haptics.design.bounds import (
    contact_is_stable,
    count_jump,
    damping_limit,
    hold_buzz,
    mass_limit,
    sliding_mass_limit,
    smallest_force,
    smallest_stribeck_velocity,
    stiffness_limit,
    stiffness_rule,
)
from haptics.design.loops import (
    MAX_DELAY,
    Coupling,
    Handle,
    PositionServo,
    SampledArm,
    growth,
    sliding_matrix,
    stuck_matrix,
)
from haptics.design.measured import read_measured
from haptics.elements.models import CompliantAdmittance, InertialImpedance, MasslessImpedance, RigidAdmittance
from tests.haptics.design.plants import ExactArm, decays, held_path
from tests.haptics.doubles import make_spec
from tests.haptics.strategies import Grip, log_floats, make

T = 1e-3


# --- (63): a mass held by a sticking model C -------------------------------------------------------------------------


def matrix_63(coupling, mass):
    K, B, T = coupling.stiffness, coupling.damping, coupling.period
    return np.array(((1.0 - T * T * K / mass, T - T * T * B / mass), (-T * K / mass, 1.0 - T * B / mass)))


def test_stability_of_a_contact_agrees_with_the_eigenvalues():
    generator, count = np.random.default_rng(63), 20_000
    a, b = 5.0 * generator.uniform(0.0, 1.0, count) ** 3, generator.uniform(0.0, 2.5, count)
    masses, periods = 10.0 ** generator.uniform(-2, 2, count), 10.0 ** generator.uniform(-4, -2, count)
    contacts = [
        (Coupling(x * m / t**2, y * m / t, t), float(m)) for x, y, m, t in zip(a, b, masses, periods, strict=True)
    ]
    eigenvalues = np.linalg.eigvals([matrix_63(coupling, mass) for coupling, mass in contacts])
    size = np.abs(eigenvalues).max(axis=1)
    # Beside a boundary the eigenvalues have too few digits: two that meet have half of them.
    apart = np.abs(eigenvalues[:, 0] - eigenvalues[:, 1])
    clear = (np.abs(size - 1.0) > 1e-9) & (apart > 1e-6) & (np.abs(eigenvalues).min(axis=1) > 1e-9)
    assert clear.mean() > 0.99
    stable = np.array([contact_is_stable(*contact) for contact in contacts])
    assert np.count_nonzero((stable != (size < 1.0)) & clear) == 0
    assert 0.2 < stable.mean() < 0.8


# --- models B and C on a device ---------------------------------------------------------------------------------------


def handles():
    own = st.one_of(st.just(0.0), log_floats(0.01, 10.0))
    return st.builds(Handle, log_floats(0.05, 5.0), own, st.floats(0.0, 4e-3))


@settings(max_examples=10)
@given(handle=handles(), damping=log_floats(0.3, 100.0), below=st.floats(0.01, 0.999), above=st.floats(1.001, 100.0))
def test_stiffness_limit_separates_stable_and_unstable(handle, damping, below, above):
    limit = stiffness_limit(handle, damping)
    if limit == 0.0:
        assert damping > 0.999 * damping_limit(handle)
        assert growth(stuck_matrix(Coupling(above * stiffness_rule(handle, damping), damping), handle)) > 1.0
    else:
        assert growth(stuck_matrix(Coupling(below * limit, damping), handle)) < 1.0
        assert growth(stuck_matrix(Coupling(above * limit, damping), handle)) > 1.0


@settings(max_examples=7)
@given(mass=log_floats(0.05, 5.0), delay=st.floats(0.0, 4e-3), damping=log_floats(0.3, 30.0))
def test_stiffness_limit_approaches_the_rule_of_thumb(mass, delay, damping):
    light, heavy = Handle(mass, 0.0, delay), Handle(1e5, 0.0, delay)
    rule = stiffness_rule(light, damping)
    assert stiffness_limit(light, damping) <= rule
    assert stiffness_limit(heavy, damping) == pytest.approx(rule, rel=2e-3)


@settings(max_examples=5)
@given(handle=handles())
def test_no_stiffness_is_stable_beyond_the_damping_limit(handle):
    most = damping_limit(handle)
    assert stiffness_limit(handle, 0.99 * most) > 0.0
    assert stiffness_limit(handle, 1.01 * most) == 0.0


@pytest.mark.parametrize("mass", [0.02, 0.2, 2.0])
@pytest.mark.parametrize("handle", [Handle(0.2, 1.0, 0.5e-3), Handle(0.05, 0.2, 1.3e-3), Handle(1.0, 0.1, 2e-3)])
def test_limit_of_sticking_holds_for_a_sliding_model_b(handle, mass):
    element = InertialImpedance(Coulomb(0.0), mass, 0.9 * stiffness_limit(handle, 8.0), 8.0)
    stretch = []

    def force(velocity):
        pull = float(element.step((velocity, 0.0))[0])
        stretch.append(float(element.displacement[0]))
        return pull

    held_path(handle, force, T, 800)
    assert decays(np.array(stretch))


# --- models A and D on an arm -----------------------------------------------------------------------------------------


def servos():
    numbers = log_floats(5.0, 80.0), st.floats(0.5, 1.5)
    grip = {"grip_stiffness": log_floats(50.0, 2000.0), "grip_damping": log_floats(2.0, 50.0)}
    return st.builds(PositionServo, *numbers, **grip)


@settings(max_examples=7)
@given(servo=servos(), share=st.floats(0.1, 0.99), more=st.floats(1.01, 50.0))
def test_mass_limit_separates_stable_and_unstable(servo, share, more):
    limit = mass_limit(servo)
    assume(math.isfinite(limit))
    assert growth(sliding_matrix(more * limit, servo, T)) < 1.0
    assert growth(sliding_matrix(share * limit, servo, T)) > 1.0


def mass_rule(servo):
    """Return the bound of Routh's criterion for a servo without velocity reference and delay."""
    z, w, b = servo.damping_ratio, 2.0 * math.pi * servo.frequency, servo.grip_damping
    surplus = w * b - 2.0 * z * servo.grip_stiffness
    return b * b / (2.0 * z * surplus) if surplus > 0.0 else math.inf


@settings(max_examples=5)
@given(servo=servos())
def test_mass_limit_approaches_the_rule_of_thumb(servo):
    rule = mass_rule(servo)
    assume(rule < 50.0 or math.isinf(rule))
    surplus = 2.0 * math.pi * servo.frequency * servo.grip_damping - 2.0 * servo.damping_ratio * servo.grip_stiffness
    assume(abs(surplus) > 0.02 * servo.grip_stiffness)
    assert mass_limit(servo, 2e-5) == pytest.approx(rule, rel=0.02)


def test_known_reference_velocity_removes_the_lag():
    late, told = (PositionServo(30.0, 1.0, knows) for knows in (False, True))
    assert mass_limit(told) < 0.05 * mass_limit(late)


def test_late_arm_in_a_stiff_grip_has_no_stable_mass():
    servo = PositionServo(10.0, grip_stiffness=2000.0, grip_damping=10.0)
    assert mass_limit(servo) == mass_rule(servo) == math.inf


def test_soft_grip_needs_mass_only_for_a_heavy_handle():
    assert mass_limit(PositionServo(5.0, grip_stiffness=0.0)) == 0.0
    late = [mass_limit(PositionServo(30.0, 0.3, True, 5e-3, grip_stiffness=0.0, handle_mass=m)) for m in (0.3, 0.6)]
    assert late[0] > 0.3
    assert late[1] > 1.5 * late[0]


def prompt_arm(stiffness, damping):
    """Return an arm that reaches its reference within one tick, in a grip that differs along x and y."""
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
def test_limit_of_a_prompt_arm_is_that_of_a_late_force(stiffness, damping, other):
    """Its force comes a period late, as in (63): a + 2 b < 4."""
    arm = prompt_arm(stiffness, damping)
    limit = max(T * T * k + 2.0 * T * b for k, b in zip(stiffness, damping, strict=True)) / 4.0
    found = sliding_mass_limit([arm])
    assert limit <= found * (1.0 + 1e-3)
    assert found == pytest.approx(limit, rel=2e-3)
    assert growth(arm.sliding(1.01 * found)) < 1.0 < growth(arm.sliding(0.99 * found))
    pose = prompt_arm((other * stiffness[0], other * stiffness[1]), (other * damping[0], other * damping[1]))
    assert sliding_mass_limit([arm, pose]) == pytest.approx(max(1.0, other) * limit, rel=2e-3)


def test_arm_may_need_infinite_or_no_mass():
    unstable = SampledArm(np.diag((1.1, 0.5)), np.eye(2), -np.eye(2), T)
    assert sliding_mass_limit([unstable]) == math.inf
    assert sliding_mass_limit([prompt_arm((1.0, 1.0), (0.01, 0.01))]) == 0.0


# --- behind an encoder ------------------------------------------------------------------------------------------------


def test_encoder_bounds_of_the_paper():
    coupling, handle = Coupling(6000.0, 10.0), Handle(0.2, resolution=100e-6)
    assert count_jump(coupling, handle) == pytest.approx(1.6)
    assert hold_buzz(coupling, handle) == pytest.approx(1.0)
    assert smallest_force(coupling, handle) == pytest.approx(3.2)


@settings(max_examples=10)
@given(stiffness=log_floats(100.0, 5e4), damping=log_floats(0.5, 100.0), resolution=log_floats(1e-6, 1e-3))
def test_encoder_count_slips_an_element_where_predicted(stiffness, damping, resolution):
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
def test_flickering_encoder_makes_a_damper_buzz(damping, resolution):
    element = MasslessImpedance(Coulomb(1e9), 0.0, damping, T)
    forces = [float(element.step((step * resolution / T, 0.0))[0]) for step in (1, -1, 1, -1, 0)]
    buzz = hold_buzz(Coupling(0.0, damping), Handle(1.0, resolution=resolution))
    np.testing.assert_allclose(np.abs(forces), [buzz] * 4 + [0.0], rtol=1e-12)


# --- laws that fall ---------------------------------------------------------------------------------------------------


@settings(max_examples=10)
@given(
    kind=st.sampled_from([Stribeck, GaussianStribeck]),
    fall=log_floats(0.01, 10.0),
    viscosity=st.one_of(st.just(0.0), log_floats(0.01, 20.0)),
    mobility=log_floats(1e-4, 1.0),
)
def test_smallest_stribeck_velocity_is_at_the_mobility_limit(kind, fall, viscosity, mobility):
    speed = smallest_stribeck_velocity(kind(1.0, 1.0 + fall, 1e-4, viscosity), mobility)
    assert kind(1.0, 1.0 + fall, speed, viscosity).mobility_limit == pytest.approx(mobility)


def test_law_that_never_falls_needs_no_stribeck_velocity_and_a_law_without_one_is_refused():
    element = CompliantAdmittance(Stribeck(4.0, 5.0, 0.5, viscosity=10.0), 2.0, 2e4, 400.0)
    assert smallest_stribeck_velocity(element.law, element.mobility) == 0.0
    with pytest.raises(ConfigurationError, match="must be one with a stribeck_velocity"):
        smallest_stribeck_velocity(CoulombViscous(4.0, 1.0), 0.01)


# --- matrices of the sampled loops


def powers(matrix, moving, ticks):
    """Return the first entry of the state in each tick, (ticks,), whose entries `moving` begin at 0.01."""
    state, path = np.zeros(len(matrix)), np.zeros(ticks)
    state[list(moving)] = 0.01
    for tick in range(ticks):
        path[tick] = state[0]
        state = matrix @ state
    return path


ALWAYS_STICKS, ALWAYS_SLIDES = Coulomb(1e12), Coulomb(0.0)
DELAYS = st.one_of(st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.floats(0.0, 4.0))


@settings(max_examples=15)
@given(
    model=st.sampled_from("BC"),
    mass=log_floats(0.02, 5.0),
    own=st.one_of(st.just(0.0), log_floats(0.01, 20.0)),
    delay=DELAYS,
    stiffness=log_floats(10.0, 5e4),
    damping=log_floats(0.1, 100.0),
    period=log_floats(2e-4, 5e-3),
)
def test_held_handle_moves_as_powers_of_its_matrix(model, mass, own, delay, stiffness, damping, period):
    handle, coupling = Handle(mass, own, delay * period), Coupling(stiffness, damping, period)
    element = make(model, ALWAYS_STICKS, Grip(0.3, stiffness, damping, period))
    matrix = stuck_matrix(coupling, handle)
    ticks = min(40, int(18.0 / max(math.log(growth(matrix)), 0.1)))
    path = held_path(handle, lambda velocity: float(element.step((velocity, 0.0))[0]), period, ticks)
    predicted = powers(matrix, (1,), ticks)
    assert element.sticking
    np.testing.assert_allclose(path, predicted, rtol=1e-6, atol=1e-9 * np.abs(predicted).max())


@settings(max_examples=7)
@given(
    mass=log_floats(0.02, 10.0),
    frequency=log_floats(3.0, 100.0),
    ratio=st.floats(0.3, 2.0),
    knows=st.booleans(),
    delay=DELAYS,
    grip=st.tuples(log_floats(10.0, 3000.0), log_floats(0.5, 50.0), st.floats(0.0, 0.5)),
    period=log_floats(5e-4, 4e-3),
)
def test_sliding_mass_on_an_arm_moves_as_powers_of_its_matrix(mass, frequency, ratio, knows, delay, grip, period):
    servo = PositionServo(frequency, ratio, knows, delay * period, *grip)
    element = RigidAdmittance(ALWAYS_SLIDES, mass, period)
    arm = ExactArm(servo, velocity=0.01)
    path, predicted = [], powers(sliding_matrix(mass, servo, period), (1, -1), 30)
    for _ in range(30):
        path.append(arm.state[0])
        arm.command(float(element.step((arm.shown_force(period), 0.0))[0]))
        arm.advance(period)
    np.testing.assert_allclose(path, predicted, rtol=1e-6, atol=1e-9 * np.abs(predicted).max())


def test_very_long_delay_is_truncated():
    assert len(stuck_matrix(Coupling(100.0, 1.0), Handle(1.0, delay=10.0))) == 4 + MAX_DELAY
    assert len(sliding_matrix(1.0, PositionServo(30.0, delay=10.0), 1e-3)) == 6 + MAX_DELAY


def test_handle_comes_from_the_data_sheet():
    spec = make_spec(mass=0.3, damping=1.5, delay=2e-3, position_resolution=1e-5, velocity_lag=1e-3)
    assert Handle.of(spec) == Handle(0.3, 1.5, 2e-3, 1e-5, 1e-3)
    assert Handle.of(make_spec(mass=0.3)) == Handle(0.3)
    assert Handle.of(make_spec(damping=1.0)) is None


def test_servo_comes_from_the_data_sheet():
    spec = make_spec(Causality.ADMITTANCE, servo_frequency=20.0, grip_stiffness=0.0)
    servo = PositionServo.of(spec)
    assert servo is not None
    assert (servo.frequency, servo.damping_ratio, servo.knows_velocity, servo.grip_stiffness) == (20.0, 1.0, False, 0.0)
    assert servo.grip_damping > 0.0
    assert PositionServo.of(make_spec(Causality.ADMITTANCE)) is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Handle(0.0), r"handle\.mass = 0\.0: must be .*greater than 0 kg"),
        (lambda: Handle(1.0, delay=-1e-3), r"handle\.delay = -0\.001"),
        (lambda: Coupling(1.0, math.nan), r"coupling\.damping = nan"),
        (lambda: PositionServo(0.0), r"servo\.frequency = 0\.0"),
        (lambda: contact_is_stable(Coupling(100.0, 1.0), math.inf), r"mass = inf: must be a finite number"),
    ],
)
def test_invalid_number_is_named(make, message):
    with pytest.raises(ConfigurationError, match=message):
        make()


def test_design_needs_no_numba():
    code = (
        "import sys, haptics.design as d\n"
        "d.suggest(d.Handle(0.2, 1.0, 1e-3, 2e-5), force=4.0)\n"
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


# --- measured device files --------------------------------------------------------------------------------------------

BENCH = """
[provenance]
device = "bench one"
[axis.x]
mass_kg = 0.2
damping_ns_per_m = 1.0
delay_s = 0.0005
resolution_m = 1e-5
[axis.x.boundary]
rate_hz = 1000.0
damping_ns_per_m = 10.0
velocity_lag_s = 0.0
stiffness_n_per_m = 8000.0
[axis.y]
mass_kg = 0.3
damping_ns_per_m = 2.0
delay_s = 0.001
resolution_m = 2e-5
"""


@pytest.fixture
def path(tmp_path):
    (tmp_path / "bench.toml").write_text(BENCH)
    return tmp_path / "bench.toml"


def test_measured_boundary_is_the_limit(path):
    found = read_measured(path, "bench")
    found.require_held(7999.0, 10.0, 1e-3)
    with pytest.raises(ConfigurationError, match=r"begins to swing at 8000 N/m along x"):
        found.require_held(8001.0, 10.0, 1e-3)


def test_measured_boundary_scales_with_the_exact_limit(path):
    handle = Handle(0.2, 1.0, 0.5e-3, 1e-5)
    factor = 8000.0 / stiffness_limit(handle, 10.0, 1e-3)
    assert factor == pytest.approx(0.76, abs=0.02)  # docs/choosing_parameters.md has 10.5 kN/m for this handle
    x, y = read_measured(path, "bench").axes
    for damping, period in ((4.0, 1e-3), (10.0, 5e-4)):
        edge = x.limit(damping, period) / factor
        assert growth(stuck_matrix(Coupling(0.999 * edge, damping, period), handle)) < 1.0
        assert growth(stuck_matrix(Coupling(1.001 * edge, damping, period), handle)) > 1.0
    assert y.limit(4.0, 1e-3) == float("inf")  # where nothing was measured nothing is refused


def test_description_uses_the_worst_axis(path):
    spec = read_measured(path, "bench").describe(make_spec())
    assert (spec.mass, spec.damping, spec.delay, spec.position_resolution) == (0.2, 1.0, 0.001, 2e-5)


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ('"bench one"', '"stove one"', "is of the device 'stove one'; must be of 'bench'"),
        ("mass_kg = 0.2", "mass_kg = -1", r"axis\.x\.mass_kg = -1"),
        ("delay_s = 0.001", "", r"axis\.y\.delay_s = None"),
        ("rate_hz = 1000.0", "rate_hz = 0", "no contact of these numbers is ever stable"),
        (BENCH[BENCH.index("[axis.x]") :], "", r"no table \[axis\.x\]"),
    ],
)
def test_invalid_file_is_refused_with_its_name(path, before, after, complaint):
    path.write_text(BENCH.replace(before, after))
    with pytest.raises(ConfigurationError, match=f"bench.toml: .*{complaint}"):
        read_measured(path, "bench")
    with pytest.raises(ConfigurationError, match="haptics calibrate device"):
        read_measured(path.with_name("none.toml"), "bench")
