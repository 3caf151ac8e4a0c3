"""CAN Simple on a CAN bus: frames as bytes, the interface of this computer, and received frames of two axes.

    sudo ip link set can0 up type can bitrate 1000000

An identifier has 11 bits: the node in the upper six, the command in the lower five. Numbers are little-endian. The
bytes are SocketCAN's ``struct can_frame`` (linux/can.h): 16 bytes, with the identifier and its flags in native byte
order. Commands and their signals follow the manufacturer's documentation, "CAN Protocol" (0.5.6, and Pro/S1). The
interface reports its own errors by error frames.

Axes send heartbeats, positions and speeds cyclically. Other messages are requested with a remote frame; the reply has
the same identifier. Every frame to an axis feeds its watchdog.
"""

from __future__ import annotations

import contextlib
import errno
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from devices.arm.motors.stage import ATTEMPTS, IDLE, PATIENCE
from devices.common.bus import TransferError, Trouble
from haptics.errors import DeviceNotFoundError, DeviceOpenError

# --- frames -----------------------------------------------------------------------------------------------------------

SIZE = 16
"""Size of a frame, independent of its data [byte]."""

VERSION, HEARTBEAT, ESTOP, MOTOR_ERROR, ENCODER_ERROR = 0x00, 0x01, 0x02, 0x03, 0x04
STATE, ESTIMATES, MODES, INPUT_POSITION, INPUT_SPEED = 0x07, 0x09, 0x0B, 0x0C, 0x0D
VOLTAGE, CLEAR_ERRORS, POSITION_GAIN, SPEED_GAINS, CONTROLLER_ERROR = 0x17, 0x18, 0x1A, 0x1B, 0x1D
ERRORS = MOTOR_ERROR
"""Pro and S1 reply to this command with all errors; firmware 0.5 replies with the errors of the motor (`MOTOR_ERROR`).
"""

COMMANDING = frozenset({ESTOP, STATE, MODES, INPUT_POSITION, INPUT_SPEED, 0x0E, 0x0F, POSITION_GAIN, SPEED_GAINS})
"""Commands that only the program driving the motors sends."""

# Signals of each message: error bits and state; active errors, and the errors for which the motor was disarmed (of Pro
# and S1); requested state; position [turn] and speed [turn/s]; control mode and input mode; position, and speed and
# torque in steps of `FRACTION`; speed [turn/s] and torque [N m]; voltage [V] and current [A] of the supply; 0; speed
# per position error [1/s]; gain of the speed [N m s/turn] and of the integrator [N m/turn].
_FORMS = {
    command: struct.Struct(form)
    for command, form in {
        HEARTBEAT: "<IB",
        ESTOP: "<",
        ERRORS: "<II",
        STATE: "<I",
        ESTIMATES: "<ff",
        MODES: "<II",
        INPUT_POSITION: "<fhh",
        INPUT_SPEED: "<ff",
        VOLTAGE: "<ff",
        CLEAR_ERRORS: "<B",
        POSITION_GAIN: "<f",
        SPEED_GAINS: "<ff",
    }.items()
}

FRACTION = 1e-3
"""Resolution of the speed [turn/s] and of the torque [N m] in a position command."""

MOST = 0x7FFF * FRACTION
"""Maximum speed and torque in a position command; larger values need a separate frame (`INPUT_SPEED`)."""

_FRAME = struct.Struct("=IB3x8s")
_EXTENDED, _REMOTE, _ERROR = 0x80000000, 0x40000000, 0x20000000
_STANDARD = 0x7FF
_COMMAND_BITS = 5
_COMMAND = (1 << _COMMAND_BITS) - 1
_LONGEST = 8


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
    """Return a frame as ``struct can_frame``, (16,) bytes."""
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


def error_class(raw: bytes) -> int | None:
    """Return the class bits of an error frame (linux/can/error.h), None for other frames."""
    if len(raw) != SIZE:
        return None
    identifier = _FRAME.unpack(raw)[0]
    return identifier & ~(_ERROR | _EXTENDED | _REMOTE) if identifier & _ERROR else None


def message(node: int, command: int, *signals: float) -> Frame:
    """Return the frame of a command with its signals."""
    return Frame(node, command, _FORMS[command].pack(*signals))


def input_position(node: int, position: float, speed: float = 0.0, torque: float = 0.0) -> Frame:
    """Return the command for `position` [turn] with `speed` [turn/s] and `torque` [N m].

    Both are clipped to `MOST`.
    """
    steps = (round(max(-MOST, min(value, MOST)) / FRACTION) for value in (speed, torque))
    return message(node, INPUT_POSITION, position, *steps)


def idle_frames(node: int) -> tuple[Frame, Frame]:
    """Return the frames that stop and disarm a motor."""
    return message(node, INPUT_SPEED, 0.0, 0.0), message(node, STATE, IDLE)


def signals(command: int, data: bytes) -> tuple[Any, ...] | None:
    """Return the signals in the data of a message; None if it is too short."""
    form = _FORMS[command]
    return form.unpack_from(data) if len(data) >= form.size else None


def bits(data: bytes) -> int | None:
    """Return error bits of firmware 0.5, from 8 or 4 bytes; None if there are fewer."""
    size = 8 if len(data) >= 8 else 4
    return int.from_bytes(data[:size], "little") if len(data) >= size else None


# --- interface --------------------------------------------------------------------------------------------------------

BIT_RATE = 1_000_000
"""Bit rate required for four frames per millisecond [bit/s], which use 52 % of it."""

_FILTER_ERRORS = 2  # ``CAN_RAW_ERR_FILTER``, which the module socket does not define

# Classes of error frames to receive (linux/can/error.h): timeout, controller, protocol, no acknowledgement, bus off,
# bus error, restarted.
_WARNED = 0x01 | 0x04 | 0x08 | 0x20 | 0x40 | 0x80 | 0x100

# Classes of error frames that are distinguished here.
_NO_ACKNOWLEDGE, _PROTOCOL, _BUS_OFF, _RESTARTED = 0x20, 0x08 | 0x80, 0x40, 0x100

_DOWN = frozenset((errno.ENETDOWN, errno.ENODEV, errno.ENXIO, errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN))
_FULL = frozenset((errno.ENOBUFS, errno.EAGAIN))


class SocketPort:
    """Transport of frames on a datagram socket. One thread may send while another receives.

    Parameters
    ----------
    wire : socket.socket
        Bound to its interface, or connected.
    """

    def __init__(self, wire: socket.socket) -> None:
        wire.setblocking(False)
        self._wire = wire

    def send(self, frame: bytes) -> None:
        """Send a frame without blocking; raise `OSError` on failure, also if the interface's queue is full."""
        self._wire.send(frame)

    def receive(self, timeout: float) -> bytes | None:
        """Return the next frame, None after `timeout` [s]; raise `OSError` on failure."""
        with contextlib.suppress(BlockingIOError):
            return self.next_frame()
        if timeout > 0.0 and select.select([self._wire], (), (), timeout)[0]:
            with contextlib.suppress(BlockingIOError):
                return self.next_frame()
        return None

    def next_frame(self) -> bytes:
        """Return a frame that has been received; raise `BlockingIOError` if there is no frame."""
        raw = self._wire.recv(SIZE)
        if not raw:
            raise OSError(errno.ENETDOWN, "closed")
        return raw

    def close(self) -> None:
        """Close the socket."""
        self._wire.close()


def open_interface(name: str) -> SocketPort:
    """Open an interface for raw frames and error frames.

    Raises
    ------
    DeviceNotFoundError
        If the interface does not exist, or the system does not support CAN.
    DeviceOpenError
        If it is down or cannot be used.
    """
    family = getattr(socket, "AF_CAN", None)
    try:
        if family is None:
            raise OSError(errno.EAFNOSUPPORT, "no CAN")
        wire = socket.socket(family, socket.SOCK_RAW, socket.CAN_RAW)
    except OSError as error:
        raise DeviceNotFoundError(
            "this system has no CAN (SocketCAN is Linux's; sudo modprobe can_raw loads it): drive the arm over USB, "
            "with device.motors.protocol=auto."
        ) from error
    try:
        wire.setsockopt(socket.SOL_CAN_RAW, _FILTER_ERRORS, struct.pack("=I", _WARNED))
        wire.bind((name,))
    except OSError as error:
        wire.close()
        if error.errno == errno.ENODEV:
            raise DeviceNotFoundError(
                f"there is no CAN interface {name}: plug its adapter in (ip -brief link shows all), or choose another "
                "with device.motors.interface."
            ) from error
        raise DeviceOpenError(f"{_failure(error, name)}") from error
    return SocketPort(wire)


def _failure(error: OSError, name: str) -> TransferError:
    """Return the error for a failure of the interface `name`, with the remedy."""
    if error.errno in _DOWN:
        return TransferError(
            f"the CAN interface {name} is down: sudo ip link set {name} up type can bitrate {BIT_RATE}; home the arm "
            "and start again.",
            Trouble.UNPLUGGED,
        )
    if error.errno in _FULL:
        return TransferError(
            f"the CAN interface {name} does not get its frames out: is the drive switched on, are both ends of the bus "
            "terminated, and is the bit rate the drive's?",
            Trouble.TIMEOUT,
        )
    return TransferError(f"a frame was lost at {name} ({error.strerror or error}): check cable and adapter.")


# --- line -------------------------------------------------------------------------------------------------------------

_READ_TIMEOUT = 0.02
_JOIN_TIMEOUT = 0.3
_POLL = 1e-3


class Received(NamedTuple):
    """Latest frame of a kind: time of reception [s, perf_counter], data, number of frames received."""

    time: float
    data: bytes
    total: int


NEVER = Received(float("-inf"), b"", 0)


class CanLine:
    """Received frames of two axes, and commands and requests to them. Only one thread at a time may send.

    A reader thread keeps the latest frame of each kind.

    Parameters
    ----------
    port : SocketPort
        Open interface.
    name : str
        Name of the interface.
    nodes : (int, int)
        Nodes of the first and the second axis.

    Attributes
    ----------
    nodes : tuple of int
        Nodes of the first and the second axis.
    others : set of int
        Other nodes from which frames were received.
    rivals : set of int
        Nodes of these axes that another program commands.
    wake : callable
        Called whenever new estimates of both axes have arrived.
    """

    def __init__(self, port: SocketPort, name: str, nodes: Sequence[int]) -> None:
        self.name, self.nodes = name, tuple(nodes)
        self.others: set[int] = set()
        self.rivals: set[int] = set()
        self.wake: Callable[[], object] = lambda: None
        self._port = port
        self._latest: dict[tuple[int, int], Received] = {}
        self._warning = 0
        self._fault: TransferError | None = None
        self._condition = threading.Condition()
        self._closing = False
        self._reader = threading.Thread(target=self._read_on, name="can reader", daemon=True)
        self._reader.start()

    def latest(self, node: int, command: int) -> Received:
        """Return the latest frame of a node and command; `NEVER` if none was received."""
        return self._latest.get((node, command), NEVER)

    def heartbeat(self, axis: int) -> Heartbeat:
        """Return the latest heartbeat of an axis; raise `TransferError` if none was received."""
        node = self.nodes[axis]
        found = signals(HEARTBEAT, self.latest(node, HEARTBEAT).data)
        if found is None:
            raise self.no_reply(node)
        return Heartbeat(*found)

    def raise_fault(self) -> None:
        """Raise the error of the interface, if one occurred."""
        if self._fault is not None:
            raise self._fault

    @property
    def warning(self) -> str:
        """Description of the bus error that the interface reports; empty if it does not prevent communication."""
        name = self.name
        if self._warning & _BUS_OFF:
            return (
                f"{name} has left the bus after too many errors (bus off): check the bit rates of both ends (ip "
                f"-details link show {name}; odrv0.can.config.baud_rate), cable and termination; then set it down and "
                f"up again with sudo ip link set {name}"
            )
        if self._warning & _PROTOCOL:
            return (
                f"{name} sees frames that are none: as a rule its bit rate is not the drive's (ip -details link show "
                f"{name}; odrv0.can.config.baud_rate), or cable or termination are faulty"
            )
        if self._warning & _NO_ACKNOWLEDGE:
            return f"nobody on the bus of {name} acknowledges a frame: is the drive switched on and connected?"
        return ""

    def send(self, *frames: Frame) -> None:
        """Send frames in order; raise `TransferError` on failure."""
        self.raise_fault()
        try:
            for frame in frames:
                self._port.send(pack(frame))
        except OSError as error:
            raise self._explained(_failure(error, self.name)) from error

    def request(self, node: int, command: int, attempts: int = ATTEMPTS) -> bytes:
        """Request a message from a node and return its data; raise `TransferError` if no reply arrives."""
        for _ in range(attempts):
            before = self.latest(node, command).total
            self.send(Frame(node, command, remote=True))
            if self.wait(lambda before=before: self.latest(node, command).total > before, PATIENCE):  # type: ignore[misc]
                return self.latest(node, command).data
        raise self.no_reply(node)

    def no_reply(self, node: int) -> TransferError:
        """Return the error for a node that does not reply."""
        words = f"the drive does not answer as node {node} of {self.name}: was it switched off, or its cable pulled?"
        return self._explained(TransferError(words, Trouble.TIMEOUT))

    def _explained(self, error: TransferError) -> TransferError:
        """Return the bus error that the interface reports, if any, because it explains more than `error`."""
        return TransferError(f"{self.warning}.", error.trouble) if self.warning else error

    def wait(self, done: Callable[[], bool], timeout: float) -> bool:
        """Wait until `done` returns True, at most `timeout` [s]; return False on timeout.

        Raises `TransferError` if the interface has failed.
        """
        latest = time.perf_counter() + timeout
        with self._condition:
            while not done():
                self.raise_fault()
                if time.perf_counter() > latest:
                    return False
                self._condition.wait(_POLL)
        return True

    def close(self) -> None:
        """Stop the reader thread and close the interface."""
        self._closing = True
        self._reader.join(_JOIN_TIMEOUT)
        with contextlib.suppress(OSError):
            self._port.close()

    # --- reader thread -----------------------------------------------------------------------------------------------

    def _read_on(self) -> None:
        """Store received frames until closed or until an error, which is kept for `raise_fault`.

        All frames in the queue are stored before waiting threads are notified.
        """
        pairs = 0
        while not self._closing and self._fault is None:
            try:
                raw = self._port.receive(_READ_TIMEOUT)
                if raw is None:
                    continue
                now = time.perf_counter()
                while raw is not None:
                    self._store(raw, now)
                    raw = self._port.receive(0.0)
            except OSError as error:
                self._fault = _failure(error, self.name)
            with self._condition:
                self._condition.notify_all()
            before, pairs = pairs, min(self.latest(node, ESTIMATES).total for node in self.nodes)
            if pairs > before or self._fault is not None:
                self.wake()

    def _store(self, raw: bytes, now: float) -> None:
        """Store a frame received at `now` [s]; only the newest of each kind is kept."""
        frame, error = unpack(raw), error_class(raw)
        if error is not None:
            self._warning = 0 if error & _RESTARTED else self._warning | error
        if frame is None:
            return
        if frame.node not in self.nodes:
            self.others.add(frame.node)
        elif frame.command in COMMANDING:
            self.rivals.add(frame.node)
        elif not frame.remote:
            key = frame.node, frame.command
            self._latest[key] = Received(now, frame.data, self._latest.get(key, NEVER).total + 1)
            self._warning = 0  # the bus works
