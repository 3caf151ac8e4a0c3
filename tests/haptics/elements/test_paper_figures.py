"""The figures of Kikuuwe et al. 2006 and the numbers they must give.

Step numbers count as in the paper: v_0 is the initial velocity, v_k the velocity after the k-th step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from haptics import Coulomb, MasslessImpedance, RigidAdmittance, simulate
from tests.haptics.strategies import Array, Grip, make, norms

STIFFNESSES = (8.3e4, 2.5e5, 7.5e5)


def along_x(values: NDArray[Any]) -> Array:
    """Planar input (n, 2) with the given first component."""
    return np.column_stack([values, np.zeros(len(values))]).astype(float)


def critical(stiffness: float) -> Grip:
    """M = 1 kg, B = 2 sqrt(K M): the captions of Figs. 13 and 14 (which print K/M; the same number at 1 kg)."""
    return Grip(mass=1.0, stiffness=stiffness, damping=2.0 * np.sqrt(stiffness))


# ---- Figs. 6 and 7: model A


def sliding_to_rest(v0: float, push: float, period: float, duration: float = 0.4) -> Array:
    """Return v_1, v_2, ... of the 1 kg body on F = 8 N under a constant push [N]."""
    element = RigidAdmittance(Coulomb(8.0), 1.0, period)
    element.reset(velocity=(v0, 0.0))
    run = simulate(element, along_x(np.full(round(duration / period), push)))
    assert not np.any(run.output[:, 1])
    return np.asarray(run.output[:, 0])


@pytest.mark.parametrize(
    ("v0", "period", "step", "stop"),
    [(0.7, 1e-3, 78, 0.02687), (0.7, 4e-3, 20, 0.02584), (1.3, 1e-3, 145, None), (1.3, 4e-3, 37, None)],
)
def test_fig_6_reaches_zero_velocity_and_stays(v0: float, period: float, step: int, stop: float | None) -> None:
    """The caption's 0.7 m/s and the text's 1.3 m/s; no chattering, whatever the time step."""
    v = sliding_to_rest(v0, -1.0, period)
    assert np.all(v[: step - 1] > 0.0)
    assert np.all(v[step - 1 :] == 0.0)
    assert step == np.ceil(round(v0 / 9.0 / period, 9))
    if stop is not None:
        assert v.sum() * period == pytest.approx(stop, abs=5.1e-6)


def test_fig_6_holds_with_the_force_that_pushes() -> None:
    element = RigidAdmittance(Coulomb(8.0), 1.0)
    element.reset(velocity=(0.7, 0.0))
    run = simulate(element, along_x(np.full(200, -1.0)))
    assert run.friction_force[:77, 0] == pytest.approx(8.0, rel=1e-14)
    np.testing.assert_array_equal(run.friction_force[78:, 0], -1.0)
    np.testing.assert_array_equal(run.sticking, np.arange(1, 201) >= 78)


def test_fig_7_passes_through_exact_zero_at_the_small_step() -> None:
    v = sliding_to_rest(1.3, -10.0, 1e-3, 0.2)
    assert v[71] == pytest.approx(0.004, abs=1e-12)
    assert v[72] == 0.0
    assert v[73:] == pytest.approx(-0.002 * np.arange(1, 128), abs=1e-12)


def test_fig_7_jumps_over_zero_at_the_large_step() -> None:
    v = sliding_to_rest(1.3, -10.0, 4e-3, 0.2)
    assert v[17:19] == pytest.approx([0.004, -0.004], abs=1e-12)
    assert np.all(v != 0.0)
    assert np.diff(v[18:]) == pytest.approx(-0.008, abs=1e-12)


# ---- Fig. 13: model B and its alternative of Fig. 12(a)


@pytest.mark.parametrize(
    ("stiffness", "breakaway_ms", "peak"), [(8.3e4, 42.6, 10.488), (2.5e5, 24.6, 10.456), (7.5e5, 14.2, 10.403)]
)
def test_fig_13_model_b(stiffness: float, breakaway_ms: float, peak: float) -> None:
    k = np.arange(1, 401)
    run = simulate(make("B", Coulomb(10.0), critical(stiffness)), along_x(0.1 * k * 1e-3))
    first = k[~run.sticking][0]
    assert abs(first - breakaway_ms) < 1.0
    assert not np.any(run.velocity[: first - 1])
    assert run.output[:, 0].max() == pytest.approx(peak, abs=5.1e-4)
    # In the end the mass accelerates with the input: F + M 0.1 m/s^2.
    assert run.output[-100:, 0] == pytest.approx(10.1, abs=1e-9)
    assert np.ptp(run.output[-100:, 0]) <= 5e-13


def alternative_of_b(stiffness: float, count: int) -> Array:
    """Fig. 12(a): a spring-damper, one step late, in front of a model-A element; the output force h."""
    grip, element = critical(stiffness), RigidAdmittance(Coulomb(10.0), 1.0)
    stretch, velocity, forces = np.zeros(2), np.zeros(2), np.zeros(count)
    for k in range(count):
        relative = np.array([0.1 * (k + 1) * 1e-3, 0.0]) - velocity
        stretch = stretch + 1e-3 * relative
        force = stiffness * stretch + grip.damping * relative
        velocity = element.step(force)
        forces[k] = force[0]
    return forces


@pytest.mark.parametrize("stiffness", STIFFNESSES[:2])
def test_fig_13_alternative_settles_while_soft(stiffness: float) -> None:
    assert alternative_of_b(stiffness, 400)[-100:] == pytest.approx(10.1, abs=1e-9)


def test_fig_13_alternative_breaks_down_when_stiff() -> None:
    """168 N peak to peak after 0.4 s; the oscillation grows with the speed of the input."""
    forces = alternative_of_b(7.5e5, 400)
    assert np.ptp(forces[-100:]) == pytest.approx(168.0, rel=0.01)
    assert np.ptp(forces[-100:]) > 1.9 * np.ptp(forces[100:200])


# ---- Fig. 14: model D and its alternative of Fig. 12(b)


@pytest.mark.parametrize(("stiffness", "undershoot"), [(8.3e4, -7.9e-3), (2.5e5, -4.2e-3), (7.5e5, -2.1e-3)])
def test_fig_14_model_d(stiffness: float, undershoot: float) -> None:
    element = make("D", Coulomb(7.0), critical(stiffness))
    element.reset(velocity=(1.0, 0.0))
    run = simulate(element, np.zeros((400, 2)))
    u = run.output[:, 0]
    assert np.flatnonzero(np.abs(u) < 1e-3)[0] + 1 == 143
    assert u.min() == pytest.approx(undershoot, abs=0.06e-3)
    assert np.abs(u[-50:]).max() < 1e-9
    assert np.all(run.sticking[200:])
    assert not np.any(run.velocity[run.sticking])


def alternative_of_d(stiffness: float, damping: float, force: float, count: int, mass: float = 1.0) -> Array:
    """Fig. 12(b) and (60): a mass that feels the friction of a model-C element one step late; u_1, u_2, ..."""
    element = MasslessImpedance(Coulomb(force), stiffness, damping)
    velocity, friction, speeds = np.array([1.0, 0.0]), np.zeros(2), np.zeros(count)
    for k in range(count):
        velocity = velocity - 1e-3 / mass * friction
        friction = element.step(velocity)
        speeds[k] = velocity[0]
    return speeds


def test_fig_14_alternative_vibrates_only_when_stiff() -> None:
    tails = {k: alternative_of_d(k, critical(k).damping, 7.0, 400)[-100:] for k in STIFFNESSES}
    assert np.ptp(tails[8.3e4]) < 1e-9
    assert np.ptp(tails[2.5e5]) < 1e-9
    assert np.ptp(tails[7.5e5]) == pytest.approx(0.007, abs=5e-4)
    assert np.count_nonzero(np.diff(np.sign(tails[7.5e5]))) == 99


# ---- equation (63): the same loop while it sticks


def sticking_loop(a: float, b: float, count: int = 400) -> Array:
    """Return u of Fig. 12(b) with ``a = T^2 K / M``, ``b = T B / M`` and a friction force that never lets go."""
    return alternative_of_d(a * 1e6, b * 1e3, 1e300, count)


def test_equation_63_is_stable_inside_a_triangle() -> None:
    """Stable if and only if ``a + 2 b < 4``, seen in what the loop does."""
    generator, checked = np.random.default_rng(7), 0
    for a, b in zip(generator.uniform(0.05, 5.0, 60), generator.uniform(0.05, 2.5, 60), strict=True):
        if abs(a + 2 * b - 4.0) < 0.1:
            continue
        u = np.abs(sticking_loop(a, b))
        early, late = u[20:60].max(), u[360:].max()
        assert (late < early) == (a + 2 * b < 4.0), (a, b)
        checked += 1
    assert checked > 45


def test_equation_63_marginal_case_has_eigenvalues_zero_and_three_quarters() -> None:
    u = sticking_loop(0.25, 1.0, 40)
    assert u[2:] / u[1:-1] == pytest.approx(0.75, rel=1e-9)


def eigenvalues_seen(a: float, b: float) -> NDArray[np.complex128]:
    """Identify the two eigenvalues of the sticking loop from its first four velocities."""
    u = sticking_loop(a, b, 4)
    trace, determinant = np.linalg.solve([[u[1], -u[0]], [u[2], -u[1]]], [u[2], u[3]])
    return np.asarray(np.roots([1.0, -trace, determinant]).astype(complex))


@pytest.mark.parametrize(("a", "oscillates"), [(0.15, False), (0.24, False), (0.26, True), (0.4, True), (0.6, True)])
def test_equation_63_critical_damping_oscillates_beyond_a_quarter(a: float, oscillates: bool) -> None:
    """``T^2 < M / (4 K)``: beyond it, one eigenvalue is negative."""
    seen = eigenvalues_seen(a, 2.0 * np.sqrt(a))
    assert np.abs(seen.imag).max() < 1e-9
    assert (seen.real.min() < 0.0) == oscillates


def test_equation_63_eigenvalues_between_zero_and_one() -> None:
    """Nonoscillatory if and only if ``(a + b)^2 >= 4 a``, ``b < 1`` and ``a + b < 2`` (else both are negative)."""
    generator, found = np.random.default_rng(11), 0
    assert eigenvalues_seen(3.0, 0.6).real.max() < 0.0  # (a + b)^2 >= 4 a and b < 1 alone do not suffice
    for a, b in zip(10.0 ** generator.uniform(-2.5, 0.5, 300), generator.uniform(0.05, 1.2, 300), strict=True):
        margins = ((a + b) ** 2 - 4 * a, 1.0 - b, 2.0 - a - b)
        if min(abs(margin) for margin in margins) < 1e-3:
            continue
        seen = eigenvalues_seen(a, b)
        between = np.abs(seen.imag).max() < 1e-6 and seen.real.min() > 0.0 and seen.real.max() < 1.0
        assert between == (min(margins) > 0.0), (a, b)
        found += between
    assert found > 20


def test_equation_63_stiffness_of_the_figure_gives_an_eigenvalue_beyond_minus_one() -> None:
    """The figure's K = 7.5e5 N/m: -1.13, unstable."""
    assert eigenvalues_seen(0.75, 2.0 * np.sqrt(0.75)).real.min() == pytest.approx(-1.13, abs=5e-3)


@pytest.mark.parametrize(("a", "stable"), [(0.68, True), (0.69, False)])
def test_equation_63_critical_damping_is_stable_below_its_limit(a: float, stable: bool) -> None:
    """The limit is ``a = (2 sqrt 2 - 2)^2 = .6863``."""
    u = np.abs(sticking_loop(a, 2.0 * np.sqrt(a), 3000))
    assert (u[-50:].max() < u[100:150].max()) == stable


# ---- Figs. 16 and 17: model A, F = 6 N, M = 2 kg


def test_fig_16_force_slants_to_the_inside_of_the_curve() -> None:
    """Under a turning force the body runs in a circle; the slant is atan2(M a_n, F) with a_n its own acceleration."""
    push, turn, period = 8.0, 2 * np.pi, 1e-3
    angle = turn * period * np.arange(1, 10001)
    inputs = push * np.column_stack([np.cos(angle), np.sin(angle)])
    run = simulate(RigidAdmittance(Coulomb(6.0), 2.0, period), inputs)
    h, v = inputs[-1], run.output[-1]
    normal = (run.output[-1] - run.output[-2]) / period
    slant = np.arctan2(v[0] * h[1] - v[1] * h[0], v @ h)
    assert slant > 0.0  # to the left of a motion that turns left
    assert norms(normal)[0] == pytest.approx(turn * norms(v)[0], rel=1e-4)
    assert np.degrees(slant) == pytest.approx(np.degrees(np.arctan2(2.0 * norms(normal)[0], 6.0)), abs=0.2)
    assert norms(run.friction_force[-1000:]) == pytest.approx(6.0, rel=1e-12)
    # Steady state of (12): |M s v + F| = push, where s is what one backward difference makes of the rotation.
    s = 2.0 * (1.0 - np.exp(-1j * turn * period)) / period
    speed = np.roots([abs(s) ** 2, 12.0 * s.real, 36.0 - push**2]).max()
    assert norms(v)[0] == pytest.approx(speed, rel=1e-6)
    assert speed == pytest.approx(np.sqrt(push**2 - 36.0) / (2.0 * turn), rel=5e-3)


def test_fig_16_straight_motion_costs_six_newtons() -> None:
    direction = np.array([np.cos(0.6), np.sin(0.6)])
    element = RigidAdmittance(Coulomb(6.0), 2.0)
    element.reset(velocity=(0.2 * direction[0], 0.2 * direction[1]))
    run = simulate(element, np.tile(6.0 * direction, (2000, 1)))
    assert norms(run.output - 0.2 * direction).max() <= 1e-12


# ---- Figs. 19 and 20: model C, F = 4 N, K = 6000 N/m, B = 10 N s/m


def circling(radius: float, turn: float, period: float, revolutions: float) -> Array:
    """Velocity input (n, 2) of a hand that runs on a circle [m] at `turn` [rad/s]."""
    angle = turn * period * np.arange(1, round(revolutions * 2 * np.pi / turn / period) + 1)
    return radius * turn * np.column_stack([-np.sin(angle), np.cos(angle)])


@pytest.mark.parametrize(
    ("radius", "turn", "degrees"), [(0.04, 1.0, 0.955), (0.04, 3.0, 0.955), (0.01, 1.0, 3.82), (0.01, 3.0, 3.82)]
)
def test_fig_19_force_lags_on_a_circle(radius: float, turn: float, degrees: float) -> None:
    """The lag law ``asin((F/K) / (R (1 + (w B/K)^2)))`` at T = 0.1 ms."""
    inputs = circling(radius, turn, 1e-4, 1.5)
    run = simulate(MasslessImpedance(Coulomb(4.0), 6000.0, 10.0, 1e-4), inputs)
    u, f = inputs[-1], run.friction_force[-1]
    lag = np.degrees(np.arctan2(f[0] * u[1] - f[1] * u[0], f @ u))
    law = np.degrees(np.arcsin(4.0 / 6000.0 / (radius * (1.0 + (turn * 10.0 / 6000.0) ** 2))))
    assert lag == pytest.approx(law, abs=1e-3)
    assert lag == pytest.approx(degrees, abs=0.005)
    assert norms(f)[0] == pytest.approx(4.0, rel=1e-12)


@pytest.mark.parametrize(("radius", "slips"), [(0.6e-3, False), (0.66e-3, False), (0.68e-3, True), (0.8e-3, True)])
def test_fig_19_circles_smaller_than_the_spring_never_slip(radius: float, slips: bool) -> None:
    """R < F/K = .667 mm: around the point where it sticks, a hand may circle for ever; a little wider it may not."""
    outward = np.tile([radius / 1.0, 0.0], (1000, 1))
    inputs = np.vstack([outward, circling(radius, 2.0, 1e-3, 10.0)])
    run = simulate(MasslessImpedance(Coulomb(4.0), 6000.0, 10.0), inputs)
    assert bool(np.any(~run.sticking)) == slips
    if not slips:
        np.testing.assert_allclose(run.displacement, 1e-3 * np.cumsum(inputs, axis=0), rtol=0.0, atol=1e-15)


def test_fig_20_force_is_steady_under_a_coarse_encoder() -> None:
    """A 20 um encoder makes the velocity jump from tick to tick; the sliding force does not care."""
    position = np.round(0.1 * 1e-3 * np.arange(2001) * np.sqrt(0.5) / 20e-6) * 20e-6
    inputs = np.column_stack([np.diff(position), -np.diff(position)]) / 1e-3
    run = simulate(MasslessImpedance(Coulomb(4.0), 6000.0, 10.0), inputs)
    sliding = norms(run.output)[50:]
    assert np.std(norms(inputs)) > 1e-3
    assert not np.any(run.sticking[50:])
    assert sliding == pytest.approx(4.0, abs=1e-12)
    assert np.std(sliding) < 1e-14


def test_fig_20_spring_stays_wound_after_a_stop_and_recoils_when_released() -> None:
    """A 0.15 kg device let go after a slide springs back by F/K = .667 mm; it was holding F^2/2K = 1.33 mJ."""
    element = MasslessImpedance(Coulomb(4.0), 6000.0, 10.0)
    direction = np.array([0.6, 0.8])
    for speed in [0.05] * 300 + [0.0] * 200:
        force = element.step(speed * direction)
    assert force == pytest.approx(4.0 * direction, rel=1e-12)
    wound = element.displacement
    assert 0.5 * 6000.0 * (wound @ wound) == pytest.approx(4.0**2 / 2 / 6000.0, rel=1e-9)
    velocity, position = np.zeros(2), np.zeros(2)
    for _ in range(3000):
        velocity = velocity - 1e-3 / 0.15 * force
        force = element.step(velocity)
        position = position + 1e-3 * velocity
        assert element.sticking
    assert position == pytest.approx(-4.0 / 6000.0 * direction, abs=1e-9)
