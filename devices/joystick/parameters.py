"""The parameter file of one stick: which one it is, what a count is in metres, what a newton is in its own levels.

Nothing of this can be asked of the device: no descriptor says how long a handle is, where its centre lies or which way
a force points. Calibrating finds it out and writes this file; without one nothing is rendered.

.. code-block:: toml

    [device]
    vendor_id = 0x1209
    product_id = 0xffb0
    serial = "2F003A"               # empty where the device has none
    name = "OpenFFBoard joystick"
    report_descriptor_sha256 = "..."
    in_interval_s = 0.001           # between two input reports at most as often
    out_interval_s = 0.001          # between two output reports
    out_endpoint = true             # false: output reports go through the control pipe
    bcd_device = 0x0100             # its firmware, where it is known

    [axes]
    usage_x = 0x00010030            # page << 16 | usage of the first and of the second axis
    usage_y = 0x00010031
    centre_counts = [0.0, 0.0]
    counts_to_m = [[1.5e-6, 0.0], [0.0, -1.5e-6]]
    count_quantum = 1               # smallest step of the counts, where it is more than one
    rim_radius_m = 0.0              # of a wheel: x is the way along its rim, clockwise at the top, and y is 0
    workspace_min_m = [-0.05, -0.05]
    workspace_max_m = [0.05, 0.05]

    [force]
    newton_to_level = [[0.1, 0.0], [0.0, -0.1]]
    max_force_n = 8.0
    effects = 2                     # that the stick adds up; 1: one effect, whose direction is streamed
    full_scale = 32767              # steps from no force to full scale, where they are known
    release_s = 0.2                 # how long it goes on with a force that nobody renews, where that was measured
    source = "weight"               # or "stated"

    [handle]                        # all of it optional
    moving_mass_kg = 0.25
    damping_ns_per_m = 1.0
    dead_man_button = 1             # number of the button that must be held; 0: none

    [provenance]
    date = "2026-01-31"
    method = "by a weight of 0.2 kg"

The position is ``counts_to_m @ (counts - centre_counts)``. The levels of the two constant effects, in parts of their
full scale, are ``newton_to_level @ force``; the first effect points along the device's first axis, the second along its
second one. A wheel has one effect, and of both matrices only the first number is not 0.
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
from haptics.files import write_whole
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
"""Keys whose numbers people know in hexadecimal, with how many digits."""


@dataclass(frozen=True)
class StickParameters:
    """The whole file.

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


# --- the file --------------------------------------------------------------------------------------------------------


def parse_parameters(text: str, where: str) -> StickParameters:
    """Return the parameters that the TOML `text` holds.

    Parameters
    ----------
    text : str
        Content of the file.
    where : str
        Its name, for messages.

    Raises
    ------
    ConfigurationError
        Naming the file, the table and the key that is wrong, and what is allowed.
    """
    content = parse_toml(text, where)
    return _named(where, lambda: build_parameters(content))


def build_parameters(content: Mapping[str, Any]) -> StickParameters:
    """Return the parameters from the tables of a file.

    Raises
    ------
    ConfigurationError
        Naming the table and the key that is wrong, and what is allowed.
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
        If it cannot be read, or as `parse_parameters`.
    """
    content = read_toml(path, f"device.parameters = {str(path)!r}", "haptics calibrate joystick makes such a file")
    return _named(str(path), lambda: build_parameters(content))


def format_parameters(parameters: StickParameters) -> str:
    """Return the parameters as TOML; `parse_parameters` reads the same numbers back."""
    blocks = []
    for name in _TABLES:
        table = getattr(parameters, name)
        values = ((entry.name, getattr(table, entry.name)) for entry in fields(table))
        lines = [f"{key} = {_toml(key, value)}" for key, value in values if value is not None]
        blocks.append("\n".join([f"[{name}]", *lines]))
    return "\n\n".join(blocks) + "\n"


def write_parameters(path: str | Path, parameters: StickParameters) -> None:
    """Write a parameter file, all of it or nothing: whatever happens, a file that was there is not half overwritten.

    Raises
    ------
    ConfigurationError
        If it cannot be written.
    """
    write_whole(path, format_parameters(parameters))


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
