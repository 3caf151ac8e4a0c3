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
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

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

from haptics import Coulomb, CoulombViscous, Stribeck
from haptics.device import Causality
from haptics.friction.law import Law
from haptics.records import ROW, Rows, Status
from haptics.rendering.envelope import UNUSABLE, Limits
from haptics.servo.loop import End
from haptics.servo.loop_kernels import FAULT_AFTER
from haptics.trace import Trace
from tests.haptics.doubles import Vector
from tests.haptics.judges import TINY, Judge, Twin
from tests.haptics.stepped_servo import CLASSIC, REFUSED, Moving, Run, Turnstile, build
from tests.haptics.strategies import Grip

LAWS: tuple[Law, ...] = (Coulomb(4.0), Coulomb(40.0), CoulombViscous(2.0, 20.0), Stribeck(3.0, 5.0, 0.1, 2.0))
FOLLOWS = 0.005
"""No farther from its reference than this is an admittance device [m]."""

GOOD = ("good", "good", "good", "stuck", "duplicate")

pushes = st.tuples(st.sampled_from([0.0, 3.0, 10.0, 30.0]), st.floats(-math.pi, math.pi))
grips = st.builds(
    Grip, st.sampled_from([0.05, 0.3, 5.0]), st.sampled_from([50.0, 2e3, 2e4]), st.sampled_from([0.0, 10.0, 200.0])
)


class Envelope(RuleBasedStateMachine):
    """Everything that can happen, in any order."""

    flags: ClassVar[int] = 0
    """Everything that the envelope has said so far."""

    def __init__(self) -> None:
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
    )
    def begin(self, model: str, law: Law, grip: Grip, period: float, tighter: dict[str, Any]) -> None:
        self.model, self.period = model, period
        element = build(model, law, replace(grip, period=period))
        if element.causality is Causality.ADMITTANCE:
            tighter["passivity_control"] = False
        facts = {"fade_in": 0.0, "mass": 0.2, "damping": 4.0, "delay": 1e-3, "max_sample_age": 6e-3}
        facts["max_following_error"] = FOLLOWS
        walls = {"workspace_min": (-0.07, -0.05), "workspace_max": (0.07, 0.05)}
        clock = Turnstile(period)
        self.device = Moving(clock, element.causality, **facts, **walls)
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

    def _alive_for_long(self) -> bool:
        return self._alive() and self.seen > 400

    def _push(self, size: float, angle: float) -> None:
        self.device.push = size * np.array((math.cos(angle), math.sin(angle)))

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
        row, core = rows[0], run.servo.rendering.core
        self.judge.look(row, self._expected(row, kind))
        type(self).flags |= int(row["status"])
        refused = int(row["status"]) & UNUSABLE
        if not refused & ~Status.FOLLOWING_ERROR:  # a device that does not follow says the truth about where it is
            self.believed, self.believed_age = row["position"].copy(), float(row["sample_age"])
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

    def _expected(self, row: np.void, kind: str) -> int:
        """Return the flag that the sample deserves."""
        if kind in REFUSED and (kind != "far" or self.believed is not None):
            return int(REFUSED[kind])
        if row["sample_age"] > 6e-3 * (1 + TINY):  # a duplicate after missed deadlines
            return int(Status.STALE)
        # After a time in which the values were stuck, the truth looks like a jump.
        status = int(row["status"])
        if status & Status.IMPLAUSIBLE and self.believed is not None:
            older = max(self.believed_age - row["sample_age"], 0.0)
            assert math.dist(row["position"], self.believed) > 10.0 * (self.period + older) * (1 - TINY)
            return int(Status.IMPLAUSIBLE)
        if self.judge.reference is not None and math.dist(row["position"], self.judge.reference) > FOLLOWS:
            return int(Status.FOLLOWING_ERROR)
        return 0

    @precondition(_alive)
    @rule(count=st.integers(1, 40), kind=st.sampled_from(GOOD), push=pushes)
    def live(self, count: int, kind: str, push: tuple[float, float]) -> None:
        self._push(*push)
        for _ in range(count):
            if self._alive():
                self._advance(kind)

    @precondition(_alive)
    @rule(half=st.integers(5, 40), times=st.integers(2, 6), push=pushes)
    def swing(self, half: int, times: int, push: tuple[float, float]) -> None:
        for number in range(times):
            self.live(half, "good", (push[0], push[1] + math.pi * (number % 2)))

    @precondition(_alive)
    @rule(count=st.integers(1, 12), kinds=st.lists(st.sampled_from([*REFUSED]), min_size=1))
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
        self.run.wanted = build(self.model, law, replace(grip, period=self.period))

    @precondition(_alive)
    @rule(count=st.integers(20, 200), push=pushes)
    def block(self, count: int, push: tuple[float, float]) -> None:
        self.device.blocked = True
        self.live(count, "good", push)
        self.device.blocked = False

    @rule(held=st.booleans())
    def press(self, held: bool) -> None:
        self.device.held = held

    @precondition(_alive_for_long)
    @rule(kinds=st.lists(st.sampled_from([*REFUSED]), min_size=1))
    def fail_for_good(self, kinds: list[str]) -> None:
        self.fail(1000, kinds)
        assert not self._alive()

    @precondition(_alive_for_long)
    @rule(kind=st.sampled_from(["read error", "write error"]))
    def unplug(self, kind: str) -> None:
        self._advance(kind)

    @precondition(_alive_for_long)
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
            assert "since tick" in str(run.fault)

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


def run_machine(examples: int) -> int:
    """Run the machine for a number of examples and return all status flags that were set."""
    Envelope.flags = 0
    chosen = settings(max_examples=examples, stateful_step_count=30, derandomize=True, phases=[Phase.generate])
    run_state_machine_as_test(Envelope, settings=chosen)  # type: ignore[no-untyped-call]
    return Envelope.flags


def test_no_limit_is_ever_broken() -> None:
    run_machine(30)
