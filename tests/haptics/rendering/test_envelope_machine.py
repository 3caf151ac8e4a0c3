"""A state machine that exposes a running servo to all events of a run and checks every limit after every tick.

The servo runs in its own thread and advances by one tick at a time: a moving device, faulty samples, parameter changes,
a dead-man switch, missed deadlines, all kinds of ends. Commands are checked against the data sheet alone.

A second rendering gets random numbers in place of every refused sample. Its commands must have the same bits: no number
of a refused sample, such as a position of zero, reaches the element."""

from __future__ import annotations

import math
import tempfile
import threading
import warnings
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
from hypothesis import Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from haptics import Clock, Coulomb, CoulombViscous, DeviceFault, Element, Law, Servo, Stribeck, Trace
from haptics.device import DEAD_MAN_BUTTON, Causality, State
from haptics.elements.classic import CLASSICS
from haptics.errors import AmbiguousLawWarning
from haptics.records import ROW, Status
from haptics.rendering.envelope import ENVELOPE_FLAGS, UNUSABLE, Limits
from haptics.rendering.programs import parameters_of
from haptics.rendering.rendering import Rendering
from haptics.servo.kernels import FAULT_AFTER
from haptics.servo.servo import EndReason
from tests.haptics.doubles import BenchDevice, Vector
from tests.haptics.strategies import Grip, make

CLASSIC = {
    "karnopp": Causality.ADMITTANCE,
    "explicit-coulomb": Causality.ADMITTANCE,
    "quinn": Causality.IMPEDANCE,
    "lugre": Causality.IMPEDANCE,
    "elastoplastic": Causality.IMPEDANCE,
    "reset-integrator": Causality.IMPEDANCE,
    "iwan": Causality.IMPEDANCE,
}
REFUSED = {
    "nan": Status.NOT_FINITE,
    "infinite": Status.NOT_FINITE,
    "half nan": Status.NOT_FINITE,
    "old": Status.STALE,
    "future": Status.STALE,
    "far": Status.IMPLAUSIBLE,
    "fast": Status.IMPLAUSIBLE,
}
"""Kinds of bad samples and their flags."""


def build(model, law, grip):
    """Build an element by the letter or the name of its model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AmbiguousLawWarning)
        if model not in CLASSIC:
            return make(model, law, grip)
        return CLASSICS[model][CLASSIC[model]](law, period=grip.period)


class SteppedClock(Clock):
    """A clock at which the servo waits at each deadline until the test releases it."""

    def __init__(self, period):
        super().__init__(period)
        self._open, self._waiting = threading.Semaphore(0), threading.Semaphore(0)
        self._late = 0.0

    def wait(self, tick):
        super().wait(tick)
        self._waiting.release()
        self._open.acquire()
        late, self._late = self._late, 0.0
        return late

    def until_waiting(self):
        assert self._waiting.acquire(timeout=100.0)

    def finish(self):
        self._waiting.release()

    def release(self, late=0.0):
        self._late = late
        self._open.release()
        self.until_waiting()


class MovingDevice(BenchDevice):
    """A handle under the force of a hand, with faults in its samples and connections.

    An impedance device is a mass under the hand's force and the command; an admittance device follows its reference,
    unless it is blocked.
    """

    MASS, DAMPING, SPRING = 0.2, 4.0, 30.0

    def __init__(self, clock, causality, **facts):
        super().__init__(clock, causality, **facts)
        self.push: Vector = np.zeros(2)
        self.held = self.dead = self.blocked = False
        self.next = "good"
        self._position, self._velocity = np.array((0.06, -0.04)), np.zeros(2)
        self._time = 0.0
        self._given = State(position=self._position.copy())

    def read(self):
        self._move(self.clock.time - self._time)
        self._time = self.clock.time
        self.reads += 1
        if self.next == "read error":
            raise OSError("no such device")
        state = self._spoilt(State(self._time, self._position.copy(), self._velocity.copy(), self.push.copy()))
        state.buttons = DEAD_MAN_BUTTON if self.held else 0
        if self.next not in REFUSED:
            self._given = state
        return state

    def write(self, command):
        if self.next == "write error":
            self.dead = True
        if self.dead:
            raise OSError("no such device")
        super().write(command)

    def _move(self, duration):
        command = self.written[-1] if self.written else None
        if self.spec.causality is Causality.ADMITTANCE:
            before = self._position
            moves = command is not None and not self.blocked
            self._position = before + (0.5 * (command - before) if moves else 0.0)
            self._velocity = (self._position - before) / duration if duration else np.zeros(2)
            return
        for _ in range(max(round(duration / 1e-3), 1) if duration else 0):
            force = self.push - self.DAMPING * self._velocity - self.SPRING * self._position
            force = force + (command if command is not None else 0.0)
            self._velocity = self._velocity + 1e-3 * force / self.MASS
            self._position = self._position + 1e-3 * self._velocity

    def _spoilt(self, state):
        match self.next:
            case "nan":
                state.position[:] = state.velocity[:] = state.force[:] = math.nan
            case "half nan":
                state.force[1] = math.nan
            case "infinite":
                state.velocity[0] = -math.inf
            case "old":
                state.time -= 1.0
            case "future":
                state.time += 1.0
            case "far":
                state.position += 1e4
            case "fast":
                state.velocity += (0.0, 1e3)
            case "stuck":
                return State(state.time, self._given.position, self._given.velocity, self._given.force)
            case "duplicate":
                return self._given
        return state


class Run:
    """A servo that advances by one tick at a time."""

    def __init__(self, device, element, clock, trace, limits):
        self.device, self.clock, self.trace, self.limits = device, clock, trace, limits
        self.end: EndReason | None = None
        self.fault: DeviceFault | None = None
        self.finished = False
        self.wanted: Element | None = None
        self.parameters = {0: parameters_of(element)}
        self.servo = Servo(device, element, trace, clock=clock, limits=limits, before_tick=self._configure)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        clock.until_waiting()

    def _configure(self, rendering):
        if self.wanted is not None:
            version = len(self.parameters)
            self.parameters[version] = parameters_of(self.wanted)
            rendering.configure(self.parameters[version], version)
            self.wanted = None

    def _run(self):
        try:
            self.end = self.servo.run()
        except DeviceFault as fault:
            self.fault = fault
        finally:
            self.finished = True
            self.clock.finish()

    def join(self):
        """Wait for the end of the thread."""
        self._thread.join(60.0)
        assert not self._thread.is_alive()


TAKES_AWAY = int(Status.SPEED | Status.ENERGY | Status.WORKSPACE)
TINY = 1e-9


class CommandChecker:
    """Checks each command against the data sheet and the command before it."""

    def __init__(self, device, limits, period):
        self.spec, self.limits, self.period = device.spec, limits, period
        self.admittance = self.spec.causality is Causality.ADMITTANCE
        impedance = self.spec.causality is Causality.IMPEDANCE
        self.step = (limits.max_force_rate if impedance else limits.max_acceleration) * period
        self.last = np.zeros(2)
        self.reference: Vector | None = None
        self.bad = self.released = 0
        self.ever_held = limits.dead_man == "none"
        self.version, self.easing, self.held = 0, 0, 0.0

    def check(self, row, expected):
        """Check a tick whose sample has the flag `expected`."""
        status = int(row["status"])
        assert status & UNUSABLE == expected, (Status(status), Status(expected))
        self.bad = self.bad + 1 if status & UNUSABLE else 0
        self.released = self.released + 1 if status & Status.RELEASED else 0
        self.ever_held = self.ever_held or not row["permission"] & 1
        (self._check_reference if self.admittance else self._check_force)(row, status)

    def _check_force(self, row, status):
        force, last, asked = row["command"], self.last, row["command_unlimited"]
        norm, before = math.hypot(*force), math.hypot(*last)
        assert np.isfinite(force).all()
        assert norm <= self.limits.max_force * (1 + TINY)
        if self.bad:
            assert force.tolist() == ((0.5 if self.bad == 1 else 0.0) * last).tolist()
        else:
            self._check_change(force, last, status)
            self._check_removed(row, status)
            self._check_easing(row, before)
            if not status & Status.PASSIVITY:
                assert norm <= max(math.hypot(*asked), before, self.held) * (1 + TINY) + TINY
        if not self.ever_held:
            assert not force.any()
        if self.released > math.ceil(8e-3 / self.period) + 1:
            assert norm <= max(before - self.step, 0.0) + TINY
        self.last = force.copy()

    def _check_easing(self, row, before):
        """Track the force at a parameter change: while the output eases, it may be as large as that force."""
        if row["settings_version"] != self.version:
            self.version, self.held = int(row["settings_version"]), max(before, self.held)
            self.easing = math.ceil(self.limits.fade_in / self.period) + 2
        elif self.easing > 0:
            self.easing -= 1
        else:
            self.held = 0.0

    def _check_removed(self, row, status):
        force, v, x = row["command"], row["velocity"], row["position"]
        driving = float(np.dot(force, v)) > TINY * self.limits.max_force * math.hypot(*v)
        assert not (driving and math.hypot(*v) >= self.limits.max_speed), "a force drives the handle on"
        assert not (driving and row["injected_energy"] > self.limits.max_energy), "more energy is given"
        for i in range(2):
            outside = max(x[i] - self.spec.workspace_max[i], self.spec.workspace_min[i] - x[i])
            assert not (outside > 0.0 and force[i] * x[i] > 0.0), "a force points further out"

    def _check_change(self, now, before, status):
        change = math.hypot(*(now - before))
        assert change <= self.step * (1 + 1e-6) + TINY or status & TAKES_AWAY
        assert math.hypot(*now) <= math.hypot(*before) + self.step * (1 + 1e-6) + TINY

    def _check_reference(self, row, status):
        now, before = row["command"].copy(), self.reference
        if before is None:
            assert np.isnan(now).all() == bool(self.bad), "there is a reference from the first good sample on"
            before = row["position"].copy() if not self.bad else None
        if before is None:
            return
        assert np.isfinite(now).all()
        velocity = (now - before) / self.period
        assert math.hypot(*velocity) <= self.limits.max_speed * (1 + 1e-6) + TINY
        if self.bad:
            assert now.tolist() == before.tolist(), "it holds"
        else:
            self._check_change(velocity, self.last, status)
        if not self.ever_held:
            assert now.tolist() == before.tolist()
        if self.released > math.ceil(8e-3 / self.period) + 1:
            assert math.hypot(*velocity) <= max(math.hypot(*self.last) - self.step, 0.0) + 1e-6
        self._check_fence(now, before)
        self.last, self.reference = velocity, now

    def _check_fence(self, now, before):
        low, high = self.spec.workspace_min, self.spec.workspace_max
        for i in range(2):
            outside = max(now[i] - high[i], low[i] - now[i], 0.0)
            assert outside <= max(before[i] - high[i], low[i] - before[i], 0.0) + 1e-12, "inside, or moving in"


class RubbishTwin:
    """A second rendering that gets random numbers in place of every refused sample."""

    def __init__(self, element, device, limits):
        self._rendering = Rendering(element, device.spec, limits)
        self._started = False
        self._numbers = np.random.default_rng(1)

    def compare(self, row, parameters):
        """Compare the results of the element and the envelope for the tick in `row` bit by bit."""
        version = int(row["settings_version"][0])
        self._rendering.configure(parameters[version], version)
        flag = int(row["status"][0]) & UNUSABLE
        told = self._with_rubbish(row, flag) if flag else row
        self._started = self._started or not flag
        computed = self._rendering.recompute(told)
        assert (computed["status"] & ENVELOPE_FLAGS) == (row["status"] & ENVELOPE_FLAGS)
        names = ["command", "command_unlimited", "displacement", "friction_force", "sliding_velocity", "sticking"]
        for name in [*names, "injected_energy", *([] if flag else ["proxy"])]:
            assert computed[name].tobytes() == row[name].tobytes(), (name, row[0], computed[0])

    def _with_rubbish(self, row, flag):
        rubbish = row.copy()
        if flag == Status.FOLLOWING_ERROR:  # the position causes the flag and is trusted
            rubbish["velocity"], rubbish["force"] = self._numbers.uniform(-5.0, 5.0, (2, 2))
            return rubbish
        for name in ("position", "velocity", "force"):
            rubbish[name] = self._numbers.normal(0.0, 1e3, 2)
        if flag == Status.NOT_FINITE:
            rubbish["velocity"] = math.nan
        elif flag == Status.STALE:
            rubbish["sample_age"] = 1.0
        else:
            rubbish["velocity"] = 1e6
        return rubbish


LAWS: tuple[Law, ...] = (Coulomb(4.0), Coulomb(40.0), CoulombViscous(2.0, 20.0), Stribeck(3.0, 5.0, 0.1, 2.0))
FOLLOWS = 0.005
"""No farther from its reference than this is an admittance device [m]."""
GOOD = ("good", "good", "good", "stuck", "duplicate")
pushes = st.tuples(st.sampled_from([0.0, 3.0, 10.0, 30.0]), st.floats(-math.pi, math.pi))
grips = st.builds(
    Grip, st.sampled_from([0.05, 0.3, 5.0]), st.sampled_from([50.0, 2e3, 2e4]), st.sampled_from([0.0, 10.0, 200.0])
)


class Envelope(RuleBasedStateMachine):
    """All events of a run, in any order."""

    flags: ClassVar[int] = 0
    """All status flags that were set."""

    def __init__(self):
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.run: Run | None = None

    @initialize(
        model=st.sampled_from(["A", "B", "C", "D", *CLASSIC]),
        law=st.sampled_from(LAWS),
        grip=grips,
        period=st.sampled_from([2.5e-4, 1e-3, 1e-3, 5e-3]),
        tighter=st.fixed_dictionaries(
            {
                "dead_man": st.sampled_from(["none", "none", "button"]),
                "fade_in": st.sampled_from([0.0, 0.01, 0.1]),
                "max_energy": st.sampled_from([1e-4, 0.1]),
                "max_force": st.sampled_from([1.0, 10.0]),
                "max_force_rate": st.sampled_from([300.0, 1e5]),
                "max_speed": st.sampled_from([0.05, 0.5, 1.0]),
                "max_acceleration": st.sampled_from([5.0, 1e3]),
                "passivity_control": st.booleans(),
            }
        ),
        lasting=st.sampled_from([None, None, 0.5]),
    )
    def begin(self, model, law, grip, period, tighter, lasting):
        self.model, self.period = model, period
        element = build(model, law, replace(grip, period=period))
        if element.causality is Causality.ADMITTANCE:
            tighter["passivity_control"] = False
        facts = {"fade_in": 0.0, "mass": 0.2, "damping": 4.0, "delay": 1e-3, "max_sample_age": 6e-3}
        facts["max_following_error"] = FOLLOWS
        facts |= {"continuous_force": lasting, "full_force_time": 0.05}
        walls = {"workspace_min": (-0.07, -0.05), "workspace_max": (0.07, 0.05)}
        clock = SteppedClock(period)
        self.device = MovingDevice(clock, element.causality, **facts, **walls)
        limits = Limits.for_device(self.device.spec, tighter)
        path = Path(self._folder.name) / "trace"
        path.unlink(missing_ok=True)
        self.checker = CommandChecker(self.device, limits, period)
        self.twin = RubbishTwin(element, self.device, limits)
        self.seen, self.sound = 0, True
        self.believed: Vector | None = None
        self.displacement, self.memory = np.zeros(2), b""
        self.run = Run(self.device, element, clock, Trace.create(path, ROW, 8192), limits)

    def _alive(self):
        return self.run is not None and not self.run.finished

    def _alive_for_long(self):
        return self._alive() and self.seen > 400

    def _push(self, size, angle):
        self.device.push = size * np.array((math.cos(angle), math.sin(angle)))

    def _advance(self, kind, skipped=0):
        """Run one tick, some deadlines late, and check its row; nothing is far from an unknown position."""
        run = self.run
        assert run is not None
        self.device.next = kind = "fast" if kind == "far" and self.believed is None else kind
        run.clock.release(skipped * self.period)
        if run.trace.count > self.seen:
            rows = run.trace.since(self.seen)
            self.seen += len(rows)
            self.sound = False
            self._judge(rows, kind)
            self.sound = True

    def _judge(self, rows, kind):
        run = self.run
        assert run is not None
        assert len(rows) == 1
        row, core = rows[0], run.servo.rendering.core
        self.checker.check(row, self._expected(row, kind))
        type(self).flags |= int(row["status"])
        refused = int(row["status"]) & UNUSABLE
        if not refused & ~Status.FOLLOWING_ERROR:  # a device that does not follow says the truth about where it is
            self.believed, self.believed_age = row["position"].copy(), float(row["sample_age"])
        elif refused & Status.IMPLAUSIBLE:  # waiting does not make a jump plausible
            self.believed_age = 0.0
        if refused:
            let_go = row["displacement"].tolist() == [0.0, 0.0] and self.model == "D"  # which is held
            assert let_go or row["displacement"].tolist() == self.displacement.tolist()
            assert core["memory"].tobytes() == self.memory or not self.memory
            assert not core["mass_velocity"].any()
        self.displacement, self.memory = row["displacement"].copy(), core["memory"].tobytes()
        self.twin.compare(rows, run.parameters)
        if not np.isnan(row["command"]).any():
            # The last tick is followed by the first safe output before anybody can look.
            assert row["command"].tolist() in [command.tolist() for command in self.device.written[-2:]] or run.fault

    def _expected(self, row, kind):
        """Return the expected flag of the sample."""
        if kind in REFUSED:
            return int(REFUSED[kind])
        if row["sample_age"] > 6e-3 * (1 + TINY):  # a duplicate after missed deadlines
            return int(Status.STALE)
        # After a time in which the values were stuck, the truth looks like a jump.
        status = int(row["status"])
        if status & Status.IMPLAUSIBLE and self.believed is not None:
            older = max(self.believed_age - row["sample_age"], 0.0)
            assert math.dist(row["position"], self.believed) > 10.0 * (self.period + older) * (1 - TINY)
            return int(Status.IMPLAUSIBLE)
        if self.checker.reference is not None and math.dist(row["position"], self.checker.reference) > FOLLOWS:
            return int(Status.FOLLOWING_ERROR)
        return 0

    @precondition(_alive)
    @rule(count=st.integers(1, 40), kind=st.sampled_from(GOOD), push=pushes)
    def live(self, count, kind, push):
        self._push(*push)
        for _ in range(count):
            if self._alive():
                self._advance(kind)

    @precondition(_alive)
    @rule(half=st.integers(5, 40), times=st.integers(2, 6), push=pushes)
    def swing(self, half, times, push):
        for number in range(times):
            self.live(half, "good", (push[0], push[1] + math.pi * (number % 2)))

    @precondition(_alive)
    @rule(count=st.integers(1, 12), kinds=st.lists(st.sampled_from([*REFUSED]), min_size=1))
    def fail(self, count, kinds):
        for number in range(count):
            if self._alive():
                self._advance(kinds[number % len(kinds)])

    @precondition(_alive)
    @rule(count=st.integers(2, 20), kind=st.sampled_from([*REFUSED]))
    def flicker(self, count, kind):
        for number in range(count):
            if self._alive():
                self._advance(kind if number % 2 else "good")

    @precondition(_alive)
    @rule(skipped=st.integers(1, 60))
    def stall(self, skipped):
        self._advance("good", skipped)

    @precondition(_alive)
    @rule(law=st.sampled_from(LAWS), grip=grips)
    def change(self, law, grip):
        assert self.run is not None
        self.run.wanted = build(self.model, law, replace(grip, period=self.period))

    @precondition(_alive)
    @rule(count=st.integers(20, 200), push=pushes)
    def block(self, count, push):
        self.device.blocked = True
        self.live(count, "good", push)
        self.device.blocked = False

    @rule(held=st.booleans())
    def press(self, held):
        self.device.held = held

    @precondition(_alive_for_long)
    @rule(kinds=st.lists(st.sampled_from([*REFUSED]), min_size=1))
    def fail_for_good(self, kinds):
        self.fail(1000, kinds)
        assert not self._alive()

    @precondition(_alive_for_long)
    @rule(kind=st.sampled_from(["read error", "write error"]))
    def unplug(self, kind):
        self._advance(kind)

    @precondition(_alive_for_long)
    @rule()
    def stop(self):
        assert self.run is not None
        self.run.servo.stop()

    @invariant()
    def an_end_is_a_safe_one(self):
        if self.run is not None and self.run.finished:
            self._judge_the_end(self.run)

    def _judge_the_end(self, run):
        assert self.device.closed == 1
        if run.fault is not None:
            assert str(run.fault).startswith("bench failed at tick ")
        else:
            assert run.end is EndReason.STOPPED
        if self.device.written and not self.device.dead:
            final = self.device.written[-1]
            if self.device.spec.causality is Causality.IMPEDANCE:
                assert final.tolist() == [0.0, 0.0]
            elif self.checker.reference is not None:
                assert final.tolist() == self.checker.reference.tolist()
        if self.checker.bad * self.period > FAULT_AFTER:
            assert "since tick" in str(run.fault)

    def teardown(self):
        if self.run is not None:
            self.run.servo.stop()
            for _ in range(100):
                if self._alive() and self.sound:
                    self._advance("good")
                elif self._alive():  # a check has failed already
                    self.run.clock.release()
            self.run.join()
            if self.sound:
                self._judge_the_end(self.run)
            note(f"{self.seen} ticks")
        self._folder.cleanup()


def run_machine(examples):
    """Run the machine for a number of examples and return all status flags that were set."""
    Envelope.flags = 0
    chosen = settings(max_examples=examples, stateful_step_count=30, derandomize=True, phases=[Phase.generate])
    run_state_machine_as_test(Envelope, settings=chosen)
    return Envelope.flags


def test_no_limit_is_broken():
    run_machine(30)
