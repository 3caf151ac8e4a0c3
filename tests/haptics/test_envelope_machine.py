"""A machine that does to a running servo whatever can happen to one, and checks every limit after every tick.

The servo runs in a thread of its own that goes on by one tick at a time, so that what is judged is the real loop: a
device that moves, faults in its samples, changes of parameters, a dead-man, missed deadlines, ends of all kinds. What
is demanded of a command is written down here from the data sheet alone.

A twin of the rendering is fed the same samples, except that every refused one is replaced by other rubbish. Its
commands must have the same bits: nothing of a refused sample, such as a position of zero, reaches the element.
"""

from __future__ import annotations

import math
import tempfile
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from haptics import Coulomb, CoulombViscous, DeviceFault, Servo, Stribeck
from haptics.classic import CLASSICS
from haptics.clock import Clock
from haptics.device import DEAD_MAN_BUTTON, Causality, State
from haptics.elements import Element
from haptics.envelope import ENVELOPE_FLAGS, UNUSABLE, Limits
from haptics.errors import AmbiguousLawWarning
from haptics.law import Law
from haptics.rendering import Rendering, parameters_of
from haptics.servo import FAULT_AFTER, End
from haptics.trace import ROW, Rows, Status, Trace
from tests.haptics.doubles import BenchDevice, Vector
from tests.haptics.strategies import Grip, make

TAKES_AWAY = int(Status.SPEED | Status.ENERGY | Status.WORKSPACE)
TINY = 1e-9
LAWS: tuple[Law, ...] = (Coulomb(4.0), Coulomb(40.0), CoulombViscous(2.0, 20.0), Stribeck(3.0, 5.0, 0.1, 2.0))
CLASSIC = {
    "karnopp": Causality.ADMITTANCE,
    "explicit-coulomb": Causality.ADMITTANCE,
    "quinn": Causality.IMPEDANCE,
    "lugre": Causality.IMPEDANCE,
    "elastoplastic": Causality.IMPEDANCE,
    "reset-integrator": Causality.IMPEDANCE,
    "iwan": Causality.IMPEDANCE,
}
GOOD = ("good", "good", "good", "stuck", "duplicate")
REFUSED = {
    "nan": Status.NOT_FINITE,
    "infinite": Status.NOT_FINITE,
    "half nan": Status.NOT_FINITE,
    "old": Status.STALE,
    "future": Status.STALE,
    "far": Status.IMPLAUSIBLE,
    "fast": Status.IMPLAUSIBLE,
}
"""What can be wrong with a sample, and the flag that says so."""


def build(model: str, law: Law, grip: Grip) -> Element:
    """Build an element by the letter or the name of its model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AmbiguousLawWarning)
        if model not in CLASSIC:
            return make(model, law, grip)
        return CLASSICS[model][CLASSIC[model]](law, period=grip.period)  # type: ignore[call-arg]


class Turnstile(Clock):
    """A clock at whose every deadline the servo waits until it is let through, late or not."""

    def __init__(self, period: float) -> None:
        super().__init__(period)
        self._open, self._waiting = threading.Semaphore(0), threading.Semaphore(0)
        self._late = 0.0

    def wait(self, tick: int) -> float:
        super().wait(tick)
        self._waiting.release()
        self._open.acquire()
        late, self._late = self._late, 0.0
        return late

    def until_waiting(self) -> None:
        assert self._waiting.acquire(timeout=60.0)

    def left_for_good(self) -> None:
        self._waiting.release()

    def let_through(self, late: float = 0.0) -> None:
        self._late = late
        self._open.release()
        self.until_waiting()


class Moving(BenchDevice):
    """A handle that a hand pushes about, and whose samples and cables have all kinds of faults.

    An impedance device is a mass under the hand's force and the command; an admittance device follows its reference.
    """

    MASS, DAMPING, SPRING = 0.2, 4.0, 30.0

    def __init__(self, clock: Clock, causality: Causality, **facts: Any) -> None:
        super().__init__(clock, causality, **facts)
        self.push: Vector = np.zeros(2)
        self.held = self.dead = False
        self.next = "good"
        self._position, self._velocity = np.array((0.06, -0.04)), np.zeros(2)
        self._time = 0.0
        self._given = State(position=self._position.copy())

    def read(self) -> State:
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

    def write(self, command: Vector) -> None:
        if self.next == "write error":
            self.dead = True
        if self.dead:
            raise OSError("no such device")
        super().write(command)

    def _move(self, duration: float) -> None:
        command = self.written[-1] if self.written else None
        if self.spec.causality is Causality.ADMITTANCE:
            before = self._position
            self._position = before + (0.5 * (command - before) if command is not None else 0.0)
            self._velocity = (self._position - before) / duration if duration else np.zeros(2)
            return
        for _ in range(max(round(duration / 1e-3), 1) if duration else 0):
            force = self.push - self.DAMPING * self._velocity - self.SPRING * self._position
            force = force + (command if command is not None else 0.0)
            self._velocity = self._velocity + 1e-3 * force / self.MASS
            self._position = self._position + 1e-3 * self._velocity

    def _spoilt(self, state: State) -> State:
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
    """A servo that goes on by one tick at a time."""

    def __init__(self, device: Moving, element: Element, clock: Turnstile, trace: Trace, limits: Limits) -> None:
        self.device, self.clock, self.trace, self.limits = device, clock, trace, limits
        self.end: End | None = None
        self.fault: DeviceFault | None = None
        self.finished = False
        self.wanted: Element | None = None
        self.parameters = {0: parameters_of(element)}
        self.servo = Servo(device, element, trace, clock=clock, limits=limits, before_tick=self._configure)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        clock.until_waiting()

    def _configure(self, rendering: Rendering) -> None:
        if self.wanted is not None:
            version = len(self.parameters)
            self.parameters[version] = parameters_of(self.wanted)
            rendering.configure(self.parameters[version], version)
            self.wanted = None

    def _run(self) -> None:
        try:
            self.end = self.servo.run()
        except DeviceFault as fault:
            self.fault = fault
        finally:
            self.finished = True
            self.clock.left_for_good()

    def join(self) -> None:
        """Wait for the end of the thread."""
        self._thread.join(60.0)
        assert not self._thread.is_alive()


class Judge:
    """Knows what a command may be, given the one before it."""

    def __init__(self, device: Moving, limits: Limits, period: float) -> None:
        self.spec, self.limits, self.period = device.spec, limits, period
        self.admittance = self.spec.causality is Causality.ADMITTANCE
        self.step = limits.pair(self.spec.causality)[1] * period
        self.last = np.zeros(2)
        self.reference: Vector | None = None
        self.bad = self.released = 0
        self.ever_held = limits.dead_man == "none"

    def look(self, row: np.void, expected: int) -> None:
        """Judge a tick in whose sample `expected` was wrong."""
        status = int(row["status"])
        assert status & UNUSABLE == expected, (Status(status), Status(expected))
        self.bad = self.bad + 1 if status & UNUSABLE else 0
        self.released = self.released + 1 if status & Status.RELEASED else 0
        self.ever_held = self.ever_held or not row["permission"] & 1
        (self._look_at_reference if self.admittance else self._look_at_force)(row, status)

    def _look_at_force(self, row: np.void, status: int) -> None:
        force, last, asked = row["command"], self.last, row["command_unlimited"]
        norm, before = math.hypot(*force), math.hypot(*last)
        assert np.isfinite(force).all()
        assert norm <= self.limits.max_force * (1 + TINY)
        if self.bad:
            assert force.tolist() == ((0.5 if self.bad == 1 else 0.0) * last).tolist()
        else:
            self._look_at_change(force, last, status)
            self._look_at_what_was_taken(row, status)
            if not status & Status.PASSIVITY:
                assert norm <= max(math.hypot(*asked), before) * (1 + TINY) + TINY
        if not self.ever_held:
            assert not force.any()
        if self.released > math.ceil(8e-3 / self.period) + 1:
            assert norm <= max(before - self.step, 0.0) + TINY
        self.last = force.copy()

    def _look_at_what_was_taken(self, row: np.void, status: int) -> None:
        force, v, x = row["command"], row["velocity"], row["position"]
        driving = float(np.dot(force, v)) > TINY * self.limits.max_force * math.hypot(*v)
        assert not (driving and math.hypot(*v) >= self.limits.max_speed), "a force drives the handle on"
        assert not (driving and row["injected_energy"] > self.limits.max_energy), "more energy is given"
        for i in range(2):
            outside = max(x[i] - self.spec.workspace_max[i], self.spec.workspace_min[i] - x[i])
            assert not (outside > 0.0 and force[i] * x[i] > 0.0), "a force points further out"

    def _look_at_change(self, now: Vector, before: Vector, status: int) -> None:
        change = math.hypot(*(now - before))
        assert change <= self.step * (1 + 1e-6) + TINY or status & TAKES_AWAY
        assert math.hypot(*now) <= math.hypot(*before) + self.step * (1 + 1e-6) + TINY

    def _look_at_reference(self, row: np.void, status: int) -> None:
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
            self._look_at_change(velocity, self.last, status)
        if not self.ever_held:
            assert now.tolist() == before.tolist()
        if self.released > math.ceil(8e-3 / self.period) + 1:
            assert math.hypot(*velocity) <= max(math.hypot(*self.last) - self.step, 0.0) + 1e-6
        self._look_at_fence(now, before)
        self.last, self.reference = velocity, now

    def _look_at_fence(self, now: Vector, before: Vector) -> None:
        low, high = self.spec.workspace_min, self.spec.workspace_max
        for i in range(2):
            outside = max(now[i] - high[i], low[i] - now[i], 0.0)
            assert outside <= max(before[i] - high[i], low[i] - before[i], 0.0) + 1e-12, "inside, or moving in"


class Twin:
    """The same rendering, given other rubbish wherever a sample was refused."""

    def __init__(self, element: Element, device: Moving, limits: Limits) -> None:
        self._rendering = Rendering(element, device.spec, limits)
        self._started = False
        self._numbers = np.random.default_rng(1)

    def compare(self, row: Rows, parameters: dict[int, Any]) -> None:
        """Demand the same bits in everything that the element and the envelope have made of the tick in `row`."""
        version = int(row["settings_version"][0])
        self._rendering.configure(parameters[version], version)
        flag = int(row["status"][0]) & UNUSABLE
        told = self._with_rubbish(row, flag) if flag else row
        self._started = self._started or not flag
        computed = self._rendering.again(told)
        assert (computed["status"] & ENVELOPE_FLAGS) == (row["status"] & ENVELOPE_FLAGS)
        names = ["command", "command_unlimited", "displacement", "friction_force", "sliding_velocity", "sticking"]
        for name in [*names, "injected_energy", *([] if flag else ["proxy"])]:
            assert computed[name].tobytes() == row[name].tobytes(), (name, row[0], computed[0])

    def _with_rubbish(self, row: Rows, flag: int) -> Rows:
        rubbish = row.copy()
        for name in ("position", "velocity", "force"):
            rubbish[name] = self._numbers.normal(0.0, 1e3, 2)
        if flag == Status.NOT_FINITE:
            rubbish["velocity"] = math.nan
        elif flag == Status.STALE:
            rubbish["sample_age"] = 1.0
        else:
            rubbish["velocity"] = 1e6
        return rubbish


forces = st.tuples(st.floats(-30.0, 30.0), st.floats(-30.0, 30.0))
grips = st.builds(
    Grip, st.sampled_from([0.05, 0.3, 5.0]), st.sampled_from([50.0, 2e3, 2e4]), st.sampled_from([0.0, 10.0, 200.0])
)


class Envelope(RuleBasedStateMachine):
    """Everything that can happen, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.run: Run | None = None

    @initialize(
        model=st.sampled_from(["A", "B", "C", "D", *CLASSIC]),
        law=st.sampled_from(LAWS),
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
    )
    def begin(self, model: str, law: Law, period: float, tighter: dict[str, Any]) -> None:
        self.model, self.law, self.period = model, law, period
        element = build(model, law, Grip(period=period))
        if element.causality is Causality.ADMITTANCE:
            tighter["passivity_control"] = False
        facts = {"fade_in": 0.0, "mass": 0.2, "damping": 4.0, "delay": 1e-3, "max_sample_age": 6e-3}
        clock = Turnstile(period)
        self.device = Moving(clock, element.causality, **facts)
        limits = Limits.of(self.device.spec, tighter)
        path = Path(self._folder.name) / "trace"
        path.unlink(missing_ok=True)
        self.judge = Judge(self.device, limits, period)
        self.twin = Twin(element, self.device, limits)
        self.seen, self.sound = 0, True
        self.believed: Vector | None = None
        self.displacement, self.memory = np.zeros(2), b""
        self.run = Run(self.device, element, clock, Trace.create(path, ROW, 8192), limits)

    def _alive(self) -> bool:
        return self.run is not None and not self.run.finished

    def _advance(self, kind: str, skipped: int = 0) -> None:
        """Let one tick pass, some deadlines late, and judge what it gave."""
        run = self.run
        assert run is not None
        self.device.next = kind
        run.clock.let_through(skipped * self.period)
        if run.trace.count > self.seen:
            rows = run.trace.since(self.seen)
            self.seen += len(rows)
            self.sound = False
            self._judge(rows, kind)
            self.sound = True

    def _judge(self, rows: Rows, kind: str) -> None:
        run = self.run
        assert run is not None
        assert len(rows) == 1
        row, core = rows[0], run.servo.rendering._core
        self.judge.look(row, self._expected(row, kind))
        refused = int(row["status"]) & UNUSABLE
        if refused:
            assert row["displacement"].tolist() == self.displacement.tolist()
            assert core["memory"].tobytes() == self.memory or not self.memory
            assert not core["mass_velocity"].any()
        else:
            self.believed = row["position"].copy()
        self.displacement, self.memory = row["displacement"].copy(), core["memory"].tobytes()
        self.twin.compare(rows, run.parameters)
        if not np.isnan(row["command"]).any():
            # The last tick is followed by the first safe output before anybody can look.
            assert row["command"].tolist() in [command.tolist() for command in self.device.written[-2:]] or run.fault

    def _expected(self, row: np.void, kind: str) -> int:
        """Return the flag that the sample deserves."""
        if kind in REFUSED and (kind != "far" or self.believed is not None):
            return int(REFUSED[kind])
        if row["sample_age"] > 6e-3 * (1 + TINY):  # a duplicate after missed deadlines
            return int(Status.STALE)
        # After a time in which the values were stuck, the truth looks like a jump.
        status = int(row["status"])
        if status & Status.IMPLAUSIBLE and self.believed is not None:
            assert math.dist(row["position"], self.believed) > 10.0 * self.period
            return int(Status.IMPLAUSIBLE)
        return 0

    @precondition(_alive)
    @rule(count=st.integers(1, 40), kind=st.sampled_from(GOOD), push=forces)
    def live(self, count: int, kind: str, push: tuple[float, float]) -> None:
        self.device.push = np.array(push)
        for _ in range(count):
            if self._alive():
                self._advance(kind)

    @precondition(_alive)
    @rule(count=st.one_of(st.integers(1, 12), st.just(200)), kinds=st.lists(st.sampled_from([*REFUSED]), min_size=1))
    def fail(self, count: int, kinds: list[str]) -> None:
        for number in range(count):
            if self._alive():
                kind = kinds[number % len(kinds)]
                self._advance("fast" if kind == "far" and self.believed is None else kind)

    @precondition(_alive)
    @rule(count=st.integers(2, 20), kind=st.sampled_from([*REFUSED]))
    def flicker(self, count: int, kind: str) -> None:
        for number in range(count):
            if self._alive():
                self._advance(("fast" if kind == "far" and self.believed is None else kind) if number % 2 else "good")

    @precondition(_alive)
    @rule(skipped=st.integers(1, 60))
    def stall(self, skipped: int) -> None:
        self._advance("good", skipped)

    @precondition(_alive)
    @rule(law=st.sampled_from(LAWS), grip=grips)
    def change(self, law: Law, grip: Grip) -> None:
        assert self.run is not None
        changed = Grip(grip.mass, grip.stiffness, grip.damping, self.period)
        self.run.wanted = build(self.model, law, changed)

    @rule(held=st.booleans())
    def press(self, held: bool) -> None:
        self.device.held = held

    @precondition(_alive)
    @rule(kind=st.sampled_from(["read error", "write error"]))
    def unplug(self, kind: str) -> None:
        self._advance(kind)

    @precondition(_alive)
    @rule()
    def stop(self) -> None:
        assert self.run is not None
        self.run.servo.stop()

    @invariant()
    def an_end_is_a_safe_one(self) -> None:
        if self.run is not None and self.run.finished:
            self._judge_the_end(self.run)

    def _judge_the_end(self, run: Run) -> None:
        assert self.device.closed == 1
        if run.fault is not None:
            assert str(run.fault).startswith("bench failed at tick ")
        else:
            assert run.end is End.STOPPED
        if self.device.written and not self.device.dead:
            final = self.device.written[-1]
            if self.device.spec.causality is Causality.IMPEDANCE:
                assert final.tolist() == [0.0, 0.0]
            elif self.judge.reference is not None:
                assert final.tolist() == self.judge.reference.tolist()
        if self.judge.bad * self.period > FAULT_AFTER:
            assert "no usable sample for 100 ms" in str(run.fault)

    def teardown(self) -> None:
        if self.run is not None:
            self.run.servo.stop()
            for _ in range(100):
                if self._alive() and self.sound:
                    self._advance("good")
                elif self._alive():  # it has failed already: no more words
                    self.run.clock.let_through()
            self.run.join()
            if self.sound:
                self._judge_the_end(self.run)
            note(f"{self.seen} ticks")
        self._folder.cleanup()


TestEnvelope = Envelope.TestCase
TestEnvelope.settings = settings(max_examples=40, stateful_step_count=30, deadline=None, derandomize=True)
