"""The figures of Kikuuwe et al. 2006 and the numbers they must give.

Step numbers count as in the paper: v_0 is the initial velocity, v_k the velocity after the k-th step.
"""

import numpy as np
import pytest

from haptics import Coulomb, MasslessImpedance, RigidAdmittance, simulate
from tests.haptics.strategies import Grip, make, norms


def along_x(values):
    """Planar input (n, 2) with the given first component."""
    return np.column_stack([values, np.zeros(len(values))]).astype(float)


def critical(stiffness):
    """M = 1 kg, B = 2 sqrt(K M): the captions of Figs. 13 and 14 (which print K/M; the same number at 1 kg)."""
    return Grip(mass=1.0, stiffness=stiffness, damping=2.0 * np.sqrt(stiffness))


# ---- Figs. 6 and 7: model A


def sliding_to_rest(v0, push, period, duration=0.4):
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
def test_fig_6_reaches_zero_velocity_and_stays(v0, period, step, stop):
    """The caption's 0.7 m/s and the text's 1.3 m/s, without chattering at both time steps."""
    v = sliding_to_rest(v0, -1.0, period)
    assert np.all(v[: step - 1] > 0.0)
    assert np.all(v[step - 1 :] == 0.0)
    assert step == np.ceil(round(v0 / 9.0 / period, 9))
    if stop is not None:
        assert v.sum() * period == pytest.approx(stop, abs=5.1e-6)


def test_fig_7_passes_through_exact_zero_at_the_small_step():
    v = sliding_to_rest(1.3, -10.0, 1e-3, 0.2)
    assert v[71] == pytest.approx(0.004, abs=1e-12)
    assert v[72] == 0.0
    assert v[73:] == pytest.approx(-0.002 * np.arange(1, 128), abs=1e-12)


def test_fig_7_jumps_over_zero_at_the_large_step():
    v = sliding_to_rest(1.3, -10.0, 4e-3, 0.2)
    assert v[17:19] == pytest.approx([0.004, -0.004], abs=1e-12)
    assert np.all(v != 0.0)
    assert np.diff(v[18:]) == pytest.approx(-0.008, abs=1e-12)


# ---- Fig. 13: model B (the alternatives of Fig. 12 and equation (63): test_network.py)


@pytest.mark.parametrize(
    ("stiffness", "breakaway_ms", "peak"), [(8.3e4, 42.6, 10.488), (2.5e5, 24.6, 10.456), (7.5e5, 14.2, 10.403)]
)
def test_fig_13_model_b(stiffness, breakaway_ms, peak):
    k = np.arange(1, 401)
    run = simulate(make("B", Coulomb(10.0), critical(stiffness)), along_x(0.1 * k * 1e-3))
    first = k[~run.sticking][0]
    assert abs(first - breakaway_ms) < 1.0
    assert not np.any(run.velocity[: first - 1])
    assert run.output[:, 0].max() == pytest.approx(peak, abs=5.1e-4)
    # In the end the mass accelerates with the input: F + M 0.1 m/s^2.
    assert run.output[-100:, 0] == pytest.approx(10.1, abs=1e-9)
    assert np.ptp(run.output[-100:, 0]) <= 5e-13


# ---- Fig. 14: model D


@pytest.mark.parametrize(("stiffness", "undershoot"), [(8.3e4, -7.9e-3), (2.5e5, -4.2e-3), (7.5e5, -2.1e-3)])
def test_fig_14_model_d(stiffness, undershoot):
    element = make("D", Coulomb(7.0), critical(stiffness))
    element.reset(velocity=(1.0, 0.0))
    run = simulate(element, np.zeros((400, 2)))
    u = run.output[:, 0]
    assert np.flatnonzero(np.abs(u) < 1e-3)[0] + 1 == 143
    assert u.min() == pytest.approx(undershoot, abs=0.06e-3)
    assert np.abs(u[-50:]).max() < 1e-9
    assert np.all(run.sticking[200:])
    assert not np.any(run.velocity[run.sticking])


# ---- Figs. 16 and 17: model A, F = 6 N, M = 2 kg


def test_fig_16_force_slants_to_the_inside_of_the_curve():
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
    # Steady state of (12): |M s v + F| = push, where s is the backward difference of the rotation.
    s = 2.0 * (1.0 - np.exp(-1j * turn * period)) / period
    speed = np.roots([abs(s) ** 2, 12.0 * s.real, 36.0 - push**2]).max()
    assert norms(v)[0] == pytest.approx(speed, rel=1e-6)
    assert speed == pytest.approx(np.sqrt(push**2 - 36.0) / (2.0 * turn), rel=5e-3)


# ---- Figs. 19 and 20: model C, F = 4 N, K = 6000 N/m, B = 10 N s/m


def circling(radius, turn, period, revolutions):
    """Velocity input (n, 2) of a hand that runs on a circle [m] at `turn` [rad/s]."""
    angle = turn * period * np.arange(1, round(revolutions * 2 * np.pi / turn / period) + 1)
    return radius * turn * np.column_stack([-np.sin(angle), np.cos(angle)])


@pytest.mark.parametrize(
    ("radius", "turn", "degrees"), [(0.04, 1.0, 0.955), (0.04, 3.0, 0.955), (0.01, 1.0, 3.82), (0.01, 3.0, 3.82)]
)
def test_fig_19_force_lags_on_a_circle(radius, turn, degrees):
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
def test_fig_19_circles_smaller_than_the_spring_never_slip(radius, slips):
    """R < F/K = .667 mm: a smaller circle around the contact point only stretches the spring."""
    outward = np.tile([radius / 1.0, 0.0], (1000, 1))
    inputs = np.vstack([outward, circling(radius, 2.0, 1e-3, 10.0)])
    run = simulate(MasslessImpedance(Coulomb(4.0), 6000.0, 10.0), inputs)
    assert bool(np.any(~run.sticking)) == slips
    if not slips:
        np.testing.assert_allclose(run.displacement, 1e-3 * np.cumsum(inputs, axis=0), rtol=0.0, atol=1e-15)


def test_fig_20_force_is_steady_under_a_coarse_encoder():
    """A 20 um encoder makes the velocity jump from tick to tick; the sliding force stays constant."""
    position = np.round(0.1 * 1e-3 * np.arange(2001) * np.sqrt(0.5) / 20e-6) * 20e-6
    inputs = np.column_stack([np.diff(position), -np.diff(position)]) / 1e-3
    run = simulate(MasslessImpedance(Coulomb(4.0), 6000.0, 10.0), inputs)
    sliding = norms(run.output)[50:]
    assert np.std(norms(inputs)) > 1e-3
    assert not np.any(run.sticking[50:])
    assert sliding == pytest.approx(4.0, abs=1e-12)
    assert np.std(sliding) < 1e-14


def test_fig_20_spring_stays_wound_after_a_stop_and_recoils_when_released():
    """A 0.15 kg device released after a slide springs back by F/K = .667 mm; the spring held F^2/2K = 1.33 mJ."""
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
