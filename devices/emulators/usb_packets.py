"""Protocol between an emulated USB bus in another process and its backend for pyusb, on a socket (AF_UNIX, SEQPACKET).

Each thread of the host has a connection, and one packet is one request or reply. Transfers are a few numbers and raw
data; rare requests are a name and arguments as JSON. A packet out is answered only on failure. Several requests or
replies may share one packet, so that the other side wakes up once for all of them. Numbers are little-endian::

    0  handle:u32 endpoint:u8 interface:u8 timeout:u32 data              bulk out; no reply on success
    1  handle:u32 endpoint:u8 interface:u8 timeout:u32 size:u32          bulk in
    2  handle:u32 type:u8 request:u8 value:u16 index:u16 timeout:u32 size:u16 data    on endpoint 0
    3  ["name", arguments ...]                                           any other request
    4  (length:u16 request)*                                             several of these, one after the other

A reply repeats the first byte, followed by the system error number, i32, 0 for success, and the result. Timeouts are
in milliseconds.
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
"""Maximum length of a packet [byte]."""

FORWARDED = (
    "get_configuration set_configuration is_kernel_driver_active detach_kernel_driver "
    "attach_kernel_driver claim_interface release_interface disconnect clear_halt reset_device"
).split()
"""Methods of a backend for pyusb that are forwarded to the process of the bus."""


def together(messages: Sequence[bytes]) -> list[bytes]:
    """Return packets with all the messages: a single one if they fit."""
    if len(messages) < 2 or sum(map(len, messages)) + len(messages) * _LENGTH.size >= LONGEST:
        return list(messages)
    return [bytes((SEVERAL,)) + b"".join(_LENGTH.pack(len(message)) + message for message in messages)]


def apart(packet: bytes) -> list[bytes]:
    """Return the messages in a packet; a malformed packet is returned unchanged and rejected later."""
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
