"""The pantograph driver on an emulated board behind a pseudo-terminal: runs, opening, faults, guardian."""

import contextlib
import errno
import os
import time
from types import SimpleNamespace

import numpy as np
import pytest

import devices
from devices.pantograph import board as boards
from devices.pantograph import guardian
from devices.pantograph.board import Board, WireError, open_port
from devices.pantograph.mechanisms import MECHANISMS
from haptics import Coulomb, MasslessImpedance
from haptics.errors import DeviceFault, DeviceNotFoundError, DeviceOpenError
from tests.contract import DeviceContract
from tests.devices.pantograph.boards import (
    PATIENT,
    QUICK,
    STEPPED,
    driven,
    driver,
    exercise,
    holding,
    new_board,
    wait_for_sample,
    wait_until,
)
from tests.devices.stepped_time import SteppedClock, SteppedTime

pytestmark = pytest.mark.wall_clock


class TestPantograph(DeviceContract):
    name = "pantograph"

    @pytest.fixture(autouse=True)
    def at_a_board(self, board):
        self.settings = {"port": board.port, **QUICK}

    def test_can_be_opened_again(self, device, board):
        device.close()
        wait_until(lambda: board._away)  # the emulated operator homes the arms again
        super().test_can_be_opened_again(device)

    def test_samples_are_fresh(self, device):
        wait_until(lambda: 0.0 <= device._clock.elapsed() - device.read().time <= device.spec.max_sample_age)


# --- an ordinary run -------------------------------------------------------------------------------------------------


def test_position_is_that_of_the_handle(board):
    with driven(board) as device:
        for force in ((0.0, 0.0), (0.5, 0.0), (0.0, -0.7)):
            for _ in range(150):
                device.read()
                device.write(np.array(force))
                time.sleep(1e-3)
            wait_until(lambda: device._clock.elapsed() - device.read().time < 5e-3)
            state = device.read()
            error = state.position - board.handle
            moved = np.abs(state.velocity).max() * (device._clock.elapsed() - state.time)  # since the sample was taken
            assert np.abs(error).max() < 2.0 * device.spec.position_resolution + moved
            np.testing.assert_allclose(board.force, force, atol=0.01)


def render(element, duration, hand, **handle):
    """Render `element` on a board; return positions and commands, (n, 2) each, and the board.

    The time of board, driver and loop is stepped: no torque is late because the machine is busy.
    """
    element.step(np.zeros(2))  # compiles
    element.reset()
    own = SteppedTime()
    clock = SteppedClock(element.period, own, lambda: None)
    positions, commands = [], []
    with own.seen_by(STEPPED), new_board(hand=hand, **handle) as board:
        device = driver(board, clock, **PATIENT)
        with device, own.by_hand():
            device._opened()._keep_alive = 1.0  # only commands wake it from here on
            clock.start()
            for tick in range(round(duration / element.period)):
                clock.wait(tick)
                state = device.read()
                command = -element.step(state.velocity)
                device.write(command)
                wait_for_sample(device, own.now())
                positions.append(state.position.copy())
                commands.append(command)
    return np.array(positions), np.array(commands), board


STROKE = {"name": "minimum-jerk", "points": [[-0.03, -0.01], [0.03, 0.01]], "speed": 0.12, "pause": 0.05, "rest": 0.05,
          "tremor": 0.0, "rest_force": 0.0, "rest_grip": 1.0}  # fmt: skip


def test_sliding_friction_at_the_handle_is_that_of_the_law():
    force, rate = 0.8, 250.0
    _, _, board = render(MasslessImpedance(Coulomb(force), 300.0, 2.0, 1.0 / rate), 2.5, STROKE, mass=0.2)
    entries = list(board.firmware.log)
    felt, speeds = [], []
    arms = board.firmware.arms
    for entry, later in zip(entries, entries[3:], strict=False):
        step = np.subtract(later.handle, entry.handle)
        speeds.append(step / max(later.time - entry.time, 1e-6))
        arms.joystick._record["handle"] = entry.handle
        felt.append(arms.force(entry.torques))
    felt, speeds = np.array(felt), np.array(speeds)
    fast = np.hypot(*speeds.T) > 0.06
    assert fast.sum() > 100
    along = -np.sum(felt[fast] * speeds[fast], axis=1) / np.hypot(*speeds[fast].T)
    assert np.median(np.hypot(*felt[fast].T)) == pytest.approx(force, rel=0.01)
    assert np.median(along) == pytest.approx(force, rel=0.01)


def test_handle_pushed_less_than_the_friction_does_not_drift():
    push = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0], [0.25, 0.5, 0.2], [60.0, 0.5, 0.2]]}
    rate = 250.0
    element = MasslessImpedance(Coulomb(0.8), 300.0, 4.0, 1.0 / rate)
    positions, commands, _ = render(element, 2.5, push, mass=0.2, damping=2.0)
    held = positions[len(positions) // 5 :]  # the last two seconds
    drift = held[-50:].mean(axis=0) - held[:50].mean(axis=0)
    assert np.hypot(*drift) < 30e-6  # a count or so in two seconds
    np.testing.assert_allclose(commands[-50:].mean(axis=0), (-0.5, -0.2), atol=0.05)


# --- opening ---------------------------------------------------------------------------------------------------------


def test_arms_that_move_during_homing_are_refused(board):
    device = driver(board, hold=0.2)  # longer than the operator holds on
    with pytest.raises(DeviceOpenError, match=r"the arms moved while they were being homed"):
        device.open()
    wait_until(lambda: board.firmware.device is None)
    wait_until(lambda: board._away)  # the guardian has released the port
    device = driver(board)
    device.open()
    device.close()


def test_handle_outside_the_workspace_times_out():
    with new_board("2diy", hand=holding([0.0, 0.0]), held=1_000_000) as board:
        with pytest.raises(DeviceOpenError, match=r"not brought into the workspace within 0\.2 s"):
            driver(board, mechanism="2diy", homing_timeout=0.2).open()


def test_silent_port_is_no_board():
    master, slave = os.openpty()
    with pytest.raises(DeviceOpenError, match=r"the board sent nothing .*is this a hAPI board"):
        devices.create_device("pantograph", {"port": os.ttyname(slave), **QUICK}).open()
    os.close(slave)
    os.close(master)


@pytest.mark.parametrize("mechanism", ["2diy", "2diy-38mm"])
def test_other_mechanism_gives_position_and_force(mechanism):
    with new_board(mechanism, hand=holding([0.01, 0.0])) as board, driven(board, mechanism=mechanism) as device:
        exercise(device, 0.2)
        np.testing.assert_allclose(board.force, (0.2, 0.1), atol=0.01)
        assert np.abs(device.read().position - board.handle).max() < 3.0 * device.spec.position_resolution


def test_wrong_mechanism_gives_no_torque():
    with new_board("2diy", hand=holding([0.0, 0.0])) as board:
        with pytest.raises((DeviceOpenError, DeviceFault)):
            driver(board, mechanism="2diy-38mm", homing_timeout=0.5).open()
        assert board.firmware.torques == (0.0, 0.0)


# --- friction compensation -------------------------------------------------------------------------------------------

LEVEL, SHARE = 0.4, 0.75


def test_motors_compensate_friction_when_it_is_allowed(board, tmp_path):
    path = tmp_path / "own.toml"
    axis = "[joint.{0}.friction]\nmodel = 'coulomb-viscous'\ncoulomb_force_n = {1}\nviscosity_ns_per_m = 0.1\n"
    path.write_text(axis.format("x", LEVEL) + axis.format("y", LEVEL))
    with driven(board, friction_parameters=str(path), compensation=SHARE) as device:
        assert device.spec.least_friction == pytest.approx((1.0 - SHARE) * LEVEL)
        assert device.spec.damping == pytest.approx(0.5 - 0.1)

        def shown(speed):
            device.read()
            device._state.velocity[:] = speed, 0.0  # as if the handle moved
            device.write(np.array((0.0, 0.2)))
            return board.force

        wait_until(lambda: abs(shown(0.1)[1] - 0.2) < 0.02)
        assert abs(shown(0.1)[0]) < 0.02
        device.compensate(1.0)
        added = SHARE * (LEVEL + 0.1 * 0.1)
        wait_until(lambda: abs(shown(0.1)[0] - added) < 0.02)
        device.compensate(0.0)
        wait_until(lambda: abs(shown(0.1)[0]) < 0.02)


# --- bytes that are lost or late -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "values"),
    [("lose_request_byte", (0, 1, 2, 5, 6, 9)), ("lose_reply_byte", (0, 4, 8)), ("shorten_reply", range(1, 9))],
)
def test_lost_byte_costs_one_exchange(board, fault, values):
    with driven(board, resyncs=len(values), reply_timeout=0.15) as device:
        exercise(device, 0.05)
        for count, value in enumerate(values, 1):
            setattr(board, fault, value)
            wait_until(lambda count=count: device._exchange.resyncs == count)
            wait_until(lambda: exercise(device, 0.02) or any(board.firmware.torques))
            exercise(device, 0.05)
            assert device._exchange.resyncs == count
            np.testing.assert_allclose(device.read().position, board.handle, atol=1e-3)
            np.testing.assert_allclose(board.force, (0.2, 0.1), atol=0.01)


def test_repeated_loss_of_synchronisation_ends_the_run_without_torque(board):
    with driven(board, resyncs=1) as device:
        board.lose_reply_byte = 0
        wait_until(lambda: device._exchange.resyncs == 1)
        wait_until(lambda: exercise(device, 0.02) or any(board.firmware.torques))  # in step again
        board.lose_request_byte = 9  # the board waits for it and keeps its torques
        with pytest.raises(DeviceFault, match=r"pantograph: .*home the arms and start again"):
            wait_until(lambda: exercise(device, 0.02))
        assert board.firmware.torques == (0.0, 0.0)


def test_late_reply_is_an_old_sample(board):
    with driven(board, reply_timeout=0.25) as device:
        exercise(device, 0.05)
        for delay in (1e-3, 5e-3, 20e-3):
            board.reply_delays = [delay] * 5
            oldest = 0.0
            while board.reply_delays or oldest < delay:
                device.write(np.array((0.2, 0.1)))
                oldest = max(device._clock.elapsed() - device.read().time, oldest)
            wait_until(lambda: device._clock.elapsed() - device.read().time < device.spec.max_sample_age)
        assert device._exchange.resyncs == 0


# --- the exchange thread ---------------------------------------------------------------------------------------------


def new_line(port, keep_alive=2e-3, watchdog=0.1):
    return Board(port, MECHANISMS["gen-1"], SimpleNamespace(keep_alive=keep_alive, watchdog=watchdog), most_resyncs=3)


@contextlib.contextmanager
def synchronised(board):
    """Yield a port and a synchronised line."""
    port = open_port(board.port)
    line = new_line(port)
    line.resynchronise()
    try:
        yield port, line
    finally:
        os.close(port)


@contextlib.contextmanager
def exchanging(board):
    """Yield a port and a synchronised line with its running exchange thread."""
    with synchronised(board) as (port, line):
        line.patience = 0.05
        line.start()
        try:
            yield port, line
        finally:
            line.stop()


@pytest.mark.parametrize("delay", [0.052, 0.06, 0.08, 0.12])
def test_late_reply_does_not_answer_a_later_message(board, delay):
    with exchanging(board) as (port, exchange):
        board.reply_delays = [delay]
        wait_until(lambda: exchange.resyncs)
        resynchronised = exchange.samples.read()[0]
        wait_until(lambda: exchange.samples.read()[0] > resynchronised)
        exchange.stop()
        assert not exchange.failure
        assert guardian.read_up_to(port, 1, 0.05) == b""  # no reply is left over


def test_reply_from_before_a_failed_exchange_is_refused(board):
    with synchronised(board) as (port, line):
        for _ in range(3):  # two failures each
            assert line.transfer((0.0, 0.0)) == pytest.approx((180.0, 0.0), abs=0.03)
            guardian.write_all(port, line.zero)
            old = guardian.read_up_to(port, guardian.REPLY_LENGTH, 1.0)
            board.shorten_reply = 0
            line.patience = 0.05
            with pytest.raises(WireError, match="nothing"):
                line.transfer((0.0, 0.0))
            line.patience = 1.0
            line.resynchronise()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(guardian, "write_all", lambda *_: None)
                patch.setattr(guardian, "read_up_to", lambda *_, old=old: old)
                with pytest.raises(WireError, match="too far"):
                    line.transfer((0.0, 0.0))
            line.resynchronise()


def test_angle_limit_counts_from_the_earliest_time_of_the_last_sample(monkeypatch):
    now, replies = [0.0], [(0.02, 180.0), (0.001, 280.0), (0.001, 380.0)]  # how long each takes to be read, left angle

    def read(*_):
        delay, angle = replies.pop(0)
        now[0] += delay
        return angle

    monkeypatch.setattr(boards, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(guardian, "write_all", lambda *_: None)
    monkeypatch.setattr(guardian, "read_up_to", read)
    monkeypatch.setattr(boards, "parse_reply", lambda _, reply: (reply, 0.0))
    line = new_line(0)
    line.transfer((0.0, 0.0))
    assert line.transfer((0.0, 0.0)) == (280.0, 0.0)  # 100 degrees in 21 ms: the first was sampled before it was read
    with pytest.raises(WireError, match="too far"):
        line.transfer((0.0, 0.0))  # another 100 degrees in 2 ms


# --- unplugged -------------------------------------------------------------------------------------------------------


def test_unplugging_is_a_fault_with_its_remedy(board):
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


# --- timed faults ----------------------------------------------------------------------------------------------------


def test_timed_faults_repeat_for_every_host():
    names = ("lost-byte", "lost-reply-byte", "short", "dropout")
    # shorter than the timeout of a reply: each occurs once; longer than the pauses of a busy machine
    faults = [f"{name}@{0.1 + 0.5 * k}+0.15" for k, name in enumerate(names)]
    with new_board(hand=holding([0.0, 0.0]), faults=faults) as board:
        with driven(board, resyncs=len(names)) as device:
            wait_until(lambda: exercise(device, 0.02) or device._exchange.resyncs == len(names))
            exercise(device, 0.1)
            assert device._exchange.resyncs == len(names)
            np.testing.assert_allclose(device.read().position, board.handle, atol=1e-3)
        wait_until(lambda: board._away)
        with driven(board) as device:
            wait_until(lambda: device._exchange.resyncs)


# --- the guardian ----------------------------------------------------------------------------------------------------


def test_without_a_guardian_a_dead_host_leaves_its_torques(board):
    """The board keeps its last torques: the reason for a guardian."""
    with synchronised(board) as (_, line):
        line.transfer((0.05, 0.05))
    wait_until(lambda: board._away)
    assert all(board.firmware.torques)


class TakenBetween(Board):
    """A guardian that takes over during an exchange, and the line that fails then."""

    def __init__(self, error):
        super().__init__(0, MECHANISMS["gen-1"], SimpleNamespace(keep_alive=1e-3, watchdog=0.5), most_resyncs=3)
        self.guard, self.calls = self, []
        self._error, self._beats = error, 0

    def beat(self):
        self._beats += 1
        return self._beats == 1

    def transfer(self, torques):
        raise self._error

    def resynchronise(self):
        self.calls.append("resynchronise")


@pytest.mark.parametrize(
    "error", [BlockingIOError(errno.EAGAIN, "the guardian read the answer"), WireError("no answer")]
)
def test_guardian_that_takes_over_is_named_and_keeps_the_port(error):
    line = TakenBetween(error)
    line.start()
    wait_until(lambda: line.failure)
    line.stop()
    assert line.failure.startswith("the guardian process has ended")
    assert line.calls == []
