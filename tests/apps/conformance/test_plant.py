"""The plant of the conformance suite against mechanics, and the metrics on rows with known values."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.linalg import expm

from apps.conformance import cells, suite
from apps.conformance.cells import CELLS, LIGHT, REFERENCE, Cell, Motion
from apps.conformance.plant import (
    PLANT,
    ROW,
    drive_of,
    mass_transition,
    move_mass,
    new_plant,
    run_compiled,
    run_python,
    substep_count,
)
from haptics import CompliantAdmittance, Coulomb, InertialImpedance, MasslessImpedance, RigidAdmittance
from haptics.device import Causality
from haptics.elements.models import Element
from haptics.errors import ConfigurationError

Array = NDArray[np.float64]

FREE = Cell(cells.Grip("none", damping=0.0, stiffness=0.0), 0.0, 1000.0)


def nothing(_, __):
    return np.zeros(2)


def push_of(force, duration=0.5):
    return Motion("push", 0.0, duration, lambda t: np.outer(np.full(len(t), force), cells.PUSH_DIRECTION))


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_pushed_handle_approaches_its_terminal_velocity(cell):
    rows = run_python(nothing, cell, push_of(2.0))
    damping = cells.HANDLE_DAMPING + cell.grip.damping
    t = np.arange(len(rows)) / cell.rate
    expected = 2.0 / damping * -np.expm1(-damping / cells.HANDLE_MASS * t)
    np.testing.assert_allclose(rows["velocity"] @ cells.PUSH_DIRECTION, expected, atol=1e-12)
    across = rows["velocity"] @ np.array((-cells.PUSH_DIRECTION[1], cells.PUSH_DIRECTION[0]))
    assert np.abs(across).max() < 1e-12


@given(
    mass=st.floats(0.1, 10.0), stiffness=st.floats(0.0, 1e4), damping=st.floats(0.0, 1e3), step=st.floats(1e-5, 1e-4)
)
def test_substep_is_the_matrix_exponential(mass, stiffness, damping, step):
    matrix, response = mass_transition(mass, stiffness, damping, step)
    generator = np.array(((0, 1, 0), (-stiffness / mass, -damping / mass, 1 / mass), (0, 0, 0)))
    expected = expm(step * generator)[:2]
    np.testing.assert_allclose(np.column_stack((matrix, response)), expected, rtol=1e-9, atol=1e-9 * step)


def test_released_handle_decays_as_the_closed_form():
    """The mass of the handle on 400 N/m is released at 1 cm."""
    damping, frequency, x = 3.0, 40.0, np.empty(5000)
    record = np.zeros(1, PLANT)
    record["transition"], record["response"] = mass_transition(cells.HANDLE_MASS, 400.0, damping, 1e-4)
    record["handle"] = 0.01
    plant = record.view(np.recarray)[0]
    for k in range(len(x)):
        move_mass.py_func(plant, 0, 0.0) if hasattr(move_mass, "py_func") else move_mass(plant, 0, 0.0)
        x[k] = plant.handle[0]
    t = 1e-4 * np.arange(1, 5001)
    decay = damping / (2.0 * cells.HANDLE_MASS)
    damped = math.sqrt(frequency**2 - decay**2)
    expected = 0.01 * np.exp(-decay * t) * (np.cos(damped * t) + decay / damped * np.sin(damped * t))
    np.testing.assert_allclose(x, expected, atol=1e-13)


@pytest.mark.parametrize("rate", [500.0, 1000.0, 2000.0])
def test_force_acts_half_a_period_late(rate):
    rows = run_python(lambda _, __: np.array((1.0, 0.0)), replace(FREE, rate=rate), push_of(0.0, 4.0 / rate))
    speeds = rows["velocity"][:, 0]
    expected = -np.expm1(-cells.HANDLE_DAMPING / cells.HANDLE_MASS * (np.arange(len(rows)) - 0.5) / rate)
    assert speeds[0] == 0.0
    np.testing.assert_allclose(speeds[1:], expected[1:] / cells.HANDLE_DAMPING, rtol=1e-12)


@given(st.floats(50.0, 10000.0))
def test_substeps_divide_half_a_period(rate):
    count = substep_count(rate)
    assert count % 2 == 0
    assert 1.0 / (rate * count) <= cells.LONGEST_SUBSTEP * (1.0 + 1e-6)


@pytest.mark.parametrize("quantisation", [5e-6, 20e-6, 100e-6])
def test_renderer_reads_the_nearest_encoder_count(quantisation):
    seen = []

    def look(position, _):
        seen.append(position)
        return np.zeros(2)

    rows = run_python(look, Cell(LIGHT, quantisation, 1000.0), push_of(1.0))
    counts = np.array(seen) / quantisation
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-6)
    assert np.abs(np.array(seen) - rows["position"]).max() <= 0.5 * quantisation * (1.0 + 1e-9)
    assert np.ptp(rows["position"]) > 100 * quantisation


def test_renderer_gets_copies():
    def vandal(position, velocity):
        position[:] = velocity[:] = 1e3
        return np.zeros(2)

    motion = push_of(1.0)
    np.testing.assert_array_equal(run_python(vandal, REFERENCE, motion), run_python(nothing, REFERENCE, motion))


def test_motor_force_saturates_by_the_norm():
    rows = run_python(lambda _, __: (-300.0, 400.0), REFERENCE, push_of(0.0, 0.05))
    np.testing.assert_allclose(rows["force"], [[-12.0, 16.0]] * len(rows), rtol=1e-12)


@pytest.mark.parametrize("force", [(math.nan, 0.0), (0.0, math.inf)])
def test_non_finite_force_ends_the_run(force):
    assert run_python(lambda _, __: force, REFERENCE, push_of(1.0)) is None


@pytest.mark.parametrize("answer", [None, 1.0, (1.0,), (1.0, 2.0, 3.0), ("a", "b"), np.zeros((2, 2))])
def test_malformed_force_is_refused(answer):
    with pytest.raises(ConfigurationError, match="two numbers"):
        run_python(lambda _, __: answer, REFERENCE, push_of(1.0))


IMPEDANCES: dict[str, Callable[[float], Element]] = {
    "B": lambda period: InertialImpedance(Coulomb(4.0), 0.1, 6000.0, 10.0, period),
    "C": lambda period: MasslessImpedance(Coulomb(4.0), 6000.0, 10.0, period),
}


@pytest.mark.parametrize("cell", [CELLS[0], REFERENCE, CELLS[-1]], ids=lambda cell: cell.name)
@pytest.mark.parametrize("motion", [cells.BREAKAWAY, cells.CIRCLE, cells.SLIDES[0.02, 0.0]], ids=lambda m: m.name)
@pytest.mark.parametrize("model", IMPEDANCES)
def test_python_and_compiled_runs_are_identical(model, motion, cell):
    element = IMPEDANCES[model](1.0 / cell.rate)
    compiled = run_compiled(element, cell, motion)

    def renderer(_, velocity):
        return -element.step(velocity)

    np.testing.assert_array_equal(compiled, run_python(renderer, cell, motion))


def test_arm_deflects_by_its_servo_stiffness():
    """At rest the reference stays; the deflection and the sensor show the force of the hand."""
    cell = replace(REFERENCE, quantisation=1e-9)
    rows = run_compiled(RigidAdmittance(Coulomb(4.0), 2.0), cell, cells.HOLD)
    plant = new_plant(cell, Causality.ADMITTANCE, cells.HOLD)
    assert not rows["position"].any()
    settled = rows[4000:]
    held = cells.HOLD_FORCE * cells.PUSH_DIRECTION
    np.testing.assert_allclose(-settled["felt"], [held] * len(settled), atol=1e-4)
    np.testing.assert_allclose(-settled["force"].mean(axis=0), held + np.array(cells.SENSOR_BIAS), atol=0.01)
    assert -settled["force"][:, 0].std() == pytest.approx(-cells.SENSOR_NOISE, rel=0.1)
    assert plant["servo_stiffness"][0] == pytest.approx(5.0 * (2.0 * math.pi * 30.0) ** 2)


def test_arm_follows_its_reference():
    """A heavy, nearly frictionless mass under a steady push: the handle keeps up with the reference."""
    rows = run_compiled(RigidAdmittance(Coulomb(0.0), 50.0), FREE, push_of(10.0, 2.0))
    reference_speed = np.diff(rows["position"], axis=0) * FREE.rate
    late = reference_speed[1500:] - rows["velocity"][1501:]
    assert np.abs(late).max() < 2e-3 < np.abs(reference_speed).max() / 100.0


def test_unstable_element_ends_the_run():
    hopeless = CompliantAdmittance(Coulomb(1e300), 1e-300, 1e300, 0.0)
    assert run_compiled(hopeless, REFERENCE, cells.HOLD) is None


def test_drive_does_not_depend_on_the_rate():
    """In the middle of each substep, and the same function of time at every rate."""
    slow, fast = (drive_of(cells.FLUCTUATION, LIGHT, rate) for rate in (500.0, 1000.0))
    np.testing.assert_allclose(slow, fast, atol=1e-9)
    finer = drive_of(cells.FLUCTUATION, LIGHT, 2000.0)
    at = (np.arange(len(finer)) + 0.5) / 12000.0
    coarse = np.interp(at, (np.arange(len(slow)) + 0.5) / 10000.0, slow[:, 0])
    np.testing.assert_allclose(finer[:-1, 0], coarse[:-1], atol=1e-4)


RATE = 1000.0


def rows_of(count):
    return np.zeros(count, ROW), np.arange(count) / RATE


@given(st.floats(-1e-3, 1e-3), st.floats(-1e-3, 1e-3))
def test_hold_drift_is_the_speed_of_steady_creep(vx, vy):
    rows, t = rows_of(8000)
    rows["position"] = np.outer(t, (vx, vy)) + np.array((3.0, -5.0))
    assert suite.hold_drift(rows, RATE) == pytest.approx(math.hypot(vx, vy), abs=1e-12)
    rows["position"][:, 0] += 1e-4 * np.sin(2.0 * np.pi * 50.0 * t)
    assert suite.hold_drift(rows, RATE) == pytest.approx(math.hypot(vx, vy), abs=1e-7), "vibration is no drift"


def test_net_drift_is_the_distance_between_two_cycles():
    rows, t = rows_of(10000)
    rows["position"][:, 0] = 1e-3 * np.sin(2.0 * np.pi * 10.0 * t) + 2e-3 * t
    assert suite.net_drift(rows[:100], rows[-100:]) == pytest.approx(2e-3 * 9.9)


@pytest.mark.parametrize(("frequency", "heard"), [(2.0, 0.0), (9.0, 0.0), (11.0, 1.0), (200.0, 1.0), (490.0, 1.0)])
def test_buzz_is_the_rms_above_ten_hertz(frequency, heard):
    rows, t = rows_of(8000)
    wave = np.sin(2.0 * np.pi * frequency * t)
    rows["felt"] = np.stack((3.0 * wave, 4.0 * wave), axis=1) + np.array((2.0, 1.0))
    assert suite.buzz(rows, RATE) == pytest.approx(heard * 5.0 / math.sqrt(2.0), rel=1e-2, abs=1e-9)


@pytest.mark.parametrize(("frequency", "heard"), [(2.0, 0.0), (7.3, 0.0), (14.7, 1.0), (200.0, 1.0), (490.0, 1.0)])
def test_sliding_buzz_ignores_the_mean(frequency, heard):
    rows, t = rows_of(1000)
    wave = np.sin(2.0 * np.pi * frequency * t)
    rows["felt"] = np.stack((3.0 * wave + 5.0 * t, 4.0 * wave - np.exp(-t)), axis=1)
    found = suite.sliding_buzz(rows, RATE)
    assert found == pytest.approx(heard * 5.0 / math.sqrt(2.0), rel=1e-2, abs=2e-2)
    assert heard or suite.buzz(rows, RATE) > 0.2  # leakage without fading


@given(st.floats(-3.1, 3.1), st.floats(0.01, 100.0))
def test_direction_error_is_the_angle_to_the_opposite_force(angle, size):
    rows, t = rows_of(500)
    rows["velocity"] = np.stack((np.cos(t), np.sin(t)), axis=1)
    rows["force"] = -size * np.stack((np.cos(t + angle), np.sin(t + angle)), axis=1)
    assert suite.direction_error_p95(rows) == pytest.approx(math.degrees(abs(angle)), abs=1e-9)


def test_zero_force_has_a_direction_error_of_90_degrees():
    rows, _ = rows_of(100)
    rows["velocity"] = rows["force"] = (1.0, 0.0)
    rows["force"] *= -1.0
    rows["force"][:10] = 0.0
    assert suite.direction_error_p95(rows) == pytest.approx(90.0)


def ramp(breakaway, kinetic):
    """A law that holds up to `breakaway` and then slides under `kinetic`."""
    rows, t = rows_of(12000)
    push = cells.RAMP_RATE * t
    slipping = push > breakaway
    rows["force"] = np.outer(np.where(slipping, kinetic, push), -cells.PUSH_DIRECTION)
    rows["position"] = np.outer(np.cumsum(np.where(slipping, 1e-4, 0.0)), cells.PUSH_DIRECTION)
    return rows


@pytest.mark.parametrize("breakaway", [1.0, 4.0, 5.5])
def test_breakaway_is_the_peak_before_the_slip(breakaway):
    found = suite.breakaway_force(ramp(breakaway, 0.5 * breakaway), RATE)
    assert found == pytest.approx(breakaway, abs=cells.RAMP_RATE * suite.AVERAGING)


def test_breakaway_ignores_the_force_after_the_slip():
    rows = ramp(3.0, 3.0)
    rows["force"][-1000:] *= 3.0
    assert suite.breakaway_force(rows, RATE) == pytest.approx(3.0, abs=0.01)


def test_creeping_law_breaks_away_at_the_slip_distance():
    """A viscous law creeps at push/c: it has gone 2 mm when r t^2/(2 c) = 2 mm."""
    rows, t = rows_of(12000)
    damping = 200.0
    push = cells.RAMP_RATE * t
    rows["force"] = np.outer(push, -cells.PUSH_DIRECTION)
    rows["position"] = np.outer(cells.RAMP_RATE * t**2 / (2.0 * damping), cells.PUSH_DIRECTION)
    expected = cells.RAMP_RATE * math.sqrt(2.0 * damping * suite.SLIP_DISTANCE / cells.RAMP_RATE)
    assert suite.breakaway_force(rows, RATE) == pytest.approx(expected, rel=0.01)


def test_breakaway_averages_chatter():
    rows, _ = rows_of(12000)
    rows["force"] = np.outer(np.where(np.arange(12000) % 2, 9.0, -1.0), -cells.PUSH_DIRECTION)
    assert suite.breakaway_force(rows, RATE) == pytest.approx(4.0)


def test_spread_is_relative_to_a_positive_mean():
    assert suite.spread([3.9, 4.0, 4.1]) == pytest.approx(0.05)
    assert suite.spread([0.0, 0.0]) is None
    assert suite.spread([-4.0, -4.1]) is None


@pytest.mark.parametrize("motion", [cells.CIRCLE, *cells.SLIDES.values()], ids=lambda m: m.name)
def test_path_velocity_is_the_derivative(motion):
    t = np.linspace(0.0, motion.settling + motion.duration, 20001)
    position, velocity = motion.shape(t)
    numeric = np.gradient(np.asarray(position), t, axis=0)
    np.testing.assert_allclose(numeric[1:-1], np.asarray(velocity)[1:-1], atol=1e-6)
    steady = np.hypot(*np.asarray(velocity)[t >= motion.settling].T)
    assert np.ptp(steady) < 1e-12
