"""The ODrive stage with an emulated drive: opening, arming, ticks and end, over the native and the text protocol."""

import contextlib
import math
import struct
import threading
import time

import numpy as np
import pytest

from devices.arm.motors import OdriveSettings, OdriveStage
from devices.arm.motors.rounds import NativeRounds, TextRounds
from devices.arm.motors.usb.pipes import Pipes
from devices.emulators.odrive import emulated_odrive
from devices.emulators.odrive.axis import CLOSED_LOOP, IDLE
from devices.emulators.odrive.board import TEXT, EmulatedOdrive
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
def _own_cache(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


# --- the beginning ---------------------------------------------------------------------------------------------------


def test_arm_configures_each_axis_in_order():
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


def test_open_disables_the_motors():
    assert not OdriveStage(backend=emulated_odrive()).homed
    stage, board = make()
    for axis in board.inside.axes:
        axis.request(CLOSED_LOOP)
    with stage:
        assert states(board) == [IDLE, IDLE]
        with pytest.raises(DeviceOpenError, match=r"not armed: call arm\(\) first"):
            stage.tick(HOME)


def test_kernels_are_compiled_before_the_watchdog_runs():
    assert states_at_looks(make) == [None, [CLOSED_LOOP, CLOSED_LOOP]]


@pytest.mark.parametrize(
    ("axis", "name", "value", "message"),
    [
        (None, "vbus_voltage", 3.2, "supply has 3.2 V, it must have 10 to 56 V: switch it on"),
        (None, "fw_version_minor", 4, r"firmware is 0\.4\.6: this driver is for 0\.5"),
        (None, "error", 2, "the drive: the supply's voltage is too low"),
        (1, "motor", (0x40, 0x8), "errors from earlier: axis 1: motor: fault of the gate"),
        (0, "encoder", (0x100, 0x4), r"no response .*clear_errors=true"),
        (0, "motor.is_calibrated", False, "axis 0 .* motor is not calibrated"),
        (1, "encoder.is_ready", False, "axis 1 .* encoder is not calibrated"),
        (1, "config.enable_step_dir", True, r"axis1\.config\.enable_step_dir is true .* pulses"),
        (
            0,
            "controller.config.circular_setpoints",
            True,
            r"axis0\.controller\.config\.circular_setpoints is true .* any",
        ),
    ],
)
def test_unusable_drive_is_rejected_with_a_remedy(axis, name, value, message):
    stage, board = make()
    if name in ("motor", "encoder"):
        board.inside.axes[axis].fail(value[0], name, value[1])
    else:
        (board.inside if axis is None else board.inside.axes[axis]).values[name] = value
    with pytest.raises(DeviceOpenError, match=message):
        stage.open()
    assert not board.owners  # the interface is released
    stage.close()


def test_arm_clears_watchdog_errors_and_others_only_by_setting():
    for bits, settings in ((0x800, {}), (0x800 | 0x40, {"clear_errors": True})):
        stage, board = make(**settings)
        board.inside.axes[0].fail(bits)
        with stage:
            stage.home(HOME)
            stage.arm()
            assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]


def test_arm_requires_homing_of_incremental_encoders():
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


def test_homing_sets_the_joint_angles():
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


def test_homing_rejects_a_moving_arm():
    stage, board = make()
    with stage:
        board.plant.speeds = (0.5, 0.0)
        time.sleep(0.03)
        with pytest.raises(DeviceOpenError, match="moved while it was being homed"):
            stage.home(HOME)
    assert not stage.homed


def test_homing_rejects_nan_angles():
    stage, _ = make()
    with stage, pytest.raises(ConfigurationError, match="angles must be finite"):
        stage.home(HOME * math.nan)


def test_homing_rejects_armed_motors():
    with armed() as (stage, _), pytest.raises(DeviceOpenError, match="disarm them"):
        stage.home(HOME)


def test_homing_detects_an_encoder_jump():
    stage, board = make()
    with stage:
        stage.home(HOME)
        set_count = board.inside.axes[0].set_count
        board.inside.axes[0].set_count = lambda count: set_count(count + 1024)
        with pytest.raises(DeviceOpenError, match=r"axis 0 of the drive is at 0\.16.* after it was homed to 0\.039"):
            stage.home(HOME)


def test_serial_number_selects_the_drive():
    backend = EmulatedOdriveBackend(EmulatedOdrive(serial=0xA1), EmulatedOdrive(serial=0xB2))
    with pytest.raises(DeviceOpenError, match=r"2 drives are plugged in: 0000000000A1, 0000000000B2\. .*motors.serial"):
        OdriveStage(backend=backend).open()
    with OdriveStage({"serial": "0000000000b2"}, backend=backend) as stage:
        assert stage.drive.get("serial_number") == 0xB2
    with pytest.raises(DeviceNotFoundError, match="no ODrive with serial number C3"):
        OdriveStage({"serial": "C3"}, backend=backend).open()
    with pytest.raises(DeviceNotFoundError, match="no ODrive is plugged in"):
        OdriveStage(backend=EmulatedOdriveBackend()).open()


def test_stale_answer_of_an_earlier_run_is_ignored():
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
def test_invalid_settings_are_rejected(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        OdriveStage(settings)
    assert OdriveSettings().watchdog == 0.1


# --- the tick --------------------------------------------------------------------------------------------------------


def test_every_round_sends_position_and_speed_and_feeds_the_watchdogs():
    with armed(watchdog=0.2) as (stage, board):
        run(stage, 0.02)
        board.inside.received.clear()
        before = stage._streaming.played
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
        assert feeds >= 3  # every 20 ms, and about twice at disarm
    assert before > 0
    sent = [struct.unpack("<f", payload)[0] for name, payload in told if name == "axis0.controller.input_vel"]
    assert np.median(sent) == pytest.approx(1e-3 / 1e-3 / math.tau, rel=1e-5)  # step of a tick over its period


def test_torques_are_scaled_to_the_motor_and_end_with_the_commands():
    with armed(reduction_1=50.0, reduction_2=-20.0) as (stage, board):
        for _ in range(60):
            stage.tick(HOME, torques=np.array((2.0, 3.0)))
            go_on(stage)
        assert [axis.values["controller.input_torque"] for axis in board.inside.axes] == pytest.approx([0.04, -0.15])
        told = [payload for name, payload in operations(board) if name == "axis0.controller.input_torque"]
        assert [struct.unpack("<f", payload)[0] for payload in told[-2:]] == pytest.approx([0.0, 0.04])
        time.sleep(0.1)
        assert [axis.values["controller.input_torque"] for axis in board.inside.axes] == [0.0, 0.0]


def test_disarmed_stage_reports_the_joint_angles():
    stage, board = make()
    with stage:
        stage.home(HOME)
        assert stage.look() == pytest.approx(HOME, abs=1e-3)
        board.plant.angles = (board.plant.angles[0] + 1.0, board.plant.angles[1])
        time.sleep(0.1)
        assert stage.look() == pytest.approx(HOME + np.array((math.tau, 0.0)), abs=5e-3)


def test_tick_does_not_wait_for_the_transfer(monkeypatch):
    with armed() as (stage, _):
        run(stage, 0.02)
        stuck, go_on = threading.Event(), threading.Event()
        write = Pipes.write

        def slow(pipes, *data):
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
def test_tick_rejects_commands_that_are_not_finite(bad):
    with armed() as (stage, board):
        run(stage, 0.01)
        for command in ((HOME * bad, None), (HOME, HOME * bad)):
            with pytest.raises(DeviceFault, match="must be finite"):
                stage.tick(*command)
        run(stage, 0.02)
        assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]


# --- the end ---------------------------------------------------------------------------------------------------------


def test_disarm_and_close_disable_motors_and_watchdogs():
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


@pytest.mark.parametrize("protocol", ["native", "text"])
def test_missing_ticks_stop_the_motors_and_the_watchdog_disables_them(protocol):
    with armed(protocol=protocol, watchdog=0.1) as (stage, board):
        run(stage, 0.03, lambda now: HOME + 3.0 * now)
        until(board, IDLE)
        assert [axis.values["controller.input_vel"] for axis in board.inside.axes] == [0.0, 0.0]
        assert [axis.values["error"] for axis in board.inside.axes] == [0x800, 0x800]
        with pytest.raises(DeviceFault, match="the watchdog expired"):
            run(stage, PATIENCE)


def test_watchdogs_disable_the_motors_when_the_host_dies():
    stage, board = make(watchdog=0.2)
    stage.open()
    stage.home(HOME)
    stage.arm()
    run(stage, 0.02)
    stage._streaming.stop()  # all threads, as when the process is killed
    assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]
    stage.drive.line.close()
    until(board, IDLE)
    with OdriveStage(backend=EmulatedOdriveBackend(board)) as second:
        second.home(HOME)
        second.arm()
        run(second, 0.02)


# --- text protocol ----------------------------------------------------------------------------------------------------


def rounds_of(stage):
    return stage._streaming._rounds


@pytest.mark.parametrize(("protocol", "way"), [("auto", TextRounds), ("text", TextRounds), ("native", NativeRounds)])
def test_protocol_setting_selects_the_rounds(protocol, way):
    with armed(protocol=protocol) as (stage, _):
        assert isinstance(rounds_of(stage), way)


def silent(board, monkeypatch):
    """Let the serial port accept input without any answer."""
    monkeypatch.setattr("devices.emulators.odrive.text.TextProtocol.take", lambda *_: iter(()))


def test_silent_text_port_falls_back_to_the_native_protocol(monkeypatch):
    stage, board = make(protocol="auto", watchdog=0.5)
    silent(board, monkeypatch)
    with stage:
        stage.home(HOME)
        stage.arm()
        assert isinstance(rounds_of(stage), NativeRounds)
        assert TEXT in board.drivers
        run(stage, 0.05)
        assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]


def test_missing_text_protocol_is_reported_before_arming(monkeypatch):
    stage, board = make(protocol="text")
    silent(board, monkeypatch)
    with stage:
        stage.home(HOME)
        with pytest.raises(DeviceOpenError, match="protocol=native"):
            stage.arm()
        assert states(board) == [IDLE, IDLE]
        assert not [axis for axis in board.inside.axes if axis.values.get("config.enable_watchdog")]


def test_disarm_returns_the_text_port_to_the_kernel():
    with armed(protocol="text") as (stage, board):
        assert TEXT not in board.drivers
        run(stage, 0.02)
        stage.disarm()
        assert TEXT in board.drivers
        stage.arm()
        run(stage, 0.02)
        assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]


@pytest.mark.parametrize("unplugged", [False, True])
def test_failed_arm_disables_the_motors_or_reports_that_it_could_not(unplugged, monkeypatch):
    stage, board = make(protocol="text")
    monkeypatch.setattr(
        "devices.arm.motors.streaming.Streaming.start", lambda _: (unplugged and board.unplug()) or 1 / 0
    )
    error, words = (DeviceOpenError, "could not be disarmed") if unplugged else (ZeroDivisionError, "division")
    with contextlib.suppress(DeviceFault), stage:
        stage.home(HOME)
        with pytest.raises(error, match=words):
            stage.arm()
        if not unplugged:
            assert states(board) == [IDLE, IDLE]
            assert TEXT in board.drivers
