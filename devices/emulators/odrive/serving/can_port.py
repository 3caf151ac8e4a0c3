"""CAN interface whose bus is in another process (`devices.emulators.odrive.serving.can_bus`)."""

from __future__ import annotations

import os
import socket

from devices.arm.motors.can.port import SocketPort
from devices.emulators.odrive.serving.can_bus import NUMBER


class RemotePort(SocketPort):
    """Port to a remote bus: the driver's port with another socket family and additional errors.

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
        if len(raw) == NUMBER.size:
            (number,) = NUMBER.unpack(raw)
            raise OSError(number, os.strerror(number))
        return raw
