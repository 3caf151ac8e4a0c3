"""Passivity observer and controller: single rules, energy of a bare handle, ringing and settling loops."""

from __future__ import annotations

import itertools
import math
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.virtual.arm import VirtualArm
from devices.virtual.joystick import VirtualJoystick
from haptics import Causality, Clock, Coulomb, Servo, State, Stribeck, Trace
from haptics.design import Handle, stiffness_limit
from haptics.design.loops import Coupling, growth, stuck_matrix
from haptics.elements.classic import CLASSICS
from haptics.elements.classic_kernels import STIFF
from haptics.elements.models import CompliantAdmittance, Element, InertialImpedance, MasslessImpedance, RigidAdmittance
from haptics.jit import kernel
from haptics.records import ROW, Status
from haptics.rendering.envelope import Limits
from haptics.rendering.passivity import (
    DECAY_TIME,
    HISTORY,
    dissipate,
    largest_added_damping,
    observe,
    restart_observation,
    store_command,
)
from haptics.rendering.rendering import Rendering
from tests.haptics.doubles import make_spec
from tests.haptics.strategies import PHYSICS

T = 1e-3
COUNT = 10e-6
PUSH = ((0.2, 0.0, 0.0), (0.21, 6.0, 2.0), (0.23, 6.0, 2.0), (0.24, 0.0, 0.0))
"""A hand that pushes the handle into a slide once the force has faded in, and releases it."""
BARE: dict[str, Any] = {
    "mass": 0.2,
    "damping": 0.0,
    "delay": 2e-3,
    "resolution": COUNT,
    "hand": {"name": "scripted-force", "script": PUSH},
}
GRIPPED: dict[str, Any] = {**BARE, "hand": {"name": "minimum-jerk"}}


def model_c(stiffness=6000.0, damping=10.0, period=T):
    return MasslessImpedance(Coulomb(4.0), stiffness, damping, period)


def session(element, settings, *, control, seconds=2.0, device=VirtualJoystick):
    """Run an element on a device without waiting; return the trace."""
    clock = Clock(element.period)
    plant = device(settings, clock=clock)
    limits = Limits.for_device(plant.spec, {"passivity_control": control} if control else {})
    with tempfile.TemporaryDirectory() as folder:
        trace = Trace.create(Path(folder) / "trace")
        Servo(plant, element, trace, clock=clock, limits=limits).run(seconds)
        return trace.since(0)


def data_sheet(**changes):
    fields: dict[str, Any] = {"delay": 0.0, "mass": 0.2, "fade_in": 0.0, **changes}
    return replace(VirtualJoystick().spec, **{"position_resolution": None, "velocity_lag": 0.0, **fields})


def swing(rows, start):
    """Return by how much the handle swings from `start` [s] on [m], each direction for itself."""
    late = rows["position"][rows["time"] >= start]
    return float(np.ptp(late, axis=0).max())


def helped(rows):
    """Return for each tick whether damping was added."""
    return rows["status"] & Status.PASSIVITY != 0


def observed_and_real(delay, told=None, seconds=0.25):
    """Return observed and true injected energy of a bare handle released with a wound spring, (n,) each [J].

    Only the loop does work on such a handle: the injected energy is the rise of kinetic and stored energy above
    their minimum.
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
def test_observer_sees_the_energy_of_the_handle(delay):
    observed, real = observed_and_real(delay)
    assert real[-1] > 2e-5
    assert np.abs(observed - real).max() < 0.02 * real.max()


def test_observer_needs_the_delay():
    blind, real = observed_and_real(2e-3, told=0.0)
    assert blind[-1] < 0.35 * real[-1]


@given(
    delay=st.floats(0.0, 6.0),
    periods=st.lists(st.integers(1, 9), min_size=1, max_size=12),
    seed=st.integers(0, 2**32 - 1),
)
@PHYSICS
def test_skipped_deadlines_extend_the_last_command(delay, periods, seed):
    """A handle in uniform motion, and commands that came when they came: the energy is the integral of a staircase."""
    generator = np.random.default_rng(seed)
    element = MasslessImpedance(Coulomb(1e-9), 0.0, 1.0)  # no store
    rendering, row = Rendering(element, data_sheet(delay=delay * T)), np.zeros(1, ROW)
    core = rendering.core
    starts, forces = [], []
    tick, found = 0, 0.0
    for following in [*periods, 0]:
        core["injected"] = 10.0  # joules, far from the clamp
        rendering.tick(State(position=np.array([0.01 * tick * T, 0.0])), 0.0, row, 0, (tick, tick * T, 0.0, 0))
        found += core["injected"][0] - 10.0
        starts.append(tick)
        forces.append(generator.uniform(-3.0, 3.0))
        core["history"][0, (core["written"][0] - 1) % HISTORY, 0] = forces[-1]
        tick += following
    assert found == pytest.approx(0.01 * T * staircase_integral(starts, forces, starts[-1] - delay), abs=1e-12)


def staircase_integral(starts, forces, end):
    """Integrate from the beginning to `end` forces that hold from their starts on."""
    stops = [*starts[1:], math.inf]
    return sum(f * max(min(stop, end) - start, 0.0) for start, stop, f in zip(starts, stops, forces, strict=True))


@pytest.mark.parametrize("estimator", ["tracker", "difference"])
@pytest.mark.parametrize("delay", [0.0, 0.5e-3, 1e-3])
def test_encoder_injects_little_energy_in_a_sound_loop(estimator, delay):
    """Strokes, rests and tremor under 4 N and 10 um: a loop that is sound is seen as such to within a few counts."""
    settings = {**GRIPPED, "delay": delay, "velocity_estimator": estimator}
    rows = session(model_c(), settings, control=False, seconds=8.0)
    assert rows["injected_energy"].max() < 4.0 * 5.0 * COUNT


@pytest.mark.parametrize(
    "element", [RigidAdmittance(Coulomb(4.0), 2.0), CompliantAdmittance(Coulomb(4.0), 2.0, 6000.0, 100.0)]
)
def test_following_arm_injects_almost_nothing(element):
    settings = {"hand": {"name": "minimum-jerk"}}
    rows = session(element, settings, control=False, seconds=8.0, device=VirtualArm)
    dissipated = np.sum(rows["friction_force"] * rows["sliding_velocity"]) * T
    assert dissipated > 0.2
    # Its encoders are on the motors: where the gears twist under a joint that holds, they pretend a motion.
    assert rows["injected_energy"].max() < 2e-3


Q = 1e-5


@kernel
def _observe(records, periods):
    observe(records[0], periods)


@kernel
def _remember(records, x, y):
    store_command(records[0], x, y)


@kernel
def _forget(records):
    restart_observation(records[0])


@kernel
def _dissipate(records, x, y):
    return dissipate(records[0], x, y)


def core_of(stiffness=0.0, coupling=10.0, **facts):
    """Return the record of a rendering of model C, of a stiffness and damping, on a handle with these facts."""
    spec = data_sheet(**{"damping": 0.0, **facts})
    element = MasslessImpedance(Coulomb(100.0), stiffness, coupling)
    return Rendering(element, spec, Limits.for_device(spec, {"passivity_control": True})).core


def see(core, x, periods=1, velocity=0.0, displacement=0.0):
    """Let a sample be observed; return the energy injected until then [J]."""
    core["position"], core["velocity"], core["displacement"] = (x, 0.0), (velocity, 0.0), (displacement, 0.0)
    _observe(core, periods)
    return float(core["injected"][0])


# --- observer ------------------------------------------------------------------------------------------------


def test_spring_and_mass_are_stores():
    element = InertialImpedance(Coulomb(4.0), 0.3, 2000.0, 10.0)
    core = Rendering(element, data_sheet()).core
    see(core, 0.0)
    core["mass_velocity"] = (0.4, -0.3)
    assert see(core, 0.0, displacement=2e-3) == pytest.approx(0.5 * 0.3 * 0.25 + 0.5 * 2000.0 * 4e-6)


def test_springs_of_iwan_are_stores():
    element = CLASSICS["iwan"][Causality.IMPEDANCE](
        Coulomb(4.0), stiffness=2000.0, stiff_share=0.5, stiff_stiffness=8000.0, period=T
    )
    core = Rendering(element, data_sheet()).core
    see(core, 0.0)
    core["memory"][0, : 2 * 6] = 1e-4
    core["memory"][0, STIFF : STIFF + 2] = 3e-4
    assert see(core, 0.0, displacement=5.0) == pytest.approx(0.5 * 2.0 * (2000.0 * 1e-8 + 8000.0 * 9e-8))


def test_energy_of_an_arm_uses_the_mean_force():
    core = Rendering(RigidAdmittance(Coulomb(4.0), 2.0), make_spec(Causality.ADMITTANCE)).core
    core["force"] = (-6.0, 0.0)
    see(core, 0.0)
    core["force"] = (-2.0, 0.0)
    assert see(core, 1e-3) == pytest.approx(4.0 * 1e-3)


def test_dissipated_energy_is_no_credit():
    core = core_of()
    see(core, 0.0)
    _remember(core, -5.0, 0.0)
    assert see(core, 1e-3) == 0.0
    _remember(core, 5.0, 0.0)
    assert see(core, 2e-3) == pytest.approx(5e-3)
    _forget(core)
    assert see(core, 9e-3) == pytest.approx(5e-3), "energy of a gap is not counted"
    _remember(core, 5.0, 0.0)
    assert see(core, 1e-2) == pytest.approx(1e-2)


# --- ledger of the controller -------------------------------------------------------------------------------------


def test_damping_of_the_device_is_fading_credit():
    core = core_of(damping=5.0)
    core["sticking"] = 1
    see(core, 0.0, velocity=0.1)
    credit, fades = 5.0 * 0.1**2 * T, math.exp(-T / DECAY_TIME)
    expected = 0.0
    for _ in range(4):
        see(core, 0.0, velocity=0.1)
        expected = (expected - credit) * fades
        assert core["excess"][0] == pytest.approx(expected)
    core["sticking"] = 0
    see(core, 0.0, velocity=0.1)
    assert core["excess"][0] == pytest.approx(expected * fades), "what is taken out while it slides is none"


def test_force_is_delayed_like_the_velocity():
    core = core_of(velocity_lag=T)
    see(core, 0.0, velocity=0.1)
    for expected in (0.0, 5.0 * 0.1 * T):
        _remember(core, 5.0, 0.0)
        see(core, 0.0, velocity=0.1)
        assert core["excess"][0] == pytest.approx(expected, abs=1e-15)


# --- the damper --------------------------------------------------------------------------------------------------


def damping_at(core, excess, velocity=0.1):
    """Return the damping that acts at an excess [N s/m]."""
    core["excess"], core["velocity"] = excess, (velocity, 0.0)
    x, y, flag = _dissipate(core, 3.0, 1.0)
    assert y == 1.0
    assert (flag == Status.PASSIVITY) == (x != 3.0)
    return (3.0 - x) / velocity


def test_damping_starts_beyond_a_count_and_lasts_to_zero():
    core = core_of(6000.0, 10.0, delay=T, position_resolution=Q)
    core["moving"] = 1
    threshold = (6000.0 + 10.0 / T) * Q**2
    assert damping_at(core, 0.99 * threshold) == 0.0
    assert damping_at(core, 1.01 * threshold) == pytest.approx(1.01 * threshold / (T * 0.1**2))
    assert damping_at(core, 0.5 * threshold) == pytest.approx(0.5 * threshold / (T * 0.1**2))
    assert damping_at(core, 0.0) == 0.0
    assert damping_at(core, 0.99 * threshold) == 0.0
    core["moving"] = 0
    assert damping_at(core, 1.0) == 0.0


@pytest.mark.parametrize(("stiffness", "mass"), [(1000.0, 0.2), (6000.0, 0.2), (6000.0, 0.04)])
def test_damping_is_bounded_by_spring_and_device(stiffness, mass):
    core = core_of(stiffness, 10.0, delay=T, mass=mass)
    core["moving"] = 1
    bears = 0.25 * math.pi * mass / (2.0 * T) - 10.0
    assert damping_at(core, 1.0) == pytest.approx(max(min(2.0 * stiffness * 1.5 * T, bears), 0.0))


@pytest.mark.parametrize("lag", [0.0, 1e-3])
@pytest.mark.parametrize("delay", [0.0, 0.4e-3, 1e-3, 2e-3, 3.5e-3])
def test_damping_bound_has_a_margin_of_two(delay, lag):
    """A damper of this size beside a spring that hardly holds the handle."""
    bound = largest_added_damping(data_sheet(delay=delay, velocity_lag=lag), T)
    for share, stable in ((1.9, True), (3.0, False)):
        matrix = stuck_matrix(Coupling(1.0, share * bound, T), Handle(0.2, 0.0, delay, velocity_lag=lag))
        assert (growth(matrix) < 1.0) is stable


def test_unknown_mass_or_admittance_gets_no_damping():
    assert largest_added_damping(data_sheet(mass=None), T) == 0.0
    assert largest_added_damping(replace(data_sheet(), causality=Causality.ADMITTANCE), T) == 0.0


RINGING: dict[str, Element] = {
    "C": model_c(),
    "C, Stribeck": MasslessImpedance(Stribeck(4.0, 5.0, 0.1), 6000.0, 10.0),
    "C at 2 kHz": model_c(period=5e-4),
    "B": InertialImpedance(Coulomb(4.0), 0.1, 6000.0, 10.0),
}


@pytest.mark.parametrize("resolution", [0.0, COUNT])
@pytest.mark.parametrize("name", RINGING)
def test_ringing_loop_settles(name, resolution):
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
def test_controller_extends_the_stable_stiffness(delay, reach):
    limit = stiffness_limit(Handle(0.2, 0.0, delay), 10.0)
    assert reach > 2.2 * limit
    settings = {**BARE, "delay": delay, "resolution": 0.0}
    if reach == 10000.0:
        assert swing(session(model_c(0.95 * limit), settings, control=False, seconds=4.0), 3.5) < 1e-4
    for stiffness in (1.6 * limit, reach):
        assert swing(session(model_c(stiffness), settings, control=False), 1.5) > 4e-4
        assert swing(session(model_c(stiffness), settings, control=True), 1.5) < 1e-5


def added_force(rows):
    """Return the norm of the change of the element's force in each tick without fades [N]."""
    full = rows["status"] & Status.FADE == 0
    return np.where(full, np.hypot(*(rows["command"] - rows["command_unlimited"]).T), 0.0)


SETTLING = [
    pytest.param(0.2, 0.0, 0.0, 0.0, id="no delay"),
    pytest.param(0.2, 0.5e-3, 0.0, 0.0, id="half a period"),
    pytest.param(0.2, 1e-3, 0.0, 0.0, id="hardly settles"),
    pytest.param(0.1, 1e-3, 1.0, 0.0, id="settles by the device's own friction"),
    pytest.param(0.05, 0.5e-3, 0.0, 0.0, id="light"),
    pytest.param(0.2, 0.0, 0.0, COUNT, id="encoder"),
    pytest.param(0.2, 0.5e-3, 0.0, COUNT, id="encoder, half a period"),
    pytest.param(0.1, 0.5e-3, 0.0, COUNT, id="encoder, lighter"),
    pytest.param(0.05, 0.5e-3, 0.0, COUNT, id="encoder, light"),
]


@pytest.mark.parametrize(("mass", "delay", "damping", "resolution"), SETTLING)
def test_controller_leaves_a_settling_bare_handle_alone(mass, delay, damping, resolution):
    """Every loop here is stable by its eigenvalues, one of them by a part in a thousand only."""
    assert growth(stuck_matrix(Coupling(6000.0, 10.0, T), Handle(mass, damping, delay))) < 0.9989
    settings = {**BARE, "mass": mass, "delay": delay, "damping": damping, "resolution": resolution}
    without, rows = (session(model_c(), settings, control=control) for control in (False, True))
    assert swing(without, PUSH[1][0]) > 5e-3
    assert helped(rows).mean() < 0.005
    assert np.abs(rows["position"] - without["position"]).max() < (2.0 * resolution or 1e-6)


@pytest.mark.parametrize("delay", [0.0, 0.5e-3])
def test_controller_leaves_a_sound_loop_alone(delay):
    rows = session(model_c(), {**GRIPPED, "delay": delay}, control=True, seconds=8.0)
    assert not helped(rows)[rows["time"] > 0.3].any()


@pytest.mark.parametrize("delay", [1e-3, 2e-3])
def test_controller_keeps_the_friction_in_a_hand(delay):
    """Stiffness at 95 % and at 160 % of the limit of a bare handle."""
    without = session(model_c(), {**GRIPPED, "delay": delay}, control=False, seconds=10.0)
    rows = session(model_c(), {**GRIPPED, "delay": delay}, control=True, seconds=10.0)
    begun = rows["time"] > 0.3
    sliding = rows["sticking"] == 0
    assert helped(rows).any()
    assert added_force(rows)[begun & sliding].mean() < 1e-3 * 4.0
    assert added_force(rows)[begun & ~sliding].mean() < 1e-2 * 4.0
    assert drift(rows) < drift(without) + COUNT


def drift(rows):
    """Return how far the place where the longest rest is held wanders [m]."""
    edges = np.flatnonzero(np.diff(rows["sticking"], prepend=0, append=0))
    start, stop = max(itertools.pairwise(edges), key=lambda pair: rows["sticking"][pair[0]] * (pair[1] - pair[0]))
    assert stop - start > 1000
    return float(np.ptp(rows["proxy"][start:stop], axis=0).max())


@given(
    force=st.tuples(*[st.floats(-20.0, 20.0)] * 2),
    velocity=st.tuples(*[st.floats(-3.0, 3.0)] * 2),
    excess=st.floats(0.0, 1.0),
    added=st.floats(0.0, 100.0),
    sticking=st.booleans(),
)
@PHYSICS
def test_damper_only_brakes(force, velocity, excess, added, sticking):
    rendering = Rendering(
        model_c(), data_sheet(delay=2e-3), Limits.for_device(data_sheet(), {"passivity_control": True})
    )
    core = rendering.core
    core["velocity"], core["excess"], core["added_damping"], core["sticking"] = velocity, excess, added, sticking
    core["moving"] = 1
    x, y, flag = _dissipate(core, *force)
    change = np.array([x, y]) - force
    bound = core["max_added_damping"][0] - core["damping"][0]
    assert change @ velocity <= 1e-12
    assert abs(change[0] * velocity[1] - change[1] * velocity[0]) <= 1e-9
    assert np.hypot(*change) <= bound * np.hypot(*velocity) + 1e-9
    assert (flag != 0) or not change.any()
    if excess == 0.0 and (not sticking or added == 0.0):
        assert not change.any()
