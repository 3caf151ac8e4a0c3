"""Firmware of the emulated drive: its table of endpoints, packets in and packets out, and two axes.

The table is a part of the one of firmware 0.5.6, with its names, types and addresses; the checksum therefore differs.
"""

from __future__ import annotations

import functools
import json
import math
import struct
from collections import deque
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from devices.emulators.odrive.axis import AXIS, Axis, Plant

AXIS_BASES = (130, 448)
"""First endpoint of each axis."""

_ROOT_BEFORE = """
error                                  1 uint8   rw
vbus_voltage                           2 float   r
ibus                                   3 float   r
ibus_report_filter_k                   4 float   rw
serial_number                          5 uint64  r
hw_version_major                       6 uint8   r
hw_version_minor                       7 uint8   r
hw_version_variant                     8 uint8   r
fw_version_major                       9 uint8   r
fw_version_minor                      10 uint8   r
fw_version_revision                   11 uint8   r
fw_version_unreleased                 12 uint8   r
"""

_AXIS = """
error                                  0 uint32  rw
step_dir_active                        1 bool    r
last_drv_fault                         2 uint32  r
steps                                  3 int64   r
current_state                          4 uint8   r
requested_state                        5 uint8   rw
is_homed                               6 bool    rw
config.startup_closed_loop_control    10 bool    rw
config.enable_step_dir                12 bool    rw
config.enable_sensorless_mode         14 bool    rw
config.watchdog_timeout               15 float   rw
config.enable_watchdog                16 bool    rw
motor.last_error_time                 54 float   rw
motor.error                           55 uint64  rw
motor.is_armed                        56 bool    r
motor.is_calibrated                   57 bool    r
motor.effective_current_lim           66 float   r
motor.current_control.Iq_setpoint     86 float   r
motor.current_control.Iq_measured     94 float   r
motor.config.pre_calibrated          102 bool    rw
motor.config.pole_pairs              103 int32   rw
motor.config.torque_constant         108 float   rw
motor.config.motor_type              109 uint8   rw
motor.config.current_lim             110 float   rw
motor.config.current_lim_margin      111 float   rw
motor.config.torque_lim              112 float   rw
controller.error                     128 uint8   rw
controller.last_error_time           129 float   rw
controller.input_pos                 130 float   rw
controller.input_vel                 131 float   rw
controller.input_torque              132 float   rw
controller.pos_setpoint              133 float   r
controller.vel_setpoint              134 float   r
controller.torque_setpoint           135 float   r
controller.trajectory_done           136 bool    r
controller.vel_integrator_torque     137 float   rw
controller.config.enable_vel_limit   141 bool    rw
controller.config.enable_torque_mode_vel_limit 142 bool rw
controller.config.enable_overspeed_error 144 bool rw
controller.config.control_mode       145 uint8   rw
controller.config.input_mode         146 uint8   rw
controller.config.pos_gain           147 float   rw
controller.config.vel_gain           148 float   rw
controller.config.vel_integrator_gain 149 float  rw
controller.config.vel_integrator_limit 150 float rw
controller.config.vel_limit          151 float   rw
controller.config.vel_limit_tolerance 152 float  rw
controller.config.circular_setpoints 155 bool    rw
encoder.error                        191 uint16  rw
encoder.is_ready                     192 bool    r
encoder.index_found                  193 bool    r
encoder.shadow_count                 194 int32   r
encoder.pos_estimate                 198 float   r
encoder.pos_estimate_counts          199 float   r
encoder.vel_estimate                 204 float   r
encoder.vel_estimate_counts          205 float   r
encoder.config.mode                  209 uint16  rw
encoder.config.use_index             210 bool    rw
encoder.config.cpr                   215 int32   rw
encoder.config.bandwidth             221 float   rw
encoder.set_linear_count             230 function count:int32:231
watchdog_feed                        317 function
"""

_ROOT_AFTER = """
test_property                        769 uint32  rw
test_function                        770 function delta:int32:771 > cnt:int32:772
get_adc_voltage                      773 function gpio:uint32:774 > voltage:float:775
clear_errors                         787 function
"""


@dataclass(frozen=True)
class Row:
    """Endpoint.

    Attributes
    ----------
    path : str
        Full name with dots.
    number : int
        Address.
    kind : str
        Type of its value; ``function``.
    writable : bool
        Whether it can be written.
    inputs, outputs : tuple of (str, str, int)
        Arguments and results of a function: name, type and address.
    """

    path: str
    number: int
    kind: str
    writable: bool = False
    inputs: tuple[tuple[str, str, int], ...] = ()
    outputs: tuple[tuple[str, str, int], ...] = ()


def rows() -> list[Row]:
    """Return all endpoints in the order of the table."""
    listed = []
    axes = [(_AXIS, f"axis{axis}.", base) for axis, base in enumerate(AXIS_BASES)]
    for text, prefix, base in ((_ROOT_BEFORE, "", 0), *axes, (_ROOT_AFTER, "", 0)):
        for line in text.strip().splitlines():
            name, number, kind, *rest = line.split()
            if kind != "function":
                listed.append(Row(prefix + name, base + int(number), kind, "w" in rest[0]))
                continue
            split = rest.index(">") if ">" in rest else len(rest)
            inputs, outputs = (
                tuple((word, form, base + int(place)) for word, form, place in (part.split(":") for part in parts))
                for parts in (rest[:split], rest[split + 1 :])
            )
            listed.append(Row(prefix + name, base + int(number), kind, False, inputs, outputs))
    return listed


def table_text(listed: list[Row]) -> bytes:
    """Return the table as the drive sends it: JSON without spaces, objects within objects."""
    root: list[dict[str, Any]] = [{"name": "", "id": 0, "type": "json", "access": "r"}]
    for row in listed:
        *parents, name = row.path.split(".")
        members = root
        for parent in parents:
            found = next((member for member in members if member["name"] == parent), None)
            if found is None:
                found = {"name": parent, "type": "object", "members": []}
                members.append(found)
            members = found["members"]
        member: dict[str, Any] = {"name": name, "id": row.number, "type": row.kind}
        if row.kind == "function":
            for key, part, access in (("inputs", row.inputs, "rw"), ("outputs", row.outputs, "r")):
                member[key] = [
                    {"name": argument, "id": number, "type": kind, "access": access} for argument, kind, number in part
                ]
        else:
            member["access"] = "rw" if row.writable else "r"
        members.append(member)
    return json.dumps(root, separators=(",", ":")).encode()


# --- firmware ---------------------------------------------------------------------------------------------------------

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
        self._callables: dict[str, Callable[..., Any]] = {
            "clear_errors": self.clear_errors,
            "test_function": self._add_to_count,
            "get_adc_voltage": lambda _: _PIN,
        }
        for number, axis in enumerate(self.axes):
            self._callables[f"axis{number}.watchdog_feed"] = lambda axis=axis: axis.feed()
            self._callables[f"axis{number}.encoder.set_linear_count"] = lambda count, axis=axis: axis.set_count(count)
        self._rows: dict[int, Row] = {}
        self._named: dict[str, Row] = {}
        self._functions: dict[int, Row] = {}
        for row in rows():
            if row.kind != "function":
                self._rows[row.number] = self._named[row.path] = row
                continue
            self._functions[row.number] = row
            for part, writable in ((row.inputs, True), (row.outputs, False)):  # arguments are properties as well
                for name, kind, number in part:
                    self._rows[number] = Row(f"{row.path}.{name}", number, kind, writable)
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
        """Execute a request; return the reply, None if none is requested."""
        if len(packet) < 8:
            return None
        sequence, endpoint, length = struct.unpack_from("<HHH", packet)
        payload, (trailer,) = packet[6:-2], struct.unpack("<H", packet[-2:])
        wants, number = endpoint & 0x8000, endpoint & 0x7FFF
        if sequence & 0x8000 or trailer != (self.checksum if number else _PROTOCOL):
            return None
        self.received.append(packet)
        data = self._operate(number, payload) if number else self._read_table(payload)
        return struct.pack("<H", sequence | 0x8000) + data[: min(length, PAGE)] if wants else None

    def _read_table(self, payload: bytes) -> bytes:
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
        form, value = _FORMS[row.kind], self.read(row)
        if row.kind == "float":
            before = form.pack(single(value))
        else:  # integers that are too large are truncated
            before = (int(value) % (1 << 8 * form.size)).to_bytes(form.size, "little")
        if row.writable and len(payload) >= form.size:
            self._set(row, form.unpack_from(payload)[0])
        return before

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
        if name == "requested_state":
            held[name] = 0  # the requested state reads as 0 after it was processed
            self.axes[int(row.path[4])].request(value)

    def _place(self, path: str) -> tuple[MutableMapping[str, Any], str]:
        """Return the mapping that holds a property's value, and its key."""
        if path.startswith("axis"):
            return self.axes[int(path[4])].values, path[6:]
        return self.values, path

    def _call(self, row: Row) -> None:
        arguments = [self._place(f"{row.path}.{name}") for name, _, _ in row.inputs]
        given = [held.get(name, 0) for held, name in arguments]
        result = self._callables[row.path](*given)
        for name, _, _ in row.outputs:
            held, key = self._place(f"{row.path}.{name}")
            held[key] = result

    def clear_errors(self) -> None:
        """Clear all errors, including the errors of the axes."""
        self.values["error"] = 0
        for axis in self.axes:
            axis.clear_errors()

    def _add_to_count(self, delta: int) -> int:
        self.values["count"] = self.values.get("count", 0) + delta
        return int(self.values["count"])
