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

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from devices.joystick.hid.usages import X, Y
from devices.joystick.reports import MOST_BUTTONS
from devices.joystick.usb.transport import UsbIdentity
from haptics.errors import ConfigurationError
from haptics.files import format_toml, read_toml, write_atomically
from haptics.settings import allowed_text, bounded, build, check, choice, documented, flag, string, unrestricted

# --- tables -----------------------------------------------------------------------------------------------------------

Pair = tuple[float, float]
Matrix = tuple[Pair, Pair]

SOURCES = ("weight", "stated")
_ROUNDING = 1.0 + 1e-9
_DIGEST = 64
_PAIR, _MATRIX = "two finite numbers such as [0.0, 0.0]", "two rows of two finite numbers, not all on one line"


@documented
@dataclass(frozen=True, kw_only=True)
class DeviceIdentity(UsbIdentity):
    """Identity of the stick that the parameters belong to, and its report intervals."""

    vendor_id: int = bounded(minimum=0, maximum=0xFFFF, doc="USB vendor")
    product_id: int = bounded(minimum=0, maximum=0xFFFF, doc="USB product")
    serial: str = string("", doc="serial number, empty if it has none")
    name: str = string("", doc="what it calls itself")
    report_descriptor_sha256: str = string(allowed=f"{_DIGEST} hexadecimal digits", doc="of its report descriptor")
    in_interval_s: float = bounded(minimum=1e-5, maximum=1.0, unit="s", doc="between two input reports")
    out_interval_s: float = bounded(minimum=1e-5, maximum=1.0, unit="s", doc="between two output reports")
    out_endpoint: bool = flag(True, doc="output reports have a pipe of their own")
    bcd_device: int | None = unrestricted(None, "a number from 0 to 0xffff", doc="number of its firmware")


@documented
@dataclass(frozen=True, kw_only=True)
class Axes:
    """Conversion from counts to metres."""

    centre_counts: Pair = unrestricted(MISSING, _PAIR, doc="counts at the origin")
    counts_to_m: Matrix = unrestricted(MISSING, _MATRIX, doc="metres per count")
    workspace_min_m: Pair = unrestricted(MISSING, _PAIR, doc="lower left corner")
    workspace_max_m: Pair = unrestricted(MISSING, _PAIR, doc="upper right corner")
    usage_x: int = bounded(X, minimum=0, maximum=0xFFFFFFFF, doc="usage of the first axis")
    usage_y: int = bounded(Y, minimum=0, maximum=0xFFFFFFFF, doc="usage of the second axis")
    count_quantum: int = bounded(1, minimum=1, maximum=65536, doc="smallest step of the counts")
    rim_radius_m: float = bounded(
        0.0, minimum=0.0, maximum=1.0, unit="m", doc="radius of a wheel's rim, along which x lies; 0 for a stick"
    )

    @property
    def usages(self) -> tuple[int, ...]:
        """Usages of the axes with a motor: both of a stick, the first of a wheel, on which y is 0."""
        return (self.usage_x,) if self.rim_radius_m else (self.usage_x, self.usage_y)

    @property
    def resolution(self) -> float:
        """Longest step [m] that the smallest change of a count causes."""
        (a, b), (c, d) = self.counts_to_m
        return self.count_quantum * max(math.hypot(a, c), math.hypot(b, d))


@documented
@dataclass(frozen=True, kw_only=True)
class Force:
    """Conversion from newtons to the levels of the two effects."""

    newton_to_level: Matrix = unrestricted(MISSING, _MATRIX, doc="parts of full scale per newton")
    max_force_n: float = bounded(above=0.0, maximum=1000.0, unit="N", doc="largest force")
    effects: int = bounded(2, minimum=1, maximum=2, doc="effects that a stick adds up; of 1 the direction is streamed")
    full_scale: int = bounded(
        0, minimum=0, maximum=2**31, doc="steps from no force to full scale, as the stick counts; 0: not known"
    )
    release_s: float | None = unrestricted(
        None, "a number of at least 0 s", doc="measured: how long the stick goes on with a force that nobody renews"
    )
    source: str = choice("stated", SOURCES, doc="how the scale was found")

    @property
    def resolution(self) -> float | None:
        """Longest step of the force [N] that the smallest change of a level causes; None if unknown."""
        (a, b), (c, d) = self.newton_to_level
        if not self.full_scale:
            return None
        if d == 0.0:  # a wheel
            return 1.0 / (self.full_scale * abs(a))
        determinant = abs(a * d - b * c)
        return max(math.hypot(d, c), math.hypot(b, a)) / (self.full_scale * determinant)


@documented
@dataclass(frozen=True, kw_only=True)
class Handle:
    """Properties of the handle for parameter advice, and the dead-man's button."""

    moving_mass_kg: float | None = unrestricted(None, "a number greater than 0 kg", doc="moving mass")
    damping_ns_per_m: float | None = unrestricted(
        None, "a number of at least 0 N s/m", doc="viscous friction of the device"
    )
    dead_man_button: int = bounded(0, minimum=0, maximum=MOST_BUTTONS, doc="button that must be held, 0 for none")


@documented
@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Origin of the numbers."""

    date: str = string("", doc="when")
    method: str = string("", doc="how")


# --- parameters -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StickParameters:
    """Content of a parameter file.

    Raises
    ------
    ConfigurationError
        If a value is not allowed; the message states the allowed values.
    """

    device: DeviceIdentity
    axes: Axes
    force: Force
    handle: Handle = field(default_factory=Handle)
    provenance: Provenance = field(default_factory=Provenance)

    def __post_init__(self) -> None:
        for where in _TABLES:
            check(getattr(self, where), where)
        for where, name, is_allowed in _RULES:
            self._require(is_allowed(getattr(getattr(self, where), name)), where, name)
        self._require_map("axes", "counts_to_m")
        self._require_map("force", "newton_to_level")
        axes, own = self.axes, self.force
        if axes.usage_x == axes.usage_y:
            raise ConfigurationError(f"axes.usage_y = {axes.usage_y:#x}: must be another axis than axes.usage_x.")
        if not all(low < high for low, high in zip(axes.workspace_min_m, axes.workspace_max_m, strict=True)):
            raise ConfigurationError(
                f"axes.workspace_max_m = {axes.workspace_max_m}: must be greater than axes.workspace_min_m = "
                f"{axes.workspace_min_m} in x and in y."
            )
        (a, b), (c, d) = own.newton_to_level
        if own.effects > 1:
            most = max(math.hypot(a, b), math.hypot(c, d))
        else:  # spectral norm
            square, det = a * a + b * b + c * c + d * d, a * d - b * c
            most = math.sqrt(0.5 * (square + math.sqrt(max(square * square - 4.0 * det * det, 0.0))))
        largest = most * own.max_force_n
        if largest > _ROUNDING:
            raise ConfigurationError(
                f"force.max_force_n = {own.max_force_n:g}: asks for {largest:.3g} times the device's full scale in "
                f"some direction; must be at most {own.max_force_n / largest:.6g} N."
            )

    def _require(self, sound: bool, where: str, name: str) -> None:
        if not sound:
            table = getattr(self, where)
            allowed = next(allowed_text(entry) for entry in fields(table) if entry.name == name)
            raise ConfigurationError(f"{where}.{name} = {getattr(table, name)!r}: must be {allowed}.")

    def _require_map(self, where: str, name: str) -> None:
        """Validate that a matrix is invertible, or for a wheel that it maps the x axis only."""
        matrix = getattr(getattr(self, where), name)
        is_matrix = isinstance(matrix, tuple) and len(matrix) == 2 and all(map(_is_pair, matrix))
        (a, b), (c, d) = matrix if is_matrix else ((0.0, 0.0), (0.0, 0.0))
        if len(self.axes.usages) == 2:
            self._require(abs(a * d - b * c) > 1e-9 * math.hypot(a, c) * math.hypot(b, d), where, name)
        elif not a or b or c or d:
            raise ConfigurationError(
                f"{where}.{name} = {matrix!r}: must be [[NUMBER, 0.0], [0.0, 0.0]] with a number that is not 0, for a "
                "wheel (axes.rim_radius_m) has x only."
            )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(map(_is_number, value))


# Table and key with the condition of its value, in addition to the declared bounds.
_RULES: tuple[tuple[str, str, Callable[[Any], bool]], ...] = (
    ("device", "report_descriptor_sha256", lambda text: len(text) == _DIGEST and set(text) <= set("0123456789abcdef")),
    ("device", "bcd_device", lambda number: number is None or (type(number) is int and 0 <= number <= 0xFFFF)),
    ("axes", "centre_counts", _is_pair),
    ("axes", "workspace_min_m", _is_pair),
    ("axes", "workspace_max_m", _is_pair),
    ("force", "release_s", lambda number: number is None or (_is_number(number) and number >= 0.0)),
    ("handle", "moving_mass_kg", lambda number: number is None or (_is_number(number) and number > 0.0)),
    ("handle", "damping_ns_per_m", lambda number: number is None or (_is_number(number) and number >= 0.0)),
)

_TABLES: dict[str, type[Any]] = {
    "device": DeviceIdentity,
    "axes": Axes,
    "force": Force,
    "handle": Handle,
    "provenance": Provenance,
}
_NEEDED = ("device", "axes", "force")

# Keys that are written in hexadecimal, with their number of digits.
_HEXADECIMAL = {"vendor_id": 4, "product_id": 4, "bcd_device": 4, "usage_x": 8, "usage_y": 8}


# --- reading and writing ----------------------------------------------------------------------------------------------


def build_parameters(content: Mapping[str, Any], where: str = "") -> StickParameters:
    """Build the parameters from the tables of a file.

    Parameters
    ----------
    content : mapping
        Tables by name.
    where : str
        Name of the file, for messages.

    Raises
    ------
    ConfigurationError
        If a value is wrong; names the file, table, key and allowed values.
    """
    try:
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
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}" if where else str(error)) from error


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value


def read_parameters(path: str | Path) -> StickParameters:
    """Read a parameter file.

    Raises
    ------
    ConfigurationError
        If the file cannot be read, or as in `build_parameters`.
    """
    content = read_toml(path, f"device.parameters = {str(path)!r}", "haptics calibrate joystick makes such a file")
    return build_parameters(content, str(path))


def format_parameters(parameters: StickParameters) -> str:
    """Format parameters as TOML. `build_parameters` restores the same numbers."""
    return re.sub(
        rf"^({'|'.join(_HEXADECIMAL)}) = (\d+)$",
        lambda line: f"{line[1]} = 0x{int(line[2]):0{_HEXADECIMAL[line[1]]}x}",
        format_toml(asdict(parameters)),
        flags=re.MULTILINE,
    )


def write_parameters(path: str | Path, parameters: StickParameters) -> None:
    """Write a parameter file atomically; an existing file is never partly overwritten.

    Raises
    ------
    ConfigurationError
        If it cannot be written.
    """
    write_atomically(path, format_parameters(parameters))
