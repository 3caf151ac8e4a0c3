"""Whether a stick still is what it was: one that falls silent, or says that its motors are off, is not played on."""

import time

import numpy as np
import pytest

from devices.emulated.joystick import EmulatedPidJoystick
from devices.emulators.pid import emulated_stick
from devices.emulators.pid.stick import EmulatedStick
from devices.joystick import watching
from devices.joystick.device import PidJoystick
from devices.joystick.hid import usages as use
from devices.joystick.inputs import InputLayout, Sample
from devices.joystick.watching import SETTLED, SILENCE, STATE_PERIOD, Watch
from haptics.errors import DeviceFault
from tests.devices.joystick.doubles import FakeTransport, described, make
from tests.system.devices.joystick.test_streaming import position

ENABLED, PAUSED, POWER = 0b10, 0b1, 0b1000
GOOD = ENABLED | POWER

MOVES = {"name": "minimum-jerk", "tremor": 0.0}
HOLDS = MOVES | {"points": [[0.0, 0.0], [0.001, 0.0]], "rests": ["b"], "rest": 30.0, "rest_force": 0.0}


def state(flags: int) -> bytes:
    return bytes((2, flags))


class Clock:
    """The time, as the watch sees it."""

    CLOCK_BOOTTIME, CLOCK_MONOTONIC = 0, 1

    def __init__(self) -> None:
        self.now, self.slept = 10.0, 3.0

    def perf_counter(self) -> float:
        return self.now

    def clock_gettime(self, clock: int) -> float:
        return self.now + self.slept * (clock == self.CLOCK_BOOTTIME)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(watching, "time", made)
    return made


@pytest.fixture
def transport() -> FakeTransport:
    made = FakeTransport()
    made.answers = {1: position(5, 5), 2: state(GOOD)}
    return made


@pytest.fixture
def watch(transport: FakeTransport, clock: Clock) -> Watch:
    made = Watch(transport, InputLayout(described("openffboard"), use.X, use.Y))
    made.begin()
    return made


def silent(clock: Clock, x: int = 5, y: int = 5) -> Sample:
    """Return the last position, said so long ago that the stick is asked."""
    return Sample(x, y, 0, clock.now - 1.1 * SILENCE)


def test_a_handle_that_moves_while_nothing_is_reported_is_a_fault(watch: Watch, clock: Clock) -> None:
    watch.look(silent(clock, 7), True)  # a report may be on its way
    with pytest.raises(DeviceFault, match="has stopped reporting the position of its handle"):
        watch.look(silent(clock, 7), True)


def test_a_stick_that_does_not_answer_any_more_is_in_doubt_as_well(
    watch: Watch, clock: Clock, transport: FakeTransport
) -> None:
    del transport.answers[1]
    watch.look(silent(clock), True)
    with pytest.raises(DeviceFault, match="has stopped reporting"):
        watch.look(silent(clock), True)


@pytest.mark.parametrize("x", [4, 5, 6])
def test_a_handle_at_rest_may_be_silent_for_ever(watch: Watch, clock: Clock, x: int) -> None:
    for _ in range(10):
        watch.look(silent(clock, x), True)


@pytest.mark.parametrize("spoken", [True, False])
def test_a_stick_that_reports_or_has_no_force_on_is_not_doubted(watch: Watch, clock: Clock, spoken: bool) -> None:
    for _ in range(10):
        watch.look(silent(clock, 90), True)
        watch.look(Sample(90, 5, 0, clock.now) if spoken else silent(clock, 90), spoken)


def test_a_stick_that_gave_no_answer_when_it_was_opened_is_not_asked(transport: FakeTransport, clock: Clock) -> None:
    transport.answers.clear()
    watch = Watch(transport, InputLayout(described("openffboard"), use.X, use.Y))
    assert watch.begin() is None
    transport.answers = {1: position(900, 900), 2: state(0)}
    for _ in range(10):
        clock.now += STATE_PERIOD
        watch.look(silent(clock), True)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (POWER, "reports that it has switched its motors off"),
        (ENABLED, "has no power for its motors"),
        (GOOD | PAUSED, "has paused all forces"),
        (0, "has switched its motors off and has no power for its motors"),
    ],
)
def test_a_state_that_gets_worse_is_a_fault_be_it_reported_or_asked_for(
    watch: Watch, clock: Clock, transport: FakeTransport, flags: int, words: str
) -> None:
    clock.now += 2.0 * SETTLED
    watch.hear(state(GOOD))
    with pytest.raises(DeviceFault, match=words):
        watch.hear(state(flags))
    transport.answers[2] = state(flags)
    clock.now += STATE_PERIOD
    with pytest.raises(DeviceFault, match=words):
        watch.look(silent(clock), False)


def test_what_a_stick_never_said_is_not_missed_and_half_a_report_says_nothing(
    transport: FakeTransport, clock: Clock
) -> None:
    transport.answers[2] = state(0)  # some have such a report and never fill it in
    watch = Watch(transport, InputLayout(described("openffboard"), use.X, use.Y))
    watch.begin()
    clock.now += 2.0 * SETTLED
    watch.hear(state(0))
    watch.hear(state(GOOD))
    watch.hear(b"\2")


def test_old_reports_in_the_first_moments_mean_nothing(watch: Watch, clock: Clock) -> None:
    clock.now += 0.5 * SETTLED
    watch.hear(state(PAUSED))
    watch.hear(state(GOOD))


def test_a_computer_that_has_slept_is_a_fault(watch: Watch, clock: Clock) -> None:
    watch.look(silent(clock), True)
    clock.slept += 60.0
    with pytest.raises(DeviceFault, match="the computer was suspended"):
        watch.look(silent(clock), True)


# --- with the whole driver --------------------------------------------------------------------------------------------


def fault_of(device: PidJoystick, force: float, seconds: float) -> str:
    """Return what the driver says if it fails within so many seconds, else nothing."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        try:
            device.read()
            device.write(np.array((force, 0.0)))
        except DeviceFault as fault:
            return str(fault)
        time.sleep(1e-3)
    return ""


def held(hand: dict[str, object], profile: str, *faults: str) -> tuple[PidJoystick, EmulatedStick]:
    backend = emulated_stick(profile, hand=hand, faults=faults)
    return EmulatedPidJoystick({"emulated": True, "emulator": profile}, backend=backend), backend.sticks[0]


@pytest.mark.wall_clock  # a watchful driver and a stick in one process
@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("profile", ["sidewinder-ff2", "openffboard"])
def test_a_handle_that_is_moved_without_a_report_is_not_rubbed_for_long(profile: str) -> None:
    device, stick = held(MOVES, profile)
    with device:
        assert fault_of(device, 0.5, 0.15) == ""
        stick.faults.set("dropout")
        begun = time.perf_counter()
        assert "has stopped reporting the position of its handle" in fault_of(device, 0.5, 2.0)
        assert time.perf_counter() - begun < 1.0
    assert not stick.force.any()


@pytest.mark.wall_clock  # a watchful driver and a stick in one process
@pytest.mark.usefixtures("compiled")
def test_a_dropout_goes_unnoticed_as_long_as_nothing_moves_or_nothing_is_played() -> None:
    device, stick = held(HOLDS, "sidewinder-ff2")
    with device:
        assert fault_of(device, 1.0, 0.8) == ""  # until the hand has given way and holds
        stick.faults.set("dropout")
        assert fault_of(device, 1.0, 0.3) == ""
    device, stick = held(MOVES, "sidewinder-ff2", "dropout@0.4")
    with device:
        assert fault_of(device, 0.0, 0.8) == ""


@pytest.mark.wall_clock  # a watchful driver and a stick in one process
@pytest.mark.usefixtures("compiled")
def test_a_stick_that_the_bus_let_sleep_has_lost_its_effects_and_is_a_fault() -> None:
    device, stick = make()
    with device:
        assert fault_of(device, 0.5, 2.0 * SETTLED) == ""
        stick.suspend()
        assert "has switched its motors off" in fault_of(device, 0.5, 2.0)
