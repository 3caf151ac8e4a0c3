"""What the driver makes of a wire that loses, shortens, delays or ends the conversation with the board."""

import contextlib
import errno
import os
import re
import time
from types import SimpleNamespace

import numpy as np
import pytest

import devices
from devices.emulators.hapi.board import HapiBoard
from devices.emulators.hapi.faults import WIRE_FAULTS
from devices.emulators.wire_faults import DELAYS
from devices.pantograph import guardian, wire
from devices.pantograph.exchange import Exchange
from devices.pantograph.line import Line
from devices.pantograph.mechanisms import MECHANISMS
from devices.pantograph.ports import open_port
from devices.pantograph.wire import WireError
from haptics import Coulomb, MasslessImpedance, Servo
from haptics.errors import ConfigurationError, DeviceFault, DeviceNotFoundError
from haptics.trace import Trace
from tests.devices.pantograph.boards import (
    LONG,
    PATIENT,
    STEPPED,
    driven,
    driver,
    exercise,
    holding,
    wait_for_sample,
    wait_until,
)
from tests.devices.stepped_time import SteppedClock, SteppedTime
from tests.processes import ROOT

pytestmark = pytest.mark.wall_clock  # driver and board exchange by the wall's clock, in threads of their own


@pytest.mark.parametrize(
    ("fault", "values"),
    [("lose_request_byte", (0, 1, 2, 5, 6, 9)), ("lose_reply_byte", (0, 4, 8)), ("shorten_reply", range(1, 9))],
)
def test_what_gets_lost_costs_an_exchange_not_the_run(board, fault, values):
    with driven(board, resyncs=len(values), reply_timeout=0.15) as device:
        exercise(device, 0.05)
        for count, value in enumerate(values, 1):
            getattr(board, fault)(value)
            wait_until(lambda count=count: device.resyncs == count)
            wait_until(lambda: exercise(device, 0.02) or any(board.torques))
            exercise(device, 0.05)
            assert device.resyncs == count
            np.testing.assert_allclose(device.read().position, board.handle, atol=1e-3)
            np.testing.assert_allclose(board.force, (0.2, 0.1), atol=0.01)


def test_a_board_that_gets_out_of_step_all_the_time_ends_the_run_and_has_no_torque(board):
    with driven(board, resyncs=1) as device:
        board.lose_reply_byte(0)
        wait_until(lambda: device.resyncs == 1)
        wait_until(lambda: exercise(device, 0.02) or any(board.torques))  # in step again
        board.lose_request_byte(9)  # the board waits for it, with its torques as they are
        with pytest.raises(DeviceFault, match=r"pantograph: .*home the arms and start again"):
            wait_until(lambda: exercise(device, 0.02))
        assert board.torques == (0.0, 0.0)


def test_a_late_reply_is_an_old_sample_and_no_fault(board):
    with driven(board, reply_timeout=0.25) as device:
        exercise(device, 0.05)
        for delay in (1e-3, 5e-3, 20e-3):
            board.delay_replies(delay, 5)
            oldest = 0.0
            while board._delays or oldest < delay:
                device.write(np.array((0.2, 0.1)))
                oldest = max(device._clock.elapsed() - device.read().time, oldest)
            wait_until(lambda: device._clock.elapsed() - device.read().time < device.spec.max_sample_age)
        assert device.resyncs == 0


# --- the conversation itself ---------------------------------------------------------------------------------------


class Awake:
    """A guardian that never minds."""

    def beat(self):
        return True


@contextlib.contextmanager
def conversation(board):
    """Give a port, a line in step, and the thread that exchanges torques for angles."""
    port = open_port(board.port)
    line = Line(port, MECHANISMS["gen-1"])
    line.resynchronise()
    line.patience = 0.05
    exchange = Exchange(line, Awake(), pause=2e-3, watchdog=0.1, resyncs=3)
    exchange.start()
    try:
        yield port, line, exchange
    finally:
        exchange.stop()
        os.close(port)


@pytest.mark.parametrize("delay", [0.052, 0.06, 0.08, 0.12])
def test_a_reply_that_comes_too_late_is_not_taken_for_that_to_a_later_message(board, delay):
    with conversation(board) as (port, _, exchange):
        board.delay_replies(delay)
        wait_until(lambda: exchange.resyncs)
        resynchronised = exchange.samples.read()[0]
        wait_until(lambda: exchange.samples.read()[0] > resynchronised)
        exchange.stop()
        assert not exchange.failure
        assert guardian.read_up_to(port, 1, 0.05) == b""  # nothing is left over: every answer was to its own message


def test_a_late_reply_does_not_keep_the_board_out_of_step(board):
    port = open_port(board.port)
    line = Line(port, MECHANISMS["gen-1"])
    line.resynchronise()
    board.delay_replies(0.3)
    line.patience = 0.05
    with pytest.raises(WireError, match="nothing"):
        line.exchange((0.0, 0.0))
    line.patience = 5.0
    line.resynchronise()  # what comes first is the reply to the message before
    assert line.exchange((0.0, 0.0)) == pytest.approx((180.0, 0.0), abs=0.03)
    os.close(port)


def test_after_an_exchange_that_failed_no_reply_to_it_or_before_is_one(board):
    port = open_port(board.port)
    line = Line(port, MECHANISMS["gen-1"])
    line.resynchronise()
    for _ in range(3):  # two failures each
        assert line.exchange((0.0, 0.0)) == pytest.approx((180.0, 0.0), abs=0.03)
        guardian.write_all(port, line.zero)
        old = guardian.read_up_to(port, guardian.REPLY_LENGTH, 1.0)
        board.shorten_reply(0)
        line.patience = 0.05
        with pytest.raises(WireError, match="nothing"):
            line.exchange((0.0, 0.0))
        line.patience = 1.0
        line.resynchronise()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(guardian, "write_all", lambda *_: None)
            patch.setattr(guardian, "read_up_to", lambda *_, old=old: old)
            with pytest.raises(WireError, match="too far"):
                line.exchange((0.0, 0.0))
        line.resynchronise()
    os.close(port)


def test_a_reply_that_lay_in_the_buffer_may_be_followed_by_one_from_far_away(monkeypatch):
    now, replies = [0.0], [(0.02, 180.0), (0.001, 280.0), (0.001, 380.0)]  # how long each takes to be read, left angle

    def read(*_):
        delay, angle = replies.pop(0)
        now[0] += delay
        return angle

    monkeypatch.setattr("devices.pantograph.line.time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(guardian, "write_all", lambda *_: None)
    monkeypatch.setattr(guardian, "read_up_to", read)
    monkeypatch.setattr(wire, "parse_reply", lambda _, reply: (reply, 0.0))
    line = Line(0, MECHANISMS["gen-1"])
    line.exchange((0.0, 0.0))
    assert line.exchange((0.0, 0.0)) == (280.0, 0.0)  # 100 degrees in 21 ms: the first was sampled before it was read
    with pytest.raises(WireError, match="too far"):
        line.exchange((0.0, 0.0))  # another 100 degrees in 2 ms


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.EIO, os.strerror(errno.EIO)), r"the board is gone \(Input/output error\)"),
        (ZeroDivisionError("division by zero"), "exchange with the board failed .ZeroDivisionError: division by zero"),
    ],
)
def test_whatever_fails_for_once_ends_the_exchange_without_torques(board, monkeypatch, error, words):
    with conversation(board) as (_, line, exchange):
        exchange.torques.publish(0.05, 0.05, time.perf_counter())
        exchange.wake.call()
        wait_until(lambda: any(board.torques))

        def fail(torques):
            monkeypatch.undo()
            raise error

        monkeypatch.setattr(line, "exchange", fail)
        wait_until(lambda: exchange.failure)
        wait_until(lambda: not any(board.torques))
        assert re.search(words, exchange.failure)


# --- unplugged -----------------------------------------------------------------------------------------------------


def test_unplugging_is_a_fault_that_says_what_the_motors_may_still_do(board):
    device = driver(board)
    device.open()
    exercise(device, 0.05)
    board.unplug()
    with pytest.raises(DeviceFault, match=r"pantograph: the board is gone .*switch their supply off"):
        wait_until(lambda: exercise(device, 0.02))
    with pytest.raises(DeviceFault, match="could not be set to 0"):
        device.close()
    device.close()
    with pytest.raises(DeviceNotFoundError):
        device.open()


def test_a_run_that_is_unplugged_says_that_the_torques_could_not_be_taken_away(tmp_path):
    own = SteppedTime()
    clock = SteppedClock(1e-3, own, lambda: unplugged_after(200))
    with own.seen_by(STEPPED), HapiBoard(hand=holding([0.0, 0.0])) as board:
        device = driver(board, clock, **PATIENT)

        def unplugged_after(tick):
            wait_for_sample(device, own.now())
            if clock.tick == tick:
                board.unplug()

        element, trace = MasslessImpedance(Coulomb(0.5), 300.0, 2.0), Trace.create(tmp_path / "trace")
        servo = Servo(device, element, trace, clock=clock)
        with pytest.raises(DeviceFault) as caught:
            servo.run(LONG)
    assert 200 <= servo.trace.since(0)["tick"][-1] < 210
    first, _, second = str(caught.value).partition(" It could not be left safe: ")
    assert "the board is gone" in first
    assert second.startswith("pantograph: the torques could not be set to 0 (")
    assert "switch their supply off" in second


# --- faults by name and time ---------------------------------------------------------------------------------------


def test_faults_by_name_and_time_come_when_they_should_and_anew_for_every_host():
    names = ("lost-byte", "lost-reply-byte", "short", "dropout")
    # shorter than a reply is waited for, so that each is met once; longer than a busy machine stands still
    faults = [f"{name}@{0.1 + 0.5 * k}+0.15" for k, name in enumerate(names)]
    with HapiBoard(hand=holding([0.0, 0.0]), faults=faults) as board:
        with driven(board, resyncs=len(names)) as device:
            wait_until(lambda: exercise(device, 0.02) or device.resyncs == len(names))
            exercise(device, 0.1)
            assert device.resyncs == len(names)
            np.testing.assert_allclose(device.read().position, board.handle, atol=1e-3)
        wait_until(lambda: board._away)
        with driven(board) as device:
            wait_until(lambda: device.resyncs)


def test_delays_by_name_and_time():
    faults = [f"delay-{delay}ms@{start}+{length}" for delay, start, length in ((5, 0.1, 0.2), (20, 0.4, 0.2))]
    with HapiBoard(hand=holding([0.0, 0.0]), faults=faults) as board, driven(board, reply_timeout=0.25) as device:
        for delay in (5e-3, 20e-3):
            wait_until(lambda delay=delay: device._clock.elapsed() - device.read().time >= delay)
        wait_until(lambda: board.firmware.arms.since_let_go(time.monotonic()) > 0.65)
        wait_until(lambda: device._clock.elapsed() - device.read().time < 5e-3)
        assert device.resyncs == 0


def test_every_fault_is_on_the_page_and_every_delay_has_its_length():
    page = (ROOT / "docs" / "joysticks.md").read_text()
    for name, description in WIRE_FAULTS.items():
        assert f"| `{name}` | {description} |" in page
    assert {name for name in WIRE_FAULTS if name.startswith("delay-")} <= set(DELAYS)


@pytest.mark.parametrize(
    ("faults", "emulated", "message"),
    [
        ("unplug@1", True, r"device\.wire_faults = 'unplug@1': must be a list of texts NAME@SECONDS"),
        (["unplugged@1"], True, r"unknown fault of the wire in 'unplugged@1'.*Did you mean 'unplug'"),
        (["stall@1"], True, r"unknown fault of the wire in 'stall@1'.*lost-byte"),
        (["short@x"], True, r"fault of the wire 'short@x': must have the form .*short@2\+0\.05"),
        (["short@1"], False, r"only an emulated pantograph has an emulated wire"),
    ],
)
def test_wrong_faults_are_told_with_what_is_allowed(faults, emulated, message):
    with pytest.raises(ConfigurationError, match=message):
        devices.create_device("pantograph", {"emulated": emulated, "wire_faults": faults})
