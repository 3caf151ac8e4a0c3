"""The passivity observer against the energy a bare handle really gets, and the controller on loops that ring."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.virtual.arm import VirtualArm
from devices.virtual.joystick import VirtualJoystick
from haptics import (
    Clock,
    CompliantAdmittance,
    Coulomb,
    InertialImpedance,
    MasslessImpedance,
    RigidAdmittance,
    Servo,
    Stribeck,
    Trace,
)
from haptics._jit import kernel
from haptics.classic import LuGre
from haptics.design import Handle, stiffness_limit
from haptics.device import Causality, DeviceSpec, State
from haptics.elements import Element
from haptics.envelope import Limits
from haptics.passivity import HISTORY, dissipate, largest_added_damping
from haptics.rendering import Rendering
from haptics.trace import ROW, Rows, Status

from .strategies import PHYSICS

T = 1e-3
COUNT = 10e-6
SPEED = 0.01
PUSH = ((0.2, 0.0, 0.0), (0.21, 6.0, 2.0), (0.23, 6.0, 2.0), (0.24, 0.0, 0.0))
"""A hand that pushes the handle into a slide once the force has faded in, and lets go of it."""

BARE: dict[str, Any] = {
    "mass": 0.2,
    "damping": 0.0,
    "delay": 2e-3,
    "resolution": COUNT,
    "hand": {"name": "scripted-force", "script": PUSH},
}
GRIPPED: dict[str, Any] = {**BARE, "hand": {"name": "minimum-jerk"}}


def model_c(stiffness: float = 6000.0, damping: float = 10.0, period: float = T) -> MasslessImpedance:
    return MasslessImpedance(Coulomb(4.0), stiffness, damping, period)


Session = Callable[..., Rows]


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """Return a function that runs an element on a device without waiting, and returns the trace."""
    numbers = itertools.count()

    def run(
        element: Element,
        settings: dict[str, Any],
        *,
        control: bool,
        seconds: float = 2.0,
        device: Any = VirtualJoystick,
    ) -> Rows:
        trace = Trace.create(tmp_path / f"trace{next(numbers)}")
        clock = Clock(element.period)
        plant = device(settings, clock=clock)
        limits = Limits.of(plant.spec, {"passivity_control": control} if control else {})
        Servo(plant, element, trace, clock=clock, limits=limits).run(seconds)
        return trace.since(0)

    return run


FADED_IN = 0.3
"""When the beginning is over [s]: a spring that was wound while the force faded in holds more than the hand gave."""


def swing(rows: Rows, start: float) -> float:
    """Return by how much the handle swings from `start` [s] on [m], each direction for itself."""
    late = rows["position"][rows["time"] >= start]
    return float(np.ptp(late, axis=0).max())


def helped(rows: Rows) -> Any:
    """Return for each tick whether damping was added."""
    return rows["status"] & Status.PASSIVITY != 0


# --- the observer --------------------------------------------------------------------------------------------------


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
    core = rendering._core
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


def data_sheet(**changes: Any) -> DeviceSpec:
    fields: dict[str, Any] = {"delay": 0.0, "mass": 0.2, "fade_in": 0.0, **changes}
    return replace(VirtualJoystick().spec, **{"position_resolution": None, "velocity_lag": 0.0, **fields})


def test_friction_is_no_credit() -> None:
    """However long a slide has dissipated energy, what is injected afterwards counts from zero."""
    found = []
    for ticks in (100, 5000):
        slide = 0.1 * T * np.arange(ticks)
        ring = slide[-1] - 2e-4 * (1.0 - np.cos(170.0 * T * np.arange(400)))
        rendering, row = Rendering(model_c(), data_sheet(delay=2e-3)), np.zeros(1, ROW)
        path = np.concatenate((slide, ring))
        injected = []
        for tick, (x, step) in enumerate(zip(path, np.diff(path, prepend=0.0), strict=True)):
            state = State(position=np.array([x, 0.0]), velocity=np.array([step / T, 0.0]))
            rendering.tick(state, 0.0, row, 0, (tick, tick * T, 0.0, 0))
            injected.append(row["injected_energy"][0])
        assert injected[ticks - 1] == 0.0
        found.append(injected[-1])
    assert found[0] > 1e-4
    assert found[1] == pytest.approx(found[0], rel=1e-6)


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
def test_an_encoder_makes_little_of_a_sound_loop(session: Session, estimator: str, delay: float) -> None:
    """Strokes, rests and tremor under 4 N and 10 um: a loop that is sound is seen as such to within a few counts."""
    settings = {**GRIPPED, "delay": delay, "velocity_estimator": estimator}
    rows = session(model_c(), settings, control=False, seconds=8.0)
    assert rows["injected_energy"].max() < 4.0 * 5.0 * COUNT


@pytest.mark.parametrize(
    "element", [RigidAdmittance(Coulomb(4.0), 2.0), CompliantAdmittance(Coulomb(4.0), 2.0, 6000.0, 100.0)]
)
def test_an_arm_that_follows_injects_next_to_nothing(session: Session, element: Element) -> None:
    settings = {"hand": {"name": "minimum-jerk"}}
    rows = session(element, settings, control=False, seconds=8.0, device=VirtualArm)
    dissipated = np.sum(rows["friction_force"] * rows["sliding_velocity"]) * T
    assert dissipated > 0.2
    assert rows["injected_energy"].max() < 2e-4


# --- the controller -----------------------------------------------------------------------------------------------

RINGING: dict[str, Element] = {
    "C": model_c(),
    "C, Stribeck": MasslessImpedance(Stribeck(4.0, 5.0, 0.1), 6000.0, 10.0),
    "C at 2 kHz": model_c(period=5e-4),
    "B": InertialImpedance(Coulomb(4.0), 0.1, 6000.0, 10.0),
}


@pytest.mark.parametrize("resolution", [0.0, COUNT])
@pytest.mark.parametrize("name", RINGING)
def test_a_loop_that_rings_settles(session: Session, name: str, resolution: float) -> None:
    element = RINGING[name]
    settings = {**BARE, "resolution": resolution, "period": element.period}
    left_alone = session(element, settings, control=False)
    assert swing(left_alone, 1.5) > 4e-4
    assert left_alone["injected_energy"].max() > 2e-4
    rows = session(element, settings, control=True)
    assert helped(rows).any()
    assert swing(rows, 0.74) < max(16.0 * resolution, 1e-4)
    assert swing(rows, 1.5) < max(8.0 * resolution, 1e-6)
    assert np.hypot(*rows["command"].T).max() <= 10.0
    assert rows["injected_energy"][rows["time"] > 0.74].max() < 1e-4


@pytest.mark.parametrize(("delay", "reach"), [(1e-3, 20000.0), (2e-3, 10000.0), (3e-3, 6000.0)])
def test_it_reaches_beyond_what_is_stable_without(session: Session, delay: float, reach: float) -> None:
    limit = stiffness_limit(Handle(0.2, 0.0, delay), 10.0)
    assert reach > 2.2 * limit
    settings = {**BARE, "delay": delay, "resolution": 0.0}
    if reach == 10000.0:
        assert swing(session(model_c(0.95 * limit), settings, control=False, seconds=4.0), 3.5) < 1e-4
    for stiffness in (1.6 * limit, reach):
        assert swing(session(model_c(stiffness), settings, control=False), 1.5) > 4e-4
        assert swing(session(model_c(stiffness), settings, control=True), 1.5) < 1e-5


def added_force(rows: Rows) -> Any:
    """Return the norm of what was done to the element's force in each tick, fading aside [N]."""
    full = rows["status"] & Status.FADE == 0
    return np.where(full, np.hypot(*(rows["command"] - rows["command_unlimited"]).T), 0.0)


@pytest.mark.parametrize("delay", [0.0, 0.5e-3])
def test_a_sound_loop_is_left_alone(session: Session, delay: float) -> None:
    rows = session(model_c(), {**GRIPPED, "delay": delay}, control=True, seconds=8.0)
    assert not helped(rows)[rows["time"] > FADED_IN].any()


@pytest.mark.parametrize("delay", [1e-3, 2e-3])
def test_in_a_hand_it_renders_the_same_friction(session: Session, delay: float) -> None:
    """Stiffness at 95 % and at 160 % of what a bare handle bears."""
    without = session(model_c(), {**GRIPPED, "delay": delay}, control=False, seconds=10.0)
    rows = session(model_c(), {**GRIPPED, "delay": delay}, control=True, seconds=10.0)
    begun = rows["time"] > FADED_IN
    sliding = rows["sticking"] == 0
    assert helped(rows).any()
    assert added_force(rows)[begun & sliding].mean() < 1e-3 * 4.0
    assert added_force(rows)[begun & ~sliding].mean() < 1e-2 * 4.0
    assert drift(rows) < drift(without) + COUNT


def drift(rows: Rows) -> float:
    """Return how far the place where the longest rest is held wanders [m]."""
    edges = np.flatnonzero(np.diff(rows["sticking"], prepend=0, append=0))
    start, stop = max(itertools.pairwise(edges), key=lambda pair: rows["sticking"][pair[0]] * (pair[1] - pair[0]))
    assert stop - start > 1000
    return float(np.ptp(rows["proxy"][start:stop], axis=0).max())


def test_a_classic_bristle_may_give_back_what_it_holds(session: Session) -> None:
    element = LuGre(Coulomb(4.0), stiffness=6000.0, damping=10.0)
    rows = session(element, {**GRIPPED, "delay": 0.5e-3}, control=True, seconds=6.0)
    assert rows["injected_energy"].max() < 1e-4
    assert helped(rows).mean() < 0.01


@kernel
def _damped(records: Any, fx: float, fy: float) -> tuple[float, float, int]:
    return dissipate(records[0], fx, fy)


@given(
    force=st.tuples(*[st.floats(-20.0, 20.0)] * 2),
    velocity=st.tuples(*[st.floats(-3.0, 3.0)] * 2),
    excess=st.floats(0.0, 1.0),
    added=st.floats(0.0, 100.0),
    sticking=st.booleans(),
)
@PHYSICS
def test_the_damper_only_brakes(
    force: tuple[float, float], velocity: tuple[float, float], excess: float, added: float, sticking: bool
) -> None:
    rendering = Rendering(model_c(), data_sheet(delay=2e-3), Limits.of(data_sheet(), {"passivity_control": True}))
    core = rendering._core
    core["velocity"], core["excess"], core["added_damping"], core["sticking"] = velocity, excess, added, sticking
    core["moving"] = 1
    x, y, flag = _damped(core, *force)
    change = np.array([x, y]) - force
    bound = core["max_added_damping"][0] - core["damping"][0]
    assert change @ velocity <= 1e-12
    assert abs(change[0] * velocity[1] - change[1] * velocity[0]) <= 1e-9
    assert np.hypot(*change) <= bound * np.hypot(*velocity) + 1e-9
    assert (flag != 0) or not change.any()
    if excess == 0.0 and (not sticking or added == 0.0):
        assert not change.any()


@pytest.mark.parametrize("delay", [0.0, 0.4e-3, 1e-3, 2e-3, 3.5e-3])
def test_the_bound_on_the_damping_has_a_margin_of_two(delay: float) -> None:
    bound = largest_added_damping(data_sheet(delay=delay), T)
    assert braked(1.9 * bound, delay) < 0.1
    assert braked(3.0 * bound, delay) > 10.0


def braked(damping: float, delay: float, mass: float = 0.2) -> float:
    """Return the largest of the last speeds of a mass that starts at 1 m/s and is braked by a sampled, late damper."""
    steps, substep = 20, T / 20
    x, v, places = 0.0, 1.0, [-T, 0.0]
    line = [0.0] * round(delay / substep)
    speeds = []
    for _ in range(1000):
        force = -damping * (places[-1] - places[-2]) / T
        for _ in range(steps):
            line.append(force)
            v += substep * line.pop(0) / mass
            x += substep * v
        places.append(x)
        speeds.append(abs(v))
    return max(speeds[-100:])


def test_a_device_of_unknown_mass_or_of_the_other_kind_gets_no_damping() -> None:
    assert largest_added_damping(data_sheet(mass=None), T) == 0.0
    assert largest_added_damping(replace(data_sheet(), causality=Causality.ADMITTANCE), T) == 0.0
