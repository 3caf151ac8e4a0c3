"""What goes between an emulated drive in another process and the backend for pyusb in front of it: raw packets.

Each thread of the host has a connection (AF_UNIX, SEQPACKET: one packet, one request or answer). Transfers are a few
numbers and the data as it is; what is rare is a name and arguments as JSON. A packet out is answered only if it went
wrong. Several requests, or answers, may go in one packet, so that the other side is woken once for all of them. Numbers
are little-endian::

    0  handle:u32 endpoint:u8 interface:u8 timeout:u32 data              bulk out; no answer if it went well
    1  handle:u32 endpoint:u8 interface:u8 timeout:u32 size:u32          bulk in
    2  handle:u32 type:u8 request:u8 value:u16 index:u16 timeout:u32 size:u16 data    on endpoint 0
    3  ["name", arguments ...]                                           anything else
    4  (length:u16 request)*                                             several of these, one after the other

An answer repeats the first byte, then comes the number of the system's error, i32, 0 for none, and what was asked for.
Time limits are in milliseconds.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

OUT, IN, CONTROL, CALL, SEVERAL = range(5)

OUT_HEAD = struct.Struct("<BIBBI")
IN_REQUEST = struct.Struct("<BIBBII")
CONTROL_HEAD = struct.Struct("<BIBBHHIH")
ANSWER = struct.Struct("<Bi")
_LENGTH = struct.Struct("<H")

LONGEST = 1 << 16
"""No packet is longer [byte]."""

FORWARDED = (
    "get_configuration set_configuration set_interface_altsetting is_kernel_driver_active detach_kernel_driver "
    "attach_kernel_driver claim_interface release_interface clear_halt reset_device"
).split()
"""Methods of a backend for pyusb that are simply done where the bus is."""


def together(messages: Sequence[bytes]) -> list[bytes]:
    """Return packets with all the messages: a single one, if there is room."""
    if len(messages) < 2 or sum(map(len, messages)) + len(messages) * _LENGTH.size >= LONGEST:
        return list(messages)
    return [bytes((SEVERAL,)) + b"".join(_LENGTH.pack(len(message)) + message for message in messages)]


def apart(packet: bytes) -> list[bytes]:
    """Return the messages in a packet; one that is malformed stays as it is, and nobody understands it."""
    if packet[:1] != bytes((SEVERAL,)):
        return [packet]
    messages, place = [], 1
    while place < len(packet):
        if place + _LENGTH.size > len(packet):
            return [packet]
        (length,) = _LENGTH.unpack_from(packet, place)
        place += _LENGTH.size + length
        if not length or place > len(packet):
            return [packet]
        messages.append(packet[place - length : place])
    return messages
