"""Hybrid control: what its laws are, what they reach, and where the loop runs away."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from devices.arm.hybrid.control import ControlLaw, FractionalLaw, Hybrid, ProportionalDerivative, ProportionalIntegral
from devices.arm.hybrid.simulation import Run, simulate_hybrid
from devices.arm.mechanics.dynamics import TwoLinks
from devices.arm.mechanics.joint import Drive, Motor
from devices.arm.mechanics.surface import Surface
from devices.arm.servo.fractional import weights
from haptics import Coulomb, Stribeck
from haptics.errors import AmbiguousLawWarning, ConfigurationError

START = (float(np.radians(75.0)), float(np.radians(75.0)))
LINKS, RIGID = TwoLinks(), Drive()
SURFACE = Surface(mass=0.03, damping=1.0, stiffness=400.0, angle=np.pi / 2)
POSITION = FractionalLaw.sampled(1e5, 0.5, 17, 1e-3)
FRACTIONAL = Hybrid(POSITION, FractionalLaw.sampled(1e3, -0.2, 17, 1e-3))
CLASSIC = Hybrid(ProportionalDerivative(1e4, 2.5e4), ProportionalIntegral(25.0, 100.0))


def press(control: Hybrid, **changes: object) -> Run:
    """Ask the ideal arm of the paper for 1 N during half a second."""
    arguments = {"links": LINKS, "drives": (RIGID, RIGID), "surface": SURFACE, "start": START, "force": 1.0}
    arguments |= {"duration": 0.5, "substeps": 20} | changes
    return simulate_hybrid(control=control, **arguments)  # type: ignore[arg-type]


# --- laws -----------------------------------------------------------------------------------------------------------


def test_gains_of_the_sum_belong_to_a_period() -> None:
    """K_P = K_P0 T^-alpha: what is 1e5 and 1e3 at 1 kHz is 3162 s^.5 and 3981 s^-.2 at any rate."""
    force = FRACTIONAL.force
    assert isinstance(force, FractionalLaw)
    assert (POSITION.gain, force.gain) == (pytest.approx(3162.3, abs=0.05), pytest.approx(3981.1, abs=0.05))
    assert POSITION.weights(1e-3)[0] == pytest.approx(1e5)
    assert POSITION.weights(1e-4)[0] == pytest.approx(1e5 * np.sqrt(10.0))


def test_whole_orders_are_the_classic_laws() -> None:
    derivative = FractionalLaw(3.0, 1.0, 17).weights(1e-2)
    assert derivative[:2] == pytest.approx(ProportionalDerivative(3.0, 0.0).weights(1e-2))
    assert not derivative[2:].any()
    assert ProportionalDerivative(3.0, 7.0).weights(1e-2).sum() == pytest.approx(7.0)
    integral = Hybrid(POSITION, ProportionalIntegral(4000.0, 50.0))
    summed = Hybrid(POSITION, _Sum(4000.0, 50.0, 500))
    assert press(integral).rows["force"] == pytest.approx(press(summed).rows["force"], rel=1e-8, abs=1e-10)


@dataclass(frozen=True)
class _Sum(ControlLaw):
    """Proportional and integral, the integral as a fractional law of order -1."""

    integral: float
    proportional: float
    terms: int

    def weights(self, period: float) -> NDArray[np.float64]:
        result = FractionalLaw(self.integral, -1.0, self.terms).weights(period)
        result[0] += self.proportional
        return result


# --- the loop -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("control", [FRACTIONAL, CLASSIC])
@pytest.mark.parametrize(
    "drive", [RIGID, Drive(coupling="impact", backlash=1e-3), Drive(coupling="elastic", stiffness=1e6)]
)
def test_nothing_moves_where_nothing_is_asked_for(control: Hybrid, drive: Drive) -> None:
    rows = press(control, force=0.0, drives=(drive, drive)).rows
    assert np.abs(rows["depth"]).max() < 1e-9 and np.abs(rows["along"]).max() < 1e-9
    assert rows["torque"] == pytest.approx(np.tile(LINKS.terms(START)["gravity"][0], (len(rows), 1)), abs=1e-3)


def test_an_encoder_on_the_rotor_does_not_see_what_the_joint_yields() -> None:
    """The arm stays where its rotors say; their twist under its weight is no deviation to be taken away."""
    soft = Drive(coupling="elastic", stiffness=1e4, damping=200.0, encoder="motor")
    gentle = Hybrid(ProportionalDerivative(200.0, 2000.0), ProportionalIntegral(0.0, 1.0))
    rows = press(gentle, drives=(soft, soft), force=0.0).rows
    twist = rows["rotor"] - rows["angle"]
    assert twist[-1] == pytest.approx(LINKS.terms(START)["gravity"][0] / 1e4, rel=1e-2)
    assert np.abs(rows["along"]).max() < 1e-4 < np.abs(twist[0]).min()


def test_a_truncated_law_leaves_the_error_of_its_steady_gain() -> None:
    rows = press(FRACTIONAL, duration=2.0).rows
    gain = FRACTIONAL.force.weights(1e-3).sum()
    assert rows["force"][-1] == pytest.approx(gain / (1.0 + gain), abs=1e-5)
    assert rows["depth"][-1] == pytest.approx(rows["force"][-1] / 400.0, rel=1e-6)
    assert rows["along"][-1] == pytest.approx(0.0, abs=1e-6)


def test_an_integral_leaves_nothing_and_takes_its_time() -> None:
    """What b_F leaves, 1/(1 + b_F), goes with the time constant (1 + b_F)/a_F."""
    rows = press(CLASSIC, duration=6.0).rows
    missing = 1.0 - rows["force"]
    assert missing[-1] == pytest.approx(np.exp(-6.0 * 25.0 / 101.0) / 101.0, rel=0.01)


@given(st.floats(-3.0, 3.0))
def test_the_answer_does_not_depend_on_how_the_surface_stands(turn: float) -> None:
    floating = replace(LINKS, gravity=0.0)
    upright = press(FRACTIONAL, links=floating, duration=0.1)
    surface, start = replace(SURFACE, angle=np.pi / 2 + turn), (START[0] + turn, START[1])
    turned = press(FRACTIONAL, links=floating, surface=surface, start=start, duration=0.1)
    assert turned.rows["force"] == pytest.approx(upright.rows["force"], abs=1e-9)
    assert turned.rows["along"] == pytest.approx(upright.rows["along"], abs=1e-12)


def test_steps_of_the_simulation_are_small_enough() -> None:
    coarse, fine, finest = (press(FRACTIONAL, substeps=n).rows["force"] for n in (20, 40, 80))
    first, second = np.abs(coarse - fine).max(), np.abs(fine - finest).max()
    assert second < 0.6 * first < 0.02


def test_motors_on_the_base_press_as_well() -> None:
    rows = press(FRACTIONAL, links=replace(LINKS, absolute=True), start=(START[0], 2.0 * START[1]), duration=2.0).rows
    assert rows["force"][-1] == pytest.approx(1.0, abs=1e-3)
    assert rows["along"][-1] == pytest.approx(0.0, abs=1e-5)


def test_the_sum_must_begin_with_the_present_sample() -> None:
    """With k from 1, as printed in (7), the loop runs away."""
    printed = Hybrid(_Late(POSITION), _Late(FRACTIONAL.force))
    assert press(printed, duration=4.0).ran_away
    assert not press(FRACTIONAL, duration=4.0).ran_away


@dataclass(frozen=True)
class _Late(ControlLaw):
    law: ControlLaw

    def weights(self, period: float) -> NDArray[np.float64]:
        result = self.law.weights(period)
        result[0] = 0.0
        return result


# --- the mass of the surface in what is fed back --------------------------------------------------------------------


def loop_gain() -> float:
    """Gain from the force law's torque to the force of the surface's mass, for a law of gain 1 (3.05e-3)."""
    terms = LINKS.terms(START)[0]
    across = terms["jacobian"][0]
    matrix = terms["inertia"] + np.eye(2) + SURFACE.mass * np.outer(across, across)
    return float(SURFACE.mass * across @ np.linalg.solve(matrix, across))


@pytest.mark.parametrize(("share", "runs_away"), [(0.7, False), (0.97, False), (1.03, True), (3.0, True)])
def test_with_the_mass_fed_back_the_sampled_loop_runs_away(share: float, runs_away: bool) -> None:
    """One sample late: the limit is a gain of 1 around the loop for a force that alternates from sample to sample."""
    alternating = float(np.sum((-1.0) ** np.arange(18) * weights(-0.2, 17)))
    gain = share / (alternating * loop_gain())
    control = Hybrid(POSITION, FractionalLaw.sampled(gain, -0.2, 17, 1e-3))
    assert press(control, sensor="sampled", duration=4.0).ran_away == runs_away
    assert not press(control, sensor="solved", duration=2.0).ran_away


def test_the_solved_loop_feeds_back_the_force_that_follows() -> None:
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
        ({"start": (0.5, np.inf)}, "must be two finite angles"),
        ({"duration": 0.0}, "duration = 0.0"),
        ({"substeps": 0}, "substeps = 0: must be a whole number from 1 to 100000"),
        ({"sensor": "torque"}, "unknown sensor 'torque'.*Allowed: elastic, sampled, solved"),
        ({"drives": (RIGID,)}, "must be two, one for each joint, not 1"),
        ({"drives": (RIGID, Drive(friction=Coulomb(1.0))), "sensor": "solved"}, "needs drives without friction"),
        ({"drives": (RIGID, Drive(Motor(friction=Coulomb(1.0)))), "sensor": "solved"}, "needs drives without friction"),
    ],
)
def test_runs_that_cannot_be(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        press(CLASSIC, **changes)


@pytest.mark.parametrize(
    ("law", "values", "message"),
    [
        (FractionalLaw, (-1.0, 0.5), "law.gain = -1.0"),
        (FractionalLaw, (1.0, 20.0), "law.order = 20.0"),
        (ProportionalDerivative, (1.0, np.nan), "law.proportional = nan"),
        (ProportionalIntegral, (np.inf, 1.0), "law.integral = inf"),
    ],
)
def test_laws_that_cannot_be(law: type[ControlLaw], values: tuple[float, float], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        law(*values)


def test_a_law_that_falls_too_steeply_for_the_steps_is_told() -> None:
    steep = Stribeck(1.0, 6.0, 1e-5)
    with pytest.warns(AmbiguousLawWarning, match="falls too steeply.*more substeps") as told:
        press(CLASSIC, drives=(RIGID, Drive(friction=steep)), substeps=1, duration=0.01)
    assert told[0].filename == __file__
    press(CLASSIC, drives=(RIGID, Drive(friction=steep)), substeps=500, duration=0.01)
