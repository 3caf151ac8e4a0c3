"""Derivatives of real order, and hybrid control of force and position with them."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.arm.hybrid import FractionalLaw, Hybrid, ProportionalDerivative, ProportionalIntegral, simulate_hybrid
from devices.arm.mechanics.drive import Drive, Motor
from devices.arm.mechanics.dynamics import TwoLinks
from devices.arm.mechanics.plant import Surface
from devices.arm.servo.fractional import weighted_past, weights
from haptics import Coulomb, Stribeck
from haptics.errors import AmbiguousLawWarning, ConfigurationError


@pytest.mark.parametrize("order", [Fraction(1, 2), Fraction(-1, 5), Fraction(1, 5), Fraction(7, 3), Fraction(-2)])
def test_weights_match_rational_arithmetic(order):
    exact = [Fraction(1)]
    for k in range(1, 301):
        exact.append(exact[-1] * (k - 1 - order) / k)
    assert weights(float(order), 300) == pytest.approx([float(c) for c in exact], rel=1e-13)


@given(st.integers(0, 9), st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=40))
def test_ring_buffer_equals_a_truncated_convolution(terms, samples):
    own = weights(0.7, terms)
    past = np.zeros_like(own)
    found = [weighted_past(own, past, k % len(own), sample) for k, sample in enumerate(samples)]
    assert found == pytest.approx(np.convolve(samples, own)[: len(samples)], abs=1e-12)


# --- hybrid control ---------------------------------------------------------------------------------------------------


START = (float(np.radians(75.0)), float(np.radians(75.0)))
LINKS, RIGID = TwoLinks(), Drive()
SURFACE = Surface(mass=0.03, damping=1.0, stiffness=400.0, angle=np.pi / 2)
POSITION = FractionalLaw.sampled(1e5, 0.5, 17, 1e-3)
FRACTIONAL = Hybrid(POSITION, FractionalLaw.sampled(1e3, -0.2, 17, 1e-3))
CLASSIC = Hybrid(ProportionalDerivative(1e4, 2.5e4), ProportionalIntegral(25.0, 100.0))


def press(control, **changes):
    """Ask the ideal arm of the paper for 1 N during half a second."""
    arguments = {"links": LINKS, "drives": (RIGID, RIGID), "surface": SURFACE, "start": START, "force": 1.0}
    arguments |= {"duration": 0.5, "substeps": 20} | changes
    return simulate_hybrid(control=control, **arguments)


# --- laws -----------------------------------------------------------------------------------------------------------


def test_gains_depend_on_the_period():
    """K_P = K_P0 T^-alpha: gains 1e5 and 1e3 at 1 kHz are 3162 s^.5 and 3981 s^-.2 at any rate."""
    force = FRACTIONAL.force
    assert (POSITION.gain, force.gain) == (pytest.approx(3162.3, abs=0.05), pytest.approx(3981.1, abs=0.05))
    assert POSITION.weights(1e-3)[0] == pytest.approx(1e5)
    assert POSITION.weights(1e-4)[0] == pytest.approx(1e5 * np.sqrt(10.0))


def test_fractional_law_of_order_one_is_the_classic_law():
    derivative = FractionalLaw(3.0, 1.0, 17).weights(1e-2)
    assert derivative[:2] == pytest.approx(ProportionalDerivative(3.0, 0.0).weights(1e-2))
    assert not derivative[2:].any()
    assert ProportionalDerivative(3.0, 7.0).weights(1e-2).sum() == pytest.approx(7.0)


# --- the loop -------------------------------------------------------------------------------------------------------


def test_motor_encoder_does_not_measure_the_joint_twist():
    """The rotors hold the arm; the twist under its weight is not corrected."""
    soft = Drive(coupling="elastic", stiffness=1e4, damping=200.0, encoder="motor")
    gentle = Hybrid(ProportionalDerivative(200.0, 2000.0), ProportionalIntegral(0.0, 1.0))
    rows = press(gentle, drives=(soft, soft), force=0.0).rows
    twist = rows["rotor"] - rows["angle"]
    assert twist[-1] == pytest.approx(LINKS.terms(START)["gravity"][0] / 1e4, rel=1e-2)
    assert np.abs(rows["along"]).max() < 1e-4 < np.abs(twist[0]).min()


def test_truncated_law_has_the_error_of_its_steady_gain():
    rows = press(FRACTIONAL, duration=2.0).rows
    gain = FRACTIONAL.force.weights(1e-3).sum()
    assert rows["force"][-1] == pytest.approx(gain / (1.0 + gain), abs=1e-5)
    assert rows["depth"][-1] == pytest.approx(rows["force"][-1] / 400.0, rel=1e-6)
    assert rows["along"][-1] == pytest.approx(0.0, abs=1e-6)


def test_integral_law_removes_the_error_with_its_time_constant():
    """What b_F leaves, 1/(1 + b_F), goes with the time constant (1 + b_F)/a_F."""
    rows = press(CLASSIC, duration=6.0).rows
    missing = 1.0 - rows["force"]
    assert missing[-1] == pytest.approx(np.exp(-6.0 * 25.0 / 101.0) / 101.0, rel=0.01)


@given(st.floats(-3.0, 3.0))
def test_response_is_independent_of_the_surface_orientation(turn):
    floating = replace(LINKS, gravity=0.0)
    upright = press(FRACTIONAL, links=floating, duration=0.1)
    surface, start = replace(SURFACE, angle=np.pi / 2 + turn), (START[0] + turn, START[1])
    turned = press(FRACTIONAL, links=floating, surface=surface, start=start, duration=0.1)
    assert turned.rows["force"] == pytest.approx(upright.rows["force"], abs=1e-9)
    assert turned.rows["along"] == pytest.approx(upright.rows["along"], abs=1e-12)


def test_simulation_converges_with_its_step():
    coarse, fine, finest = (press(FRACTIONAL, substeps=n).rows["force"] for n in (20, 40, 80))
    first, second = np.abs(coarse - fine).max(), np.abs(fine - finest).max()
    assert second < 0.6 * first < 0.02


def test_absolute_joints_reach_the_commanded_force():
    rows = press(FRACTIONAL, links=replace(LINKS, absolute=True), start=(START[0], 2.0 * START[1]), duration=2.0).rows
    assert rows["force"][-1] == pytest.approx(1.0, abs=1e-3)
    assert rows["along"][-1] == pytest.approx(0.0, abs=1e-5)


# --- force feedback that includes the mass of the surface -------------------------------------------------------------


def loop_gain():
    """Gain from the force law's torque to the force of the surface's mass, for a law of gain 1 (3.05e-3)."""
    terms = LINKS.terms(START)[0]
    across = terms["jacobian"][0]
    matrix = terms["inertia"] + np.eye(2) + SURFACE.mass * np.outer(across, across)
    return float(SURFACE.mass * across @ np.linalg.solve(matrix, across))


@pytest.mark.parametrize(("share", "runs_away"), [(0.7, False), (0.97, False), (1.03, True), (3.0, True)])
def test_sampled_force_loop_is_unstable_beyond_unit_gain(share, runs_away):
    """One sample late: the limit is a gain of 1 around the loop for a force that alternates from sample to sample."""
    alternating = float(np.sum((-1.0) ** np.arange(18) * weights(-0.2, 17)))
    gain = share / (alternating * loop_gain())
    control = Hybrid(POSITION, FractionalLaw.sampled(gain, -0.2, 17, 1e-3))
    assert press(control, sensor="sampled", duration=4.0).ran_away == runs_away
    assert not press(control, sensor="solved", duration=2.0).ran_away


def test_solved_sensor_feeds_back_the_resulting_force():
    """The force at the first small step after a sample is the one the torque was chosen for."""
    fine, coarse = (press(CLASSIC, sensor="solved", substeps=n, duration=0.2).rows for n in (2000, 1))
    mass = 0.03 * np.gradient(np.gradient(fine["depth"], 1e-3), 1e-3)
    elastic = np.gradient(fine["depth"], 1e-3) + 400.0 * fine["depth"]
    assert fine["force"][5:-5] == pytest.approx((mass + elastic)[5:-5], abs=0.02)
    assert coarse["force"][0] == pytest.approx(fine["force"][0], rel=1e-12)
    through = 100.0 * loop_gain()
    assert fine["force"][0] == pytest.approx(through / (1.0 + through) * (1.0 + 25.0e-3 / 100.0), rel=1e-3)


# --- settings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"start": (0.5, 0.0)}, "the links are in one line there"),
        ({"duration": 0.0}, "duration = 0.0"),
        ({"substeps": 0}, "substeps = 0: must be a whole number from 1 to 100000"),
        ({"sensor": "torque"}, "unknown sensor 'torque'.*Allowed: elastic, sampled, solved"),
        ({"drives": (RIGID, Drive(friction=Coulomb(1.0))), "sensor": "solved"}, "needs drives without friction"),
        ({"drives": (RIGID, Drive(Motor(friction=Coulomb(1.0)))), "sensor": "solved"}, "needs drives without friction"),
    ],
)
def test_invalid_runs_are_rejected(changes, message):
    with pytest.raises(ConfigurationError, match=message):
        press(CLASSIC, **changes)


@pytest.mark.parametrize(
    ("make", "values", "message"),
    [
        (FractionalLaw, (-1.0, 0.5), "law.gain = -1.0"),
        (FractionalLaw, (1.0, 20.0), "law.order = 20.0"),
        (ProportionalDerivative, (1.0, np.nan), "law.proportional = nan"),
        (ProportionalIntegral, (np.inf, 1.0), "law.integral = inf"),
    ],
)
def test_invalid_laws_are_rejected(make, values, message):
    with pytest.raises(ConfigurationError, match=message):
        make(*values)


def test_too_steep_friction_law_warns():
    steep = Stribeck(1.0, 6.0, 1e-5)
    with pytest.warns(AmbiguousLawWarning, match="falls too steeply.*more substeps") as told:
        press(CLASSIC, drives=(RIGID, Drive(friction=steep)), substeps=1, duration=0.01)
    assert told[0].filename == __file__
    press(CLASSIC, drives=(RIGID, Drive(friction=steep)), substeps=500, duration=0.01)
