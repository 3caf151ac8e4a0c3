"""Frames of CAN Simple as bytes: the messages of ODrives on a CAN bus.

An identifier has 11 bits: the node in the upper six, the command in the lower five. Numbers are little-endian. The
bytes are SocketCAN's ``struct can_frame`` (linux/can.h): 16 bytes, with the identifier and its flags in native byte
order. Commands and their signals follow the manufacturer's documentation, "CAN Protocol" (0.5.6, and Pro/S1).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

SIZE = 16
"""Size of a frame, independent of its data [byte]."""

MOST_NODES = 64
"""Number of nodes that an identifier can address."""

HEARTBEAT, ESTOP, MOTOR_ERROR, ENCODER_ERROR = 0x01, 0x02, 0x03, 0x04
STATE, ESTIMATES, MODES, INPUT_POSITION, INPUT_SPEED = 0x07, 0x09, 0x0B, 0x0C, 0x0D
VOLTAGE, CLEAR_ERRORS, POSITION_GAIN, SPEED_GAINS, CONTROLLER_ERROR = 0x17, 0x18, 0x1A, 0x1B, 0x1D
VERSION = 0x00
ERRORS = 0x03
"""Pro and S1 reply to this command with all errors; firmware 0.5 replies with the errors of the motor (`MOTOR_ERROR`).
"""

COMMANDING = frozenset({ESTOP, STATE, MODES, INPUT_POSITION, INPUT_SPEED, 0x0E, 0x0F, POSITION_GAIN, SPEED_GAINS})
"""Commands that only the program driving the motors sends."""

FRACTION = 1e-3
"""Resolution of the speed [turn/s] and of the torque [N m] in a position command."""

MOST = 0x7FFF * FRACTION
"""Maximum speed and torque in a position command; larger values need a separate frame (`input_speed`)."""

_FRAME = struct.Struct("=IB3x8s")
_EXTENDED, _REMOTE, _ERROR = 0x80000000, 0x40000000, 0x20000000
_STANDARD = 0x7FF
_COMMAND_BITS = 5
_COMMAND = (1 << _COMMAND_BITS) - 1
_LONGEST = 8

_POSITION = struct.Struct("<fhh")
_PAIR = struct.Struct("<ff")
_SINGLE = struct.Struct("<f")
_WORD = struct.Struct("<I")
_WORDS = struct.Struct("<II")
_HEARTBEAT = struct.Struct("<IB")
_LONG = struct.Struct("<Q")


class Frame(NamedTuple):
    """CAN frame: node, command and data; a remote frame is a request."""

    node: int
    command: int
    data: bytes = b""
    remote: bool = False


class Heartbeat(NamedTuple):
    """Heartbeat of an axis: error bits (their meaning depends on the generation) and state."""

    error: int
    state: int


def pack(frame: Frame) -> bytes:
    """Return a frame as ``struct can_frame``, (16,) bytes.

    Raises
    ------
    ValueError
        If it does not fit an identifier of 11 bits and 8 bytes of data.
    """
    if not (0 <= frame.node < MOST_NODES and 0 <= frame.command <= _COMMAND and len(frame.data) <= _LONGEST):
        raise ValueError(f"no frame of CAN Simple: {frame}")
    identifier = frame.node << _COMMAND_BITS | frame.command | (_REMOTE if frame.remote else 0)
    length = _LONGEST if frame.remote else len(frame.data)
    return _FRAME.pack(identifier, length, frame.data)


def unpack(raw: bytes) -> Frame | None:
    """Return the frame in a ``struct can_frame``; None if it is extended, an error frame or truncated."""
    if len(raw) != SIZE:
        return None
    identifier, length, data = _FRAME.unpack(raw)
    if identifier & (_EXTENDED | _ERROR) or length > _LONGEST:
        return None
    remote = bool(identifier & _REMOTE)
    number = identifier & _STANDARD
    return Frame(number >> _COMMAND_BITS, number & _COMMAND, b"" if remote else data[:length], remote)


def error_class(raw: bytes) -> tuple[int, bytes] | None:
    """Return the class bits and the data of an error frame (linux/can/error.h), None for other frames."""
    if len(raw) != SIZE:
        return None
    identifier, _, data = _FRAME.unpack(raw)
    return (identifier & ~(_ERROR | _EXTENDED | _REMOTE), data) if identifier & _ERROR else None


# --- sent frames -----------------------------------------------------------------------------------------------------


def request_frame(node: int, command: int) -> Frame:
    """Return the remote frame that requests a message of a node."""
    return Frame(node, command, remote=True)


def input_position(node: int, position: float, speed: float = 0.0, torque: float = 0.0) -> Frame:
    """Return the command for `position` [turn] with `speed` [turn/s] and `torque` [N m].

    Both are clipped to `MOST`.
    """
    return Frame(node, INPUT_POSITION, _POSITION.pack(position, _steps(speed), _steps(torque)))


def _steps(value: float) -> int:
    return round(max(-MOST, min(value, MOST)) / FRACTION)


def input_speed(node: int, speed: float, torque: float) -> Frame:
    """Return the command for `speed` [turn/s] and `torque` [N m], with or without a position command."""
    return Frame(node, INPUT_SPEED, _PAIR.pack(speed, torque))


def requested_state(node: int, state: int) -> Frame:
    """Return the request of a state."""
    return Frame(node, STATE, _WORD.pack(state))


def modes(node: int, control: int, inputs: int) -> Frame:
    """Return the command that sets control mode and input mode."""
    return Frame(node, MODES, _WORDS.pack(control, inputs))


def position_gain(node: int, gain: float) -> Frame:
    """Return the command that sets the position gain, speed per position error [1/s]."""
    return Frame(node, POSITION_GAIN, _SINGLE.pack(gain))


def speed_gains(node: int, gain: float, integrator: float) -> Frame:
    """Return the command that sets the speed gain [N m s/turn] and the integrator gain [N m/turn]."""
    return Frame(node, SPEED_GAINS, _PAIR.pack(gain, integrator))


def clear_errors(node: int) -> Frame:
    """Return the command that clears errors."""
    return Frame(node, CLEAR_ERRORS, b"\0")


def emergency_stop(node: int) -> Frame:
    """Return the emergency stop, which disarms the motor with a latching error."""
    return Frame(node, ESTOP)


# --- received data; None if too short --------------------------------------------------------------------------------


def heartbeat(data: bytes) -> Heartbeat | None:
    """Return the error bits and the state in a heartbeat."""
    return Heartbeat(*_HEARTBEAT.unpack_from(data)) if len(data) >= _HEARTBEAT.size else None


def pair(data: bytes) -> tuple[float, float] | None:
    """Return two numbers: position [turn] and speed [turn/s], or voltage [V] and current [A]."""
    if len(data) < _PAIR.size:
        return None
    first, second = _PAIR.unpack_from(data)
    return first, second


def words(data: bytes) -> tuple[int, int] | None:
    """Return two integers of `ERRORS`: the active errors, and the errors for which the motor was disarmed."""
    if len(data) < _WORDS.size:
        return None
    first, second = _WORDS.unpack_from(data)
    return first, second


def bits(data: bytes) -> int | None:
    """Return error bits, from 8 or 4 bytes."""
    form = _LONG if len(data) >= _LONG.size else _WORD
    return int(form.unpack_from(data)[0]) if len(data) >= form.size else None
