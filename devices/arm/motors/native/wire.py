"""Packets of ODrive's native protocol (firmware 0.5): one request or response per USB transfer.

A request consists of sequence number, endpoint, length of the response, payload and trailer. A response is the
sequence number with its highest bit set, followed by data. All numbers are little-endian. The trailer is the checksum
of the table of endpoints, which proves that both ends use the same table. A drive silently drops packets with another
trailer.
"""

from __future__ import annotations

import struct

TABLE = 0
"""Endpoint from which the drive's table of endpoints is read."""

TABLE_TRAILER = 1
"""Trailer of requests to `TABLE`: the version of the protocol. It is also the initial value of the table's checksum."""

VERSION = 0xFFFFFFFF
"""Offset at which `TABLE` returns an identification of the table."""

_POLYNOMIAL = 0x3D65
_ACKNOWLEDGE = 0x8000
_RESPONSE = 0x8000
_NOT_TEXT = 0x80
"""Bit set in every sequence number, so that the drive does not interpret the packet as a line of its text protocol."""

_HEAD = struct.Struct("<HHH")
_WORD = struct.Struct("<H")


def _remainder(byte: int) -> int:
    value = byte << 8
    for _ in range(8):
        value = value << 1 ^ (_POLYNOMIAL if value & 0x8000 else 0)
    return value & 0xFFFF


_REMAINDERS = tuple(map(_remainder, range(256)))


def checksum(data: bytes, start: int) -> int:
    """Return the 16-bit checksum of `data` with the initial value `start`."""
    value = start
    for byte in data:
        value = (value << 8 & 0xFFFF) ^ _REMAINDERS[value >> 8 ^ byte]
    return value


def sequence_number(count: int) -> int:
    """Return the sequence number of request number `count`; it repeats after 128 requests."""
    return count & 0x7FFF | _NOT_TEXT


def request(
    sequence: int, endpoint: int, payload: bytes, length: int, trailer: int, *, acknowledged: bool = True
) -> bytes:
    """Return a request packet.

    Parameters
    ----------
    sequence : int
        Sequence number.
    endpoint : int
        Address of the endpoint.
    payload : bytes
        Data to write; empty to read.
    length : int
        Length of the requested data [byte].
    trailer : int
        Checksum of the table.
    acknowledged : bool
        Whether to request a response.
    """
    address = endpoint | _ACKNOWLEDGE if acknowledged else endpoint
    return _HEAD.pack(sequence, address, length) + payload + _WORD.pack(trailer)


def response(packet: bytes) -> tuple[int, bytes] | None:
    """Return sequence number and data of a response; None for other packets."""
    if len(packet) < _WORD.size:
        return None
    (sequence,) = _WORD.unpack_from(packet)
    return (sequence & ~_RESPONSE, packet[_WORD.size :]) if sequence & _RESPONSE else None
