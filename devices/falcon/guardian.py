"""Guardian process that sends motor numbers of zero when the driver has failed.

The guardian (`devices.common.guardian`) holds the device file of the Falcon open. When the driver has died or fallen
silent, the guardian claims the interface, if necessary from the stopped driver, and sends the packet. Otherwise the
firmware would keep the last motor numbers.

This file runs isolated from the project and may use the standard library only. Numbers are from linux/usbdevice_fs.h.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
import time
from collections.abc import Callable
from typing import Protocol

AVAILABLE = sys.platform == "linux"
"""Whether this system has the device files of Linux."""

ENDPOINT_OUT, ENDPOINT_IN = 0x02, 0x81
STATUS = 2
"""Length of the modem status in front of the data [byte]."""

PATIENCE = 0.3
"""Timeout of the claim, and of the answer [s]."""

PAUSE = 2e-3
"""Pause between two attempts to claim the interface [s]."""

_TIMEOUT = 50  # of a transfer [ms]
_PACKET = 64

_CALL, _BULK = struct.Struct("@iiP"), struct.Struct("@IIIP")


def _code(direction: int, number: int, size: int) -> int:
    return direction << 30 | size << 16 | ord("U") << 8 | number


_CLAIM = _code(2, 15, 4)
_INTERFACE_CALL = _code(3, 18, _CALL.size)
_DISCONNECT = _code(0, 22, 0)
_TRANSFER = _code(3, 2, _BULK.size)


class Port(Protocol):
    """Access to the Falcon; every method raises `OSError` on failure."""

    def claim(self) -> None:
        """Claim the interface."""

    def disconnect(self) -> None:
        """Take the interface from the driver or process that has it."""

    def write(self, data: bytes) -> None:
        """Send data."""

    def read(self) -> bytes:
        """Return the data of the next packet, which may be empty."""


class DeviceFile:
    """Device file of the Falcon.

    The file is opened before it is needed, because another device may get the same name after this one is removed.

    Parameters
    ----------
    path : str
        The file.
    """

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDWR)

    def claim(self) -> None:
        """Claim the interface."""
        self._call(_CLAIM, struct.pack("@I", 0))

    def disconnect(self) -> None:
        """Take the interface from the driver or process that has it."""
        self._call(_INTERFACE_CALL, _CALL.pack(0, _DISCONNECT, 0))

    def write(self, data: bytes) -> None:
        """Send data."""
        self._transfer(ENDPOINT_OUT, ctypes.create_string_buffer(data, len(data)))

    def read(self) -> bytes:
        """Return the data of the next packet, which may be empty."""
        buffer = ctypes.create_string_buffer(_PACKET)
        length = self._transfer(ENDPOINT_IN, buffer)
        return buffer.raw[STATUS:length]

    def _transfer(self, endpoint: int, buffer: ctypes.Array[ctypes.c_char]) -> int:
        request = _BULK.pack(endpoint, len(buffer), _TIMEOUT, ctypes.addressof(buffer))
        return self._call(_TRANSFER, request)

    def _call(self, code: int, argument: bytes) -> int:
        import fcntl

        return int(fcntl.ioctl(self._file, code, bytearray(argument)))


def come_to_rest(port: Port, zero: bytes) -> bool:
    """Send motor numbers of zero twice; return True if the Falcon answered.

    The first packet may complete one that was interrupted.

    Raises
    ------
    OSError
        If the Falcon was unplugged, or another process keeps its interface.
    """
    latest = time.monotonic() + PATIENCE
    while True:
        try:
            port.claim()
            break
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > latest:
                raise
        try:
            port.disconnect()
        except OSError as error:
            if error.errno not in {errno.ENODATA, errno.ENOENT}:  # released in the meantime
                raise
        time.sleep(PAUSE)
    for _ in range(2):
        port.write(zero)
    latest = time.monotonic() + PATIENCE
    while time.monotonic() < latest:
        if zero[-1:] in port.read():
            return True
    return False


def prepare(words: list[str]) -> Callable[[], int]:
    """Return the action of the guardian; `words` are the device file and the packet (hex)."""
    port, zero = DeviceFile(words[0]), bytes.fromhex(words[1])
    return lambda: 0 if come_to_rest(port, zero) else 1
