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

    [axes]
    usage_x = 0x00010030            # page << 16 | usage of the first and of the second axis
    usage_y = 0x00010031
    centre_counts = [0.0, 0.0]
    counts_to_m = [[1.5e-6, 0.0], [0.0, -1.5e-6]]
    count_quantum = 1               # smallest step of the counts, where it is more than one
    workspace_min_m = [-0.05, -0.05]
    workspace_max_m = [0.05, 0.05]

    [force]
    newton_to_level = [[0.1, 0.0], [0.0, -0.1]]
    max_force_n = 8.0
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
second one.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from devices.joystick.usages import X, Y
from haptics.errors import ConfigurationError
from haptics.settings import allowed_text, bounded, build, check, choice, free

_T = TypeVar("_T")
Pair = tuple[float, float]
Matrix = tuple[Pair, Pair]

SOURCES = ("weight", "stated")
_ROUNDING = 1.0 + 1e-9
_HEXADECIMAL = {"vendor_id": 4, "product_id": 4, "usage_x": 8, "usage_y": 8}
"""Keys whose numbers people know in hexadecimal, with how many digits."""
_DIGEST = 64
_PAIR, _MATRIX = "two finite numbers such as [0.0, 0.0]", "two rows of two finite numbers, not all on one line"


@dataclass(frozen=True, kw_only=True)
class DeviceIdentity:
    """Which stick the parameters belong to, and how often it exchanges reports."""

    vendor_id: int = bounded(minimum=0, maximum=0xFFFF, doc="USB vendor")
    product_id: int = bounded(minimum=0, maximum=0xFFFF, doc="USB product")
    serial: str = free("", "text", "serial number, empty if it has none")
    name: str = free("", "text", "what it calls itself")
    report_descriptor_sha256: str = free(MISSING, f"{_DIGEST} hexadecimal digits", "of its report descriptor")
    in_interval_s: float = bounded(minimum=1e-5, maximum=1.0, unit="s", doc="between two input reports")
    out_interval_s: float = bounded(minimum=1e-5, maximum=1.0, unit="s", doc="between two output reports")
    out_endpoint: bool = field(default=True, metadata={"doc": "output reports have a pipe of their own"})

    @property
    def vid_pid(self) -> str:
        """``vendor:product``, hexadecimal, small letters."""
        return f"{self.vendor_id:04x}:{self.product_id:04x}"

    def __str__(self) -> str:
        return " ".join(filter(None, (self.name, f"({self.vid_pid})", self.serial and f"serial {self.serial}")))


@dataclass(frozen=True, kw_only=True)
class Axes:
    """From counts to metres."""

    centre_counts: Pair = free(MISSING, _PAIR, "counts at the origin")
    counts_to_m: Matrix = free(MISSING, _MATRIX, "metres per count")
    workspace_min_m: Pair = free(MISSING, _PAIR, "lower left corner")
    workspace_max_m: Pair = free(MISSING, _PAIR, "upper right corner")
    usage_x: int = bounded(X, minimum=0, maximum=0xFFFFFFFF, doc="usage of the first axis")
    usage_y: int = bounded(Y, minimum=0, maximum=0xFFFFFFFF, doc="usage of the second axis")
    count_quantum: int = bounded(1, minimum=1, maximum=65536, doc="smallest step of the counts")

    @property
    def resolution(self) -> float:
        """The longest step that the smallest change of a count makes [m]."""
        (a, b), (c, d) = self.counts_to_m
        return self.count_quantum * max(math.hypot(a, c), math.hypot(b, d))


@dataclass(frozen=True, kw_only=True)
class Force:
    """From newtons to the levels of the two effects."""

    newton_to_level: Matrix = free(MISSING, _MATRIX, "parts of full scale per newton")
    max_force_n: float = bounded(above=0.0, maximum=1000.0, unit="N", doc="largest force")
    source: str = choice("stated", SOURCES, "how the scale was found")


@dataclass(frozen=True, kw_only=True)
class Handle:
    """What is known of the handle, for advice on parameters; and its dead-man's button."""

    moving_mass_kg: float | None = free(None, "a number greater than 0 kg", "moving mass")
    damping_ns_per_m: float | None = free(None, "a number of at least 0 N s/m", "own viscous friction")
    dead_man_button: int = bounded(0, minimum=0, maximum=32, doc="button that must be held, 0 for none")


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where the numbers come from."""

    date: str = free("", "text", "when")
    method: str = free("", "text", "how")


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
    handle: Handle = Handle()
    provenance: Provenance = Provenance()

    def __post_init__(self) -> None:
        for table in _TABLES:
            check(getattr(self, table), table)
        _check_device(self.device)
        _check_axes(self.axes)
        _check_force(self.force)
        _check_handle(self.handle)
        for table in _TABLES:
            _require_text(getattr(self, table), table)


_TABLES: dict[str, type[Any]] = {
    "device": DeviceIdentity,
    "axes": Axes,
    "force": Force,
    "handle": Handle,
    "provenance": Provenance,
}
_NEEDED = ("device", "axes", "force")


def _require(sound: bool, instance: Any, where: str, name: str) -> None:
    if not sound:
        words = next(allowed_text(entry) for entry in fields(instance) if entry.name == name)
        raise ConfigurationError(f"{where}.{name} = {getattr(instance, name)!r}: must be {words}.")


def _require_text(table: Any, where: str) -> None:
    for entry in fields(table):
        if entry.type == "str":
            _require(isinstance(getattr(table, entry.name), str), table, where, entry.name)


def _check_device(device: DeviceIdentity) -> None:
    for name in ("vendor_id", "product_id"):
        _require(isinstance(getattr(device, name), int), device, "device", name)
    digest = device.report_descriptor_sha256
    hexadecimal = isinstance(digest, str) and len(digest) == _DIGEST and set(digest) <= set("0123456789abcdef")
    _require(hexadecimal, device, "device", "report_descriptor_sha256")


def _check_axes(axes: Axes) -> None:
    for name in ("usage_x", "usage_y", "count_quantum"):
        _require(isinstance(getattr(axes, name), int), axes, "axes", name)
    for name in ("centre_counts", "workspace_min_m", "workspace_max_m"):
        _require(_is_pair(getattr(axes, name)), axes, "axes", name)
    _require(_is_regular(axes.counts_to_m), axes, "axes", "counts_to_m")
    if axes.usage_x == axes.usage_y:
        raise ConfigurationError(f"axes.usage_y = {axes.usage_y:#x}: must be another axis than axes.usage_x.")
    if not all(low < high for low, high in zip(axes.workspace_min_m, axes.workspace_max_m, strict=True)):
        raise ConfigurationError(
            f"axes.workspace_max_m = {axes.workspace_max_m}: must be greater than axes.workspace_min_m = "
            f"{axes.workspace_min_m} in x and in y."
        )


def _check_force(force: Force) -> None:
    _require(_is_regular(force.newton_to_level), force, "force", "newton_to_level")
    largest = max(math.hypot(*row) for row in force.newton_to_level) * force.max_force_n
    if largest > _ROUNDING:
        raise ConfigurationError(
            f"force.max_force_n = {force.max_force_n:g}: asks for {largest:.3g} times the device's full scale in some "
            f"direction; must be at most {force.max_force_n / largest:.6g} N."
        )


def _check_handle(handle: Handle) -> None:
    mass, damping = handle.moving_mass_kg, handle.damping_ns_per_m
    _require(mass is None or (_is_number(mass) and mass > 0.0), handle, "handle", "moving_mass_kg")
    _require(damping is None or (_is_number(damping) and damping >= 0.0), handle, "handle", "damping_ns_per_m")
    _require(isinstance(handle.dead_man_button, int), handle, "handle", "dead_man_button")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(map(_is_number, value))


def _is_regular(value: Any) -> bool:
    """Tell whether it is a 2x2 matrix that can be inverted."""
    if not (isinstance(value, tuple) and len(value) == 2 and all(map(_is_pair, value))):
        return False
    (a, b), (c, d) = value
    return bool(abs(a * d - b * c) > 1e-9 * math.hypot(a, c) * math.hypot(b, d))


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
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{where}: is no TOML ({error}).") from error
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
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a name with a zero byte
        raise ConfigurationError(
            f"device.parameters = {str(path)!r}: cannot be read ({getattr(error, 'strerror', None) or error}); "
            "haptics calibrate joystick makes such a file."
        ) from error
    return parse_parameters(text, str(path))


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
    """Write a parameter file.

    Raises
    ------
    ConfigurationError
        If it cannot be written.
    """
    try:
        Path(path).write_text(format_parameters(parameters), encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path}: cannot be written ({getattr(error, 'strerror', None) or error}).") from error


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
