"""Packets of ODrive's native protocol (firmware 0.5) as bytes: one request or response per USB transfer.

A request is sequence number, endpoint, length of the response wanted, payload, trailer; a response is the sequence
number with its highest bit set, then data. All little-endian. The trailer proves that both ends mean the same table of
endpoints: it is the table's checksum. A drive drops a packet with another one without a word.
"""

from __future__ import annotations

import struct

PACKET = 64
"""No packet is longer [byte]."""

TABLE = 0
"""The endpoint from which the drive's table of endpoints is read."""

TABLE_TRAILER = 1
"""The trailer of requests to `TABLE`: the version of the protocol. The table's own checksum begins with it, too."""

VERSION = 0xFFFFFFFF
"""Asking `TABLE` for what is there gives an identification of the table."""

_POLYNOMIAL = 0x3D65
_ACKNOWLEDGE = 0x8000
_RESPONSE = 0x8000
_NOT_TEXT = 0x80
"""Set in every sequence number, lest the drive takes the packet for a line of its text protocol."""

_HEAD = struct.Struct("<HHH")
_WORD = struct.Struct("<H")


def _remainder(byte: int) -> int:
    value = byte << 8
    for _ in range(8):
        value = value << 1 ^ (_POLYNOMIAL if value & 0x8000 else 0)
    return value & 0xFFFF


_REMAINDERS = tuple(map(_remainder, range(256)))


def checksum(data: bytes, start: int) -> int:
    """Return the 16-bit checksum of `data`, beginning with `start`."""
    value = start
    for byte in data:
        value = (value << 8 & 0xFFFF) ^ _REMAINDERS[value >> 8 ^ byte]
    return value


def sequence_number(count: int) -> int:
    """Return the sequence number of the request number `count`; it comes again after 128 requests."""
    return count & 0x7FFF | _NOT_TEXT


def request(
    sequence: int, endpoint: int, payload: bytes, length: int, trailer: int, *, acknowledged: bool = True
) -> bytes:
    """Return a request.

    Parameters
    ----------
    sequence : int
        Its number.
    endpoint : int
        Whom it is for.
    payload : bytes
        What is written; empty to read.
    length : int
        Length of the data wanted [byte].
    trailer : int
        The table's checksum.
    acknowledged : bool
        Whether a response is wanted.
    """
    address = endpoint | _ACKNOWLEDGE if acknowledged else endpoint
    return _HEAD.pack(sequence, address, length) + payload + _WORD.pack(trailer)


def response(packet: bytes) -> tuple[int, bytes] | None:
    """Return sequence number and data of a response; None for anything else."""
    if len(packet) < _WORD.size:
        return None
    (sequence,) = _WORD.unpack_from(packet)
    return (sequence & ~_RESPONSE, packet[_WORD.size :]) if sequence & _RESPONSE else None
