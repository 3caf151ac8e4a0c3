"""Frames of CAN Simple as bytes: what ODrives take and send on a CAN bus.

An identifier is of 11 bits: the node in the upper six, the command in the lower five. Numbers are little-endian. Bytes
are those of ``struct can_frame`` of SocketCAN (linux/can.h): 16 of them, the identifier with its flags in the order of
this machine. Commands and their signals are those of the maker's documentation, "CAN Protocol" (0.5.6, and Pro/S1).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

SIZE = 16
"""Of a frame, whatever it holds [byte]."""

MOST_NODES = 64
"""Nodes that an identifier can name."""

HEARTBEAT, ESTOP, MOTOR_ERROR, ENCODER_ERROR = 0x01, 0x02, 0x03, 0x04
STATE, ESTIMATES, MODES, INPUT_POSITION, INPUT_SPEED = 0x07, 0x09, 0x0B, 0x0C, 0x0D
VOLTAGE, CLEAR_ERRORS, POSITION_GAIN, SPEED_GAINS, CONTROLLER_ERROR = 0x17, 0x18, 0x1A, 0x1B, 0x1D
VERSION = 0x00
ERRORS = 0x03
"""Pro and S1 answer here with all errors; firmware 0.5 with those of the motor (`MOTOR_ERROR`)."""

COMMANDING = frozenset({ESTOP, STATE, MODES, INPUT_POSITION, INPUT_SPEED, 0x0E, 0x0F, POSITION_GAIN, SPEED_GAINS})
"""Commands that only who drives the motors sends."""

FRACTION = 1e-3
"""Speed [turn/s] and torque [N m] go with a position in these steps ..."""

MOST = 0x7FFF * FRACTION
"""... and up to here; what is more needs a frame of its own (`input_speed`)."""

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
    """A frame: whose it is, what it says, its data; whether it only asks (remote)."""

    node: int
    command: int
    data: bytes = b""
    remote: bool = False


class Heartbeat(NamedTuple):
    """What an axis says of itself unasked: error bits (their meaning is of the generation) and state."""

    error: int
    state: int


def pack(frame: Frame) -> bytes:
    """Return a frame as ``struct can_frame``, (16,) bytes.

    Raises
    ------
    ValueError
        If an identifier of 11 bits or 8 bytes of data cannot hold it.
    """
    if not (0 <= frame.node < MOST_NODES and 0 <= frame.command <= _COMMAND and len(frame.data) <= _LONGEST):
        raise ValueError(f"no frame of CAN Simple: {frame}")
    identifier = frame.node << _COMMAND_BITS | frame.command | (_REMOTE if frame.remote else 0)
    length = _LONGEST if frame.remote else len(frame.data)
    return _FRAME.pack(identifier, length, frame.data)


def unpack(raw: bytes) -> Frame | None:
    """Return what ``struct can_frame`` holds; None if it is no frame of CAN Simple: extended, an error, cut short."""
    if len(raw) != SIZE:
        return None
    identifier, length, data = _FRAME.unpack(raw)
    if identifier & (_EXTENDED | _ERROR) or length > _LONGEST:
        return None
    remote = bool(identifier & _REMOTE)
    number = identifier & _STANDARD
    return Frame(number >> _COMMAND_BITS, number & _COMMAND, b"" if remote else data[:length], remote)


def error_class(raw: bytes) -> tuple[int, bytes] | None:
    """Return the class bits and the data of an error frame (linux/can/error.h), None if it is no such frame."""
    if len(raw) != SIZE:
        return None
    identifier, _, data = _FRAME.unpack(raw)
    return (identifier & ~(_ERROR | _EXTENDED | _REMOTE), data) if identifier & _ERROR else None


# --- what is sent ----------------------------------------------------------------------------------------------------


def ask(node: int, command: int) -> Frame:
    """Return the request of what a node has to say under a command."""
    return Frame(node, command, remote=True)


def input_position(node: int, position: float, speed: float = 0.0, torque: float = 0.0) -> Frame:
    """Return the command to go to `position` [turn]; `speed` [turn/s] and `torque` [N m] as far as they go along."""
    return Frame(node, INPUT_POSITION, _POSITION.pack(position, _steps(speed), _steps(torque)))


def _steps(value: float) -> int:
    return round(max(-MOST, min(value, MOST)) / FRACTION)


def input_speed(node: int, speed: float, torque: float) -> Frame:
    """Return the command of `speed` [turn/s] and `torque` [N m], besides a position or without one."""
    return Frame(node, INPUT_SPEED, _PAIR.pack(speed, torque))


def requested_state(node: int, state: int) -> Frame:
    """Return the request to go to a state."""
    return Frame(node, STATE, _WORD.pack(state))


def modes(node: int, control: int, inputs: int) -> Frame:
    """Return the choice of control mode and input mode."""
    return Frame(node, MODES, _WORDS.pack(control, inputs))


def position_gain(node: int, gain: float) -> Frame:
    """Return the setting of the speed per error of the position [1/s]."""
    return Frame(node, POSITION_GAIN, _SINGLE.pack(gain))


def speed_gains(node: int, gain: float, integrator: float) -> Frame:
    """Return the setting of both gains of the speed: torque per error [N m s/turn], and its rate [N m/turn]."""
    return Frame(node, SPEED_GAINS, _PAIR.pack(gain, integrator))


def clear_errors(node: int) -> Frame:
    """Return the order to forget errors."""
    return Frame(node, CLEAR_ERRORS, b"\0")


def emergency_stop(node: int) -> Frame:
    """Return the order to let go of the motor with an error that stays."""
    return Frame(node, ESTOP)


# --- what is received; None where the data are too short -------------------------------------------------------------


def heartbeat(data: bytes) -> Heartbeat | None:
    """Return what a heartbeat says."""
    return Heartbeat(*_HEARTBEAT.unpack_from(data)) if len(data) >= _HEARTBEAT.size else None


def pair(data: bytes) -> tuple[float, float] | None:
    """Return two numbers: position [turn] and speed [turn/s] of `ESTIMATES`, or voltage [V] and current [A]."""
    if len(data) < _PAIR.size:
        return None
    first, second = _PAIR.unpack_from(data)
    return first, second


def words(data: bytes) -> tuple[int, int] | None:
    """Return two whole numbers: errors that are there now and those that the motor was let go of for (`ERRORS`)."""
    if len(data) < _WORDS.size:
        return None
    first, second = _WORDS.unpack_from(data)
    return first, second


def bits(data: bytes) -> int | None:
    """Return error bits, of 8 or 4 bytes."""
    form = _LONG if len(data) >= _LONG.size else _WORD
    return int(form.unpack_from(data)[0]) if len(data) >= form.size else None
