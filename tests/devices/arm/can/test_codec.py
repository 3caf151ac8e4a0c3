"""Frames of CAN Simple against a description of them that was written from the maker's tables, read by cantools."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from devices.arm.motors.can import codec
from devices.arm.motors.can.codec import Frame
from devices.emulators.odrive.axis import CLOSED_LOOP, DRIVER_FAULT, MOTOR_FAILED
from devices.emulators.odrive.can_simple import CanSimple
from tests.devices.arm.odrive_rig import alone, let_go_by

cantools = pytest.importorskip("cantools")

NODE = 3
"""Whose identifiers the descriptions have."""

SINGLE = st.floats(-1e4, 1e4, width=32)
STEPS = st.integers(-0x7FFF, 0x7FFF).map(lambda steps: steps * codec.FRACTION)
BITS = st.integers(0, 2**32 - 1)


def described(name: str) -> Any:
    return cantools.database.load_file(Path(__file__).with_name(f"odrive_{name}.dbc"))


OLD, PRO = described("0_5"), described("pro")
BOTH = pytest.mark.parametrize("book", [OLD, PRO], ids=["0.5", "pro"])


def said(book: Any, frame: Frame) -> tuple[str, dict[str, Any]]:
    """What a frame is called and says, by the description."""
    raw = codec.pack(frame)
    assert len(raw) == 16
    identifier, length = struct.unpack_from("=IB", raw)
    message = book.get_message_by_frame_id(identifier)
    return message.name, message.decode(raw[8 : 8 + length], allow_truncated=True)


@BOTH
@given(SINGLE, STEPS, STEPS)
@example(1.25, -32.767, 32.767)
def test_a_position_with_what_goes_along(book: Any, position: float, speed: float, torque: float) -> None:
    name, found = said(book, codec.input_position(NODE, position, speed, torque))
    assert name == "Set_Input_Pos"
    assert found["Input_Pos"] == position
    assert (found["Vel_FF"], found["Torque_FF"]) == pytest.approx((speed, torque), abs=1e-9)


@BOTH
def test_what_is_too_large_to_go_along_is_cut_and_never_wraps(book: Any) -> None:
    _, found = said(book, codec.input_position(NODE, 0.0, 40.0, -1e9))
    assert (found["Vel_FF"], found["Torque_FF"]) == pytest.approx((codec.MOST, -codec.MOST))


@BOTH
@given(SINGLE, SINGLE)
def test_what_the_host_sends(book: Any, first: float, second: float) -> None:
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
def test_what_an_axis_says_in_numbers(book: Any, first: float, second: float) -> None:
    data = book.encode_message("Get_Encoder_Estimates", {"Pos_Estimate": first, "Vel_Estimate": second})
    assert codec.pair(data) == (first, second)
    data = book.encode_message("Get_Bus_Voltage_Current", {"Bus_Voltage": first, "Bus_Current": second})
    assert codec.pair(data) == (first, second)


@given(BITS, st.integers(0, 255))
def test_heartbeats_and_errors_of_both_generations(error: int, state: int) -> None:
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
def test_a_frame_comes_back_as_it_was(node: int, command: int, data: bytes, remote: bool) -> None:
    frame = Frame(node, command, b"" if remote else data, remote)
    raw = codec.pack(frame)
    (identifier,) = struct.unpack_from("=I", raw)
    assert identifier & 0x1FFFFFFF == node << 5 | command < 1 << 11
    assert codec.unpack(raw) == frame
    assert codec.error_class(raw) is None


@pytest.mark.parametrize("frame", [Frame(64, 1), Frame(-1, 1), Frame(0, 32), Frame(0, 1, bytes(9))])
def test_what_eleven_bits_and_eight_bytes_cannot_hold_is_refused(frame: Frame) -> None:
    with pytest.raises(ValueError, match="no frame of CAN Simple"):
        codec.pack(frame)


@given(st.binary(max_size=20))
def test_whatever_comes_is_a_frame_or_none(raw: bytes) -> None:
    frame = codec.unpack(raw)
    if frame is not None:
        assert codec.unpack(codec.pack(frame)) == frame
    for read in (codec.heartbeat, codec.pair, codec.words, codec.bits):
        read(raw[:8])


def test_extended_frames_and_error_frames_are_no_frames_of_a_drive() -> None:
    for flag in (0x80000000, 0x20000000):
        assert codec.unpack(struct.pack("=IB3x8s", flag | 0x61, 8, bytes(8))) is None
    assert codec.error_class(struct.pack("=IB3x8s", 0x20000040, 8, bytes(8))) == (0x40, bytes(8))


@pytest.mark.parametrize(("book", "version"), [(OLD, (0, 5, 6)), (PRO, (0, 6, 10))], ids=["0.5", "pro"])
def test_what_the_emulated_drive_says_is_what_the_tables_say(book: Any, version: tuple[int, int, int]) -> None:
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
def test_the_emulated_drive_does_what_the_tables_say(book: Any) -> None:
    inside, _ = alone()
    drive = CanSimple(inside, (NODE, 9), (0, 5, 6) if book is OLD else (0, 6, 10))
    held = inside.axes[0].values
    held["config.watchdog_timeout"] = 1.0

    def tell(name: str, **signals: float) -> None:
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
