"""The loop when its device fails in ways that are neither a bad number nor the end: it blocks, or fails once."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from haptics import Coulomb, DeviceFault, MasslessImpedance, RigidAdmittance, Servo
from haptics.clock import Clock
from haptics.device import Causality, State
from haptics.records import Status
from haptics.trace import Trace
from tests.haptics.doubles import BenchDevice, Vector

PERIOD = 1e-3


def element() -> MasslessImpedance:
    return MasslessImpedance(Coulomb(4.0), 6000.0, 10.0)


class Blocking(Clock):
    """Simulated time in which a reading can block."""

    blocked = 0.0

    def elapsed(self) -> float:
        return self.time + self.blocked

    def wait(self, tick: int) -> float:
        super().wait(tick)
        late, self.blocked = max(self.blocked - self.period, 0.0), 0.0
        return late


def test_a_sample_that_took_too_long_to_come_is_stale(trace: Trace) -> None:
    clock = Blocking(PERIOD)

    def block(state: State, number: int) -> None:
        clock.blocked = {100: 4e-3, 200: 50e-3}.get(number, 0.0)

    device = BenchDevice(clock, disturb=block)
    Servo(device, element(), trace, clock=clock).run(0.5)
    rows = trace.since(0)
    stale = rows[(rows["status"] & Status.STALE) != 0]
    assert len(stale) == 1
    assert stale["tick"].tolist() == [rows["tick"][200]]
    assert stale["sample_age"][0] == pytest.approx(50e-3)
    assert np.hypot(*stale["command"][0]) == pytest.approx(2.0)


class Wavering(BenchDevice):
    """Fails to write in given calls."""

    def __init__(self, clock: Clock, fails: set[int]) -> None:
        super().__init__(clock)
        self.fails, self.calls = fails, 0

    def write(self, command: Vector) -> None:
        self.calls += 1
        if self.calls in self.fails:
            raise OSError("busy")
        super().write(command)


def test_after_a_write_that_failed_the_safe_output_is_tried_to_its_end(trace: Trace) -> None:
    clock = Clock(PERIOD)
    device = Wavering(clock, {51, 52})
    with pytest.raises(DeviceFault, match="bench failed at tick 50: OSError: busy"):
        Servo(device, element(), trace, clock=clock).run(0.3)
    assert device.written[-2].any()
    assert device.written[-1].tolist() == [0.0, 0.0]
    assert device.closed == 1


class Wedged(BenchDevice):
    """Cannot be read from some time on, nor take its safe output then; closing it may say something as well."""

    def __init__(self, clock: Clock, writing: str, closing: str) -> None:
        super().__init__(clock)
        self.writing, self.closing = writing, closing
        self.pulled = False

    def read(self) -> State:
        if self.reads == 50:
            self.pulled = True
            raise DeviceFault("bench: the cable was pulled; plug it in again.")
        return super().read()

    def write(self, command: Vector) -> None:
        if self.writing and self.pulled:
            raise OSError(self.writing)
        super().write(command)

    def close(self) -> None:
        super().close()
        if self.closing:
            raise DeviceFault(self.closing)


PULLED = "bench failed at tick 50: bench: the cable was pulled; plug it in again."


@pytest.mark.parametrize(
    ("writing", "closing", "words"),
    [
        ("", "", ""),
        ("", "bench: switch the motors off.", " It could not be left safe: bench: switch the motors off."),
        ("busy", "", " It could not be left safe: OSError: busy"),
        ("busy", "bench: switch it off.", " It could not be left safe: bench: switch it off."),
        ("", "bench: the cable was pulled; plug it in again.", ""),  # nobody needs to hear it twice
    ],
)
def test_a_device_that_could_not_be_left_safe_is_told_of(trace: Trace, writing: str, closing: str, words: str) -> None:
    clock = Clock(PERIOD)
    device = Wedged(clock, writing, closing)
    with pytest.raises(DeviceFault) as caught:
        Servo(device, element(), trace, clock=clock).run(0.3)
    assert str(caught.value) == PULLED + words
    assert device.closed == 1


def test_an_orderly_end_that_was_not_safe_is_a_fault(trace: Trace) -> None:
    device = Wedged(Clock(PERIOD), "", "bench: switch the motors off.")
    with pytest.raises(DeviceFault, match=r"bench failed at tick \d+: bench: switch the motors off\."):
        Servo(device, element(), trace, clock=device.clock).run(0.03)


def test_a_second_run_does_not_inherit_the_bad_samples_of_the_first(trace: Trace) -> None:
    clock = Clock(PERIOD)
    blind = {"until": 200}

    def spoil(state: State, number: int) -> None:
        if number < blind["until"]:
            state.position[0] = math.nan

    device = BenchDevice(clock, disturb=spoil)
    servo = Servo(device, element(), trace, clock=clock)
    with pytest.raises(DeviceFault, match="no usable sample"):
        servo.run(0.3)
    blind["until"] = device.reads + 50
    servo.run(0.3)
    assert (trace.since(0)["status"][-200:] & Status.NOT_FINITE == 0).all()


def test_an_arm_that_does_not_follow_is_a_fault_that_says_where_it_is_and_what_to_do(trace: Trace) -> None:
    def blocked(state: State, number: int) -> None:
        state.position[:], state.velocity[:], state.force[:] = (0.01, -0.02), 0.0, (30.0, 0.0)

    clock = Clock(PERIOD)
    device = BenchDevice(clock, Causality.ADMITTANCE, blocked, max_following_error=0.005)
    words = (
        r"bench failed at tick (\d+): it does not follow: since tick (\d+) its end effector, at "
        r"\(0\.010 m, -0\.020 m\), has been more than 5 mm from its reference, now (5\.\d) mm in x "
        r"and 0\.0 mm in y\. Something holds or blocks it"
    )
    with pytest.raises(DeviceFault, match=words) as caught:
        Servo(device, RigidAdmittance(Coulomb(6.0), 2.0), trace, clock=clock).run(1.0)
    said = re.match(words, str(caught.value))
    assert said is not None
    last, first = int(said[1]), int(said[2])
    flagged = trace.since(0)["tick"][(trace.since(0)["status"] & Status.FOLLOWING_ERROR) != 0]
    assert (flagged[0], flagged[-1]) == (first, last)
    assert last - first == 100
    assert (np.array(device.written)[first:] == device.written[first - 1]).all(), "the reference is held, to the end"
    assert 1e3 * (device.written[-1][0] - 0.01) == pytest.approx(float(said[3]), abs=0.06)
    assert device.closed == 1


def test_an_arm_that_is_freed_in_time_goes_on(trace: Trace) -> None:
    def blocked_for_a_while(state: State, number: int) -> None:
        held = device.written[-1] if device.written and number > 120 else np.zeros(2)
        state.position[:], state.velocity[:], state.force[:] = held, 0.0, (12.0, 0.0)

    clock = Clock(PERIOD)
    device = BenchDevice(clock, Causality.ADMITTANCE, blocked_for_a_while, max_following_error=0.005)
    Servo(device, RigidAdmittance(Coulomb(6.0), 2.0), trace, clock=clock).run(0.25)
    rows = trace.since(0)
    flagged = (rows["status"] & Status.FOLLOWING_ERROR) != 0
    assert 20 < flagged.sum() < 100
    assert not flagged[122:].any()
    assert rows["command"][200, 0] > rows["command"][121, 0]
