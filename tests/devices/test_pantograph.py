"""The whole pantograph driver over a real pseudo-terminal, against the emulated board and its moving arms."""

import contextlib
import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import devices
from devices.emulators.hapi.board import HapiBoard
from devices.pantograph import guardian
from devices.pantograph.line import Line
from devices.pantograph.ports import open_port
from haptics.clock import WallClock
from haptics.elements import MasslessImpedance
from haptics.errors import ConfigurationError, DeviceFault, DeviceNotFoundError, DeviceOpenError
from haptics.friction import Coulomb
from tests.contract import DeviceContract

NO_HAND = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
QUICK = {"at_home": True, "hold": 0.05, "reply_timeout": 0.2, "watchdog": 0.5}
LONG = 20.0
"""Patience with a busy machine [s]."""


def holding(point):
    return {"name": "minimum-jerk", "points": [point, point], "rest": 60.0, "rest_force": 0.0, "rest_grip": 1.0,
            "tremor": 0.0}  # fmt: skip


def wait_until(condition, patience=LONG):
    latest = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < latest, "it did not come about"
        time.sleep(2e-3)


def released(board):
    """Tell whether the operator has let go of the handle by now."""
    _ = board.handle
    return board.firmware.arms.free


@pytest.fixture(autouse=True, scope="module")
def no_collection():
    """Collect no garbage while threads must answer each other within milliseconds; the servo does the same."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def board():
    with HapiBoard(hand=holding([0.0, 0.0])) as board:
        yield board


def driver(board, clock=None, **changes):
    return devices.create_device("pantograph", {"port": board.port, **QUICK, **changes}, clock=clock)


@contextlib.contextmanager
def driven(board, clock=None, **changes):
    device = driver(board, clock, **changes)
    device.open()
    try:
        wait_until(lambda: released(board))
        yield device
    finally:
        device.close()


class TestPantograph(DeviceContract):
    name = "pantograph"

    @pytest.fixture(autouse=True)
    def at_a_board(self, board):
        self.settings = {"port": board.port, **QUICK}

    def test_samples_are_fresh(self, device):
        wait_until(lambda: 0.0 <= device._clock.elapsed() - device.read().time <= device.spec.max_sample_age)


# --- an ordinary run ----------------------------------------------------------------------------------------------


def test_position_is_where_the_handle_is(board):
    with driven(board) as device:
        for force in ((0.0, 0.0), (0.5, 0.0), (0.0, -0.7)):
            for _ in range(150):
                device.read()
                device.write(np.array(force))
                time.sleep(1e-3)
            error = device.read().position - board.handle
            assert np.abs(error).max() < 2.0 * device.spec.position_resolution
            np.testing.assert_allclose(board.force, force, atol=0.01)


def test_motors_stop_when_commands_stay_out_though_the_process_lives(board):
    with driven(board) as device:
        device.write(np.array((0.5, 0.5)))
        wait_until(lambda: any(board.torques))
        wait_until(lambda: not any(board.torques))
        device.write(np.array((0.5, 0.5)))
        wait_until(lambda: any(board.torques))


def test_closing_leaves_no_torque_and_a_reset_board(board):
    with driven(board) as device:
        device.write(np.array((0.5, 0.5)))
        wait_until(lambda: any(board.torques))
    assert board.torques == (0.0, 0.0)
    assert board.firmware.device is None


def test_errors_of_the_caller_leave_no_torque_either(board):
    with pytest.raises(ZeroDivisionError), driver(board) as device:
        device.write(np.array((0.5, 0.5)))
        wait_until(lambda: any(board.torques))
        _ = 1 / 0
    assert board.torques == (0.0, 0.0)
    assert board.firmware.device is None


def render(board, element, duration):
    """Render `element` on the board in real time; return positions and commands, (n, 2) each.

    No servo: that would end the run, rightly, when a busy test machine stops for a tenth of a second.
    """
    element.step(np.zeros(2))  # compiles
    element.reset()
    clock = WallClock(element.period)
    positions, commands = [], []
    with driver(board, clock) as device:
        clock.start()
        for tick in range(round(duration / element.period)):
            clock.wait(tick)
            state = device.read()
            command = -element.step(state.velocity)
            device.write(command)
            positions.append(state.position.copy())
            commands.append(command)
    return np.array(positions), np.array(commands)


STROKE = {"name": "minimum-jerk", "points": [[-0.03, -0.01], [0.03, 0.01]], "speed": 0.12, "pause": 0.05, "rest": 0.05,
          "tremor": 0.0, "rest_force": 0.0, "rest_grip": 1.0}  # fmt: skip


def test_sliding_friction_at_the_handle_is_that_of_the_law():
    force, rate = 0.8, 250.0
    with HapiBoard(hand=STROKE, mass=0.2) as board:
        element = MasslessImpedance(Coulomb(force), 300.0, 2.0, 1.0 / rate)
        render(board, element, 3.0)
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


def test_a_handle_that_is_pushed_less_than_friction_holds_stays_where_it_is():
    push = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0], [0.5, 0.5, 0.2], [60.0, 0.5, 0.2]]}
    rate = 250.0
    with HapiBoard(hand=push, mass=0.2, damping=2.0) as board:
        element = MasslessImpedance(Coulomb(0.8), 300.0, 4.0, 1.0 / rate)
        positions, commands = render(board, element, 4.0)
    held = positions[-round(2.0 * rate) :]
    drift = held[-50:].mean(axis=0) - held[:50].mean(axis=0)
    assert np.hypot(*drift) < 30e-6  # a count or so in two seconds
    np.testing.assert_allclose(commands[-50:].mean(axis=0), (-0.5, -0.2), atol=0.05)


# --- the wire's faults ---------------------------------------------------------------------------------------------


def exercise(device, board, duration=0.3):
    latest = time.monotonic() + duration
    while time.monotonic() < latest:
        device.read()
        device.write(np.array((0.2, 0.1)))
        time.sleep(1e-3)


@pytest.mark.parametrize("lost", [0, 1, 2, 5, 6, 9])
def test_a_byte_lost_on_the_way_there_costs_an_exchange_not_the_run(board, lost):
    with driven(board) as device:
        exercise(device, board, 0.1)
        board.lose_request_byte(lost)
        wait_until(lambda: device.resyncs == 1)
        exercise(device, board, 0.2)
        assert device.resyncs == 1
        np.testing.assert_allclose(device.read().position, board.handle, atol=1e-3)
        np.testing.assert_allclose(board.force, (0.2, 0.1), atol=0.01)


@pytest.mark.parametrize("length", range(1, 9))
def test_a_short_reply_costs_an_exchange_not_the_run(board, length):
    with driven(board) as device:
        exercise(device, board, 0.05)
        board.shorten_reply(length)
        wait_until(lambda: device.resyncs == 1)
        exercise(device, board, 0.2)
        assert device.resyncs == 1
        np.testing.assert_allclose(device.read().position, board.handle, atol=1e-3)


def test_a_lost_byte_of_a_reply_is_noticed(board):
    with driven(board) as device:
        board.lose_reply_byte(4)
        wait_until(lambda: device.resyncs == 1)
        exercise(device, board, 0.1)
        np.testing.assert_allclose(device.read().position, board.handle, atol=1e-3)


def test_a_board_that_gets_out_of_step_all_the_time_ends_the_run(board):
    with driven(board, resyncs=1) as device:
        board.lose_reply_byte(0)
        wait_until(lambda: device.resyncs == 1)
        wait_until(lambda: exercise(device, board, 0.02) or any(board.torques))  # in step again
        board.lose_reply_byte(0)
        with pytest.raises(DeviceFault, match=r"pantograph: .*home the arms and start again"):
            wait_until(lambda: exercise(device, board, 0.02))
    assert board.torques == (0.0, 0.0)


@pytest.mark.parametrize("delay", [1e-3, 5e-3, 20e-3])
def test_a_late_reply_is_an_old_sample_and_no_fault(board, delay):
    with driven(board, reply_timeout=0.25) as device:
        exercise(device, board, 0.05)
        before = device.resyncs
        board.delay_replies(delay, 5)
        ages = []
        latest = time.monotonic() + 0.1 + 8 * delay
        while time.monotonic() < latest:
            device.write(np.array((0.2, 0.1)))
            ages.append(device._clock.elapsed() - device.read().time)
            time.sleep(5e-4)
        assert device.resyncs == before
        assert max(ages) >= delay
        wait_until(lambda: device._clock.elapsed() - device.read().time < device.spec.max_sample_age)


def test_unplugging_is_a_fault_that_says_what_the_motors_may_still_do(board):
    device = driver(board)
    device.open()
    exercise(device, board, 0.05)
    board.unplug()
    with pytest.raises(DeviceFault, match=r"pantograph: the board is gone .*switch their supply off"):
        wait_until(lambda: exercise(device, board, 0.02))
    with pytest.raises(DeviceFault, match="could not be taken away"):
        device.close()
    device.close()
    with pytest.raises(DeviceNotFoundError):
        device.open()


# --- opening -------------------------------------------------------------------------------------------------------


def test_arms_that_move_while_they_are_homed_are_not_taken_for_home(board):
    device = driver(board, hold=2.0)  # longer than the operator holds on
    with pytest.raises(DeviceOpenError, match=r"the arms moved while they were being homed"):
        device.open()
    assert board.firmware.device is None
    wait_until(lambda: board._away)  # the port is free again, and the guardian gone
    device = driver(board)
    device.open()
    device.close()


def test_a_handle_that_is_not_brought_into_the_workspace_is_waited_for_only_so_long():
    with HapiBoard("2diy", hand=holding([0.0, 0.0])) as board:
        board.firmware.arms.release = lambda now: None  # the operator does not let go
        with pytest.raises(DeviceOpenError, match=r"not brought into the workspace within 0\.2 s"):
            driver(board, mechanism="2diy", homing_timeout=0.2).open()


def test_something_else_at_the_port_is_no_board():
    master, slave = os.openpty()
    with pytest.raises(DeviceOpenError, match=r"the board sent nothing .*is this a hAPI board"):
        devices.create_device("pantograph", {"port": os.ttyname(slave), **QUICK}).open()
    os.close(slave)
    os.close(master)


@pytest.mark.parametrize("mechanism", ["2diy", "2diy-38mm"])
def test_other_mechanisms_work_alike(mechanism):
    with HapiBoard(mechanism, hand=holding([0.01, 0.0])) as board, driven(board, mechanism=mechanism) as device:
        exercise(device, board, 0.2)
        np.testing.assert_allclose(board.force, (0.2, 0.1), atol=0.01)
        assert np.abs(device.read().position - board.handle).max() < 3.0 * device.spec.position_resolution


def test_the_wrong_mechanism_is_found_out_or_at_least_not_rendered():
    with HapiBoard("2diy", hand=holding([0.0, 0.0])) as board:
        with pytest.raises((DeviceOpenError, DeviceFault)):
            driver(board, mechanism="2diy-38mm", homing_timeout=0.5).open()
        assert board.torques == (0.0, 0.0)


# --- the guardian --------------------------------------------------------------------------------------------------

HOST = """
import sys, time, numpy as np, devices
device = devices.create_device("pantograph", {"port": sys.argv[1], "at_home": True, "hold": 0.05})
device.open()
print("open", flush=True)
while True:
    device.read()
    device.write(np.array((0.5, 0.3)))
    time.sleep(1e-3)
"""
ROOT = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def host(board):
    """A process that drives the board for ever; given when there is torque."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOST, board.port], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        try:
            assert process.stdout.readline() == b"open\n"
            wait_until(lambda: any(board.torques))
            yield process
        finally:
            process.kill()


def test_without_a_guardian_a_dead_host_leaves_its_torques():
    """What the board itself does, and why there is a guardian."""
    with HapiBoard(hand=holding([0.0, 0.0])) as board:
        port = open_port(board.port)
        mechanism = devices.create_device("pantograph").settings.geometry
        line = Line(port, mechanism)
        line.resynchronise()
        line.exchange((0.05, 0.05))
        os.close(port)
        wait_until(lambda: board._away)
        assert all(board.torques)


def test_killed_host_leaves_no_torque(board):
    with host(board) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_until(lambda: board.torques == (0.0, 0.0))
        wait_until(lambda: board.firmware.device is None)


def test_killed_host_leaves_no_torque_even_if_the_board_was_out_of_step(board):
    with host(board) as process:
        process.send_signal(signal.SIGSTOP)
        board.lose_request_byte(7)
        process.send_signal(signal.SIGCONT)
        wait_until(lambda: board._lost_in is None)
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_until(lambda: board.torques == (0.0, 0.0))
        wait_until(lambda: board.firmware.device is None)


def test_stopped_host_leaves_no_torque_and_does_not_go_on_afterwards(board):
    with host(board) as process:
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: board.torques == (0.0, 0.0))
        wait_until(lambda: board.firmware.device is None)
        process.send_signal(signal.SIGCONT)
        _, words = process.communicate(timeout=LONG)
        assert b"DeviceFault: pantograph: the guardian has taken the torques away" in words
        wait_until(lambda: board.torques == (0.0, 0.0))


def test_without_its_guardian_the_driver_does_not_go_on(board):
    device = driver(board)
    device.open()
    children = [pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()]
    for pid in children:
        if b"guardian.py" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(int(pid), signal.SIGKILL)
    with pytest.raises(DeviceFault, match="guardian"):
        wait_until(lambda: exercise(device, board, 0.02))
    device.close()
    assert board.torques == (0.0, 0.0)


def test_guardian_needs_nothing_but_the_standard_library():
    code = f"import runpy; runpy.run_path({guardian.__file__!r})"
    assert subprocess.run([sys.executable, "-I", "-S", "-c", code], check=False, timeout=60).returncode == 0


# --- the board in a process of its own -----------------------------------------------------------------------------


def test_emulated_board_runs_in_its_own_process_and_ends_with_the_device(tmp_path):
    log = tmp_path / "log.npy"
    hand = holding([0.01, 0.0])
    settings = {"emulated": True, "hold": 0.05, "hand": hand, "seed": 3, "period": 1e-3, "log": str(log)}
    with devices.create_device("pantograph", settings) as device:
        assert device.spec.identity == "gen-1, emulated"
        latest = time.monotonic() + 1.0
        while time.monotonic() < latest:
            position = device.read().position.copy()
            device.write(np.array((0.0, 0.1)))
            time.sleep(2e-3)
        np.testing.assert_allclose(position, (0.01, 0.1 / 400.0), atol=1e-3)
    rows = np.load(log)
    rows = rows[rows["monotonic_ns"] > 0]
    np.testing.assert_array_equal(rows["command"][0], (0.0, 0.1))
    np.testing.assert_array_equal(rows["command"][-1], (0.0, 0.0))


def test_hand_that_cannot_be_made_is_named_by_the_emulated_board():
    hand = {"name": "minimum-jerk", "points": [[0.0, 0.0], [0.5, 0.0]]}
    with pytest.raises(ConfigurationError, match=r"hand\.points"):
        devices.create_device("pantograph", {"emulated": True, "hand": hand}).open()
