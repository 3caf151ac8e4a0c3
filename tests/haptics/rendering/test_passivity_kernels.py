"""Observer and controller of passivity, one rule at a time, without the rendering around them."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from haptics import Coulomb, InertialImpedance, MasslessImpedance, RigidAdmittance
from haptics.device import Causality
from haptics.elements.classic.bristle_kernels import STIFF
from haptics.elements.classic.models import CLASSICS
from haptics.jit import kernel
from haptics.records import Status
from haptics.rendering.envelope import Limits
from haptics.rendering.passivity import LINGERING, dissipate, forget, largest_added_damping, observe, remember
from haptics.rendering.rendering import Rendering
from tests.haptics.doubles import make_spec
from tests.haptics.passivity_loops import T, data_sheet

Q = 1e-5


@kernel
def _observe(records: Any, periods: int) -> None:
    observe(records[0], periods)


@kernel
def _remember(records: Any, x: float, y: float) -> None:
    remember(records[0], x, y)


@kernel
def _forget(records: Any) -> None:
    forget(records[0])


@kernel
def _dissipate(records: Any, x: float, y: float) -> tuple[float, float, int]:
    return dissipate(records[0], x, y)


def core_of(stiffness: float = 0.0, coupling: float = 10.0, **facts: Any) -> Any:
    """Return the record of a rendering of model C, of a stiffness and damping, on a handle with these facts."""
    spec = data_sheet(**{"damping": 0.0, **facts})
    element = MasslessImpedance(Coulomb(100.0), stiffness, coupling)
    return Rendering(element, spec, Limits.of(spec, {"passivity_control": True})).core


def see(core: Any, x: float, periods: int = 1, velocity: float = 0.0, displacement: float = 0.0) -> float:
    """Let a sample be observed; return the energy injected until then [J]."""
    core["position"], core["velocity"], core["displacement"] = (x, 0.0), (velocity, 0.0), (displacement, 0.0)
    _observe(core, periods)
    return float(core["injected"][0])


# --- the observer ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delay", [0.0, 0.25, 1.0, 2.75])
def test_the_force_in_effect_is_the_command_of_then(delay: float) -> None:
    """Commands are held until the next one, and act later; compared with their integral by many small steps."""
    generator = np.random.default_rng(7)
    core = core_of(delay=delay * T)
    ticks = np.cumsum(generator.choice([1, 1, 1, 2, 6], 40))
    commands, ways = generator.uniform(1.0, 9.0, 40), generator.uniform(1e-6, 1e-4, 40)
    fine = 400
    instants = ticks[0] + (np.arange((ticks[-1] - ticks[0]) * fine) + 0.5) / fine
    number = np.searchsorted(ticks, instants - delay + 1e-12, side="right") - 1
    acting = np.where(number >= 0, commands[np.maximum(number, 0)], 0.0)
    x, expected = 0.0, 0.0
    see(core, x)
    _remember(core, commands[0], 0.0)
    for before, (k, tick) in zip(ticks, list(enumerate(ticks))[1:], strict=False):
        x += ways[k]
        expected += ways[k] * acting[(before - ticks[0]) * fine : (tick - ticks[0]) * fine].mean()
        assert see(core, x, periods=int(tick - before)) == pytest.approx(expected, rel=1e-9)
        _remember(core, commands[k], 0.0)


def test_spring_and_mass_are_a_store() -> None:
    element = InertialImpedance(Coulomb(4.0), 0.3, 2000.0, 10.0)
    core = Rendering(element, data_sheet()).core
    see(core, 0.0)
    core["mass_velocity"] = (0.4, -0.3)
    assert see(core, 0.0, displacement=2e-3) == pytest.approx(0.5 * 0.3 * 0.25 + 0.5 * 2000.0 * 4e-6)


def test_the_springs_of_iwan_are_stores_of_their_own() -> None:
    element = CLASSICS["iwan"][Causality.IMPEDANCE](Coulomb(4.0), period=T)  # type: ignore[call-arg]
    core = Rendering(element, data_sheet()).core
    springs, stiffness = int(core["numbers"][0, 0]), core["stiffness"][0]
    see(core, 0.0)
    core["memory"][0, : 2 * springs] = 1e-4
    assert see(core, 0.0, displacement=5.0) == pytest.approx(0.5 * stiffness * 2.0 * 1e-8)


def test_the_stiff_spring_of_iwan_is_a_store_too() -> None:
    element = CLASSICS["iwan"][Causality.IMPEDANCE](  # type: ignore[call-arg]
        Coulomb(4.0), stiffness=2000.0, stiff_share=0.5, stiff_stiffness=8000.0, period=T
    )
    core = Rendering(element, data_sheet()).core
    see(core, 0.0)
    core["memory"][0, : 2 * 6] = 1e-4
    core["memory"][0, STIFF : STIFF + 2] = 3e-4
    assert see(core, 0.0, displacement=5.0) == pytest.approx(0.5 * 2.0 * (2000.0 * 1e-8 + 8000.0 * 9e-8))


@pytest.mark.parametrize(
    ("ways", "steps"), [((0, 1), 1), ((1, 1), 0), ((1, 3), 1), ((0, 3), 1), ((2, 2.5), 0.5), ((3, 0), 0)]
)
def test_what_an_encoder_can_pretend_is_excused(ways: tuple[float, float], steps: float) -> None:
    """A step of one count after none; not what goes on, and no more than one count at a time."""
    core = core_of(stiffness=1000.0, position_resolution=Q)
    see(core, 0.0)
    see(core, ways[0] * Q)
    before = float(core["injected"][0])
    grown = 0.5 * 1000.0 * (1e-3) ** 2
    found = see(core, (ways[0] + ways[1]) * Q, displacement=1e-3) - before
    assert found == pytest.approx(grown - 0.5 * 1000.0 * (steps * Q) ** 2, abs=1e-15)


def test_to_and_fro_by_one_count_is_no_motion() -> None:
    core = core_of(position_resolution=Q)
    moving = []
    for counts in (0, 1, 0, 1, 2, 1, 2, 1, 0, -1, 0):
        see(core, counts * Q)
        moving.append(int(core["moving"][0]))
    assert moving == [0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0]
    plain = core_of()
    see(plain, 0.0)
    assert plain["moving"][0] == 1


def test_of_an_arm_the_mean_of_the_hands_force_counts() -> None:
    core = Rendering(RigidAdmittance(Coulomb(4.0), 2.0), make_spec(Causality.ADMITTANCE)).core
    core["force"] = (-6.0, 0.0)
    see(core, 0.0)
    core["force"] = (-2.0, 0.0)
    assert see(core, 1e-3) == pytest.approx(4.0 * 1e-3)


def test_what_was_taken_out_is_no_credit_for_what_is_injected_later() -> None:
    core = core_of()
    see(core, 0.0)
    _remember(core, -5.0, 0.0)
    assert see(core, 1e-3) == 0.0
    _remember(core, 5.0, 0.0)
    assert see(core, 2e-3) == pytest.approx(5e-3)
    _forget(core)
    assert see(core, 9e-3) == pytest.approx(5e-3), "nobody knows what happened meanwhile"
    _remember(core, 5.0, 0.0)
    assert see(core, 1e-2) == pytest.approx(1e-2)


# --- the controller's ledger -------------------------------------------------------------------------------------


def test_what_the_device_damps_is_credit_that_fades() -> None:
    core = core_of(damping=5.0)
    core["sticking"] = 1
    see(core, 0.0, velocity=0.1)
    credit, fades = 5.0 * 0.1**2 * T, math.exp(-T / LINGERING)
    expected = 0.0
    for _ in range(4):
        see(core, 0.0, velocity=0.1)
        expected = (expected - credit) * fades
        assert core["excess"][0] == pytest.approx(expected)
    core["sticking"] = 0
    see(core, 0.0, velocity=0.1)
    assert core["excess"][0] == pytest.approx(expected * fades), "what is taken out while it slides is none"


def test_the_ledger_takes_the_force_as_late_as_the_velocity() -> None:
    core = core_of(velocity_lag=T)
    see(core, 0.0, velocity=0.1)
    for expected in (0.0, 5.0 * 0.1 * T):
        _remember(core, 5.0, 0.0)
        see(core, 0.0, velocity=0.1)
        assert core["excess"][0] == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(("stiffness", "damping"), [(6000.0, 0.0), (0.0, 10.0), (6000.0, 10.0)])
def test_a_late_coupling_lends_as_a_mass_would_hold(stiffness: float, damping: float) -> None:
    core = core_of(stiffness, damping if damping else 1e-12, delay=2.0 * T)
    core["sliding_velocity"] = (0.2, 0.0)
    see(core, 0.0, velocity=0.5)
    late = 2.5 * T
    mass = damping * (late + 0.5 * T) - 0.5 * stiffness * late**2
    assert core["lent"][0] == pytest.approx(0.5 * mass * 0.3**2, rel=1e-9)


# --- the damper --------------------------------------------------------------------------------------------------


def damping_at(core: Any, excess: float, velocity: float = 0.1) -> float:
    """Return the damping that acts at an excess [N s/m]."""
    core["excess"], core["velocity"] = excess, (velocity, 0.0)
    x, y, flag = _dissipate(core, 3.0, 1.0)
    assert y == 1.0
    assert (flag == Status.PASSIVITY) == (x != 3.0)
    return (3.0 - x) / velocity


def test_damping_begins_beyond_a_count_and_lasts_until_nothing_is_left() -> None:
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
def test_damping_is_bounded_by_what_the_spring_does_and_by_what_the_device_bears(stiffness: float, mass: float) -> None:
    core = core_of(stiffness, 10.0, delay=T, mass=mass)
    core["moving"] = 1
    bears = 0.25 * math.pi * mass / (2.0 * T) - 10.0
    assert damping_at(core, 1.0) == pytest.approx(max(min(2.0 * stiffness * 1.5 * T, bears), 0.0))


def test_while_it_sticks_damping_outlasts_the_excess() -> None:
    core = core_of(6000.0, 10.0, delay=T)
    core["moving"] = core["sticking"] = 1
    found = [damping_at(core, 1.0), *(damping_at(core, -1.0) for _ in range(20))]
    np.testing.assert_allclose([b / a for a, b in itertools.pairwise(found)], math.exp(-T / LINGERING))
    core["sticking"] = 0
    assert damping_at(core, -1.0) == 0.0


def test_a_velocity_that_comes_late_bears_less_damping() -> None:
    for lag in (0.0, 1e-3):
        expected = 0.25 * math.pi * 0.2 / (2e-3 + lag + T)
        assert largest_added_damping(data_sheet(delay=2e-3, velocity_lag=lag), T) == pytest.approx(expected)
