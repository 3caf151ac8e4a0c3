"""The stage and the emulated drive together: how it is begun, what it does in a tick, how it is ended."""

import math
import struct
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from devices.arm.motors import MotorStage, OdriveSettings, OdriveStage
from devices.arm.motors.usb.pipes import Pipes
from devices.emulators.odrive import emulated_odrive
from devices.emulators.odrive.axis import CLOSED_LOOP, IDLE
from devices.emulators.odrive.board import EmulatedOdrive
from devices.emulators.odrive.usb_backend import EmulatedOdriveBackend
from haptics.errors import ConfigurationError, DeviceFault, DeviceNotFoundError, DeviceOpenError
from tests.devices.arm.odrive_rig import (
    HOME,
    PATIENCE,
    armed,
    go_on,
    make,
    operations,
    run,
    states,
    states_at_looks,
    until,
)

pytestmark = pytest.mark.usefixtures("stepped")


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


# --- the beginning ---------------------------------------------------------------------------------------------------


def test_it_is_a_motor_stage() -> None:
    stage: MotorStage = OdriveStage(backend=emulated_odrive())
    assert not stage.homed


def test_what_is_done_before_a_motor_moves_and_in_which_order() -> None:
    stage, board = make(speed_limit=5.0, position_gain=30.0)
    with stage:
        stage.home(HOME)
        board.inside.received.clear()
        stage.arm()
        told = operations(board)
    first = {name: next(i for i, (found, _) in enumerate(told) if found == name) for name, _ in told}
    for axis in ("axis0", "axis1"):
        order = [
            f"{axis}.controller.config.control_mode",
            f"{axis}.controller.config.input_mode",
            f"{axis}.controller.input_pos",
            f"{axis}.config.watchdog_timeout",
            f"{axis}.watchdog_feed",
            f"{axis}.config.enable_watchdog",
            f"{axis}.requested_state",
        ]
        places = [first[name] for name in order]
        assert places == sorted(places)
        values = dict(reversed(told))
        assert values[f"{axis}.controller.config.control_mode"] == b"\x03"
        assert values[f"{axis}.controller.config.input_mode"] == b"\x01"
        assert values[f"{axis}.requested_state"] == b"\x08"
        assert values[f"{axis}.controller.config.vel_limit"] == struct.pack("<f", 5.0)
        assert values[f"{axis}.controller.config.pos_gain"] == struct.pack("<f", 30.0)
        assert f"{axis}.controller.config.vel_gain" not in values


def test_opened_the_motors_are_loose_whatever_they_did_before() -> None:
    stage, board = make()
    for axis in board.inside.axes:
        axis.request(CLOSED_LOOP)
    with stage:
        assert states(board) == [IDLE, IDLE]
        with pytest.raises(DeviceOpenError, match=r"not armed: call arm\(\) first"):
            stage.tick(HOME)


def test_nothing_is_compiled_while_a_watchdog_waits() -> None:
    assert states_at_looks(*make()) == [[IDLE, IDLE], [CLOSED_LOOP, CLOSED_LOOP]]


def test_armed_they_hold_where_they_are() -> None:
    with armed() as (_, board):
        before = board.plant.angles
        time.sleep(0.05)
        assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]
        assert board.plant.angles == pytest.approx(before, abs=3e-4)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda inside: inside.values.update(vbus_voltage=3.2),
            "supply has 3.2 V, it must have 10 to 56 V: switch it on",
        ),
        (lambda inside: inside.values.update(fw_version_minor=4), r"firmware is 0\.4\.6: this driver is for 0\.5"),
        (
            lambda inside: inside.axes[1].fail(0x40, "motor", 0x8),
            "errors from earlier: axis 1: motor: fault of the gate",
        ),
        (lambda inside: inside.axes[0].fail(0x100, "encoder", 0x4), r"no response .*clear_errors=true"),
        (lambda inside: inside.values.update(error=2), "the drive: the supply's voltage is too low"),
        (
            lambda inside: inside.axes[0].values.update({"motor.is_calibrated": False}),
            "axis 0 .* motor is not calibrated",
        ),
        (
            lambda inside: inside.axes[1].values.update({"encoder.is_ready": False}),
            "axis 1 .* encoder is not calibrated",
        ),
        (
            lambda inside: inside.axes[1].values.update({"config.enable_step_dir": True}),
            r"axis1\.config\.enable_step_dir is true .* pulses",
        ),
        (
            lambda inside: inside.axes[0].values.update({"controller.config.circular_setpoints": True}),
            r"axis0\.controller\.config\.circular_setpoints is true .* any turn",
        ),
    ],
)
def test_a_drive_that_cannot_be_used_is_refused_with_what_to_do(spoil: Callable[..., None], message: str) -> None:
    stage, board = make()
    spoil(board.inside)
    with pytest.raises(DeviceOpenError, match=message):
        stage.open()
    assert not board.owners  # given back
    stage.close()


def test_errors_are_cleared_where_the_settings_say_so_and_that_of_the_watchdog_always() -> None:
    for bits, settings in ((0x800, {}), (0x800 | 0x40, {"clear_errors": True})):
        stage, board = make(**settings)
        board.inside.axes[0].fail(bits)
        with stage:
            stage.home(HOME)
            stage.arm()
            assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]


def test_incremental_encoders_must_be_homed_absolute_ones_need_not() -> None:
    stage, board = make()
    with stage:
        with pytest.raises(DeviceOpenError, match="bring it to its home pose"):
            stage.arm()
        assert states(board) == [IDLE, IDLE]
    for axis in board.inside.axes:
        axis.values["encoder.config.mode"] = 257
    with stage:
        assert stage.homed
        stage.arm()


def test_homing_makes_the_angles_count_from_there_behind_the_gear() -> None:
    stage, board = make(reduction_1=10.0, reduction_2=-8.0)
    board.plant.angles = (3.7, -1.2)
    board.unplug()
    board.plug()  # the encoders count from there
    with stage:
        stage.home(np.array((0.4, 0.3)))
        stage.arm()
        angles = run(stage, 0.05, lambda _: np.array((0.4, 0.3)))
    np.testing.assert_allclose(angles[-1], (0.4, 0.3), atol=1e-3)
    assert board.plant.angles == pytest.approx((3.7, -1.2), abs=2e-3)  # and nothing has moved


def test_an_arm_that_moves_is_not_homed() -> None:
    stage, board = make()
    with stage:
        board.plant.speeds = (0.5, 0.0)
        time.sleep(0.03)
        with pytest.raises(DeviceOpenError, match="moved while it was being homed"):
            stage.home(HOME)
    assert not stage.homed


def test_nobody_is_at_home_nowhere() -> None:
    stage, _ = make()
    with stage, pytest.raises(ConfigurationError, match="angles must be finite"):
        stage.home(HOME * math.nan)


def test_motors_that_are_driven_are_not_homed() -> None:
    with armed() as (stage, _), pytest.raises(DeviceOpenError, match="disarm them"):
        stage.home(HOME)


def test_an_encoder_that_jumps_after_homing_is_noticed_when_homed_again() -> None:
    stage, board = make()
    with stage:
        stage.home(HOME)
        set_count = board.inside.axes[0].set_count
        board.inside.axes[0].set_count = lambda count: set_count(count + 1024)  # type: ignore[method-assign]
        with pytest.raises(DeviceOpenError, match=r"axis 0 of the drive is at 0\.16.* after it was homed to 0\.039"):
            stage.home(HOME)


def test_which_drive_is_meant() -> None:
    backend = EmulatedOdriveBackend(EmulatedOdrive(serial=0xA1), EmulatedOdrive(serial=0xB2))
    with pytest.raises(DeviceOpenError, match=r"2 drives are plugged in: 0000000000A1, 0000000000B2\. .*motors.serial"):
        OdriveStage(backend=backend).open()
    with OdriveStage({"serial": "0000000000b2"}, backend=backend) as stage:
        assert stage.drive.get("serial_number") == 0xB2
    with pytest.raises(DeviceNotFoundError, match="no ODrive with serial number C3"):
        OdriveStage({"serial": "C3"}, backend=backend).open()
    with pytest.raises(DeviceNotFoundError, match="no ODrive is plugged in"):
        OdriveStage(backend=EmulatedOdriveBackend()).open()


def test_what_an_earlier_run_has_left_in_the_pipe_is_not_taken_for_an_answer() -> None:
    stage, board = make()
    board._answer = bytes.fromhex("8180 ffffffff")  # to the number with which the first request goes out
    with stage:
        assert stage.drive.get("vbus_voltage") == 24.0
        assert stage.drive.line.strays == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reduction_1": 0.0}, r"device\.motors\.reduction_1 = 0\.0: must not be 0"),
        ({"watchdog": 0.001}, r"device\.motors\.watchdog = 0\.001: must be"),
        ({"min_voltage": 30.0, "max_voltage": 20.0}, r"must be less than device\.motors\.max_voltage = 20 V"),
        ({"speed": 1.0}, r"unknown setting 'device\.motors\.speed'"),
        ({"serial": 5}, r"device\.motors\.serial = 5: must be text"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        OdriveStage(settings)
    assert OdriveSettings().watchdog == 0.1


# --- the tick --------------------------------------------------------------------------------------------------------


def test_position_and_speed_go_out_in_every_round_and_the_watchdogs_are_fed_in_time() -> None:
    with armed(watchdog=0.2) as (stage, board):
        run(stage, 0.02)
        board.inside.received.clear()
        before = stage._streaming.played  # type: ignore[union-attr]
        for tick in range(100):
            stage.tick(HOME + 1e-3 * tick)
            go_on(stage)
        stage.disarm()
        told = operations(board)
    for axis in ("axis0", "axis1"):
        positions, speeds, feeds = (
            sum(name == f"{axis}.{what}" for name, _ in told)
            for what in ("controller.input_pos", "controller.input_vel", "watchdog_feed")
        )
        assert min(positions, speeds) >= 3
        assert abs(positions - speeds) <= 3
        assert feeds >= 3  # every 20 ms, and twice or so when the motors are let go of
    assert before > 0
    sent = [struct.unpack("<f", payload)[0] for name, payload in told if name == "axis0.controller.input_vel"]
    assert np.median(sent) == pytest.approx(1e-3 / 1e-3 / math.tau, rel=1e-5)  # what a tick moves, by its period


def test_torques_go_out_where_they_change_seen_at_the_motor_and_end_with_the_commands() -> None:
    with armed(reduction_1=50.0, reduction_2=-20.0) as (stage, board):
        for _ in range(60):
            stage.tick(HOME, torques=np.array((2.0, 3.0)))
            go_on(stage)
        assert [axis.values["controller.input_torque"] for axis in board.inside.axes] == pytest.approx([0.04, -0.15])
        told = [payload for name, payload in operations(board) if name == "axis0.controller.input_torque"]
        assert [struct.unpack("<f", payload)[0] for payload in told[-2:]] == pytest.approx([0.0, 0.04])
        time.sleep(0.1)
        assert [axis.values["controller.input_torque"] for axis in board.inside.axes] == [0.0, 0.0]


def test_a_loose_stage_says_where_the_joints_are() -> None:
    stage, board = make()
    with stage:
        stage.home(HOME)
        assert stage.look() == pytest.approx(HOME, abs=1e-3)
        board.plant.angles = (board.plant.angles[0] + 1.0, board.plant.angles[1])
        time.sleep(0.1)
        assert stage.look() == pytest.approx(HOME + np.array((math.tau, 0.0)), abs=5e-3)


def test_a_tick_does_not_wait_for_the_wire(monkeypatch: pytest.MonkeyPatch) -> None:
    with armed() as (stage, _):
        run(stage, 0.02)
        stuck, go_on = threading.Event(), threading.Event()
        write = Pipes.write

        def slow(pipes: Pipes, *data: bytes) -> None:
            stuck.set()
            assert go_on.wait(PATIENCE)
            write(pipes, *data)

        monkeypatch.setattr(Pipes, "write", slow)
        stage.tick(HOME)
        assert stuck.wait(PATIENCE)
        for _ in range(100):
            stage.tick(HOME)  # would never come back
        go_on.set()


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e300])
def test_a_command_that_is_not_finite_is_refused(bad: float) -> None:
    with armed() as (stage, board):
        run(stage, 0.01)
        for command in ((HOME * bad, None), (HOME, HOME * bad)):
            with pytest.raises(DeviceFault, match="must be finite"):
                stage.tick(*command)
        run(stage, 0.02)
        assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]


# --- the end ---------------------------------------------------------------------------------------------------------


def test_disarmed_and_closed_the_motors_are_loose_and_the_watchdogs_off() -> None:
    with armed(watchdog=0.04) as (stage, board):
        run(stage, 0.03, lambda now: HOME + 2.0 * now)
        stage.disarm()
        assert states(board) == [IDLE, IDLE]
        for axis in board.inside.axes:
            assert axis.values["controller.input_vel"] == axis.values["controller.input_torque"] == 0.0
        stage.disarm()
        stage.arm()
        assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]
        stage.close()
        assert states(board) == [IDLE, IDLE]
        assert not board.owners
        time.sleep(0.05)
        board.catch_up()
        assert all(axis.values.get("error", 0) == 0 for axis in board.inside.axes)
        stage.close()


def test_when_ticks_stay_out_the_motors_stand_still_at_once_and_are_let_go_soon() -> None:
    with armed(watchdog=0.1) as (stage, board):
        run(stage, 0.03, lambda now: HOME + 3.0 * now)
        until(board, IDLE)
        told = [axis.values["controller.input_vel"] for axis in board.inside.axes]
        assert told == [0.0, 0.0]
        assert [axis.values["error"] for axis in board.inside.axes] == [0x800, 0x800]
        with pytest.raises(DeviceFault, match="the watchdog expired"):
            run(stage, PATIENCE)


def test_when_the_host_dies_the_watchdogs_let_go_of_the_motors_and_the_next_run_can_begin() -> None:
    stage, board = make(watchdog=0.2)
    stage.open()
    stage.home(HOME)
    stage.arm()
    run(stage, 0.02)
    stage._streaming.stop()  # type: ignore[union-attr]  # all threads, as when the process is killed
    assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]
    stage.drive.line.close()
    until(board, IDLE)
    with OdriveStage(backend=EmulatedOdriveBackend(board)) as second:
        second.home(HOME)
        second.arm()
        run(second, 0.02)
