"""Encoding of the board's messages: little-endian float32 numbers, angles in degrees, torques in N m.

========  ==============================================================================================  ==============
command   content                                                                                         reply
========  ==============================================================================================  ==============
0 reset   id                                                                                              none
1 set up  id, motor mask and directions, encoder mask and directions, number of sensors, of PWM pins,     none
          per encoder its present angle and its counts per revolution
2 move    id, a torque per motor                                                                          id, angles
========  ==============================================================================================  ==============

Motors and encoders are in the order of their ports.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from devices.pantograph.guardian import REPLY_LENGTH
from haptics.errors import HapticError

DEVICE_ID = 5
"""Number of the mechanism on the board; any number from 1 to 255 that is not a command."""

_SETUP, _MOVE = 1, 2
_FLOAT = struct.Struct("<f")
_ANGLES = struct.Struct("<Bff")


class WireError(HapticError):
    """Invalid data from the board."""


def setup_message(ports: Sequence[int], direction: int, angles: Sequence[float], counts: float) -> bytes:
    """Return the message that sets up one motor and one encoder per port.

    Parameters
    ----------
    ports : sequence of int
        Ports in use, from 1.
    direction : int
        Direction byte of all ports.
    angles : sequence of float
        Present angles of the links, in the order of `ports` [degree].
    counts : float
        Counts per revolution.
    """
    mask = sum(1 << port - 1 for port in ports)
    half = bytes((mask, *(direction for _ in ports)))
    encoders = b"".join(struct.pack("<ff", angle, counts) for _, angle in sorted(zip(ports, angles, strict=True)))
    return bytes((_SETUP, DEVICE_ID)) + half + half + bytes(2) + encoders


def move_message(ports: Sequence[int], torques: Sequence[float]) -> bytes:
    """Return the message that sets the torques [N m], in the order of `ports`, and requests the angles.

    The lowest byte of every number is zero, at a cost of 3e-5 of its value. If a byte is lost in transit, each number
    is shifted by one byte, and the zero byte becomes its exponent, so that the torque is negligible.
    """
    numbers = b"".join(b"\0" + _FLOAT.pack(torque)[1:] for _, torque in sorted(zip(ports, torques, strict=True)))
    return bytes((_MOVE, DEVICE_ID)) + numbers


def parse_reply(ports: Sequence[int], data: bytes) -> tuple[float, ...]:
    """Return the angles in a reply, in the order of `ports` [degree].

    Raises
    ------
    WireError
        If it is not a reply to `move_message`.
    """
    if len(data) != REPLY_LENGTH or data[0] != DEVICE_ID:
        raise WireError(f"the board sent {data.hex(' ') or 'nothing'} in place of the {REPLY_LENGTH} bytes of a reply")
    by_port = dict(zip(sorted(ports), _ANGLES.unpack(data)[1:], strict=True))
    angles = tuple(by_port[port] for port in ports)
    if not all(math.isfinite(angle) for angle in angles):
        raise WireError(f"the board sent angles that are no numbers: {data.hex(' ')}")
    return angles
