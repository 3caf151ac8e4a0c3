"""Client side of an emulated drive in another process: its start, and the port to its CAN bus."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Mapping
from typing import Any

from devices.arm.motors.can_bus import SocketPort
from devices.emulators import child
from devices.emulators.loop import LINGER
from devices.emulators.odrive import packets


def spawn(table: Mapping[str, Any]) -> contextlib.AbstractContextManager[str]:
    """Run an emulated drive in another process; yield its address.

    Parameters
    ----------
    table : mapping
        ``serial`` and ``faults`` of `devices.emulators.odrive.board.EmulatedOdrive`, ``latency`` of its backend, and
        ``log``, a file for the final state of the motors; all optional.

    Raises
    ------
    ConfigurationError, DeviceOpenError
        As `devices.emulators.child.spawn` does.
    """
    return child.spawn("devices.emulators.odrive.server", table, "drive", LINGER + child.FAREWELL)


class RemotePort(SocketPort):
    """Port to a remote CAN bus: the driver's port with another socket family and additional errors.

    Parameters
    ----------
    address : str
        Address of the other process.
    """

    def __init__(self, address: str) -> None:
        wire = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        wire.connect(address)
        super().__init__(wire)

    def next_frame(self) -> bytes:
        """Return a frame that has been received; raise the error that the other process reports instead."""
        raw = super().next_frame()
        if len(raw) == packets.NUMBER.size:
            (number,) = packets.NUMBER.unpack(raw)
            raise OSError(number, os.strerror(number))
        return raw
