"""CAN interface of this computer, with the standard library's sockets (Linux's SocketCAN).

    sudo ip link set can0 up type can bitrate 1000000

Frames are `SIZE` bytes (`devices.arm.motors.can.codec`). The interface reports its own errors by error frames.
"""

from __future__ import annotations

import contextlib
import errno
import select
import socket
import struct
from typing import Protocol

from devices.arm.motors.can import codec
from devices.common.bus import TransferError, Trouble
from haptics.errors import DeviceNotFoundError, DeviceOpenError

BIT_RATE = 1_000_000
"""Bit rate required for four frames per millisecond [bit/s], which use 52 % of it."""

_FILTER_ERRORS = 2
"""``CAN_RAW_ERR_FILTER``, which the module socket does not define."""

_WARNED = 0x01 | 0x04 | 0x08 | 0x20 | 0x40 | 0x80 | 0x100
"""Classes of error frames to receive (linux/can/error.h): timeout, controller, protocol, no acknowledgement, bus off,
bus error, restarted.
"""

UNHEARD, PROTOCOL, BUS_OFF, RESTARTED = 0x20, 0x08 | 0x80, 0x40, 0x100
"""Classes of error frames that are distinguished here."""

_DOWN = frozenset((errno.ENETDOWN, errno.ENODEV, errno.ENXIO, errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN))
_FULL = frozenset((errno.ENOBUFS, errno.EAGAIN))


class Port(Protocol):
    """Transport of frames. One thread may send while another receives."""

    def send(self, frame: bytes) -> None:
        """Send a frame without blocking; raise `OSError` on failure."""
        ...

    def receive(self, timeout: float) -> bytes | None:
        """Return the next frame, None after `timeout` [s]; raise `OSError` on failure."""
        ...

    def close(self) -> None:
        """Close the port."""
        ...


class SocketPort:
    """Port on a datagram socket that transfers whole frames.

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
        raw = self._wire.recv(codec.SIZE)
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
        raise DeviceOpenError(f"{failure(error, name)}") from error
    return SocketPort(wire)


def failure(error: OSError, name: str) -> TransferError:
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


def in_words(kind: int, name: str) -> str:
    """Return a description of error frames of this class; empty if they do not prevent communication."""
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
