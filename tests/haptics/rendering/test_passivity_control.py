"""The passivity controller: loops that ring settle, and loops that settle by themselves are left alone."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptics import Coulomb, InertialImpedance, MasslessImpedance, Stribeck
from haptics.design import Handle, stiffness_limit
from haptics.design.loops import Coupling, growth, stuck_matrix
from haptics.device import Causality, State
from haptics.elements.classic.models import LuGre
from haptics.elements.models import Element
from haptics.jit import kernel
from haptics.records import ROW, Rows, Status
from haptics.rendering.envelope import Limits
from haptics.rendering.passivity import LINGERING, dissipate, largest_added_damping
from haptics.rendering.rendering import Rendering
from tests.haptics.passivity_loops import (
    BARE,
    COUNT,
    GRIPPED,
    PUSH,
    T,
    data_sheet,
    helped,
    model_c,
    ring_after_a_slide,
    session,
    swing,
)
from tests.haptics.strategies import PHYSICS

FADED_IN = 0.3
"""When the beginning is over [s]: a spring that was wound while the force faded in holds more than the hand gave."""

RINGING: dict[str, Element] = {
    "C": model_c(),
    "C, Stribeck": MasslessImpedance(Stribeck(4.0, 5.0, 0.1), 6000.0, 10.0),
    "C at 2 kHz": model_c(period=5e-4),
    "B": InertialImpedance(Coulomb(4.0), 0.1, 6000.0, 10.0),
}


@pytest.mark.parametrize("resolution", [0.0, COUNT])
@pytest.mark.parametrize("name", RINGING)
def test_a_loop_that_rings_settles(name: str, resolution: float) -> None:
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
def test_it_reaches_beyond_what_is_stable_without(delay: float, reach: float) -> None:
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


SETTLING = [
    pytest.param(0.2, 0.0, 0.0, id="no delay"),
    pytest.param(0.2, 0.5e-3, 0.0, id="half a period"),
    pytest.param(0.2, 1e-3, 0.0, id="hardly settles"),
    pytest.param(0.1, 1e-3, 1.0, id="settles by the device's own friction"),
    pytest.param(0.05, 0.5e-3, 0.0, id="light"),
]


@pytest.mark.parametrize(("mass", "delay", "damping"), SETTLING)
def test_a_bare_handle_that_comes_to_rest_is_left_alone(mass: float, delay: float, damping: float) -> None:
    """Every loop here is stable by its eigenvalues, one of them by a part in a thousand only."""
    assert growth(stuck_matrix(Coupling(6000.0, 10.0, T), Handle(mass, damping, delay))) < 0.9989
    settings = {**BARE, "mass": mass, "delay": delay, "damping": damping, "resolution": 0.0}
    without, rows = (session(model_c(), settings, control=control) for control in (False, True))
    assert swing(without, PUSH[1][0]) > 5e-3
    assert helped(rows).mean() < 0.005
    assert np.abs(rows["position"] - without["position"]).max() < 1e-6


@pytest.mark.parametrize(("mass", "delay"), [(0.2, 0.0), (0.2, 0.5e-3), (0.1, 0.5e-3), (0.05, 0.5e-3)])
def test_and_so_it_is_with_an_encoder(mass: float, delay: float) -> None:
    settings = {**BARE, "mass": mass, "delay": delay}
    without, rows = (session(model_c(), settings, control=control) for control in (False, True))
    assert helped(rows).mean() < 0.005
    assert np.abs(rows["position"] - without["position"]).max() < 2.0 * COUNT


@pytest.mark.parametrize("own", [0.0, 5.0])
def test_credit_is_what_the_dampers_took_out_in_the_last_swing(own: float) -> None:
    """A coupling without a spring, pulled steadily for long: `LINGERING` times the power of both dampers."""
    rendering = Rendering(MasslessImpedance(Coulomb(100.0), 0.0, 10.0), data_sheet(damping=own))
    row = np.zeros(1, ROW)
    for tick in range(1000):
        state = State(position=np.array([0.01 * tick * T, 0.0]), velocity=np.array([0.01, 0.0]))
        rendering.tick(state, 0.0, row, 0, (tick, tick * T, 0.0, 0))
    assert rendering.core["excess"][0] == pytest.approx(-(10.0 + own) * 0.01**2 * LINGERING, rel=0.05)


def test_a_slide_gives_the_controller_no_credit() -> None:
    found = []
    for ticks in (100, 5000):
        rendering = Rendering(model_c(), data_sheet(delay=2e-3, damping=0.0))
        ring_after_a_slide(ticks, rendering)
        found.append(rendering.core["excess"][0])
    assert found[0] > 1e-4
    assert found[1] == pytest.approx(found[0], rel=1e-2)


@pytest.mark.parametrize("mass", [0.05, 0.2])
@pytest.mark.parametrize("delay", [1e-3, 2e-3, 3e-3])
def test_there_is_a_stiffness_that_no_damping_holds(mass: float, delay: float) -> None:
    """A spring and damper whose force comes t late hold a mass m, whatever the damping, up to K = .55 m/t^2."""
    angle = np.linspace(0.0, math.pi / 2.0, 2001)
    bound = np.max(angle**2 * np.cos(angle)) * mass / (delay + T) ** 2
    assert bound == pytest.approx(0.55 * mass / (delay + T) ** 2, rel=1e-3)

    def best(stiffness: float) -> float:
        handle, dampings = Handle(mass, 0.0, delay), np.linspace(0.05, 1.5, 60) * mass / (delay + T)
        return min(growth(stuck_matrix(Coupling(stiffness, damping, T), handle)) for damping in dampings)

    assert best(0.95 * bound) < 1.0 < best(1.1 * bound)


@pytest.mark.parametrize("delay", [0.0, 0.5e-3])
def test_a_sound_loop_is_left_alone(delay: float) -> None:
    rows = session(model_c(), {**GRIPPED, "delay": delay}, control=True, seconds=8.0)
    assert not helped(rows)[rows["time"] > FADED_IN].any()


@pytest.mark.parametrize("delay", [1e-3, 2e-3])
def test_in_a_hand_it_renders_the_same_friction(delay: float) -> None:
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


def test_a_classic_bristle_may_give_back_what_it_holds() -> None:
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
    core = rendering.core
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
