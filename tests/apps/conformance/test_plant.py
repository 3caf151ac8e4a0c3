"""The plant against what mechanics says it must do."""

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

from apps.conformance import cells, motions
from apps.conformance.cells import CELLS, LIGHT, REFERENCE, Cell
from apps.conformance.kernels import PLANT, move_mass
from apps.conformance.motions import Motion
from apps.conformance.plant import Renderer, drive_of, new_plant, run_compiled, run_python, substeps, transition
from haptics import CompliantAdmittance, Coulomb, InertialImpedance, MasslessImpedance, RigidAdmittance
from haptics.device import Causality
from haptics.elements.models import Element
from haptics.errors import ConfigurationError
from haptics.records import Rows

Array = NDArray[np.float64]

FREE = Cell(cells.Grip("none", damping=0.0, stiffness=0.0), 0.0, 1000.0)


def nothing(_: Array, __: Array) -> Array:
    return np.zeros(2)


def push_of(force: float, duration: float = 0.5) -> Motion:
    return Motion("push", 0.0, duration, lambda t: np.outer(np.full(len(t), force), motions.PUSH_DIRECTION))


def run(renderer: Renderer, cell: Cell, motion: Motion) -> Rows:
    rows = run_python(renderer, cell, motion)
    assert rows is not None
    return rows


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_a_pushed_handle_approaches_its_terminal_velocity(cell: Cell) -> None:
    rows = run(nothing, cell, push_of(2.0))
    damping = cells.HANDLE_DAMPING + cell.grip.damping
    t = np.arange(len(rows)) / cell.rate
    expected = 2.0 / damping * -np.expm1(-damping / cells.HANDLE_MASS * t)
    np.testing.assert_allclose(rows["velocity"] @ motions.PUSH_DIRECTION, expected, atol=1e-12)
    across = rows["velocity"] @ np.array((-motions.PUSH_DIRECTION[1], motions.PUSH_DIRECTION[0]))
    assert np.abs(across).max() < 1e-12


@given(
    mass=st.floats(0.1, 10.0),
    stiffness=st.floats(0.0, 1e4),
    damping=st.floats(0.0, 1e3),
    step=st.floats(1e-5, 1e-4),
)
def test_the_substep_is_the_exponential_of_the_equation_of_motion(
    mass: float, stiffness: float, damping: float, step: float
) -> None:
    matrix, response = transition(mass, stiffness, damping, step)
    generator = np.array(((0, 1, 0), (-stiffness / mass, -damping / mass, 1 / mass), (0, 0, 0)))
    expected = expm(step * generator)[:2]
    np.testing.assert_allclose(np.column_stack((matrix, response)), expected, rtol=1e-9, atol=1e-9 * step)


def oscillator(damping: float, count: int) -> tuple[Array, Array]:
    """Position and velocity of the handle's mass on 400 N/m, let go at 1 cm, once every 0.1 ms."""
    record = np.zeros(1, PLANT)
    record["transition"], record["response"] = transition(cells.HANDLE_MASS, 400.0, damping, 1e-4)
    record["handle"] = 0.01
    state = np.empty((count, 2))
    plant = record.view(np.recarray)[0]
    for row in state:
        move_mass.py_func(plant, 0, 0.0) if hasattr(move_mass, "py_func") else move_mass(plant, 0, 0.0)
        row[:] = plant.handle[0], plant.handle_velocity[0]
    return state[:, 0], state[:, 1]


def test_a_handle_that_is_let_go_decays_as_the_solution_does() -> None:
    damping, frequency = 3.0, 40.0
    x, _ = oscillator(damping, 5000)
    t = 1e-4 * np.arange(1, 5001)
    decay = damping / (2.0 * cells.HANDLE_MASS)
    damped = math.sqrt(frequency**2 - decay**2)
    expected = 0.01 * np.exp(-decay * t) * (np.cos(damped * t) + decay / damped * np.sin(damped * t))
    np.testing.assert_allclose(x, expected, atol=1e-13)


@pytest.mark.parametrize("rate", [500.0, 1000.0, 2000.0])
def test_a_force_acts_half_a_period_late(rate: float) -> None:
    rows = run(lambda _, __: np.array((1.0, 0.0)), replace(FREE, rate=rate), push_of(0.0, 4.0 / rate))
    speeds = rows["velocity"][:, 0]
    expected = -np.expm1(-cells.HANDLE_DAMPING / cells.HANDLE_MASS * (np.arange(len(rows)) - 0.5) / rate)
    assert speeds[0] == 0.0
    np.testing.assert_allclose(speeds[1:], expected[1:] / cells.HANDLE_DAMPING, rtol=1e-12)


@given(st.floats(50.0, 10000.0))
def test_half_a_period_is_a_whole_number_of_short_substeps(rate: float) -> None:
    count = substeps(rate)
    assert count % 2 == 0
    assert 1.0 / (rate * count) <= cells.LONGEST_SUBSTEP * (1.0 + 1e-6)


@pytest.mark.parametrize("quantisation", [5e-6, 20e-6, 100e-6])
def test_the_renderer_sees_the_nearest_count_of_the_encoder(quantisation: float) -> None:
    seen = []

    def look(position: Array, _: Array) -> Array:
        seen.append(position)
        return np.zeros(2)

    rows = run(look, Cell(LIGHT, quantisation, 1000.0), push_of(1.0))
    counts = np.array(seen) / quantisation
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-6)
    assert np.abs(np.array(seen) - rows["position"]).max() <= 0.5 * quantisation * (1.0 + 1e-9)
    assert np.ptp(rows["position"]) > 100 * quantisation


def test_the_renderer_gets_copies() -> None:
    def vandal(position: Array, velocity: Array) -> Array:
        position[:] = velocity[:] = 1e3
        return np.zeros(2)

    motion = push_of(1.0)
    np.testing.assert_array_equal(run(vandal, REFERENCE, motion), run(nothing, REFERENCE, motion))


def test_the_motors_saturate_by_the_norm() -> None:
    rows = run(lambda _, __: (-300.0, 400.0), REFERENCE, push_of(0.0, 0.05))
    np.testing.assert_allclose(rows["force"], [[-12.0, 16.0]] * len(rows), rtol=1e-12)


@pytest.mark.parametrize("force", [(math.nan, 0.0), (0.0, math.inf)])
def test_a_force_that_is_no_number_ends_the_run(force: tuple[float, float]) -> None:
    assert run_python(lambda _, __: force, REFERENCE, push_of(1.0)) is None


@pytest.mark.parametrize("answer", [None, 1.0, (1.0,), (1.0, 2.0, 3.0), ("a", "b"), np.zeros((2, 2))])
def test_an_answer_that_is_no_force_is_refused(answer: object) -> None:
    with pytest.raises(ConfigurationError, match="two numbers"):
        run_python(lambda _, __: answer, REFERENCE, push_of(1.0))  # type: ignore[arg-type,return-value]


IMPEDANCES: dict[str, Callable[[float], Element]] = {
    "B": lambda period: InertialImpedance(Coulomb(4.0), 0.1, 6000.0, 10.0, period),
    "C": lambda period: MasslessImpedance(Coulomb(4.0), 6000.0, 10.0, period),
}


@pytest.mark.parametrize("cell", [CELLS[0], REFERENCE, CELLS[-1]], ids=lambda cell: cell.name)
@pytest.mark.parametrize("motion", [motions.BREAKAWAY, motions.CIRCLE, motions.SLIDES[0.02, 0.0]], ids=lambda m: m.name)
@pytest.mark.parametrize("model", IMPEDANCES)
def test_python_and_compiled_runs_are_the_same_bits(model: str, motion: Motion, cell: Cell) -> None:
    element = IMPEDANCES[model](1.0 / cell.rate)
    compiled = run_compiled(element, cell, motion)

    def renderer(_: Array, velocity: Array) -> Array:
        return -element.step(velocity)

    assert compiled is not None
    np.testing.assert_array_equal(compiled, run(renderer, cell, motion))


def arm_of(element: Element, cell: Cell, motion: Motion) -> tuple[Rows, Rows]:
    """Run `element` on the arm; return its rows and the plant it ran on."""
    rows = run_compiled(element, cell, motion)
    assert rows is not None
    return rows, new_plant(cell, Causality.ADMITTANCE, motion)


def test_the_arm_yields_to_the_hand_as_its_servo_is_stiff() -> None:
    """At rest the reference stays, and the deflection is what the hand's force and the sensor show."""
    cell = replace(REFERENCE, quantisation=1e-9)
    rows, plant = arm_of(RigidAdmittance(Coulomb(4.0), 2.0), cell, motions.HOLD)
    assert not rows["position"].any()
    settled = rows[4000:]
    np.testing.assert_allclose(
        -settled["felt"], [motions.HOLD_FORCE * motions.PUSH_DIRECTION] * len(settled), atol=1e-4
    )
    shown = -settled["force"].mean(axis=0)
    np.testing.assert_allclose(
        shown, motions.HOLD_FORCE * motions.PUSH_DIRECTION + np.array(cells.SENSOR_BIAS), atol=0.01
    )
    assert -settled["force"][:, 0].std() == pytest.approx(-cells.SENSOR_NOISE, rel=0.1)
    assert plant["servo_stiffness"][0] == pytest.approx(5.0 * (2.0 * math.pi * 30.0) ** 2)


def test_the_arm_follows_its_reference_at_its_bandwidth() -> None:
    """A heavy, nearly frictionless mass under a steady push: the handle keeps up with the reference."""
    rows, _ = arm_of(RigidAdmittance(Coulomb(0.0), 50.0), FREE, push_of(10.0, 2.0))
    reference_speed = np.diff(rows["position"], axis=0) * FREE.rate
    late = reference_speed[1500:] - rows["velocity"][1501:]
    assert np.abs(late).max() < 2e-3 < np.abs(reference_speed).max() / 100.0


def test_an_element_that_runs_away_ends_the_run() -> None:
    hopeless = CompliantAdmittance(Coulomb(1e300), 1e-300, 1e300, 0.0)
    assert run_compiled(hopeless, REFERENCE, motions.HOLD) is None


def test_a_drive_is_what_the_hand_does() -> None:
    """In the middle of each substep, and the same function of time at every rate."""
    slow, fast = (drive_of(motions.FLUCTUATION, LIGHT, rate) for rate in (500.0, 1000.0))
    np.testing.assert_allclose(slow, fast, atol=1e-9)
    finer = drive_of(motions.FLUCTUATION, LIGHT, 2000.0)
    at = (np.arange(len(finer)) + 0.5) / 12000.0
    coarse = np.interp(at, (np.arange(len(slow)) + 0.5) / 10000.0, slow[:, 0])
    np.testing.assert_allclose(finer[:-1, 0], coarse[:-1], atol=1e-4)
