"""The passivity observer against the energy that a bare handle really gets."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.virtual.arm import VirtualArm
from devices.virtual.joystick import VirtualJoystick
from haptics import CompliantAdmittance, Coulomb, MasslessImpedance, RigidAdmittance
from haptics.device import State
from haptics.elements.models import Element
from haptics.records import ROW
from haptics.rendering.passivity import HISTORY
from haptics.rendering.rendering import Rendering
from tests.haptics.passivity_loops import BARE, COUNT, GRIPPED, T, data_sheet, model_c, ring_after_a_slide, session
from tests.haptics.strategies import PHYSICS

SPEED = 0.01


def observed_and_real(delay: float, told: float | None = None, seconds: float = 0.25) -> tuple[Any, Any]:
    """Return what the observer says of a bare handle, released with a wound spring, and the truth, (n,) each [J].

    Nothing but the loop does work on such a handle: what the loop has injected is what kinetic energy and store have
    risen by since they were lowest.
    """
    element = MasslessImpedance(Coulomb(10.0), stiffness=2000.0, damping=0.0)
    hand = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
    settings = {**BARE, "delay": delay, "resolution": 0.0, "substep": 1e-5, "hand": hand}
    plant = VirtualJoystick({**settings, "velocity_estimator": "difference"})
    spec = replace(plant.spec, fade_in=0.0, delay=delay if told is None else told)
    for _ in range(5):
        element.step((0.02, -0.04))  # by 0.2 mm, far from slipping
    rendering = Rendering(element, spec)
    row = np.zeros(1, ROW)
    observed, energy = [], []
    with plant:
        for tick in range(round(seconds / T)):
            plant.write(rendering.tick(plant.read(), 0.0, row, 0, (tick, tick * T, 0.0, 0)))
            assert row["sticking"][0]
            store = 1000.0 * np.sum(row["displacement"][0] ** 2)
            observed.append(row["injected_energy"][0])
            energy.append(store + 0.1 * np.sum(plant.handle_velocity**2))
    return np.array(observed), np.array(energy) - np.minimum.accumulate(energy)


@pytest.mark.parametrize("delay", [0.0, 0.5e-3, 1e-3, 1.3e-3, 2e-3])
def test_it_sees_what_the_handle_really_gets(delay: float) -> None:
    observed, real = observed_and_real(delay)
    assert real[-1] > 2e-5
    assert np.abs(observed - real).max() < 0.02 * real.max()


def test_without_the_delay_the_same_loop_would_look_much_better() -> None:
    blind, real = observed_and_real(2e-3, told=0.0)
    assert blind[-1] < 0.35 * real[-1]


@given(
    delay=st.floats(0.0, 6.0),
    periods=st.lists(st.integers(1, 9), min_size=1, max_size=12),
    seed=st.integers(0, 2**32 - 1),
)
@PHYSICS
def test_skipped_deadlines_are_time_under_the_last_command(delay: float, periods: list[int], seed: int) -> None:
    """A handle in uniform motion, and commands that came when they came: the energy is the integral of a staircase."""
    generator = np.random.default_rng(seed)
    element = MasslessImpedance(Coulomb(1e-9), 0.0, 1.0)  # no store
    rendering, row = Rendering(element, data_sheet(delay=delay * T)), np.zeros(1, ROW)
    core = rendering.core
    starts, forces = [], []
    tick, found = 0, 0.0
    for following in [*periods, 0]:
        core["injected"] = 10.0  # joules, far from the clamp
        rendering.tick(State(position=np.array([SPEED * tick * T, 0.0])), 0.0, row, 0, (tick, tick * T, 0.0, 0))
        found += core["injected"][0] - 10.0
        starts.append(tick)
        forces.append(generator.uniform(-3.0, 3.0))
        core["history"][0, (core["written"][0] - 1) % HISTORY, 0] = forces[-1]
        tick += following
    assert found == pytest.approx(SPEED * T * staircase_integral(starts, forces, starts[-1] - delay), abs=1e-12)


def staircase_integral(starts: list[int], forces: list[float], end: float) -> float:
    """Integrate from the beginning to `end` forces that hold from their starts on."""
    stops = [*starts[1:], math.inf]
    return sum(f * max(min(stop, end) - start, 0.0) for start, stop, f in zip(starts, stops, forces, strict=True))


def test_friction_is_no_credit() -> None:
    """However long a slide has dissipated energy, what is injected afterwards counts from zero."""
    short, long = (ring_after_a_slide(ticks)["injected_energy"] for ticks in (100, 5000))
    assert short[99] == long[4999] == 0.0
    assert short[-1] > 1e-4
    assert long[-1] == pytest.approx(short[-1], rel=1e-6)


def test_what_happens_during_a_gap_is_not_held_against_the_loop() -> None:
    rendering = Rendering(model_c(), data_sheet())
    row = np.zeros(1, ROW)
    places = [0.0, 1e-4, 2e-4, math.nan, 3e-4, 2e-4, 1e-4]
    found = []
    for tick, x in enumerate(places):
        state = State(position=np.array([x, 0.0]), velocity=np.array([0.1, 0.0]))
        rendering.tick(state, 0.0, row, 0, (tick, tick * T, 0.0, 0))
        found.append(row["injected_energy"][0])
    assert found[3] == found[4] == found[2]
    assert found[5] > found[4]


@pytest.mark.parametrize("estimator", ["tracker", "difference"])
@pytest.mark.parametrize("delay", [0.0, 0.5e-3, 1e-3])
def test_an_encoder_makes_little_of_a_sound_loop(estimator: str, delay: float) -> None:
    """Strokes, rests and tremor under 4 N and 10 um: a loop that is sound is seen as such to within a few counts."""
    settings = {**GRIPPED, "delay": delay, "velocity_estimator": estimator}
    rows = session(model_c(), settings, control=False, seconds=8.0)
    assert rows["injected_energy"].max() < 4.0 * 5.0 * COUNT


@pytest.mark.parametrize(
    "element", [RigidAdmittance(Coulomb(4.0), 2.0), CompliantAdmittance(Coulomb(4.0), 2.0, 6000.0, 100.0)]
)
def test_an_arm_that_follows_injects_next_to_nothing(element: Element) -> None:
    settings = {"hand": {"name": "minimum-jerk"}}
    rows = session(element, settings, control=False, seconds=8.0, device=VirtualArm)
    dissipated = np.sum(rows["friction_force"] * rows["sliding_velocity"]) * T
    assert dissipated > 0.2
    # Its encoders are on the motors: where the gears twist under a joint that holds, they pretend a motion.
    assert rows["injected_energy"].max() < 2e-3
