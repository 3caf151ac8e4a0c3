"""Endpoint table of the emulated drive: a part of firmware 0.5.6, with its names, types and addresses.

The addresses are identical to the real table, of which this is an excerpt; the checksum therefore differs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

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
    listed = _rows(_ROOT_BEFORE)
    for axis, base in enumerate(AXIS_BASES):
        listed += _rows(_AXIS, f"axis{axis}.", base)
    return listed + _rows(_ROOT_AFTER)


def _rows(text: str, prefix: str = "", base: int = 0) -> list[Row]:
    return [_row(line.split(), prefix, base) for line in text.strip().splitlines()]


def _row(words: list[str], prefix: str, base: int) -> Row:
    path, number, kind = prefix + words[0], base + int(words[1]), words[2]
    if kind != "function":
        return Row(path, number, kind, "w" in words[3])
    split = words.index(">") if ">" in words else len(words)
    inputs, outputs = (tuple(_argument(word, base) for word in part) for part in (words[3:split], words[split + 1 :]))
    return Row(path, number, kind, False, inputs, outputs)


def _argument(word: str, base: int) -> tuple[str, str, int]:
    name, kind, number = word.split(":")
    return name, kind, base + int(number)


def table_text(listed: list[Row]) -> bytes:
    """Return the table as the drive sends it: JSON without spaces, objects within objects."""
    root: list[dict[str, Any]] = [{"name": "", "id": 0, "type": "json", "access": "r"}]
    for row in listed:
        *parents, name = row.path.split(".")
        members = root
        for parent in parents:
            members = _object(members, parent)
        members.append(_member(name, row))
    return json.dumps(root, separators=(",", ":")).encode()


def _object(members: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    for member in members:
        if member["name"] == name:
            found: list[dict[str, Any]] = member["members"]
            return found
    made: list[dict[str, Any]] = []
    members.append({"name": name, "type": "object", "members": made})
    return made


def _member(name: str, row: Row) -> dict[str, Any]:
    if row.kind != "function":
        return {"name": name, "id": row.number, "type": row.kind, "access": "rw" if row.writable else "r"}
    inputs, outputs = (
        [{"name": argument, "id": number, "type": kind, "access": access} for argument, kind, number in part]
        for part, access in ((row.inputs, "rw"), (row.outputs, "r"))
    )
    return {"name": name, "id": row.number, "type": "function", "inputs": inputs, "outputs": outputs}
