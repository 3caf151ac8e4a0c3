"""CAN: frames of CAN Simple against the maker's tables, the stage on an emulated bus, and real interfaces."""

import contextlib
import math
import os
import socket
import struct
import subprocess
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path

import cantools
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from devices.arm.motors import CanStage
from devices.arm.motors.can import codec
from devices.arm.motors.can.codec import Frame
from devices.arm.motors.can.port import SocketPort, open_interface
from devices.emulators.odrive.axis import CLOSED_LOOP, DRIVER_FAULT, IDLE, MOTOR_FAILED
from devices.emulators.odrive.board import EmulatedOdrive
from devices.emulators.odrive.can_simple import CanSimple
from devices.emulators.odrive.serving.can_bus import CanBus
from haptics.errors import ConfigurationError, DeviceFault, DeviceNotFoundError, DeviceOpenError
from tests.devices.arm.odrive_rig import (
    HOME,
    PATIENCE,
    alone,
    go_on,
    let_go_by,
    make_on_can,
    run,
    states,
    states_at_looks,
    until,
)


@contextmanager
def armed(*faults, **settings):
    stage, board, drive = make_on_can(*faults, **{"reply_timeout": 0.1} | settings)
    stage.open()
    try:
        stage.home(HOME)
        stage.arm()
        yield stage, board, drive
    finally:
        board.faults.clear()
        with suppress(DeviceFault):
            stage.close()


@contextmanager
def overheard(drive):
    """Record the frames that the drive receives."""
    taken = []
    take = drive.take

    def listen(raw):
        frame = codec.unpack(raw)
        assert frame is not None
        taken.append(frame)
        return take(raw)

    drive.take = listen
    yield taken
    drive.take = take


# --- the beginning ---------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("stepped")
def test_kernels_are_compiled_before_the_watchdog_runs():
    assert states_at_looks(make_on_can) == [None, [CLOSED_LOOP, CLOSED_LOOP]]


@pytest.mark.usefixtures("stepped")
@pytest.mark.parametrize(("version", "told"), [((0, 5, 6), "0.5"), ((0, 6, 10), "0.6.10")])
def test_both_drive_generations_are_opened_armed_and_driven(version, told):
    with armed(version=version) as (stage, board, _):
        assert stage.facts["firmware"] == told
        assert stage.facts["estimates_hz"] == pytest.approx(1000.0, rel=0.05)
        run(stage, 0.1, lambda now: HOME + 0.5 * now)
        assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]
    assert states(board) == [IDLE, IDLE]


@pytest.mark.usefixtures("stepped")
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda drive, _: setattr(drive, "estimates", 10e-3),
            r"\d{2,3} times a second, .* needs 1000.*odrv0\.axis1\.config\.can\.encoder_rate_ms = 1;.*save",
        ),
        (
            lambda drive, _: setattr(drive, "heartbeats", 0.1),
            r"has \d\d? heartbeats: .*odrv0\.axis0\.config\.can\.heartbeat_rate_ms = 10;",
        ),
        (
            lambda drive, _: setattr(drive, "nodes", (0, 7)),
            r"axis 1 was not heard as node 1 of can0; there is 7\. .*node_2.* bitrate 1000000",
        ),
        (
            lambda _, inside: inside.values.update(vbus_voltage=3.2),
            r"supply has 3\.2 V, it must have 10 to 56 V: switch it on",
        ),
        (
            lambda _, inside: inside.axes[1].fail(0x40, "motor", 0x8),
            r"errors from earlier: axis 1: motor: fault of the gate driver.*clear_errors=true",
        ),
    ],
    ids=["slow estimates", "slow heartbeats", "other node", "no supply", "motor error"],
)
def test_unusable_drive_is_rejected_with_a_remedy(spoil, message):
    stage, board, drive = make_on_can()
    spoil(drive, board.inside)
    with pytest.raises(DeviceOpenError, match=message):
        stage.open()
    assert states(board) == [IDLE, IDLE]
    stage.close()


@pytest.mark.usefixtures("stepped")
def test_message_uses_the_setting_names_of_a_pro():
    stage, _, drive = make_on_can(version=(0, 6, 10))
    drive.estimates = 10e-3
    with pytest.raises(DeviceOpenError, match=r"odrv1\.axis0\.config\.can\.encoder_msg_rate_ms = 1;"):
        stage.open()


@pytest.mark.usefixtures("stepped")
@pytest.mark.parametrize("enabled", [False, True])
def test_arm_detects_an_ineffective_watchdog(enabled):
    stage, board, _ = make_on_can(watchdog=0.1)
    board.inside.axes[1].values |= {"config.watchdog_timeout": 5.0, "config.enable_watchdog": enabled}
    with stage:
        stage.home(HOME)
        with pytest.raises(DeviceOpenError, match=r"still driven .*odrv0\.axis1\.config\.watchdog_timeout = 0\.1;"):
            stage.arm()
        assert states(board) == [IDLE, IDLE]


@pytest.mark.usefixtures("stepped")
def test_open_detects_another_program_that_commands_an_axis():
    stage, _, drive = make_on_can()
    due, rival = drive.due, codec.pack(codec.input_speed(1, 0.0, 0.0))
    drive.due = lambda now: iter([*due(now), rival])
    with pytest.raises(DeviceOpenError, match=r"another program commands node 1 on can0"):
        stage.open()


@pytest.mark.usefixtures("stepped")
def test_homing_sets_the_joint_angles_and_is_required_after_open():
    stage, board, _ = make_on_can(reduction_1=10.0, reduction_2=-8.0, watchdog=0.1)
    board.plant.angles = (3.7, -1.2)
    with stage:
        with pytest.raises(DeviceOpenError, match="bring it to its home pose"):
            stage.arm()
        stage.home(np.array((0.4, 0.3)))
        assert stage.look() == pytest.approx((0.4, 0.3), abs=1e-3)
        stage.arm()
        angles = run(stage, 0.05, lambda _: np.array((0.4, 0.3)))
        assert angles[-1] == pytest.approx((0.4, 0.3), abs=1e-3)
        assert board.plant.angles == pytest.approx((3.7, -1.2), abs=5e-3)
    with stage:
        assert not stage.homed


@pytest.mark.usefixtures("stepped")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"node_2": 0}, r"device\.motors\.node_2 = 0: must not be that of the first"),
        ({"node_1": 64}, r"device\.motors\.node_1 = 64"),
        ({"interface": ""}, r"device\.motors\.interface = '': must be the name"),
        ({"serial": "A1"}, r"device\.motors\.serial = 'A1': a drive on CAN is known by its nodes"),
        ({"speed_limit": 5.0}, r"speed_limit = 5 turn/s: CAN sets it only together .*vel_limit"),
        ({"speed_gain": 0.1}, "CAN sets both together"),
    ],
)
def test_settings_without_can_support_are_rejected(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        CanStage({"protocol": "can", **settings})


# --- the tick --------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("stepped")
def test_each_tick_takes_two_command_frames():
    with armed() as (stage, _, drive), overheard(drive) as taken:
        before = time.perf_counter()
        run(stage, 0.1, lambda now: HOME + now)
        duration = time.perf_counter() - before
        counted = Counter((frame.node, frame.command) for frame in taken)
    assert counted.keys() == {(0, codec.INPUT_POSITION), (1, codec.INPUT_POSITION)}
    assert len(taken) == pytest.approx(2e3 * duration, rel=0.1)
    assert drive.estimates == 1e-3  # and as many come back


@pytest.mark.usefixtures("stepped")
def test_large_speeds_and_torques_are_sent_in_separate_frames():
    with armed(reduction_1=100.0, reduction_2=100.0) as (stage, board, _):
        for axis in board.inside.axes:
            axis.values |= {"controller.config.vel_limit": 100.0, "motor.config.current_lim": 0.0}
        for _ in range(5):
            stage.tick(HOME, np.array((3.0, -1.0)), np.array((200.0, 0.0)))
            go_on(stage)
        held = board.inside.axes
        assert held[0].values["controller.input_vel"] == pytest.approx(300.0 / math.tau, rel=1e-6)
        assert held[1].values["controller.input_vel"] == pytest.approx(-100.0 / math.tau, abs=1e-3)
        assert held[0].values["controller.input_torque"] == pytest.approx(2.0)


@pytest.mark.usefixtures("stepped")
def test_missing_commands_disable_the_motors():
    with armed(watchdog=0.05) as (stage, board, drive):
        run(stage, 0.05, lambda now: HOME + now)
        with overheard(drive) as taken:
            until(board, IDLE)
        assert all(axis.values["controller.input_vel"] == 0.0 for axis in board.inside.axes)
        assert len(taken) < 200  # the watchdogs are not fed
        with pytest.raises(DeviceFault, match="the watchdog expired"):
            run(stage, 1.0)


@pytest.mark.usefixtures("stepped")
@pytest.mark.parametrize(
    ("frame", "message", "error"),
    [
        (codec.emergency_stop(1), "axis 1: an emergency stop was asked for", True),
        (codec.requested_state(1, IDLE), r"not driven any more.*axis1", False),
    ],
)
def test_axis_disabled_by_another_program_ends_the_run(frame, message, error):
    with armed() as (stage, board, drive):
        run(stage, 0.02)
        with board.lock:
            drive.take(codec.pack(frame))
        assert any(axis.values["error"] for axis in board.inside.axes) == error
        with pytest.raises(DeviceFault, match=message):
            run(stage, PATIENCE)
        until(board, IDLE)


@pytest.mark.usefixtures("stepped")
def test_disarm_sends_an_emergency_stop_to_a_motor_that_stays_enabled():
    with armed(watchdog=0.5) as (stage, board, drive):
        run(stage, 0.02)
        drive._orders[0x07] = lambda axis, data: None  # the drive ignores state requests
        stage.disarm()
        assert states(board) == [IDLE, IDLE]
        assert all(axis.values["error"] & 0x4000 for axis in board.inside.axes)


@pytest.mark.usefixtures("stepped")
def test_rearm_does_not_repeat_the_watchdog_test():
    with armed() as (stage, board, drive):
        run(stage, 0.02)
        stage.disarm()
        assert states(board) == [IDLE, IDLE]
        time.sleep(0.2)  # the watchdogs expire
        with overheard(drive) as taken:
            stage.arm()
        assert sum(frame.command == codec.STATE for frame in taken) == 2
        run(stage, 0.02)
        assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]


# --- frames -----------------------------------------------------------------------------------------------------------


# Whose identifiers the descriptions have.
NODE = 3

SINGLE = st.floats(-1e4, 1e4, width=32)
STEPS = st.integers(-0x7FFF, 0x7FFF).map(lambda steps: steps * codec.FRACTION)
BITS = st.integers(0, 2**32 - 1)


def described(name):
    return cantools.database.load_file(Path(__file__).with_name(f"odrive_{name}.dbc"))


OLD, PRO = described("0_5"), described("pro")
BOTH = pytest.mark.parametrize("book", [OLD, PRO], ids=["0.5", "pro"])


def said(book, frame):
    """What a frame is called and says, by the description."""
    raw = codec.pack(frame)
    assert len(raw) == 16
    identifier, length = struct.unpack_from("=IB", raw)
    message = book.get_message_by_frame_id(identifier)
    return message.name, message.decode(raw[8 : 8 + length], allow_truncated=True)


@BOTH
@given(SINGLE, STEPS, STEPS)
@example(1.25, -32.767, 32.767)
def test_position_frame_carries_speed_and_torque(book, position, speed, torque):
    name, found = said(book, codec.input_position(NODE, position, speed, torque))
    assert name == "Set_Input_Pos"
    assert found["Input_Pos"] == position
    assert (found["Vel_FF"], found["Torque_FF"]) == pytest.approx((speed, torque), abs=1e-9)


@BOTH
def test_position_frame_saturates_speed_and_torque(book):
    _, found = said(book, codec.input_position(NODE, 0.0, 40.0, -1e9))
    assert (found["Vel_FF"], found["Torque_FF"]) == pytest.approx((codec.MOST, -codec.MOST))


@BOTH
@given(SINGLE, SINGLE)
def test_host_frames_match_the_description(book, first, second):
    assert said(book, codec.input_speed(NODE, first, second)) == (
        "Set_Input_Vel",
        {"Input_Vel": first, "Torque_FF": second},
    )
    assert said(book, codec.position_gain(NODE, first)) == ("Set_Pos_Gain", {"Pos_Gain": first})
    gains = {"Vel_Gain": first, "Vel_Integrator_Gain": second}
    assert said(book, codec.speed_gains(NODE, first, second)) == ("Set_Vel_Gains", gains)
    assert said(book, codec.requested_state(NODE, 8)) == ("Set_Axis_State", {"Axis_Requested_State": 8})
    chosen = {"Control_Mode": 3, "Input_Mode": 1}
    assert said(book, codec.modes(NODE, 3, 1)) == ("Set_Controller_Mode", chosen)
    assert said(book, codec.clear_errors(NODE))[0] == "Clear_Errors"
    assert said(book, codec.emergency_stop(NODE)) == ("Estop", {})


@BOTH
@given(SINGLE, SINGLE)
def test_estimates_and_supply_frames_are_decoded(book, first, second):
    data = book.encode_message("Get_Encoder_Estimates", {"Pos_Estimate": first, "Vel_Estimate": second})
    assert codec.pair(data) == (first, second)
    data = book.encode_message("Get_Bus_Voltage_Current", {"Bus_Voltage": first, "Bus_Current": second})
    assert codec.pair(data) == (first, second)


@given(BITS, st.integers(0, 255))
def test_heartbeats_and_errors_are_decoded_for_both_generations(error, state):
    rest = dict.fromkeys(
        ("Motor_Error_Flag", "Encoder_Error_Flag", "Controller_Error_Flag", "Trajectory_Done_Flag", "Procedure_Result"),
        1,
    )
    for book in (OLD, PRO):
        message = book.get_message_by_name("Heartbeat")
        own = {signal.name: rest.get(signal.name, 0) for signal in message.signals}
        data = message.encode(own | {"Axis_Error": error, "Axis_State": state})
        assert codec.heartbeat(data) == (error, state)
    long = error << 32 | state
    assert codec.bits(OLD.encode_message("Get_Motor_Error", {"Motor_Error": long})) == long
    data = PRO.encode_message("Get_Error", {"Active_Errors": error, "Disarm_Reason": state})
    assert codec.words(data) == (error, state)


@given(st.integers(0, 63), st.integers(0, 31), st.binary(max_size=8), st.booleans())
def test_pack_and_unpack_are_inverse(node, command, data, remote):
    frame = Frame(node, command, b"" if remote else data, remote)
    raw = codec.pack(frame)
    (identifier,) = struct.unpack_from("=I", raw)
    assert identifier & 0x1FFFFFFF == node << 5 | command < 1 << 11
    assert codec.unpack(raw) == frame
    assert codec.error_class(raw) is None


@pytest.mark.parametrize("frame", [Frame(64, 1), Frame(-1, 1), Frame(0, 32), Frame(0, 1, bytes(9))])
def test_pack_rejects_frames_out_of_range(frame):
    with pytest.raises(ValueError, match="no frame of CAN Simple"):
        codec.pack(frame)


@given(st.binary(max_size=20))
def test_unpack_accepts_arbitrary_bytes(raw):
    frame = codec.unpack(raw)
    if frame is not None:
        assert codec.unpack(codec.pack(frame)) == frame
    for read in (codec.heartbeat, codec.pair, codec.words, codec.bits):
        read(raw[:8])


def test_unpack_ignores_extended_and_error_frames():
    for flag in (0x80000000, 0x20000000):
        assert codec.unpack(struct.pack("=IB3x8s", flag | 0x61, 8, bytes(8))) is None
    assert codec.error_class(struct.pack("=IB3x8s", 0x20000040, 8, bytes(8))) == (0x40, bytes(8))


@pytest.mark.parametrize(("book", "version"), [(OLD, (0, 5, 6)), (PRO, (0, 6, 10))], ids=["0.5", "pro"])
def test_emulated_drive_sends_frames_of_the_description(book, version):
    inside, plant = alone()
    plant.speeds = (0.5, 0.0)
    let_go_by(inside, 0.05)
    drive = CanSimple(inside, (NODE, 9), version)
    inside.axes[0].fail(MOTOR_FAILED, "motor", DRIVER_FAULT)
    found = {}
    for raw in drive.due(0.0):
        identifier, length, data = struct.unpack("=IB3x8s", raw)
        if identifier >> 5 == NODE:
            message = book.get_message_by_frame_id(identifier)
            assert message.length == length
            found |= message.decode(data)
    assert found["Pos_Estimate"] == pytest.approx(plant.angles[0], abs=1e-3)
    assert found["Vel_Estimate"] == pytest.approx(0.5, abs=0.05)
    assert found["Axis_State"] == 1
    assert found["Axis_Error"] == (MOTOR_FAILED if book is OLD else 1 << 5)
    assert found.get("Motor_Error_Flag", 1) == 1
    answer = drive.take(codec.pack(codec.ask(NODE, codec.VERSION)))
    assert (answer is None) == (book is OLD)
    if answer is not None:
        told = book.decode_message("Get_Version", answer[8:])
        assert (told["Fw_Version_Major"], told["Fw_Version_Minor"], told["Fw_Version_Revision"]) == version


@BOTH
def test_emulated_drive_obeys_frames_of_the_description(book):
    inside, _ = alone()
    drive = CanSimple(inside, (NODE, 9), (0, 5, 6) if book is OLD else (0, 6, 10))
    held = inside.axes[0].values
    held["config.watchdog_timeout"] = 1.0

    def tell(name, **signals):
        message = book.get_message_by_name(name)
        data = message.encode(signals)
        drive.take(struct.pack("=IB3x8s", message.frame_id, max(len(data), 1), data))

    tell("Set_Controller_Mode", Control_Mode=3, Input_Mode=1)
    tell("Set_Limits", Velocity_Limit=7.5, Current_Limit=3.0)
    tell("Set_Pos_Gain", Pos_Gain=11.0)
    tell("Set_Vel_Gains", Vel_Gain=0.25, Vel_Integrator_Gain=0.5)
    tell("Set_Axis_State", Axis_Requested_State=8)
    assert held["current_state"] == CLOSED_LOOP
    tell("Set_Input_Pos", Input_Pos=0.125, Vel_FF=-1.5, Torque_FF=0.004)
    names = (
        "input_pos input_vel input_torque config.pos_gain config.vel_gain config.vel_integrator_gain config.vel_limit"
    )
    found = [held[f"controller.{name}"] for name in names.split()]
    assert found == pytest.approx([0.125, -1.5, 0.004, 11.0, 0.25, 0.5, 7.5])
    assert held["motor.config.current_lim"] == 3.0
    tell("Set_Input_Vel", Input_Vel=40.0, Torque_FF=33.0)
    assert (held["controller.input_pos"], held["controller.input_vel"]) == (0.125, 40.0)
    tell("Estop")
    assert held["current_state"] == 1
    assert held["error"]


# --- virtual CAN interface --------------------------------------------------------------------------------------------


NAME = "vcan-haptics"


def lacking():
    """Return why there can be no virtual CAN here; empty if there can."""
    if not hasattr(socket, "AF_CAN"):
        return "this Python has no AF_CAN"
    try:
        socket.socket(socket.AF_CAN, socket.SOCK_RAW, socket.CAN_RAW).close()
    except OSError as error:
        return f"this kernel has no CAN ({error.strerror})"
    return "" if os.geteuid() == 0 else "only root makes interfaces"


def ip(*words):
    subprocess.run(["ip", "link", *words], check=True, capture_output=True)


@pytest.fixture
def interface():
    reason = lacking()
    if reason:
        pytest.skip(reason)
    try:
        ip("add", "dev", NAME, "type", "vcan")
        ip("set", NAME, "up")
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no vcan can be made here ({error})")
    yield NAME
    with contextlib.suppress(subprocess.CalledProcessError):
        ip("delete", NAME)


@contextlib.contextmanager
def drive_on(name, board):
    """An emulated drive at the other end of a real interface."""
    bus, port, over = CanBus(board), open_interface(name), threading.Event()

    def serve():
        while not over.is_set():
            for raw in bus.poll():
                with contextlib.suppress(OSError):
                    port.send(raw)
            frame = port.receive(5e-4)
            while frame is not None:
                bus.send(frame)
                frame = port.receive(0.0)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        port.close()


def test_driver_works_over_a_virtual_can_interface(interface):
    board = EmulatedOdrive()
    for axis in board.inside.axes:
        axis.values |= {"config.watchdog_timeout": 0.2, "config.enable_watchdog": True}
    with drive_on(interface, board), CanStage({"protocol": "can", "interface": interface, "watchdog": 0.2}) as stage:
        stage.home(HOME)
        stage.arm()
        for tick in range(300):
            stage.tick(HOME + 1e-3 * tick)
            time.sleep(1e-3)
        assert states(board) == [CLOSED_LOOP, CLOSED_LOOP]


def test_interface_preserves_frames_and_order(interface):
    near, far = open_interface(interface), open_interface(interface)
    frames = [codec.pack(codec.input_position(k % 64, 1e-3 * k)) for k in range(500)]
    for frame in frames:
        near.send(frame)
        assert far.receive(1.0) == frame
    assert near.receive(0.0) is None
    near.close()
    far.close()


def test_interface_down_raises(interface):
    port = open_interface(interface)
    ip("set", interface, "down")
    with pytest.raises(OSError, match="down"):
        for _ in range(100):
            port.send(codec.pack(codec.ask(0, codec.VERSION)))
            port.receive(0.01)
    port.close()


def test_missing_interface_is_named():
    with pytest.raises(DeviceNotFoundError, match=r"no CAN interface nowhere9|this system has no CAN"):
        open_interface("nowhere9")


def test_port_returns_whole_frames_and_detects_its_end():
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    port, frame = SocketPort(near), codec.pack(codec.input_position(5, 1.5))
    assert port.receive(0.0) is None
    begin = time.perf_counter()
    assert port.receive(0.02) is None
    assert time.perf_counter() - begin > 0.015
    port.send(frame)
    assert far.recv(100) == frame
    far.send(frame)
    far.send(frame)
    assert [port.receive(1.0), port.receive(0.0), port.receive(0.0)] == [frame, frame, None]
    far.close()
    with pytest.raises(OSError, match="closed"):
        port.receive(1.0)
    port.close()
