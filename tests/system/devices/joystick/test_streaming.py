"""Streaming: the latest value only, changed axes only, kept alive, and nothing left on when nobody commands."""

import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from devices.joystick.hid import usages as use
from devices.joystick.inputs import InputLayout
from devices.joystick.streaming import Streaming
from haptics.errors import DeviceOpenError
from tests.devices.joystick.doubles import FakeTransport, described, session, timeout, unplugged

KEEP_ALIVE = 0.04
OFFBOARD_INPUT = 25


def position(x: int, y: int, buttons: int = 0) -> bytes:
    head = bytes((1,)) + buttons.to_bytes(8, "little")
    return head + x.to_bytes(2, "little", signed=True) + y.to_bytes(2, "little", signed=True) + bytes(12)


def constants(sent: list[str], block: int) -> list[int]:
    found = [bytes.fromhex(text) for text in sent if text.startswith(f"05{block:02x}")]
    return [int.from_bytes(report[2:4], "little", signed=True) for report in found]


class Rig:
    def __init__(self) -> None:
        self.transport = FakeTransport()
        playing = session(self.transport)
        playing.start()
        self.transport.sent.clear()
        self.transport.stamps.clear()
        layout = InputLayout(described("openffboard"), use.X, use.Y)
        self.streaming = Streaming(self.transport, playing, layout, KEEP_ALIVE)
        self.transport.reports.put(position(0, 0))

    def start(self) -> None:
        self.streaming.start(5.0)

    def command(self, level_x: float, level_y: float) -> None:
        """Leave the levels of the two effects as a tick does."""
        self.streaming.levels.publish(level_x, level_y, time.perf_counter())
        self.streaming.wake.call()


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig()
    yield made
    made.streaming.stop()


def until(condition: object, patience: float = 5.0) -> None:
    end = time.monotonic() + patience
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(1e-3)


def test_only_what_changed_is_sent(rig: Rig) -> None:
    rig.start()
    rig.command(0.5, 0.0)
    rig.transport.wait_for(lambda sent: constants(sent, 1) == [16384])
    rig.command(0.5, 0.0)
    rig.command(0.5, 0.25)
    rig.transport.wait_for(lambda sent: constants(sent, 2) == [8192])
    assert constants(rig.transport.sent, 1) == [16384]


def test_the_axis_that_is_farther_off_goes_first(rig: Rig) -> None:
    rig.start()
    rig.command(0.1, -0.9)
    rig.transport.wait_for(lambda sent: bool(constants(sent, 1)))
    order = [text[:4] for text in rig.transport.sent if text.startswith("05")]
    assert order[:2] == ["0502", "0501"]


def test_a_value_that_was_overtaken_is_never_sent(rig: Rig) -> None:
    rig.transport.before_write = lambda report: time.sleep(5e-3)
    rig.start()
    for step in range(1, 101):
        rig.command(step * 0.01, 0.0)
        time.sleep(3e-4)
    rig.transport.wait_for(lambda sent: constants(sent, 1)[-1:] == [32767])
    sent = constants(rig.transport.sent, 1)
    assert len(sent) < 50
    assert sent == sorted(sent)


def test_effects_are_started_anew_one_at_a_time_while_commands_come(rig: Rig) -> None:
    rig.start()
    end = time.monotonic() + 8 * KEEP_ALIVE
    while time.monotonic() < end:
        rig.command(0.1, 0.1)
        time.sleep(1e-3)
    for block in (1, 2):
        starts = [text for text in rig.transport.sent if text == f"0a{block:02x}0101"]
        assert 4 <= len(starts) <= 14, "no more often than once in 3/4 of the time, and not much less often"


def test_no_force_stays_when_nobody_commands_any_more(rig: Rig) -> None:
    rig.start()
    rig.command(0.5, -0.5)
    rig.transport.wait_for(lambda sent: bool(constants(sent, 1)) and bool(constants(sent, 2)))
    rig.transport.wait_for(lambda sent: constants(sent, 1)[-1] == constants(sent, 2)[-1] == 0)
    rig.transport.sent.clear()
    time.sleep(3 * KEEP_ALIVE)
    assert rig.transport.sent == [], "nothing is kept alive that nobody wants"


def test_reports_are_told_apart_by_their_number(rig: Rig) -> None:
    rig.start()
    rig.transport.reports.put(bytes((2, 0b10)))  # actuators enabled
    rig.transport.reports.put(bytes((0xA1, *range(24))))  # the maker's own
    rig.transport.reports.put(position(-5, 7, 0b101))
    until(lambda: rig.streaming.sample is not None and rig.streaming.sample.x == -5)
    sample = rig.streaming.sample
    assert sample is not None
    assert (sample.x, sample.y, sample.buttons) == (-5, 7, 0b101)


def test_silence_is_as_good_as_the_same_report_again(rig: Rig) -> None:
    rig.start()
    before = rig.streaming.heard
    until(lambda: rig.streaming.heard > before)
    assert rig.streaming.sample is not None
    assert rig.streaming.sample.time < rig.streaming.heard


def test_silence_after_a_report_that_was_cut_short_is_not(rig: Rig) -> None:
    rig.start()
    rig.transport.reports.put(position(5, 5)[: OFFBOARD_INPUT // 2])
    until(rig.transport.reports.empty)
    time.sleep(0.05)
    before = rig.streaming.heard
    time.sleep(0.05)
    assert rig.streaming.heard == before
    rig.transport.reports.put(position(6, 6))
    until(lambda: rig.streaming.heard > before)


def test_the_first_report_may_be_an_old_one_and_is_not_relied_on() -> None:
    rig = Rig()
    rig.transport.reports.put(position(9, 9))
    rig.start()
    assert rig.streaming.sample is not None
    assert rig.streaming.sample.x == 9
    rig.streaming.stop()


def test_one_report_alone_may_have_waited_in_the_stick_for_long(rig: Rig) -> None:
    streaming = rig.streaming
    assert streaming._take(position(0, 0), 0.0, True)
    assert not streaming._ready.is_set()
    assert not streaming._take(position(0, 0)[:4], 0.0, True), "cut short"
    assert not streaming._ready.is_set()
    assert streaming._take(position(1, 0), 0.0, False)
    assert streaming._ready.is_set()


def test_a_stick_that_sends_no_positions_cannot_be_opened() -> None:
    rig = Rig()
    rig.transport.reports.get()
    with pytest.raises(DeviceOpenError, match="sends no positions"):
        rig.streaming.start(0.05)
    rig.streaming.stop()


def test_a_stick_at_rest_that_sends_nothing_is_asked() -> None:
    rig = Rig()
    rig.transport.reports.get()
    rig.transport.answers[1] = position(3, -4)
    rig.start()
    assert rig.streaming.sample is not None
    assert (rig.streaming.sample.x, rig.streaming.sample.y) == (3, -4)
    rig.streaming.stop()


def test_another_report_is_no_answer() -> None:
    rig = Rig()
    rig.transport.reports.get()
    rig.transport.answers[1] = bytes((2,)) + position(3, -4)[1:]
    with pytest.raises(DeviceOpenError, match="sends no positions"):
        rig.streaming.start(0.05)
    rig.streaming.stop()


def test_nothing_is_sent_any_more_once_the_end_has_begun(rig: Rig) -> None:
    rig.start()
    ending = threading.Thread(target=rig.streaming.stop)

    def end(report: bytes) -> None:
        if not ending.ident:
            ending.start()
            until(rig.streaming._stopping.is_set)

    rig.transport.before_write = end
    rig.command(0.5, -0.4)
    rig.transport.wait_for(bool)
    ending.join(5.0)
    assert len(rig.transport.sent) == 1, "only what was under way"


def test_one_report_that_is_not_taken_is_followed_by_a_newer_one(rig: Rig) -> None:
    failures = [timeout()]

    def refuse(report: bytes) -> None:
        if failures:
            rig.command(0.25, 0.0)
            raise failures.pop()

    rig.transport.before_write = refuse
    rig.start()
    rig.command(0.5, 0.0)
    rig.transport.wait_for(lambda sent: constants(sent, 1)[-1:] == [8192])
    assert rig.streaming.fault is None


def test_a_stick_that_takes_nothing_at_all_is_a_fault(rig: Rig) -> None:
    def refuse(report: bytes) -> None:
        raise timeout()

    rig.transport.before_write = refuse
    rig.start()
    rig.command(0.5, 0.0)
    until(lambda: rig.streaming.fault is not None)


def test_a_report_that_stays_under_way_is_a_fault_though_the_writer_hangs(rig: Rig) -> None:
    go_on = threading.Event()

    def hang(report: bytes) -> None:
        go_on.wait(10.0)

    rig.transport.before_write = hang
    rig.start()
    assert rig.streaming.fault is None
    rig.command(0.5, 0.0)
    until(lambda: rig.streaming.fault is not None)
    assert "did not answer an output report in time" in str(rig.streaming.fault)
    rig.streaming.stop()
    assert rig.transport.sent == [], "it hangs still, and nobody waits for it"
    go_on.set()


@pytest.mark.parametrize(("under_way", "failed"), [(0.079, False), (0.081, True)])
def test_a_report_has_failed_after_the_time_of_two(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, under_way: float, failed: bool
) -> None:
    """Each is given 40 ms; a force that cannot be taken away must not stand for longer."""
    clock = SimpleNamespace(perf_counter=lambda: 100.0)
    monkeypatch.setattr("devices.joystick.streaming.time", clock)
    seen: list[Exception | None] = []

    def look(report: bytes) -> None:
        clock.perf_counter = lambda: 100.0 + under_way
        seen.append(rig.streaming.fault)

    rig.transport.before_write = look
    rig.command(0.5, 0.0)
    rig.streaming._exchange()
    assert (seen[0] is not None) == failed


def test_zero_that_was_not_taken_is_tried_again_though_nobody_commands(rig: Rig) -> None:
    failures: list[str] = []

    def refuse(report: bytes) -> None:
        if report.hex() == "05010000" and not failures:
            failures.append(report.hex())
            raise timeout()

    rig.transport.before_write = refuse
    rig.start()
    rig.command(0.5, 0.0)
    rig.transport.wait_for(lambda sent: constants(sent, 1)[-1:] == [0])
    assert failures
    assert rig.streaming.fault is None


def test_what_ends_the_reader_is_kept(rig: Rig) -> None:
    rig.start()
    rig.transport.reports.put(unplugged())
    until(lambda: rig.streaming.fault is not None)
    assert "unplugged" in str(rig.streaming.fault)


def test_axes_that_are_not_there_are_named() -> None:
    with pytest.raises(DeviceOpenError, match="0x00020001"):
        InputLayout(described("openffboard"), use.X, 0x00020001)
