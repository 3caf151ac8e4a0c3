"""Firmware of the emulated drive: packets in and packets out, and two axes."""

from __future__ import annotations

import functools
import math
import struct
from collections import deque
from collections.abc import Callable, MutableMapping
from typing import Any

import numpy as np

from devices.emulators.odrive.axis import AXIS, Axis, Plant
from devices.emulators.odrive.endpoints import Row, properties, rows, table_text

PAGE = 61
"""Maximum data in a reply [byte]."""

LONGEST_LOG = 10_000
"""Maximum number of packets in the log, because a run has millions of packets."""

_FORMS = {
    "float": struct.Struct("<f"),
    "bool": struct.Struct("<?"),
    **{
        f"{sign}int{8 * size}": struct.Struct("<" + (letter.upper() if sign else letter))
        for letter, size in (("b", 1), ("h", 2), ("i", 4), ("q", 8))
        for sign in ("", "u")
    },
}
"""Formats of the types of properties."""

_PROTOCOL = 1
_PIN = 1.65


def single(value: float) -> float:
    """Return the nearest single-precision number, as used by the drive."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def crc16(data: bytes, start: int) -> int:
    """Return the checksum of the protocol, bit by bit: polynomial 0x3d65, highest bit first."""
    remainder = start
    for byte in data:
        remainder ^= byte << 8
        for _ in range(8):
            remainder = (remainder << 1) ^ 0x3D65 if remainder & 0x8000 else remainder << 1
        remainder &= 0xFFFF
    return remainder


@functools.cache
def _table() -> tuple[bytes, int, bytes]:
    """Return the table of endpoints, its checksum and its identification."""
    text = table_text()
    checksum = crc16(text, _PROTOCOL)
    return text, checksum, struct.pack("<HH", crc16(text, checksum), checksum)


class Firmware:
    """Firmware of a drive.

    Parameters
    ----------
    plant : Plant
        Load of the motors.
    serial : int
        Serial number.

    Attributes
    ----------
    axes : (Axis, Axis)
        Both axes.
    values : dict
        Values of the properties of the drive itself, by name.
    text : bytes
        Its table of endpoints.
    checksum : int
        Trailer of requests to the endpoints.
    named : dict of Row
        Properties by name.
    received : deque of bytes
        Valid packets received, the latest `LONGEST_LOG`, oldest first; may be cleared by the observer.
    """

    def __init__(self, plant: Plant, serial: int) -> None:
        self.plant = plant
        self._record = np.zeros(2, AXIS)
        self.axes = Axis(self._record[:1]), Axis(self._record[1:])
        self.named = {row.path: row for row in rows() if row.kind != "function"}
        self.values: dict[str, Any] = {
            name: row.default for name, row in self.named.items() if row.default and not name.startswith("axis")
        }
        self.values["serial_number"] = serial
        self.text, self.checksum, self._version = _table()
        self.received: deque[bytes] = deque(maxlen=LONGEST_LOG)
        self._callables: dict[str, Callable[..., Any]] = {
            "clear_errors": self.clear_errors,
            "test_function": lambda delta: self.values.get("test_function.cnt", 0) + delta,
            "get_adc_voltage": lambda _: _PIN,
        }
        for number, axis in enumerate(self.axes):
            self._callables[f"axis{number}.watchdog_feed"] = lambda axis=axis: axis.feed()
            self._callables[f"axis{number}.encoder.set_linear_count"] = lambda count, axis=axis: axis.set_count(count)
        self._rows = {row.number: row for row in properties()}
        self._functions = {row.number: row for row in rows() if row.kind == "function"}
        self.switch_on()

    def switch_on(self) -> None:
        """Reset the axes, as when the supply is switched on."""
        for axis, turns in zip(self.axes, self.plant.angles, strict=True):
            axis.switch_on(turns)

    def iterate(self, count: int = 1) -> None:
        """Simulate `count` control iterations of both axes."""
        self.plant.run(self._record, count)

    # --- packets -----------------------------------------------------------------------------------------------------

    def handle(self, packet: bytes) -> bytes | None:
        """Execute a request; return the reply, None if none is requested.

        A request to a property writes it, if it can be written, and returns its previous value.
        """
        if len(packet) < 8:
            return None
        sequence, endpoint, length = struct.unpack_from("<HHH", packet)
        payload, (trailer,) = packet[6:-2], struct.unpack("<H", packet[-2:])
        wants, number = endpoint & 0x8000, endpoint & 0x7FFF
        if sequence & 0x8000 or trailer != (self.checksum if number else _PROTOCOL):
            return None
        self.received.append(packet)
        data = b""
        if number in self._functions:
            row = self._functions[number]
            arguments = [self._place(f"{row.path}.{name}") for name, _, _ in row.inputs]
            result = self._callables[row.path](*(held.get(name, 0) for held, name in arguments))
            for name, _, _ in row.outputs:
                held, key = self._place(f"{row.path}.{name}")
                held[key] = result
        elif number in self._rows:
            row = self._rows[number]
            form, value = _FORMS[row.kind], self.read(row)
            if row.kind == "float":
                data = form.pack(single(value))
            else:  # integers that are too large are truncated
                data = (int(value) % (1 << 8 * form.size)).to_bytes(form.size, "little")
            if row.writable and len(payload) >= form.size:
                self._set(row, form.unpack_from(payload)[0])
        elif not number and len(payload) >= 4:
            (offset,) = struct.unpack_from("<I", payload)
            data = self._version if offset == 0xFFFFFFFF else self.text[offset : offset + PAGE]
        return struct.pack("<H", sequence | 0x8000) + data[: min(length, PAGE)] if wants else None

    # --- properties --------------------------------------------------------------------------------------------------

    def read(self, row: Row) -> Any:
        """Return the value of a property."""
        held, name = self._place(row.path)
        return held.get(name, 0)

    def write(self, row: Row, value: float) -> None:
        """Write a property; integers that are too large are truncated to their lowest bits."""
        form = _FORMS[row.kind]
        if row.kind == "bool":
            value = bool(value)
        elif row.kind != "float":
            value = int.from_bytes((int(value) % (1 << 64)).to_bytes(8, "little")[: form.size], "little")
            value = form.unpack(value.to_bytes(form.size, "little"))[0]
        self._set(row, value)

    def _set(self, row: Row, value: Any) -> None:
        held, name = self._place(row.path)
        held[name] = value
        if name == "requested_state":
            held[name] = 0  # the requested state reads as 0 after it was processed
            self.axes[int(row.path[4])].request(value)

    def _place(self, path: str) -> tuple[MutableMapping[str, Any], str]:
        """Return the mapping that holds a property's value, and its key."""
        if path.startswith("axis"):
            return self.axes[int(path[4])].values, path[6:]
        return self.values, path

    def clear_errors(self) -> None:
        """Clear all errors, including the errors of the axes."""
        self.values["error"] = 0
        for axis in self.axes:
            axis.clear_errors()
