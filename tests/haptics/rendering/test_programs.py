"""Motions: following a reference within bounds, waiting, holding, and changing at a tick boundary."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import devices
from haptics import Causality, Clock, Coulomb, MasslessImpedance, RigidAdmittance, Servo, State, Trace
from haptics.errors import CausalityError, ConfigurationError, DeviceFault
from haptics.records import Permission, Status
from haptics.rendering.envelope import FADE_OUT, UNUSABLE, Limits
from haptics.rendering.programs import Motion, constant_reference, reference
from haptics.rendering.rendering import Rendering
from haptics.servo.control import Supervision
from tests.haptics.doubles import BenchDevice, make_spec

PERIOD = 1e-3
FADE_IN = 100
"""Ticks of the virtual devices."""
NO_HAND = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
CONTROLLER = {"stiffness": 400.0, "damping": 12.0, "integration": 4000.0}


def way(end, count=500):
    """A smooth way from the origin to `end`, with a stop of 50 ms before it ends."""
    share = np.minimum(np.arange(count) / (count - 50), 1.0)
    return reference(np.outer(0.5 * (1.0 - np.cos(np.pi * share)), end))


def motion(table, causality=Causality.IMPEDANCE, **changes):
    controller = CONTROLLER if causality is Causality.IMPEDANCE else {}
    return Motion(causality, table, **{"bound": 5.0, "max_error": 0.02, **controller, **changes})


def device(name, clock, **changes):
    return devices.create_device(name, {"hand": NO_HAND, **changes}, clock=clock)


def run(name, first, trace, duration, then=lambda r, k: None):
    clock = Clock(PERIOD)
    servo = Servo(device(name, clock), first, trace, clock=clock, before_tick=lambda r: then(r, clock.tick))
    servo.run(duration)
    return trace.since(0)


def test_duration_is_that_of_the_rows():
    assert motion(way((0.03, 0.0), count=200), period=2e-3).duration == pytest.approx(0.4)


# --- following -------------------------------------------------------------------------------------------------------


def test_handle_follows_and_holds_the_end(trace):
    rows = run("virtual-joystick", motion(way((0.03, -0.02))), trace, 1.5)
    off = np.hypot(*(rows["position"] - rows["proxy"]).T)
    assert off.max() < 1.5e-3
    np.testing.assert_allclose(rows["position"][-20], (0.03, -0.02), atol=2e-5)  # an encoder's step is 1e-5 m
    arrived = np.flatnonzero(rows["sticking"])
    assert arrived[0] == FADE_IN + 498
    assert (np.diff(arrived) == 1).all()
    np.testing.assert_allclose(rows["sliding_velocity"][arrived[1] :], 0.0, atol=0.0)
    np.testing.assert_allclose(rows["displacement"], rows["position"] - rows["proxy"], atol=1e-16)


def test_arm_follows_and_holds_the_end(trace):
    rows = run("virtual-arm", motion(way((0.02, 0.02)), Causality.ADMITTANCE, bound=0.3), trace, 1.5)
    np.testing.assert_allclose(rows["command"][-1], rows["command"][0] + (0.02, 0.02), atol=1e-12)
    assert np.hypot(*(rows["position"] - rows["proxy"]).T).max() < 2e-3


def test_feedforward_force_is_commanded_unchanged(trace):
    force = np.zeros((200, 2))
    force[20:120, 1] = 0.3
    table = reference(np.zeros((200, 2)), force=force)
    free = motion(table, stiffness=0.0, damping=0.0, integration=0.0, max_error=0.2)
    rows = run("virtual-joystick", free, trace, 0.5)
    np.testing.assert_allclose(rows["command"][FADE_IN : FADE_IN + 199], force[1:], atol=1e-12)
    assert rows["velocity"][FADE_IN + 110, 1] > 0.1


def test_contact_integrates_the_reported_velocity(trace):
    contact = motion(reference(np.zeros((400, 2))), relative=True, contact=True)
    rows = followed(at(0.004, 0.02), contact, trace, 0.3)
    np.testing.assert_allclose(np.diff(rows["displacement"][:200, 0]), 0.02 * PERIOD, rtol=1e-9)
    assert rows["displacement"][0, 0] == pytest.approx(0.02 * PERIOD)
    assert rows["position"][200, 0] == 0.004  # which does not move at all


def test_tripped_motion_rests_with_its_rest_gains(trace):
    def swing(state, number):
        state.position[:], state.velocity[:], state.force[:] = (1e-4 * max(number - 200, 0), 0.0), (0.0, 0.0), 0.0

    gains = {"stiffness": 500.0, "damping": 0.0, "integration": 0.0}
    gains |= {"trip": 2e-3, "rest": 0.03, "rest_stiffness": 10.0}
    tripping = motion(reference(np.zeros((1000, 2))), max_error=0.05, **gains)
    rows = followed(swing, tripping, trace, 0.3)
    first = int(np.argmax(rows["displacement"][:, 0] > 2e-3))
    assert first < 250
    asked = -rows["command_unlimited"][:, 0] / np.maximum(rows["displacement"][:, 0], 1e-12)
    np.testing.assert_allclose(asked[first - 5 : first], 500.0)
    np.testing.assert_allclose(asked[first : first + 20], 10.0)
    assert np.argmax(rows["sticking"] != 0) == first + 30  # then the motion has arrived


def test_motion_rests_at_its_end(trace):
    gains = {"stiffness": 500.0, "damping": 0.0, "integration": 0.0, "rest": 0.05, "rest_stiffness": 10.0}
    rows = followed(at(1e-3), motion(reference(np.zeros((100, 2))), **gains), trace, 0.4)
    end = int(np.argmax(rows["sticking"] != 0))
    asked = -rows["command_unlimited"][:, 0] / 1e-3
    np.testing.assert_allclose(asked[: end - 49], 500.0)
    np.testing.assert_allclose(asked[end - 49 : -30], 10.0)


# --- bounds -------------------------------------------------------------------------------------------------------


def bench(disturb, program, trace, **spec):
    clock = Clock(PERIOD)
    found = BenchDevice(clock, program.causality, disturb, **spec)
    return found, Servo(found, program, trace, clock=clock)


def followed(disturb, program, trace, duration, **spec):
    bench(disturb, program, trace, **spec)[1].run(duration)
    return trace.since(0)


def at(x, vx=0.0):
    def place(state, number):
        state.position[:], state.velocity[:], state.force[:] = (x, 0.0), (vx, 0.0), 0.0

    return place


def test_force_is_bounded_without_wind_up(trace):
    pulled = motion(reference(np.zeros((1, 2))), bound=2.0, max_error=0.05)
    _, servo = bench(at(0.04), pulled, trace)
    servo.run(1.0)
    forces = np.hypot(*trace.since(0)["command"].T)
    assert forces[:-20].max() == pytest.approx(2.0, rel=1e-12)  # of a command of 16 N
    assert not servo.rendering.core["follower"]["load"].any()


@pytest.mark.parametrize("causality", [Causality.IMPEDANCE, Causality.ADMITTANCE])
def test_end_effector_that_does_not_follow_is_a_fault(trace, causality):
    bound = 5.0 if causality is Causality.IMPEDANCE else 0.5
    stuck = motion(way((0.05, 0.0)), causality, bound=bound, max_error=0.01)
    found, servo = bench(at(0.0), stuck, trace)
    with pytest.raises(DeviceFault, match=r"10 mm from where it should be, at 0\.00 m/s"):
        servo.run(1.0)
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


def test_runaway_handle_is_a_fault(trace):
    hold = motion(constant_reference(0.1), relative=True, max_speed=0.3)
    with pytest.raises(DeviceFault, match="did not follow its motion"):
        followed(at(0.0, 0.4), hold, trace, 1.0)
    assert (trace.since(0)["status"] & Status.ASTRAY != 0)[:25].sum() == 5  # after 20 ms


def test_motion_is_exempt_from_the_energy_limit(trace):
    """A motion may inject energy, and its energy is not counted for the next element."""
    clock, strokes = Clock(PERIOD), way((0.09, 0.0), 300)
    stick = device("virtual-joystick", clock, mass=1.0)
    servo = Servo(
        stick,
        motion(strokes, max_error=0.1),
        trace,
        clock=clock,
        limits=Limits.for_device(stick.spec, {"max_energy": 1e-6}),
    )
    servo.run(1.0)
    rows = trace.since(0)
    assert (0.5 * np.hypot(*rows["velocity"].T) ** 2).max() > 0.05  # J, far beyond 1e-6
    assert not (rows["status"] & Status.ENERGY).any()
    assert not rows["injected_energy"].any()


def test_motion_must_fit_the_device(trace):
    with pytest.raises(CausalityError, match="plan it for this device"):
        Rendering(motion(constant_reference(0.1), Causality.ADMITTANCE), make_spec())
    rendering = Rendering(motion(constant_reference(0.1)), make_spec())
    with pytest.raises(ConfigurationError, match="a run keeps its period"):
        rendering.switch_program(motion(constant_reference(0.1), period=2e-3), 1, 1)


@pytest.mark.parametrize(
    ("table", "words"),
    [(np.zeros((0, 6)), r"\(0, 6\)"), (np.zeros((3, 2)), r"\(3, 2\)"), (np.full((1, 6), np.nan), "not finite numbers")],
)
def test_invalid_table_is_refused(table, words):
    with pytest.raises(ConfigurationError, match=words):
        motion(table)


@settings(max_examples=10)
@given(
    seed=some.integers(0, 2**32 - 1), bound=some.sampled_from([0.5, 3.0, 20.0]), causality=some.sampled_from(Causality)
)
def test_motion_never_exceeds_its_bounds(tmp_path_factory, seed, bound, causality):
    random = np.random.default_rng(seed)

    def disturb(state, number):
        state.position[:] = random.normal(0.0, 3e-3, 2)
        state.velocity[:] = random.normal(0.0, 0.4, 2)
        state.force[:] = random.normal(0.0, 10.0, 2)
        if random.random() < 0.05:
            state.velocity[0] = np.nan

    wild = motion(reference(random.normal(0.0, 2e-3, (300, 2))), causality, bound=bound, max_speed=5.0)
    trace = Trace.create(tmp_path_factory.mktemp("wild") / "trace")
    device, servo = bench(disturb, wild, trace, max_force_rate=500.0, max_acceleration=50.0, fade_in=0.02)
    servo.run(0.4)
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


# --- waiting ---------------------------------------------------------------------------------------------------------


def test_motion_waits_while_the_dead_man_is_released(trace):
    clock = Clock(PERIOD)
    stick = device("virtual-joystick", clock)
    supervision = Supervision()
    key_ns = supervision.arrays["controls"]["key_ns"]
    limits = Limits.for_device(stick.spec, {"dead_man": "key"})

    def press(_):
        key_ns[0] = 0 if 300 <= clock.tick < 400 else 2**62

    program = motion(way((0.03, 0.0)))
    Servo(stick, program, trace, clock=clock, limits=limits, supervision=supervision, before_tick=press).run(1.5)
    rows = trace.since(0)
    waiting = rows["proxy"][302:498]
    assert (waiting == waiting[0]).all()
    gone = 300 + round(FADE_OUT / PERIOD) + 1
    assert not rows["command"][gone:400].any()
    assert (rows["permission"][300:400] & Permission.RELEASED).all()
    np.testing.assert_allclose(rows["position"][-20], (0.03, 0.0), atol=2e-5)


def test_motion_waits_for_lost_samples(trace):
    def spoil(state, number):
        at(0.0)(state, number)
        if 150 <= number < 160:
            state.position[0] = np.nan

    slow = motion(reference(np.linspace((0.0, 0.0), (0.002, 0.0), 200)))
    rows = followed(spoil, slow, trace, 1.0, fade_in=0.1)
    assert not rows["command"][151:160].any()
    assert int(np.argmax(rows["sticking"])) >= FADE_IN + 198 + 10 + FADE_OUT / PERIOD - 1
    steps = np.diff(rows["proxy"][160:, 0])
    assert 0.0 <= steps.min() and steps.max() < 1.1e-5  # it continues from its position


@pytest.mark.parametrize(("causality", "rows"), [(Causality.IMPEDANCE, 12), (Causality.ADMITTANCE, 1)])
def test_missed_deadlines_advance_only_impedance_references(trace, causality, rows):
    line = np.linspace((0.0, 0.0), (0.05, 0.0), 501)
    rendering = Rendering(motion(reference(line), causality, bound=0.5, max_error=0.1), make_spec(causality))
    for tick in [*range(20), 31]:
        rendering.tick(State(), 0.0, trace.slots, tick, (tick, tick * PERIOD, 0.0, 0))
    moved = trace.slots["displacement"][19, 0] - trace.slots["displacement"][31, 0]
    assert moved == pytest.approx(rows * 1e-4)


# --- changes ---------------------------------------------------------------------------------------------


def test_motions_follow_each_other_without_a_force_jump(trace):
    """The second one begins with another controller, and a load that the first one has learnt to carry."""
    loaded = {"name": "scripted-force", "script": [[0.0, 0.0, -1.5]]}
    clock = Clock(PERIOD)
    stick = device("virtual-joystick", clock, hand=loaded)
    first = motion(constant_reference(0.1), relative=True, max_error=0.1)
    second = motion(way((0.0, 0.02)), relative=True, stiffness=300.0, damping=8.0)

    def change(rendering):
        if clock.tick == 3000:
            rendering.switch_program(second, 1, 1)

    Servo(stick, first, trace, clock=clock, before_tick=change).run(4.0)
    rows = trace.since(0)
    np.testing.assert_allclose(rows["command"][2990], (0.0, 1.5), atol=0.02)
    assert np.abs(np.diff(rows["command"][2990:3010], axis=0)).max() < 0.05
    assert rows["settings_version"][2999] == 0 and rows["settings_version"][3000] == 1
    np.testing.assert_allclose(rows["position"][-20] - rows["position"][2999], (0.0, 0.02), atol=5e-4)


@pytest.mark.parametrize("name", ["virtual-joystick", "virtual-arm"])
def test_run_changes_from_motion_to_element_and_back(trace, name):
    causality = Causality.IMPEDANCE if name == "virtual-joystick" else Causality.ADMITTANCE
    bound = 5.0 if causality is Causality.IMPEDANCE else 0.3
    first = motion(way((0.02, 0.0)), causality, bound=bound)
    element: Any = MasslessImpedance(Coulomb(1.0), 2000.0, 10.0)
    if causality is Causality.ADMITTANCE:
        element = RigidAdmittance(Coulomb(3.0), 2.0)
    back = motion(way((-0.02, 0.0)), causality, bound=bound, relative=True)

    def change(rendering, tick):
        if tick == 700:
            assert rendering.arrived
            rendering.switch_program(element, 1, 1)
        elif tick == 900:
            assert not rendering.arrived
            rendering.switch_program(back, 2, 2)

    rows = run(name, first, trace, 1.6, change)
    np.testing.assert_array_equal(np.unique(rows["settings_version"]), (0, 1, 2))
    np.testing.assert_allclose(rows["position"][890], (0.02, 0.0), atol=1e-3)
    np.testing.assert_allclose(rows["position"][-20], (0.0, 0.0), atol=1e-3)
    assert not (rows["status"] & Status.ASTRAY).any()


def test_element_after_a_motion_starts_without_tension(trace):
    """Its spring starts without tension where the handle is, although the last program was pulling."""
    element = MasslessImpedance(Coulomb(4.0), 2000.0, 0.0)

    def change(rendering, tick):
        if tick == 350:  # in the middle of the way
            rendering.switch_program(element, 1, 1)

    rows = run("virtual-joystick", motion(way((0.05, 0.0))), trace, 0.4, change)
    first = rows[350]
    moved = PERIOD * first["velocity"]
    np.testing.assert_allclose(first["displacement"], moved, atol=1e-12)
    np.testing.assert_allclose(first["command_unlimited"], -2000.0 * moved, atol=1e-9)
