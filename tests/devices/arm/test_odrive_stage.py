"""Stages of an emulated ODrive: opening, arming, ticks and end, over USB (native and text protocol) and CAN."""

import contextlib
import math
import struct
import threading
import time
from collections import Counter
from functools import partial

import numpy as np
import pytest

from devices.arm.motors import CanStage, OdriveStage
from devices.arm.motors import can_bus as codec
from devices.arm.motors import stage as stages
from devices.arm.motors.odrive import NativeRounds, TextRounds
from devices.arm.motors.settings import WHERE, OdriveSettings
from devices.arm.motors.usb import Pipes
from devices.emulators.odrive.axis import CLOSED_LOOP, IDLE
from devices.emulators.odrive.board import TEXT, EmulatedOdrive, EmulatedOdriveBackend
from haptics.errors import ConfigurationError, DeviceFault, DeviceNotFoundError, DeviceOpenError
from haptics.settings import build
from tests.devices.arm.odrive_rig import (
    HOME,
    PATIENCE,
    Place,
    armed,
    armed_on_can,
    go_on,
    make,
    make_on_can,
    operations,
    run,
    states,
    tick,
    until,
)

# Firmware of the drives on CAN.
OLD, PRO = (0, 5, 6), (0, 6, 10)

pytestmark = pytest.mark.usefixtures("stepped", "own_cache")


# --- the beginning ---------------------------------------------------------------------------------------------------


def test_arm_configures_each_axis_in_order():
    stage, board = make(speed_limit=5.0, position_gain=30.0)
    with stage:
        stage.home(HOME)
        board.inside.received.clear()
        stage.arm()
        told = operations(board)
    order = [
        "controller.config.control_mode",
        "controller.config.input_mode",
        "controller.input_pos",
        "config.watchdog_timeout",
        "watchdog_feed",
        "config.enable_watchdog",
        "requested_state",
    ]
    for axis in ("axis0.", "axis1."):
        own = {name.removeprefix(axis): payload for name, payload in told if name.startswith(axis)}
        assert [name for name in own if name in order] == order
        assert own["controller.config.control_mode"] == b"\x03"
        assert own["controller.config.input_mode"] == b"\x01"
        assert own["requested_state"] == b"\x08"
        assert own["controller.config.vel_limit"] == struct.pack("<f", 5.0)
        assert own["controller.config.pos_gain"] == struct.pack("<f", 30.0)
        assert "controller.config.vel_gain" not in own


def test_open_disables_the_motors():
    stage, board = make()
    for axis in board.inside.axes:
        axis.request(CLOSED_LOOP)
    with stage:
        assert states(board) == [IDLE, IDLE]
        with pytest.raises(DeviceOpenError, match=r"not armed: call arm\(\) first"):
            tick(stage, HOME)


@pytest.mark.parametrize("armed_stage", [armed, armed_on_can])
def test_kernels_are_compiled_before_the_watchdog_runs(armed_stage, monkeypatch):
    """The kernel that samples the motors is called first, and compiled, while they are idle."""
    seen, read_motors = [], stages.read_motors

    def logged(record):
        seen.append(states(Place.boards[-1]))
        return read_motors(record)

    monkeypatch.setattr(stages, "read_motors", logged)
    with armed_stage() as (stage, *_):
        stage.read_angles()
    assert seen == [[IDLE, IDLE], [CLOSED_LOOP, CLOSED_LOOP]]


UNUSABLE = [
    (None, "vbus_voltage", 3.2, "supply has 3.2 V, it must have 10 to 56 V: switch it on"),
    (1, "motor", (0x40, 0x8), "errors from earlier: axis 1: motor: fault of the gate driver.*clear_errors=true"),
    (None, "fw_version_minor", 4, r"firmware is 0\.4\.6: this driver is for 0\.5"),
    (None, "error", 2, "the drive: the supply's voltage is too low"),
    (0, "encoder", (0x100, 0x4), r"no response .*clear_errors=true"),
    (0, "motor.is_calibrated", False, "axis 0 .* motor is not calibrated"),
    (1, "encoder.is_ready", False, "axis 1 .* encoder is not calibrated"),
    (1, "config.enable_step_dir", True, r"axis1\.config\.enable_step_dir is true .* pulses"),
    (0, "controller.config.circular_setpoints", True, r"axis0\.controller\.config\.circular_setpoints is true .* any"),
]


@pytest.mark.parametrize(
    ("make_stage", "axis", "name", "value", "message"),
    [(make, *row) for row in UNUSABLE] + [(make_on_can, *row) for row in UNUSABLE[:2]],
)
def test_unusable_drive_is_rejected_with_a_remedy(make_stage, axis, name, value, message):
    stage, board, *_ = make_stage()
    if name in ("motor", "encoder"):
        board.inside.axes[axis].fail(value[0], name, value[1])
    else:
        (board.inside if axis is None else board.inside.axes[axis]).values[name] = value
    with pytest.raises(DeviceOpenError, match=message):
        stage.open()
    assert states(board) == [IDLE, IDLE]
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


def test_absolute_encoders_need_no_homing():
    stage, board = make()
    for axis in board.inside.axes:
        axis.values["encoder.config.mode"] = 257
    with stage:
        assert stage.homed
        stage.arm()


@pytest.mark.parametrize("make_stage", [make, make_on_can])
def test_homing_sets_the_joint_angles_and_is_required_after_open(make_stage):
    stage, board, *_ = make_stage(reduction_1=10.0, reduction_2=-8.0, watchdog=0.1)
    board.plant.angles[:] = (3.7, -1.2)
    with stage:
        with pytest.raises(DeviceOpenError, match="bring it to its home pose"):
            stage.arm()
        assert states(board) == [IDLE, IDLE]
        time.sleep(0.1)  # the encoders have found the new place
        stage.home(np.array((0.4, 0.3)))
        assert stage.read_angles() == pytest.approx((0.4, 0.3), abs=1e-3)
        stage.arm()
        angles = run(stage, 0.05, lambda _: np.array((0.4, 0.3)))
        assert angles[-1] == pytest.approx((0.4, 0.3), abs=1e-3)
        assert board.plant.angles == pytest.approx((3.7, -1.2), abs=2e-3)  # and nothing has moved
    with stage:
        assert not stage.homed  # the drive may have been off meanwhile


def test_homing_rejects_a_moving_arm():
    stage, board = make()
    with stage:
        board.plant.speeds[:] = (0.5, 0.0)
        time.sleep(0.03)
        with pytest.raises(DeviceOpenError, match="moved while it was being homed"):
            stage.home(HOME)
    assert not stage.homed


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
        OdriveStage(far_end=backend).open()
    with OdriveStage(OdriveSettings(serial="0000000000b2"), far_end=backend) as stage:
        assert stage.drive.get("serial_number") == 0xB2
    with pytest.raises(DeviceNotFoundError, match="no ODrive with serial number C3"):
        OdriveStage(OdriveSettings(serial="C3"), far_end=backend).open()
    with pytest.raises(DeviceNotFoundError, match="no ODrive is plugged in"):
        OdriveStage(far_end=EmulatedOdriveBackend()).open()


def test_stale_answer_of_an_earlier_run_is_ignored():
    stage, board = make()
    board._answer = bytes.fromhex("8180 ffffffff")  # to the number with which the first request goes out
    with stage:
        assert stage.drive.get("vbus_voltage") == 24.0
        assert stage.drive.line.unmatched == 0


@pytest.mark.parametrize(
    ("protocol", "settings", "message"),
    [
        ("auto", {"reduction_1": 0.0}, r"device\.motors\.reduction_1 = 0\.0: must not be 0"),
        ("auto", {"watchdog": 0.001}, r"device\.motors\.watchdog = 0\.001: must be"),
        (
            "auto",
            {"min_voltage": 30.0, "max_voltage": 20.0},
            r"less than device\.motors\.max_voltage = 20 V",
        ),
        ("auto", {"speed": 1.0}, r"unknown setting 'device\.motors\.speed'"),
        ("auto", {"serial": 5}, r"device\.motors\.serial = 5: must be text"),
        ("can", {"node_2": 0}, r"device\.motors\.node_2 = 0: must not be that of the first"),
        ("can", {"node_1": 64}, r"device\.motors\.node_1 = 64"),
        ("can", {"interface": ""}, r"device\.motors\.interface = '': must be the name"),
        ("can", {"serial": "A1"}, r"device\.motors\.serial = 'A1': a drive on CAN is known by its nodes"),
        ("can", {"speed_limit": 5.0}, r"speed_limit = 5 turn/s: CAN sets it only together .*vel_limit"),
        ("can", {"speed_gain": 0.1}, "CAN sets both together"),
    ],
)
def test_invalid_settings_are_rejected(protocol, settings, message):
    with pytest.raises(ConfigurationError, match=message):
        build(OdriveSettings, {"protocol": protocol, **settings}, WHERE)


# --- the tick --------------------------------------------------------------------------------------------------------


def test_every_round_sends_position_and_speed_and_feeds_the_watchdogs():
    with armed(watchdog=0.2) as (stage, board):
        run(stage, 0.02)
        board.inside.received.clear()
        for step in range(100):
            tick(stage, HOME + 1e-3 * step)
            go_on(stage)
        stage.disarm()
        told = operations(board)
    counts = Counter(name for name, _ in told)
    for axis in ("axis0", "axis1"):
        positions, speeds = (counts[f"{axis}.controller.input_{what}"] for what in ("pos", "vel"))
        assert min(positions, speeds) >= 3
        assert abs(positions - speeds) <= 3
        assert counts[f"{axis}.watchdog_feed"] >= 3  # every 20 ms, and about twice at disarm
    sent = [struct.unpack("<f", payload)[0] for name, payload in told if name == "axis0.controller.input_vel"]
    assert np.median(sent) == pytest.approx(1e-3 / 1e-3 / math.tau, rel=1e-5)  # step of a tick over its period


@pytest.mark.parametrize("protocol", ["native", "text"])
def test_torques_are_scaled_to_the_motor_and_end_with_the_commands(protocol):
    with armed(protocol=protocol, reduction_1=50.0, reduction_2=-20.0) as (stage, board):
        for _ in range(60):
            tick(stage, HOME, torques=(2.0, 3.0))
            go_on(stage)
        assert [axis.values["controller.input_torque"] for axis in board.inside.axes] == pytest.approx([0.04, -0.15])
        time.sleep(0.1)
        assert [axis.values["controller.input_torque"] for axis in board.inside.axes] == [0.0, 0.0]


def test_disarmed_stage_reports_the_joint_angles():
    stage, board = make()
    with stage:
        stage.home(HOME)
        assert stage.read_angles() == pytest.approx(HOME, abs=1e-3)
        board.plant.angles[:] = (board.plant.angles[0] + 1.0, board.plant.angles[1])
        time.sleep(0.1)
        assert stage.read_angles() == pytest.approx(HOME + np.array((math.tau, 0.0)), abs=5e-3)


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
        tick(stage, HOME)
        assert stuck.wait(PATIENCE)
        for _ in range(100):
            tick(stage, HOME)  # would never come back
        go_on.set()


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e300])
def test_tick_rejects_commands_that_are_not_finite(bad):
    with armed() as (stage, board):
        run(stage, 0.01)
        for command in ((HOME * bad, None), (HOME, HOME * bad)):
            with pytest.raises(DeviceFault, match="must be finite"):
                tick(stage, *command)
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


@pytest.mark.parametrize(
    "armed_stage", [armed, partial(armed, protocol="text"), armed_on_can], ids=["native", "text", "can"]
)
def test_missing_ticks_stop_the_motors_and_the_watchdog_disables_them(armed_stage):
    with armed_stage(watchdog=0.1) as (stage, board, *_):
        run(stage, 0.03, lambda now: HOME + 3.0 * now)
        until(board, IDLE)
        assert [axis.values["controller.input_vel"] for axis in board.inside.axes] == [0.0, 0.0]
        assert [axis.values["error"] for axis in board.inside.axes] == [0x800, 0x800]
        with pytest.raises(DeviceFault, match="the watchdog expired"):
            run(stage, PATIENCE)


# --- text protocol ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("protocol", "way"), [("auto", TextRounds), ("text", TextRounds), ("native", NativeRounds)])
def test_protocol_setting_selects_the_rounds(protocol, way):
    with armed(protocol=protocol) as (stage, _):
        assert type(stage._streaming._rounds) is way


def silent(board, monkeypatch):
    """Let the serial port accept input without any answer."""
    monkeypatch.setattr("devices.emulators.odrive.text.TextProtocol.handle_packet", lambda *_: iter(()))


def test_silent_text_port_falls_back_to_the_native_protocol(monkeypatch):
    stage, board = make(protocol="auto", watchdog=0.5)
    silent(board, monkeypatch)
    with stage:
        stage.home(HOME)
        stage.arm()
        assert type(stage._streaming._rounds) is NativeRounds
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
    monkeypatch.setattr("devices.arm.motors.stage.Streaming.start", lambda _: (unplugged and board.unplug()) or 1 / 0)
    error, words = (DeviceOpenError, "could not be disarmed") if unplugged else (ZeroDivisionError, "division")
    with contextlib.suppress(DeviceFault), stage:
        stage.home(HOME)
        with pytest.raises(error, match=words):
            stage.arm()
        if not unplugged:
            assert states(board) == [IDLE, IDLE]
            assert TEXT in board.drivers


# --- CAN --------------------------------------------------------------------------------------------------------------


def overheard(drive):
    """Return a list to which the frames are added that the drive receives from now on."""
    taken, handle = [], drive.handle_frame

    def listen(raw):
        taken.append(codec.unpack(raw))
        return handle(raw)

    drive.handle_frame = listen
    return taken


@pytest.mark.parametrize(("version", "told"), [(OLD, "0.5"), (PRO, "0.6.10")])
def test_both_drive_generations_are_opened_armed_and_driven(version, told):
    with armed_on_can(version=version) as (stage, board, _):
        assert stage.facts["firmware"] == told
        assert stage.facts["estimates_hz"] == pytest.approx(1000.0, rel=0.05)
        run(stage, 0.1, lambda now: HOME + 0.5 * now)
        assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]
    assert states(board) == [IDLE, IDLE]


@pytest.mark.parametrize(
    ("version", "name", "value", "message"),
    [
        (
            OLD,
            "estimates",
            10e-3,
            r"\d{2,3} times a second, .* 1000.*odrv0\.axis1\.config\.can\.encoder_rate_ms = 1;.*save",
        ),
        (PRO, "estimates", 10e-3, r"odrv1\.axis0\.config\.can\.encoder_msg_rate_ms = 1;"),
        (OLD, "heartbeats", 0.1, r"has \d\d? heartbeats: .*odrv0\.axis0\.config\.can\.heartbeat_rate_ms = 10;"),
        (OLD, "nodes", (0, 7), r"axis 1 was not heard as node 1 of can0; there is 7\. .*node_2.* bitrate 1000000"),
    ],
)
def test_unsuitable_can_settings_of_the_drive_are_rejected_with_a_remedy(version, name, value, message):
    stage, board, drive = make_on_can(version=version)
    setattr(drive, name, value)
    with pytest.raises(DeviceOpenError, match=message):
        stage.open()
    assert states(board) == [IDLE, IDLE]
    stage.close()


def test_missing_can_interface_is_named():
    with pytest.raises(DeviceNotFoundError, match=r"no CAN interface nowhere9|this system has no CAN"):
        CanStage(OdriveSettings(protocol="can", interface="nowhere9")).open()


@pytest.mark.parametrize("enabled", [False, True])
def test_arm_detects_an_ineffective_watchdog(enabled):
    stage, board, _ = make_on_can(watchdog=0.1)
    board.inside.axes[1].values.update({"config.watchdog_timeout": 5.0, "config.enable_watchdog": enabled})
    with stage:
        stage.home(HOME)
        with pytest.raises(DeviceOpenError, match=r"still driven .*odrv0\.axis1\.config\.watchdog_timeout = 0\.1;"):
            stage.arm()
        assert states(board) == [IDLE, IDLE]


def test_open_detects_another_program_that_commands_an_axis():
    stage, _, drive = make_on_can()
    due, rival = drive.due_frames, codec.pack(codec.message(1, codec.INPUT_SPEED, 0.0, 0.0))
    drive.due_frames = lambda now: iter([*due(now), rival])
    with pytest.raises(DeviceOpenError, match=r"another program commands node 1 on can0"):
        stage.open()


def test_each_tick_takes_two_command_frames():
    with armed_on_can() as (stage, _, drive):
        before, taken = time.perf_counter(), overheard(drive)
        run(stage, 0.1, lambda now: HOME + now)
        duration = time.perf_counter() - before
        assert {(frame.node, frame.command) for frame in taken} == {(axis, codec.INPUT_POSITION) for axis in (0, 1)}
        assert len(taken) == pytest.approx(2e3 * duration, rel=0.1)


def test_large_speeds_and_torques_are_sent_in_separate_frames():
    with armed_on_can(reduction_1=100.0, reduction_2=100.0) as (stage, board, _):
        for axis in board.inside.axes:
            axis.values.update({"controller.config.vel_limit": 100.0, "motor.config.current_lim": 0.0})
        for _ in range(5):
            tick(stage, HOME, (3.0, -1.0), (200.0, 0.0))
            go_on(stage)
        held = board.inside.axes
        assert held[0].values["controller.input_vel"] == pytest.approx(300.0 / math.tau, rel=1e-6)
        assert held[1].values["controller.input_vel"] == pytest.approx(-100.0 / math.tau, abs=1e-3)
        assert held[0].values["controller.input_torque"] == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("frame", "message", "error"),
    [
        (codec.message(1, codec.ESTOP), "axis 1: an emergency stop was asked for", True),
        (codec.message(1, codec.STATE, IDLE), r"motors were disabled.*axis1", False),
    ],
)
def test_axis_disabled_by_another_program_ends_the_run(frame, message, error):
    with armed_on_can() as (stage, board, drive):
        run(stage, 0.02)
        with board.lock:
            drive.handle_frame(codec.pack(frame))
        assert any(axis.values["error"] for axis in board.inside.axes) == error
        with pytest.raises(DeviceFault, match=message):
            run(stage, PATIENCE)
        until(board, IDLE)


def test_disarm_sends_an_emergency_stop_to_a_motor_that_stays_enabled():
    with armed_on_can(watchdog=0.5) as (stage, board, drive):
        run(stage, 0.02)
        handle = drive.handle_frame  # the drive ignores state requests
        drive.handle_frame = lambda raw: None if raw[0] & 0x1F == 0x07 else handle(raw)
        stage.disarm()
        assert states(board) == [IDLE, IDLE]
        assert all(axis.values["error"] & 0x4000 for axis in board.inside.axes)


def test_rearm_does_not_repeat_the_watchdog_test():
    with armed_on_can() as (stage, board, drive):
        run(stage, 0.02)
        stage.disarm()
        assert states(board) == [IDLE, IDLE]
        time.sleep(0.2)  # the watchdogs expire
        taken = overheard(drive)
        stage.arm()
        assert sum(frame.command == codec.STATE for frame in taken) == 2
        run(stage, 0.02)
        assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]
