"""Protocol of an emulated CAN bus in another process, on a socket (AF_UNIX, SEQPACKET): one frame or error a packet."""

from __future__ import annotations

import struct

FRAME_SIZE = 16
"""Size of a frame on the CAN bus [byte]."""

CAN_FRAME = struct.Struct("=IB3x8s")
"""Frame of Linux: identifier with flags, length, data."""

NUMBER = struct.Struct("<i")
"""System error number that the CAN bus sends instead of a frame."""


def can_of(address: str) -> str:
    """Return the address of the CAN bus of an emulated drive whose USB bus is at `address`."""
    return f"{address}-can"
