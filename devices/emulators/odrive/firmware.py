"""Firmware of the emulated drive: packets in, packets out, and two axes."""

from __future__ import annotations

import functools
import math
import struct
from collections import deque
from collections.abc import Callable, MutableMapping
from typing import Any

import numpy as np

from devices.emulators.odrive.axis import Axis
from devices.emulators.odrive.control_kernels import AXIS
from devices.emulators.odrive.plant import Plant
from devices.emulators.odrive.table import Row, rows, table_text

PAGE = 61
"""Maximum data in a reply [byte]."""

LONGEST_LOG = 10_000
"""Maximum number of packets in the log, because a run has millions of packets."""

_FORMS = {
    kind: struct.Struct(form)
    for kind, form in {
        "float": "<f",
        "bool": "<?",
        "int8": "<b",
        "uint8": "<B",
        "int16": "<h",
        "uint16": "<H",
        "int32": "<i",
        "uint32": "<I",
        "int64": "<q",
        "uint64": "<Q",
    }.items()
}
_PROTOCOL = 1
_SUPPLY, _PIN = 24.0, 1.65


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
    text = table_text(rows())
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
    received : deque of bytes
        Valid packets received, the latest `LONGEST_LOG`, oldest first; may be cleared by the observer.
    """

    def __init__(self, plant: Plant, serial: int) -> None:
        self.plant = plant
        self._record = np.zeros(2, AXIS)
        self.axes = Axis(self._record[:1]), Axis(self._record[1:])
        self.values: dict[str, Any] = {
            "vbus_voltage": _SUPPLY,
            "serial_number": serial,
            "hw_version_major": 3,
            "hw_version_minor": 6,
            "hw_version_variant": 24,
            "fw_version_minor": 5,
            "fw_version_revision": 6,
        }
        self.text, self.checksum, self._version = _table()
        self.received: deque[bytes] = deque(maxlen=LONGEST_LOG)
        self._own_functions: dict[str, Callable[..., Any]] = {
            "clear_errors": self.clear_errors,
            "test_function": self._count,
            "get_adc_voltage": lambda _: _PIN,
        }
        self._rows: dict[int, Row] = {}
        self._named: dict[str, Row] = {}
        self._functions: dict[int, Row] = {}
        for row in rows():
            self._enter(row)
        self.switch_on()

    def _enter(self, row: Row) -> None:
        """Register an endpoint; the arguments of functions are properties as well."""
        if row.kind == "function":
            self._functions[row.number] = row
            for part, writable in ((row.inputs, True), (row.outputs, False)):
                for name, kind, number in part:
                    self._rows[number] = Row(f"{row.path}.{name}", number, kind, writable)
        else:
            self._rows[row.number] = self._named[row.path] = row

    def switch_on(self) -> None:
        """Reset the axes, as when the supply is switched on."""
        for axis, turns in zip(self.axes, self.plant.angles, strict=True):
            axis.switch_on(turns)

    def iterate(self, count: int = 1) -> None:
        """Simulate `count` control iterations of both axes."""
        self.plant.run(self._record, count)

    # --- packets -----------------------------------------------------------------------------------------------------

    def handle(self, packet: bytes) -> bytes | None:
        """Execute a request; return the reply, None if none is requested."""
        if len(packet) < 8:
            return None
        sequence, endpoint, length = struct.unpack_from("<HHH", packet)
        payload, (trailer,) = packet[6:-2], struct.unpack("<H", packet[-2:])
        wants, number = endpoint & 0x8000, endpoint & 0x7FFF
        if sequence & 0x8000 or trailer != (self.checksum if number else _PROTOCOL):
            return None
        self.received.append(packet)
        data = self._table(payload) if number == 0 else self._operate(number, payload)
        return struct.pack("<H", sequence | 0x8000) + data[: min(length, PAGE)] if wants else None

    def _table(self, payload: bytes) -> bytes:
        if len(payload) < 4:
            return b""
        (offset,) = struct.unpack_from("<I", payload)
        if offset == 0xFFFFFFFF:
            return self._version
        return self.text[offset : offset + PAGE]

    def _operate(self, number: int, payload: bytes) -> bytes:
        """Write, call, or both; return the previous value, empty for unknown endpoints."""
        if number in self._functions:
            self._call(self._functions[number])
            return b""
        row = self._rows.get(number)
        if row is None:
            return b""
        form = _FORMS[row.kind]
        before = self._bytes(row, form)
        if row.writable and len(payload) >= form.size:
            self._set(row, form.unpack_from(payload)[0])
        return before

    def _bytes(self, row: Row, form: struct.Struct) -> bytes:
        """Return a property's value as bytes; integers that are too large are truncated."""
        value = self.read(row)
        if row.kind == "float":
            return form.pack(single(value))
        return (int(value) % (1 << 8 * form.size)).to_bytes(form.size, "little")

    # --- properties --------------------------------------------------------------------------------------------------

    def property(self, name: str) -> Row | None:
        """Return a property by its name, None if it does not exist."""
        return self._named.get(name)

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
        self._written(row.path)

    def _place(self, path: str) -> tuple[MutableMapping[str, Any], str]:
        """Return the mapping that holds a property's value, and its key."""
        if path.startswith("axis"):
            return self.axes[int(path[4])].values, path[6:]
        return self.values, path

    def _written(self, path: str) -> None:
        held, name = self._place(path)
        if name == "requested_state":
            state, held[name] = held[name], 0  # the requested state reads as 0 after it was processed
            self.axes[int(path[4])].request(state)

    def _call(self, row: Row) -> None:
        arguments = [self._place(f"{row.path}.{name}") for name, _, _ in row.inputs]
        given = [held.get(name, 0) for held, name in arguments]
        result = self._function(row.path)(*given)
        for name, _, _ in row.outputs:
            held, key = self._place(f"{row.path}.{name}")
            held[key] = result

    def _function(self, path: str) -> Callable[..., Any]:
        if path.startswith("axis"):
            axis = self.axes[int(path[4])]
            own: dict[str, Callable[..., Any]] = {
                "watchdog_feed": axis.feed,
                "encoder.set_linear_count": axis.set_count,
            }
            return own[path[6:]]
        return self._own_functions[path]

    def clear_errors(self) -> None:
        """Clear all errors, including the errors of the axes."""
        self.values["error"] = 0
        for axis in self.axes:
            axis.clear_errors()

    def _count(self, delta: int) -> int:
        self.values["count"] = self.values.get("count", 0) + delta
        return int(self.values["count"])
