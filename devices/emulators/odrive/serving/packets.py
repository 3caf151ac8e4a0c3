"""What goes between an emulated drive in another process and the backend for pyusb in front of it: raw packets.

Each thread of the host has a connection (AF_UNIX, SEQPACKET: one packet, one request or answer). Transfers are a few
numbers and the data as it is; what is rare is a name and arguments as JSON. A packet out is answered only if it went
wrong. Numbers are little-endian::

    0  handle:u32 endpoint:u8 interface:u8 timeout:u32 data              bulk out; no answer if it went well
    1  handle:u32 endpoint:u8 interface:u8 timeout:u32 size:u32          bulk in
    2  handle:u32 type:u8 request:u8 value:u16 index:u16 timeout:u32 size:u16 data    on endpoint 0
    3  ["name", arguments ...]                                           anything else

An answer repeats the first byte, then comes the number of the system's error, i32, 0 for none, and what was asked for.
Time limits are in milliseconds.
"""

from __future__ import annotations

import struct

OUT, IN, CONTROL, CALL = range(4)

OUT_HEAD = struct.Struct("<BIBBI")
IN_REQUEST = struct.Struct("<BIBBII")
CONTROL_HEAD = struct.Struct("<BIBBHHIH")
ANSWER = struct.Struct("<Bi")

LONGEST = 1 << 16
"""No packet is longer [byte]."""

FORWARDED = (
    "get_configuration set_configuration set_interface_altsetting is_kernel_driver_active detach_kernel_driver "
    "attach_kernel_driver claim_interface release_interface clear_halt reset_device"
).split()
"""Methods of a backend for pyusb that are simply done where the bus is."""
