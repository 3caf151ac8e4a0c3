"""The whole pantograph driver over a real pseudo-terminal, against the emulated board and its moving arms."""

import os
import time

import numpy as np
import pytest

import devices
from devices.emulators.hapi.board import HapiBoard
from haptics.clock import cancelled_by
from haptics.elements.models import MasslessImpedance
from haptics.errors import ConfigurationError, DeviceFault, DeviceOpenError, OpeningCancelled
from haptics.friction.laws import Coulomb
from tests.contract import DeviceContract
from tests.devices.pantograph.boards import (
    PATIENT,
    QUICK,
    STEPPED,
    driven,
    driver,
    exercise,
    holding,
    wait_for_sample,
    wait_until,
)
from tests.devices.stepped_time import SteppedClock, SteppedTime

pytestmark = pytest.mark.wall_clock  # driver and board exchange by the wall's clock, in threads of their own


class TestPantograph(DeviceContract):
    name = "pantograph"

    @pytest.fixture(autouse=True)
    def at_a_board(self, board):
        self.settings = {"port": board.port, **QUICK}

    def test_can_be_opened_again(self, device, board):
        device.close()
        wait_until(lambda: board._away)  # somebody must put the arms to their home pose again
        super().test_can_be_opened_again(device)

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
            wait_until(lambda: device._clock.elapsed() - device.read().time < 5e-3)  # an old one is of another place
            state = device.read()
            error = state.position - board.handle
            moved = np.abs(state.velocity).max() * (device._clock.elapsed() - state.time)  # since the sample was taken
            assert np.abs(error).max() < 2.0 * device.spec.position_resolution + moved
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
    wait_until(lambda: board.firmware.device is None)


def test_errors_of_the_caller_leave_no_torque_either(board):
    with pytest.raises(ZeroDivisionError), driver(board) as device:
        device.write(np.array((0.5, 0.5)))
        wait_until(lambda: any(board.torques))
        _ = 1 / 0
    assert board.torques == (0.0, 0.0)
    wait_until(lambda: board.firmware.device is None)


def render(element, duration, hand, **handle):
    """Render `element` on a board with a handle; return positions and commands, (n, 2) each, and the board.

    Its time, the driver's and the loop's is stepped: no torque is later than on a machine that has nothing else to do.
    """
    element.step(np.zeros(2))  # compiles
    element.reset()
    own = SteppedTime()
    clock = SteppedClock(element.period, own, lambda: None)
    positions, commands = [], []
    with own.seen_by(STEPPED), HapiBoard(hand=hand, **handle) as board:
        device = driver(board, clock, **PATIENT)
        with device, own.by_hand():
            device._opened()._pause = 1.0  # from now on only commands wake it
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


def test_a_handle_that_is_pushed_less_than_friction_holds_stays_where_it_is():
    push = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0], [0.25, 0.5, 0.2], [60.0, 0.5, 0.2]]}
    rate = 250.0
    element = MasslessImpedance(Coulomb(0.8), 300.0, 4.0, 1.0 / rate)
    positions, commands, _ = render(element, 2.5, push, mass=0.2, damping=2.0)
    held = positions[len(positions) // 5 :]  # the last two seconds
    drift = held[-50:].mean(axis=0) - held[:50].mean(axis=0)
    assert np.hypot(*drift) < 30e-6  # a count or so in two seconds
    np.testing.assert_allclose(commands[-50:].mean(axis=0), (-0.5, -0.2), atol=0.05)


# --- opening -------------------------------------------------------------------------------------------------------


def test_arms_that_move_while_they_are_homed_are_not_taken_for_home(board):
    device = driver(board, hold=0.2)  # longer than the operator holds on
    with pytest.raises(DeviceOpenError, match=r"the arms moved while they were being homed"):
        device.open()
    wait_until(lambda: board.firmware.device is None)
    wait_until(lambda: board._away)  # the port is free again, and the guardian gone
    device = driver(board)
    device.open()
    device.close()


def test_a_handle_that_is_not_brought_into_the_workspace_is_waited_for_only_so_long():
    with HapiBoard("2diy", hand=holding([0.0, 0.0])) as board:
        board.firmware.arms.release = lambda now: None  # the operator does not let go
        with pytest.raises(DeviceOpenError, match=r"not brought into the workspace within 0\.2 s"):
            driver(board, mechanism="2diy", homing_timeout=0.2).open()


@pytest.mark.parametrize("looks", [0, 10])
def test_an_opening_that_is_called_off_ends_at_once_and_arms_nothing(board, looks):
    asked = []

    def called_off():
        asked.append(time.monotonic())
        return len(asked) > looks

    device = driver(board, hold=10.0)
    with pytest.raises(OpeningCancelled), cancelled_by(called_off):
        device.open()
    assert time.monotonic() - asked[looks] < 5.0
    assert len(asked) == looks + 1  # what undoes the opening is not called off
    assert not any(any(entry.torques) for entry in board.firmware.log)
    wait_until(lambda: board._away)  # the port is free again, and the guardian gone


def test_something_else_at_the_port_is_no_board():
    master, slave = os.openpty()
    with pytest.raises(DeviceOpenError, match=r"the board sent nothing .*is this a hAPI board"):
        devices.create_device("pantograph", {"port": os.ttyname(slave), **QUICK}).open()
    os.close(slave)
    os.close(master)


@pytest.mark.parametrize("mechanism", ["2diy", "2diy-38mm"])
def test_other_mechanisms_work_alike(mechanism):
    with HapiBoard(mechanism, hand=holding([0.01, 0.0])) as board, driven(board, mechanism=mechanism) as device:
        exercise(device, 0.2)
        np.testing.assert_allclose(board.force, (0.2, 0.1), atol=0.01)
        assert np.abs(device.read().position - board.handle).max() < 3.0 * device.spec.position_resolution


def test_the_wrong_mechanism_is_found_out_or_at_least_not_rendered():
    with HapiBoard("2diy", hand=holding([0.0, 0.0])) as board:
        with pytest.raises((DeviceOpenError, DeviceFault)):
            driver(board, mechanism="2diy-38mm", homing_timeout=0.5).open()
        assert board.torques == (0.0, 0.0)


# --- the board in a process of its own -----------------------------------------------------------------------------


def test_emulated_board_runs_in_its_own_process_and_ends_with_the_device(tmp_path):
    log = tmp_path / "log.npy"
    hand = holding([0.01, 0.0])
    settings = {"emulated": True, "hold": 0.05, "hand": hand, "seed": 3, "period": 1e-3, "log": str(log)}
    with devices.create_device("pantograph", settings) as device:
        assert device.spec.identity == "gen-1, emulated"

        def is_where_the_hand_holds_it():
            device.write(np.array((0.0, 0.1)))
            return np.allclose(device.read().position, (0.01, 0.1 / 400.0), atol=0.1e-3)

        wait_until(is_where_the_hand_holds_it)
    rows = np.load(log)
    rows = rows[rows["monotonic_ns"] > 0]
    np.testing.assert_array_equal(rows["command"][0], (0.0, 0.1))
    np.testing.assert_array_equal(rows["command"][-1], (0.0, 0.0))


def test_hand_that_cannot_be_made_is_named_by_the_emulated_board():
    hand = {"name": "minimum-jerk", "points": [[0.0, 0.0], [0.5, 0.0]]}
    with pytest.raises(ConfigurationError, match=r"hand\.points"):
        devices.create_device("pantograph", {"emulated": True, "hand": hand}).open()
