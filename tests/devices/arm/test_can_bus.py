"""CAN: frames of CAN Simple against the maker's tables, and real interfaces."""

import contextlib
import socket
import struct
import subprocess
import time
from pathlib import Path

import cantools
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from devices.arm.motors import can_bus as codec
from devices.arm.motors.can_bus import Frame, SocketPort, open_interface
from devices.emulators.odrive.axis import CLOSED_LOOP
from devices.emulators.odrive.can import CanSimple
from haptics.errors import DeviceNotFoundError
from tests.devices.arm.odrive_rig import alone

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
    assert said(book, codec.message(NODE, codec.INPUT_SPEED, first, second)) == (
        "Set_Input_Vel",
        {"Input_Vel": first, "Torque_FF": second},
    )
    assert said(book, codec.message(NODE, codec.POSITION_GAIN, first)) == ("Set_Pos_Gain", {"Pos_Gain": first})
    gains = {"Vel_Gain": first, "Vel_Integrator_Gain": second}
    assert said(book, codec.message(NODE, codec.SPEED_GAINS, first, second)) == ("Set_Vel_Gains", gains)
    assert said(book, codec.message(NODE, codec.STATE, 8)) == ("Set_Axis_State", {"Axis_Requested_State": 8})
    chosen = {"Control_Mode": 3, "Input_Mode": 1}
    assert said(book, codec.message(NODE, codec.MODES, 3, 1)) == ("Set_Controller_Mode", chosen)
    assert said(book, codec.message(NODE, codec.CLEAR_ERRORS, 0))[0] == "Clear_Errors"
    assert said(book, codec.message(NODE, codec.ESTOP)) == ("Estop", {})


@BOTH
@given(SINGLE, SINGLE)
def test_estimates_and_supply_frames_are_decoded(book, first, second):
    data = book.encode_message("Get_Encoder_Estimates", {"Pos_Estimate": first, "Vel_Estimate": second})
    assert codec.signals(codec.ESTIMATES, data) == (first, second)
    data = book.encode_message("Get_Bus_Voltage_Current", {"Bus_Voltage": first, "Bus_Current": second})
    assert codec.signals(codec.VOLTAGE, data) == (first, second)


@given(BITS, st.integers(0, 255))
def test_heartbeats_and_errors_are_decoded_for_both_generations(error, state):
    for book in (OLD, PRO):
        message = book.get_message_by_name("Heartbeat")
        others = dict.fromkeys((signal.name for signal in message.signals), 1)
        data = message.encode(others | {"Axis_Error": error, "Axis_State": state})
        assert codec.signals(codec.HEARTBEAT, data) == (error, state)
    long = error << 32 | state
    assert codec.bits(OLD.encode_message("Get_Motor_Error", {"Motor_Error": long})) == long
    data = PRO.encode_message("Get_Error", {"Active_Errors": error, "Disarm_Reason": state})
    assert codec.signals(codec.ERRORS, data) == (error, state)


@given(st.integers(0, 63), st.integers(0, 31), st.binary(max_size=8), st.booleans())
def test_pack_and_unpack_are_inverse(node, command, data, remote):
    frame = Frame(node, command, b"" if remote else data, remote)
    raw = codec.pack(frame)
    (identifier,) = struct.unpack_from("=I", raw)
    assert identifier & 0x1FFFFFFF == node << 5 | command < 1 << 11
    assert codec.unpack(raw) == frame
    assert codec.error_class(raw) is None


@given(st.binary(max_size=20))
def test_unpack_accepts_arbitrary_bytes(raw):
    frame = codec.unpack(raw)
    if frame is not None:
        assert codec.unpack(codec.pack(frame)) == frame
    for command in (codec.HEARTBEAT, codec.ESTIMATES, codec.ERRORS):
        codec.signals(command, raw[:8])
    codec.bits(raw[:8])


def test_unpack_ignores_extended_and_error_frames():
    for flag in (0x80000000, 0x20000000):
        assert codec.unpack(struct.pack("=IB3x8s", flag | 0x61, 8, bytes(8))) is None
    assert codec.error_class(struct.pack("=IB3x8s", 0x20000040, 8, bytes(8))) == 0x40


@BOTH
def test_emulated_drive_obeys_frames_of_the_description(book):
    inside, _ = alone()
    drive = CanSimple(inside, (NODE, 9), (0, 5, 6) if book is OLD else (0, 6, 10))
    held = inside.axes[0].values
    held["config.watchdog_timeout"] = 1.0

    def tell(name, **signals):
        message = book.get_message_by_name(name)
        data = message.encode(signals)
        drive.handle_frame(struct.pack("=IB3x8s", message.frame_id, max(len(data), 1), data))

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


def ip(*words):
    subprocess.run(["ip", "link", *words], check=True, capture_output=True)


@pytest.fixture
def interface():
    try:
        ip("add", "dev", NAME, "type", "vcan")
        ip("set", NAME, "up")
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no virtual CAN interface can be made here, which needs root and the module vcan ({error})")
    yield NAME
    with contextlib.suppress(subprocess.CalledProcessError):
        ip("delete", NAME)


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
            port.send(codec.pack(Frame(0, codec.VERSION, remote=True)))
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
