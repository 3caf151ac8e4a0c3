"""Motions: they take a device along a reference within their bounds, wait, hold, and change at a tick boundary."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import devices
from haptics.clock import Clock
from haptics.device import Causality, State
from haptics.elements.models import MasslessImpedance, RigidAdmittance
from haptics.errors import CausalityError, ConfigurationError, DeviceFault
from haptics.friction.laws import Coulomb
from haptics.records import Permission, Rows, Status
from haptics.rendering.envelope import FADE_OUT, UNUSABLE, Limits
from haptics.rendering.motion import Motion, holding, reference
from haptics.rendering.rendering import Rendering
from haptics.servo.servo import Servo
from haptics.trace import Trace
from tests.haptics.doubles import BenchDevice, make_spec

PERIOD = 1e-3
FADE_IN = 100
"""Ticks of the virtual devices."""

NOBODY = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
CONTROLLER = {"stiffness": 400.0, "damping": 12.0, "integration": 4000.0}


def way(end: tuple[float, float], count: int = 500) -> Any:
    """A smooth way from the origin to `end`, with a stop of 50 ms before it ends."""
    share = np.minimum(np.arange(count) / (count - 50), 1.0)
    return reference(np.outer(0.5 * (1.0 - np.cos(np.pi * share)), end))


def motion(table: Any, causality: Causality = Causality.IMPEDANCE, **changes: Any) -> Motion:
    controller = CONTROLLER if causality is Causality.IMPEDANCE else {}
    return Motion(causality, table, **{"bound": 5.0, "max_error": 0.02, **controller, **changes})


def device(name: str, clock: Clock, **changes: Any) -> Any:
    return devices.create_device(name, {"hand": NOBODY, **changes}, clock=clock)


def run(
    name: str, first: Any, trace: Trace, duration: float, then: Callable[[Rendering, int], None] = lambda r, k: None
) -> Rows:
    clock = Clock(PERIOD)
    servo = Servo(device(name, clock), first, trace, clock=clock, before_tick=lambda r: then(r, clock.tick))
    servo.run(duration)
    return trace.since(0)


# --- it follows -------------------------------------------------------------------------------------------------------


def test_a_handle_is_taken_along_and_stays_at_the_end(trace: Trace) -> None:
    rows = run("virtual-joystick", motion(way((0.03, -0.02))), trace, 1.5)
    off = np.hypot(*(rows["position"] - rows["proxy"]).T)
    assert off.max() < 1.5e-3
    np.testing.assert_allclose(rows["position"][-20], (0.03, -0.02), atol=2e-5)  # an encoder's step is 1e-5 m
    arrived = np.flatnonzero(rows["sticking"])
    assert arrived[0] == FADE_IN + 498
    assert (np.diff(arrived) == 1).all()
    np.testing.assert_allclose(rows["sliding_velocity"][arrived[1] :], 0.0, atol=0.0)
    np.testing.assert_allclose(rows["displacement"], rows["position"] - rows["proxy"], atol=1e-16)


def test_an_arm_is_taken_along_and_stays_at_the_end(trace: Trace) -> None:
    rows = run("virtual-arm", motion(way((0.02, 0.02)), Causality.ADMITTANCE, bound=0.3), trace, 1.5)
    np.testing.assert_allclose(rows["command"][-1], rows["command"][0] + (0.02, 0.02), atol=1e-12)
    assert np.hypot(*(rows["position"] - rows["proxy"]).T).max() < 2e-3


def test_a_relative_motion_begins_where_the_device_is(trace: Trace) -> None:
    rows = run("virtual-joystick", motion(way((0.02, 0.0)), relative=True), trace, 1.0)
    start = rows["position"][0]
    np.testing.assert_array_equal(rows["proxy"][0], start)
    np.testing.assert_allclose(rows["proxy"][-1], np.add(start, (0.02, 0.0)), atol=1e-12)


def test_the_additional_force_is_given_as_it_is(trace: Trace) -> None:
    force = np.zeros((200, 2))
    force[20:120, 1] = 0.3
    table = reference(np.zeros((200, 2)), force=force)
    free = motion(table, stiffness=0.0, damping=0.0, integration=0.0, max_error=0.2)
    rows = run("virtual-joystick", free, trace, 0.5)
    np.testing.assert_allclose(rows["command"][FADE_IN : FADE_IN + 199], force[1:], atol=1e-12)
    assert rows["velocity"][FADE_IN + 110, 1] > 0.1


def test_a_contact_adds_up_the_velocity_it_is_told_as_a_sticking_element_does(trace: Trace) -> None:
    told = bench(at(0.004, 0.02), motion(reference(np.zeros((400, 2))), relative=True, contact=True), trace, 0.3)
    told[1].run(told[2])
    rows = trace.since(0)
    np.testing.assert_allclose(np.diff(rows["displacement"][:200, 0]), 0.02 * PERIOD, rtol=1e-9)
    assert rows["displacement"][0, 0] == pytest.approx(0.02 * PERIOD)
    assert rows["position"][200, 0] == 0.004  # which does not move at all


def test_a_motion_that_is_off_by_too_much_rests_with_other_gains_from_that_tick_on(trace: Trace) -> None:
    def swing(state: State, number: int) -> None:
        state.position[:], state.velocity[:], state.force[:] = (1e-4 * max(number - 200, 0), 0.0), (0.0, 0.0), 0.0

    gains = {"stiffness": 500.0, "damping": 0.0, "integration": 0.0}
    gains |= {"trip": 2e-3, "rest": 0.03, "rest_stiffness": 10.0}
    tripping = motion(reference(np.zeros((1000, 2))), max_error=0.05, **gains)
    _, servo, duration = bench(swing, tripping, trace, 0.3)
    servo.run(duration)
    rows = trace.since(0)
    first = int(np.argmax(rows["displacement"][:, 0] > 2e-3))
    assert first < 250
    asked = -rows["command_unlimited"][:, 0] / np.maximum(rows["displacement"][:, 0], 1e-12)
    np.testing.assert_allclose(asked[first - 5 : first], 500.0)
    np.testing.assert_allclose(asked[first : first + 20], 10.0)
    assert np.argmax(rows["sticking"] != 0) == first + 30  # then the procedure goes on


def test_a_motion_rests_at_its_end(trace: Trace) -> None:
    gains = {"stiffness": 500.0, "damping": 0.0, "integration": 0.0, "rest": 0.05, "rest_stiffness": 10.0}
    _, servo, duration = bench(at(1e-3), motion(reference(np.zeros((100, 2))), **gains), trace, 0.4)
    servo.run(duration)
    rows = trace.since(0)
    end = int(np.argmax(rows["sticking"] != 0))
    asked = -rows["command_unlimited"][:, 0] / 1e-3
    np.testing.assert_allclose(asked[: end - 49], 500.0)
    np.testing.assert_allclose(asked[end - 49 : -30], 10.0)


# --- its bounds -------------------------------------------------------------------------------------------------------


def bench(disturb: Callable[[State, int], None], program: Any, trace: Trace, duration: float = 1.0, **spec: Any) -> Any:
    clock = Clock(PERIOD)
    found = BenchDevice(clock, program.causality, disturb, **spec)
    return found, Servo(found, program, trace, clock=clock), duration


def at(x: float, vx: float = 0.0) -> Callable[[State, int], None]:
    def place(state: State, number: int) -> None:
        state.position[:], state.velocity[:], state.force[:] = (x, 0.0), (vx, 0.0), 0.0

    return place


def test_its_own_force_is_bounded_and_does_not_add_up_at_the_bound(trace: Trace) -> None:
    pulled = motion(reference(np.zeros((1, 2))), bound=2.0, max_error=0.05)
    _, servo, duration = bench(at(0.04), pulled, trace)
    servo.run(duration)
    forces = np.hypot(*trace.since(0)["command"].T)
    assert forces[:-20].max() == pytest.approx(2.0, rel=1e-12)  # 16 N were asked for
    assert not servo.rendering.core["follower"]["load"].any()


@pytest.mark.parametrize("causality", [Causality.IMPEDANCE, Causality.ADMITTANCE])
def test_an_end_effector_that_does_not_follow_ends_it_safely(trace: Trace, causality: Causality) -> None:
    bound = 5.0 if causality is Causality.IMPEDANCE else 0.5
    stuck = motion(way((0.05, 0.0)), causality, bound=bound, max_error=0.01)
    found, servo, duration = bench(at(0.0), stuck, trace)
    with pytest.raises(DeviceFault, match=r"10 mm from where it should be, at 0\.00 m/s"):
        servo.run(duration)
    rows = trace.since(0)
    first = int(np.argmax((rows["status"] & Status.ASTRAY) != 0))
    assert (rows["status"][first:] & Status.ASTRAY).all()  # for good
    assert len(rows) - first == 101
    if causality is Causality.IMPEDANCE:
        np.testing.assert_allclose(rows["command"][first], 0.5 * rows["command"][first - 1])
        assert not rows["command"][first + 1 :].any()
        assert not found.written[-1].any()
    else:
        assert (rows["command"][first:] == rows["command"][first - 1]).all()
        np.testing.assert_array_equal(found.written[-1], rows["command"][first - 1])


def test_a_handle_that_runs_away_is_let_go(trace: Trace) -> None:
    hold = motion(holding(0.1), relative=True, max_speed=0.3)
    _, servo, duration = bench(at(0.0, 0.4), hold, trace)
    with pytest.raises(DeviceFault, match="did not follow its motion"):
        servo.run(duration)
    assert (trace.since(0)["status"] & Status.ASTRAY != 0)[:25].sum() == 5  # after 20 ms


def test_the_energy_rule_rests_and_what_it_has_counted_stays(trace: Trace) -> None:
    """A motion may give a handle energy; the element after it is judged by what elements gave."""
    clock, strokes = Clock(PERIOD), way((0.09, 0.0), 300)
    stick = device("virtual-joystick", clock, mass=1.0)
    servo = Servo(
        stick, motion(strokes, max_error=0.1), trace, clock=clock, limits=Limits.of(stick.spec, {"max_energy": 1e-6})
    )
    servo.run(1.0)
    rows = trace.since(0)
    assert (0.5 * np.hypot(*rows["velocity"].T) ** 2).max() > 0.05  # J, far beyond 1e-6
    assert not (rows["status"] & Status.ENERGY).any()
    assert not rows["injected_energy"].any()


def test_it_must_fit_the_device(trace: Trace) -> None:
    with pytest.raises(CausalityError, match="plan it for this device"):
        Rendering(motion(holding(0.1), Causality.ADMITTANCE), make_spec())
    rendering = Rendering(motion(holding(0.1)), make_spec())
    with pytest.raises(ConfigurationError, match="a run keeps its period"):
        rendering.take(motion(holding(0.1), period=2e-3), 1, 1)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (np.zeros((0, 6)), r"\(0, 6\)"),
        (np.zeros((3, 2)), r"\(3, 2\)"),
        (np.full((1, 6), np.nan), "not finite numbers"),
    ],
)
def test_a_wrong_table_is_named(table: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        motion(table)


@settings(max_examples=10)
@given(
    seed=some.integers(0, 2**32 - 1), bound=some.sampled_from([0.5, 3.0, 20.0]), causality=some.sampled_from(Causality)
)
def test_no_bound_is_ever_broken(
    tmp_path_factory: pytest.TempPathFactory, seed: int, bound: float, causality: Causality
) -> None:
    """Whatever the reference and whatever the device does; only the safe output is reached at once."""
    random = np.random.default_rng(seed)

    def disturb(state: State, number: int) -> None:
        state.position[:] = random.normal(0.0, 3e-3, 2)
        state.velocity[:] = random.normal(0.0, 0.4, 2)
        state.force[:] = random.normal(0.0, 10.0, 2)
        if random.random() < 0.05:
            state.velocity[0] = np.nan

    wild = motion(reference(random.normal(0.0, 2e-3, (300, 2))), causality, bound=bound, max_speed=5.0)
    trace = Trace.create(tmp_path_factory.mktemp("wild") / "trace")
    device, servo, duration = bench(
        disturb, wild, trace, 0.4, max_force_rate=500.0, max_acceleration=50.0, fade_in=0.02
    )
    servo.run(duration)
    rows, spec = trace.since(0), device.spec
    good = (rows["status"] & UNUSABLE) == 0
    calm = good[1:] & good[:-1] & ((rows["status"] & (Status.SPEED | Status.WORKSPACE))[1:] == 0)
    if causality is Causality.IMPEDANCE:
        limited, most, rate = rows["command"], min(bound, spec.max_force), spec.max_force_rate
        driving = (rows["command"] * rows["velocity"]).sum(axis=1) > 1e-12
        assert not (good & driving & (np.hypot(*rows["velocity"].T) >= spec.max_speed)).any()
    else:
        started = np.isfinite(rows["command"]).all(axis=1)
        rows, good = rows[started], good[started]
        calm = good[1:] & good[:-1] & ((rows["status"] & Status.WORKSPACE)[1:] == 0)
        limited = np.diff(rows["command"], axis=0, prepend=rows["position"][:1]) / PERIOD
        most, rate = min(bound, spec.max_speed), spec.max_acceleration
    assert np.hypot(*limited.T).max() <= most * (1.0 + 1e-9)
    assert np.hypot(*np.diff(limited, axis=0).T)[calm].max() <= rate * PERIOD * (1.0 + 1e-6)
    assert not (rows["status"] & (Status.ENERGY | Status.PASSIVITY)).any()


# --- it waits ---------------------------------------------------------------------------------------------------------


def test_it_waits_while_the_dead_man_is_released(trace: Trace) -> None:
    clock = Clock(PERIOD)
    stick = device("virtual-joystick", clock)
    held = lambda: not 300 <= clock.tick < 400  # noqa: E731
    limits = Limits.of(stick.spec, {"dead_man": "key"})
    servo = Servo(stick, motion(way((0.03, 0.0))), trace, clock=clock, limits=limits, key_held=held)
    servo.run(1.5)
    rows = trace.since(0)
    waiting = rows["proxy"][302:498]
    assert (waiting == waiting[0]).all()
    gone = 300 + round(FADE_OUT / PERIOD) + 1
    assert not rows["command"][gone:400].any()
    assert (rows["permission"][300:400] & Permission.RELEASED).all()
    np.testing.assert_allclose(rows["position"][-20], (0.03, 0.0), atol=2e-5)


def test_samples_that_are_lost_are_waited_for(trace: Trace) -> None:
    def spoil(state: State, number: int) -> None:
        at(0.0)(state, number)
        if 150 <= number < 160:
            state.position[0] = np.nan

    slow = motion(reference(np.linspace((0.0, 0.0), (0.002, 0.0), 200)))
    _, servo, duration = bench(spoil, slow, trace, fade_in=0.1)
    servo.run(duration)
    rows = trace.since(0)
    assert not rows["command"][151:160].any()
    assert int(np.argmax(rows["sticking"])) >= FADE_IN + 198 + 10 + FADE_OUT / PERIOD - 1
    steps = np.diff(rows["proxy"][160:, 0])
    assert 0.0 <= steps.min() and steps.max() < 1.1e-5  # it goes on from where it was


@pytest.mark.parametrize(("causality", "rows"), [(Causality.IMPEDANCE, 12), (Causality.ADMITTANCE, 1)])
def test_missed_deadlines_move_the_reference_of_a_handle_and_not_that_of_an_arm(
    trace: Trace, causality: Causality, rows: int
) -> None:
    line = np.linspace((0.0, 0.0), (0.05, 0.0), 501)
    rendering = Rendering(motion(reference(line), causality, bound=0.5, max_error=0.1), make_spec(causality))
    for tick in [*range(20), 31]:
        rendering.tick(State(), 0.0, trace.slots, tick, (tick, tick * PERIOD, 0.0, 0))
    moved = trace.slots["displacement"][19, 0] - trace.slots["displacement"][31, 0]
    assert moved == pytest.approx(rows * 1e-4)


# --- from one to the next ---------------------------------------------------------------------------------------------


def test_motions_follow_each_other_without_a_jump_of_the_force(trace: Trace) -> None:
    """The second one begins with another controller, and a load that the first one has learnt to carry."""
    loaded = {"name": "scripted-force", "script": [[0.0, 0.0, -1.5]]}
    clock = Clock(PERIOD)
    stick = device("virtual-joystick", clock, hand=loaded)
    first = motion(holding(0.1), relative=True, max_error=0.1)
    second = motion(way((0.0, 0.02)), relative=True, stiffness=300.0, damping=8.0)

    def change(rendering: Rendering) -> None:
        if clock.tick == 3000:
            rendering.take(second, 1, 1)

    Servo(stick, first, trace, clock=clock, before_tick=change).run(4.0)
    rows = trace.since(0)
    np.testing.assert_allclose(rows["command"][2990], (0.0, 1.5), atol=0.02)
    assert np.abs(np.diff(rows["command"][2990:3010], axis=0)).max() < 0.05
    assert rows["settings_version"][2999] == 0 and rows["settings_version"][3000] == 1
    np.testing.assert_allclose(rows["position"][-20] - rows["position"][2999], (0.0, 0.02), atol=5e-4)


@pytest.mark.parametrize("name", ["virtual-joystick", "virtual-arm"])
def test_a_run_goes_from_a_motion_to_an_element_and_back(trace: Trace, name: str) -> None:
    causality = Causality.IMPEDANCE if name == "virtual-joystick" else Causality.ADMITTANCE
    bound = 5.0 if causality is Causality.IMPEDANCE else 0.3
    first = motion(way((0.02, 0.0)), causality, bound=bound)
    element: Any = MasslessImpedance(Coulomb(1.0), 2000.0, 10.0)
    if causality is Causality.ADMITTANCE:
        element = RigidAdmittance(Coulomb(3.0), 2.0)
    back = motion(way((-0.02, 0.0)), causality, bound=bound, relative=True)

    def change(rendering: Rendering, tick: int) -> None:
        if tick == 700:
            assert rendering.arrived
            rendering.take(element, 1, 1)
        elif tick == 900:
            assert not rendering.arrived
            rendering.take(back, 2, 2)

    rows = run(name, first, trace, 1.6, change)
    np.testing.assert_array_equal(np.unique(rows["settings_version"]), (0, 1, 2))
    np.testing.assert_allclose(rows["position"][890], (0.02, 0.0), atol=1e-3)
    np.testing.assert_allclose(rows["position"][-20], (0.0, 0.0), atol=1e-3)
    assert not (rows["status"] & Status.ASTRAY).any()


def test_an_element_that_comes_after_a_motion_begins_at_rest(trace: Trace) -> None:
    """Its spring starts without tension where the handle is, although the last program was pulling."""
    element = MasslessImpedance(Coulomb(4.0), 2000.0, 0.0)

    def change(rendering: Rendering, tick: int) -> None:
        if tick == 350:  # in the middle of the way
            rendering.take(element, 1, 1)

    rows = run("virtual-joystick", motion(way((0.05, 0.0))), trace, 0.4, change)
    first = rows[350]
    moved = PERIOD * first["velocity"]
    np.testing.assert_allclose(first["displacement"], moved, atol=1e-12)
    np.testing.assert_allclose(first["command_unlimited"], -2000.0 * moved, atol=1e-9)
