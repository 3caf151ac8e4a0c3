"""USB descriptors of an emulated stick: device, configuration, HID and strings."""

from __future__ import annotations

import struct

from devices.emulators.pid.profiles.profile import Profile

DEVICE, CONFIGURATION, STRING, INTERFACE, ENDPOINT, HID, REPORT = 0x01, 0x02, 0x03, 0x04, 0x05, 0x21, 0x22
"""Types of descriptors."""

_ASSOCIATION = 0x0B
_BULK, _INTERRUPT = 0x02, 0x03
_SERIAL_CONTROL, _SERIAL_DATA, _HID_CLASS, _MIXED = 0x02, 0x0A, 0x03, 0xEF

LANGUAGES = struct.pack("<BBH", 4, STRING, 0x0409)
"""String descriptor 0: English."""


def string(text: str) -> bytes:
    """Return a string descriptor."""
    data = text.encode("utf-16-le")
    return struct.pack("<BB", 2 + len(data), STRING) + data


def device(profile: Profile, has_serial: bool) -> bytes:
    """Return the device descriptor."""
    kind = (_MIXED, 2, 1) if profile.interface else (0, 0, 0)
    numbers = profile.vendor_id, profile.product_id, profile.release
    fields = (profile.usb, *kind, profile.control_size, *numbers, 1, 2, 3 if has_serial else 0, 1)
    return struct.pack("<BBHBBBBHHHBBBB", 18, DEVICE, *fields)


def hid(profile: Profile) -> bytes:
    """Return the HID descriptor."""
    return struct.pack("<BBHBBBH", 9, HID, 0x0111, 0, 1, REPORT, len(profile.report_descriptor))


def configuration(profile: Profile) -> bytes:
    """Return the configuration descriptor with all interfaces; 0 and 1 are the serial port, if present."""
    ends = _endpoint(profile.in_endpoint, _INTERRUPT, 64, profile.in_interval)
    if profile.out_endpoint:
        ends += _endpoint(profile.out_endpoint, _INTERRUPT, profile.out_size, profile.out_interval)
    own = _interface(profile.interface, 1 + bool(profile.out_endpoint), _HID_CLASS) + hid(profile) + ends
    body = (_serial_port(profile) if profile.interface else b"") + own
    count = profile.interface + 1
    return struct.pack("<BBHBBBBB", 9, CONFIGURATION, 9 + len(body), count, 1, 0, 0x80, 250) + body


def _interface(number: int, endpoints: int, kind: int, subclass: int = 0) -> bytes:
    return struct.pack("<9B", 9, INTERFACE, number, 0, endpoints, kind, subclass, 0, 0)


def _endpoint(address: int, kind: int, size: int, interval: int) -> bytes:
    return struct.pack("<BBBBHB", 7, ENDPOINT, address, kind, size, interval)


def _serial_port(profile: Profile) -> bytes:
    """Return the interfaces of a serial port of the communications class, on free endpoints of the stick."""
    taken = {profile.in_endpoint & 0x0F, profile.out_endpoint & 0x0F}
    notify, data = [number for number in range(1, 8) if number not in taken][:2]
    association = struct.pack("<8B", 8, _ASSOCIATION, 0, 2, _SERIAL_CONTROL, 2, 0, 0)
    functions = bytes.fromhex("05 24 00 20 01  05 24 01 00 01  04 24 02 02  05 24 06 00 01")
    control = _interface(0, 1, _SERIAL_CONTROL, 2) + functions + _endpoint(0x80 | notify, _INTERRUPT, 8, 16)
    ends = _endpoint(data, _BULK, 64, 0) + _endpoint(0x80 | data, _BULK, 64, 0)
    return association + control + _interface(1, 2, _SERIAL_DATA) + ends
