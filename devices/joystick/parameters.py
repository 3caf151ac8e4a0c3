"""Parameter file of one stick: identity, conversion from counts to metres and from newtons to levels.

The device cannot report these values: no descriptor contains the length of the handle, its centre position or the
direction of a force. Calibration measures them and writes this file, which is required for rendering.

.. code-block:: toml

    [device]
    vendor_id = 0x1209
    product_id = 0xffb0
    serial = "2F003A"               # empty if the device has none
    name = "OpenFFBoard joystick"
    report_descriptor_sha256 = "..."
    in_interval_s = 0.001           # minimum time between two input reports
    out_interval_s = 0.001          # minimum time between two output reports
    out_endpoint = true             # false: output reports go through the control pipe
    bcd_device = 0x0100             # firmware version, if known

    [axes]
    usage_x = 0x00010030            # page << 16 | usage of the first and of the second axis
    usage_y = 0x00010031
    centre_counts = [0.0, 0.0]
    counts_to_m = [[1.5e-6, 0.0], [0.0, -1.5e-6]]
    count_quantum = 1               # smallest step of the counts, if more than one
    rim_radius_m = 0.0              # wheel only: x runs along the rim, clockwise at the top, and y is 0
    workspace_min_m = [-0.05, -0.05]
    workspace_max_m = [0.05, 0.05]

    [force]
    newton_to_level = [[0.1, 0.0], [0.0, -0.1]]
    max_force_n = 8.0
    effects = 2                     # number that the stick adds; 1: one effect with streamed direction
    full_scale = 32767              # steps from no force to full scale, if known
    release_s = 0.2                 # duration of a force without restart, if measured
    source = "weight"               # or "stated"

    [handle]                        # all keys optional
    moving_mass_kg = 0.25
    damping_ns_per_m = 1.0
    dead_man_button = 1             # number of the dead-man's button; 0: none

    [provenance]
    date = "2026-01-31"
    method = "by a weight of 0.2 kg"

The position is ``counts_to_m @ (counts - centre_counts)``. The levels of the two constant effects, as fractions of full
scale, are ``newton_to_level @ force``. The first effect points along the device's first axis, the second along its
second axis. A wheel has one effect, and only the first element of both matrices is nonzero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from devices.joystick.parameter_tables import (
    Axes,
    DeviceIdentity,
    Force,
    Handle,
    Matrix,
    Pair,
    Provenance,
    check_tables,
)
from haptics.errors import ConfigurationError
from haptics.files import write_atomically
from haptics.reading import parse_toml, read_toml
from haptics.settings import build

__all__ = [
    "Axes",
    "DeviceIdentity",
    "Force",
    "Handle",
    "Matrix",
    "Pair",
    "Provenance",
    "StickParameters",
    "build_parameters",
    "format_parameters",
    "parse_parameters",
    "read_parameters",
    "write_parameters",
]

_T = TypeVar("_T")

_HEXADECIMAL = {"vendor_id": 4, "product_id": 4, "bcd_device": 4, "usage_x": 8, "usage_y": 8}
"""Keys that are written in hexadecimal, with their number of digits."""


@dataclass(frozen=True)
class StickParameters:
    """Content of a parameter file.

    Raises
    ------
    ConfigurationError
        If a value is not allowed.
    """

    device: DeviceIdentity
    axes: Axes
    force: Force
    handle: Handle = field(default_factory=Handle)
    provenance: Provenance = field(default_factory=Provenance)

    def __post_init__(self) -> None:
        check_tables(self.device, self.axes, self.force, self.handle, self.provenance)


_TABLES: dict[str, type[Any]] = {
    "device": DeviceIdentity,
    "axes": Axes,
    "force": Force,
    "handle": Handle,
    "provenance": Provenance,
}
_NEEDED = ("device", "axes", "force")


# --- reading and writing ----------------------------------------------------------------------------------------------


def parse_parameters(text: str, where: str) -> StickParameters:
    """Parse parameters from TOML text.

    Parameters
    ----------
    text : str
        Content of the file.
    where : str
        Name of the file, for messages.

    Raises
    ------
    ConfigurationError
        If a value is wrong; names the file, table, key and allowed values.
    """
    content = parse_toml(text, where)
    return _named(where, lambda: build_parameters(content))


def build_parameters(content: Mapping[str, Any]) -> StickParameters:
    """Build the parameters from the tables of a file.

    Raises
    ------
    ConfigurationError
        If a value is wrong; names the table, key and allowed values.
    """
    for name in content:
        if name not in _TABLES:
            raise ConfigurationError(f"unknown table {name!r}; allowed: {', '.join(_TABLES)}.")
    for name in _NEEDED:
        if name not in content:
            raise ConfigurationError(f"table [{name}] is missing.")
    tables = {}
    for name, table in content.items():
        if not isinstance(table, dict):
            raise ConfigurationError(f"{name} = {table!r}: must be a table.")
        tables[name] = build(_TABLES[name], {key: _as_tuple(value) for key, value in table.items()}, name)
    return StickParameters(**tables)


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value


def _named(where: str, action: Callable[[], _T]) -> _T:
    try:
        return action()
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from error


def read_parameters(path: str | Path) -> StickParameters:
    """Read a parameter file.

    Raises
    ------
    ConfigurationError
        If the file cannot be read, or as in `parse_parameters`.
    """
    content = read_toml(path, f"device.parameters = {str(path)!r}", "haptics calibrate joystick makes such a file")
    return _named(str(path), lambda: build_parameters(content))


def format_parameters(parameters: StickParameters) -> str:
    """Format parameters as TOML. `parse_parameters` restores the same numbers."""
    blocks = []
    for name in _TABLES:
        table = getattr(parameters, name)
        values = ((entry.name, getattr(table, entry.name)) for entry in fields(table))
        lines = [f"{key} = {_toml(key, value)}" for key, value in values if value is not None]
        blocks.append("\n".join([f"[{name}]", *lines]))
    return "\n\n".join(blocks) + "\n"


def write_parameters(path: str | Path, parameters: StickParameters) -> None:
    """Write a parameter file atomically; an existing file is never partly overwritten.

    Raises
    ------
    ConfigurationError
        If it cannot be written.
    """
    write_atomically(path, format_parameters(parameters))


def _toml(key: str, value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_toml(key, item) for item in value)}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + "".join(map(_quoted, value)) + '"'
    return f"0x{value:0{_HEXADECIMAL[key]}x}" if key in _HEXADECIMAL else repr(value)


def _quoted(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    return character if character.isprintable() else f"\\U{ord(character):08x}"
