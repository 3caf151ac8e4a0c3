"""A CAN interface of this machine, by the standard library's sockets (Linux's SocketCAN), and what fails there.

    sudo ip link set can0 up type can bitrate 1000000

Frames are `SIZE` bytes (`devices.arm.motors.can.codec`). What the interface itself has to say, it says by error frames.
"""

from __future__ import annotations

import contextlib
import errno
import select
import socket
import struct
from typing import Protocol

from devices.arm.motors.can import codec
from devices.common.bus.transfers import TransferError, Trouble
from haptics.errors import DeviceNotFoundError, DeviceOpenError

BIT_RATE = 1_000_000
"""What four frames in a millisecond need [bit/s]: they take 52 % of it."""

_FILTER_ERRORS = 2
"""``CAN_RAW_ERR_FILTER``, which the module socket does not name."""

_WARNED = 0x01 | 0x04 | 0x08 | 0x20 | 0x40 | 0x80 | 0x100
"""Classes of error frames to be told of (linux/can/error.h): time-out, controller, protocol, nobody has acknowledged,
bus off, bus error, restarted."""

UNHEARD, PROTOCOL, BUS_OFF, RESTARTED = 0x20, 0x08 | 0x80, 0x40, 0x100
"""Classes that are told apart here."""

_DOWN = frozenset((errno.ENETDOWN, errno.ENODEV, errno.ENXIO, errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN))
_FULL = frozenset((errno.ENOBUFS, errno.EAGAIN))


class Port(Protocol):
    """What frames go through. One thread may send while another receives."""

    def send(self, frame: bytes) -> None:
        """Send a frame, at once; raises `OSError`."""
        ...

    def receive(self, timeout: float) -> bytes | None:
        """Return the next frame, None if there was none for `timeout` [s]; raises `OSError`."""
        ...

    def close(self) -> None:
        """Give it back."""
        ...


class SocketPort:
    """A port on a socket that gives and takes whole frames.

    Parameters
    ----------
    wire : socket.socket
        Bound to its interface, or connected.
    """

    def __init__(self, wire: socket.socket) -> None:
        wire.setblocking(False)
        self._wire = wire

    def send(self, frame: bytes) -> None:
        """Send a frame, at once; raises `OSError`, also if the interface's queue is full."""
        self._wire.send(frame)

    def receive(self, timeout: float) -> bytes | None:
        """Return the next frame, None if there was none for `timeout` [s]; raises `OSError`."""
        with contextlib.suppress(BlockingIOError):
            return self.next_frame()
        if timeout > 0.0 and select.select([self._wire], (), (), timeout)[0]:
            with contextlib.suppress(BlockingIOError):
                return self.next_frame()
        return None

    def next_frame(self) -> bytes:
        """Return a frame that has come; raises `BlockingIOError` if none has."""
        raw = self._wire.recv(codec.SIZE)
        if not raw:
            raise OSError(errno.ENETDOWN, "closed")
        return raw

    def close(self) -> None:
        """Give it back."""
        self._wire.close()


def open_interface(name: str) -> SocketPort:
    """Open an interface for raw frames, its error frames among them.

    Raises
    ------
    DeviceNotFoundError
        If there is none of the name, or no CAN at all on this system.
    DeviceOpenError
        If it is down, or cannot be used.
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
        raise DeviceOpenError(f"{failure(error, name)}") from error
    return SocketPort(wire)


def failure(error: OSError, name: str) -> TransferError:
    """Return what failed with the interface `name`, and what to do."""
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


def in_words(kind: int, name: str) -> str:
    """Return what an error frame of this class says; empty if it is nothing that keeps frames from going."""
    if kind & BUS_OFF:
        return (
            f"{name} has left the bus after too many errors (bus off): check the bit rates of both ends (ip -details "
            f"link show {name}; odrv0.can.config.baud_rate), cable and termination; then set it down and up again with "
            f"sudo ip link set {name}"
        )
    if kind & PROTOCOL:
        return (
            f"{name} sees frames that are none: as a rule its bit rate is not the drive's (ip -details link show "
            f"{name}; odrv0.can.config.baud_rate), or cable or termination are faulty"
        )
    if kind & UNHEARD:
        return f"nobody on the bus of {name} acknowledges a frame: is the drive switched on and connected?"
    return ""
