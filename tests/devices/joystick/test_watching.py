"""Supervision of a stick in virtual time: silence, reported state, and a suspended computer."""

import pytest

from devices.joystick import streaming
from devices.joystick.hid import usages as use
from devices.joystick.reports import InputLayout, Sample
from devices.joystick.streaming import SETTLED, SILENCE, STATE_PERIOD, Watch
from haptics.errors import DeviceFault
from tests.devices.joystick.doubles import FakeTransport, described


def position(x, y, buttons=0):
    head = bytes((1,)) + buttons.to_bytes(8, "little")
    return head + x.to_bytes(2, "little", signed=True) + y.to_bytes(2, "little", signed=True) + bytes(12)


ENABLED, PAUSED, POWER = 0b10, 0b1, 0b1000
GOOD = ENABLED | POWER


def state(flags):
    return bytes((2, flags))


class WatchClock:
    """The module `time` of the watch."""

    CLOCK_BOOTTIME, CLOCK_MONOTONIC = 0, 1

    def __init__(self):
        self.now, self.slept = 10.0, 3.0

    def perf_counter(self):
        return self.now

    def clock_gettime(self, clock):
        return self.now + self.slept * (clock == self.CLOCK_BOOTTIME)

    def silent(self, x=5):
        """Return a position so old that the watch asks the stick."""
        return Sample(x, 5, 0, self.now - 1.1 * SILENCE)


@pytest.fixture
def clock(monkeypatch):
    made = WatchClock()
    monkeypatch.setattr(streaming, "time", made)
    return made


@pytest.fixture
def transport():
    made = FakeTransport()
    made.answers = {1: position(5, 5), 2: state(GOOD)}
    return made


def watch_over(transport):
    watch = Watch(transport, InputLayout(described("openffboard"), use.X, use.Y))
    watch.begin()
    return watch


@pytest.mark.parametrize(("x", "answers"), [(7, True), (5, False)], ids=["moved", "no answer"])
def test_watch_fails_when_a_silent_stick_has_moved_or_does_not_answer(transport, clock, x, answers):
    watch = watch_over(transport)
    if not answers:
        del transport.answers[1]
    watch.check(clock.silent(x), True)  # a report may be under way
    with pytest.raises(DeviceFault, match="has stopped reporting the position of its handle"):
        watch.check(clock.silent(x), True)


@pytest.mark.parametrize("x", [4, 5, 6])
def test_watch_accepts_silence_of_a_handle_at_rest(transport, clock, x):
    watch = watch_over(transport)
    for _ in range(10):
        watch.check(clock.silent(x), True)


@pytest.mark.parametrize("reports", [True, False])
def test_watch_accepts_a_stick_that_reports_or_has_no_force_on(transport, clock, reports):
    watch = watch_over(transport)
    for _ in range(10):
        watch.check(clock.silent(90), True)
        watch.check(Sample(90, 5, 0, clock.now) if reports else clock.silent(90), reports)


def test_watch_does_not_ask_a_stick_that_gave_no_answer_when_it_was_opened(transport, clock):
    transport.answers.clear()
    watch = Watch(transport, InputLayout(described("openffboard"), use.X, use.Y))
    assert watch.begin() is None
    transport.answers = {1: position(900, 900), 2: state(0)}
    for _ in range(10):
        clock.now += STATE_PERIOD
        watch.check(clock.silent(), True)


@pytest.mark.parametrize(("flags", "words"), [
    (POWER, "reports that it has switched its motors off"), (ENABLED, "has no power for its motors"),
    (GOOD | PAUSED, "has paused all forces"), (0, "has switched its motors off and has no power for its motors"),
])  # fmt: skip
def test_watch_fails_when_the_state_gets_worse_in_a_report_or_an_answer(transport, clock, flags, words):
    watch = watch_over(transport)
    clock.now += 2.0 * SETTLED
    watch.handle_state(state(GOOD))
    with pytest.raises(DeviceFault, match=words):
        watch.handle_state(state(flags))
    transport.answers[2] = state(flags)
    clock.now += STATE_PERIOD
    with pytest.raises(DeviceFault, match=words):
        watch.check(clock.silent(), False)


def test_watch_ignores_a_state_that_was_never_set_and_truncated_reports(transport, clock):
    transport.answers[2] = state(0)  # some sticks have such a report and never fill it in
    watch = watch_over(transport)
    clock.now += 2.0 * SETTLED
    watch.handle_state(state(0))
    watch.handle_state(state(GOOD))
    watch.handle_state(b"\2")


def test_watch_ignores_states_in_the_first_moments(transport, clock):
    watch = watch_over(transport)
    clock.now += 0.5 * SETTLED
    watch.handle_state(state(PAUSED))
    watch.handle_state(state(GOOD))


def test_watch_fails_after_the_computer_was_suspended(transport, clock):
    watch = watch_over(transport)
    watch.check(clock.silent(), True)
    clock.slept += 60.0
    with pytest.raises(DeviceFault, match="the computer was suspended"):
        watch.check(clock.silent(), True)
