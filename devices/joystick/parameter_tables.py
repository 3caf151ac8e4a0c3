"""Tables of a stick's parameter file (`devices.joystick.parameters`) and their validation."""

from __future__ import annotations

import math
from dataclasses import MISSING, dataclass, fields
from typing import Any

from devices.joystick.hid.usages import X, Y
from devices.joystick.inputs import MOST_BUTTONS
from haptics.errors import ConfigurationError
from haptics.settings import allowed_text, bounded, check, choice, documented, flag, string, unrestricted

Pair = tuple[float, float]
Matrix = tuple[Pair, Pair]

SOURCES = ("weight", "stated")
_ROUNDING = 1.0 + 1e-9
_DIGEST = 64
_PAIR, _MATRIX = "two finite numbers such as [0.0, 0.0]", "two rows of two finite numbers, not all on one line"


@documented
@dataclass(frozen=True, kw_only=True)
class DeviceIdentity:
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

    @property
    def vid_pid(self) -> str:
        """``vendor:product`` in lower-case hexadecimal digits."""
        return f"{self.vendor_id:04x}:{self.product_id:04x}"

    def __str__(self) -> str:
        return " ".join(filter(None, (self.name, f"({self.vid_pid})", self.serial and f"serial {self.serial}")))


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
    damping_ns_per_m: float | None = unrestricted(None, "a number of at least 0 N s/m", doc="own viscous friction")
    dead_man_button: int = bounded(0, minimum=0, maximum=MOST_BUTTONS, doc="button that must be held, 0 for none")


@documented
@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Origin of the numbers."""

    date: str = string("", doc="when")
    method: str = string("", doc="how")


# --- validation -------------------------------------------------------------------------------------------------------


def check_tables(device: DeviceIdentity, axes: Axes, force: Force, handle: Handle, provenance: Provenance) -> None:
    """Raise `ConfigurationError` if a value is not allowed; the message states the allowed values."""
    tables = {"device": device, "axes": axes, "force": force, "handle": handle, "provenance": provenance}
    for where, table in tables.items():
        check(table, where)
    _check_device(device)
    _check_axes(axes)
    _check_force(force, len(axes.usages))
    _check_handle(handle)


def _require(sound: bool, instance: Any, where: str, name: str) -> None:
    if not sound:
        words = next(allowed_text(entry) for entry in fields(instance) if entry.name == name)
        raise ConfigurationError(f"{where}.{name} = {getattr(instance, name)!r}: must be {words}.")


def _check_device(device: DeviceIdentity) -> None:
    digest = device.report_descriptor_sha256
    hexadecimal = len(digest) == _DIGEST and set(digest) <= set("0123456789abcdef")
    _require(hexadecimal, device, "device", "report_descriptor_sha256")
    firmware = device.bcd_device
    _require(firmware is None or (type(firmware) is int and 0 <= firmware <= 0xFFFF), device, "device", "bcd_device")


def _check_axes(axes: Axes) -> None:
    for name in ("centre_counts", "workspace_min_m", "workspace_max_m"):
        _require(_is_pair(getattr(axes, name)), axes, "axes", name)
    _require_map(axes, "axes", "counts_to_m", len(axes.usages))
    if axes.usage_x == axes.usage_y:
        raise ConfigurationError(f"axes.usage_y = {axes.usage_y:#x}: must be another axis than axes.usage_x.")
    if not all(low < high for low, high in zip(axes.workspace_min_m, axes.workspace_max_m, strict=True)):
        raise ConfigurationError(
            f"axes.workspace_max_m = {axes.workspace_max_m}: must be greater than axes.workspace_min_m = "
            f"{axes.workspace_min_m} in x and in y."
        )


def _norm(matrix: Matrix) -> float:
    """Return the spectral norm of a 2x2 matrix."""
    (a, b), (c, d) = matrix
    square, det = a * a + b * b + c * c + d * d, a * d - b * c
    return math.sqrt(0.5 * (square + math.sqrt(max(square * square - 4.0 * det * det, 0.0))))


def _require_map(instance: Any, where: str, name: str, dimensions: int) -> None:
    """Validate that a matrix is invertible, or for a wheel that it maps the x axis only."""
    matrix = getattr(instance, name)
    if dimensions == 2:
        _require(_is_regular(matrix), instance, where, name)
    elif not _is_single(matrix):
        raise ConfigurationError(
            f"{where}.{name} = {matrix!r}: must be [[NUMBER, 0.0], [0.0, 0.0]] with a number that is not 0, for a "
            "wheel (axes.rim_radius_m) has x only."
        )


def _check_force(force: Force, dimensions: int) -> None:
    _require_map(force, "force", "newton_to_level", dimensions)
    release = force.release_s
    _require(release is None or (_is_number(release) and release >= 0.0), force, "force", "release_s")
    most = max(math.hypot(*row) for row in force.newton_to_level) if force.effects > 1 else _norm(force.newton_to_level)
    largest = most * force.max_force_n
    if largest > _ROUNDING:
        raise ConfigurationError(
            f"force.max_force_n = {force.max_force_n:g}: asks for {largest:.3g} times the device's full scale in some "
            f"direction; must be at most {force.max_force_n / largest:.6g} N."
        )


def _check_handle(handle: Handle) -> None:
    mass, damping = handle.moving_mass_kg, handle.damping_ns_per_m
    _require(mass is None or (_is_number(mass) and mass > 0.0), handle, "handle", "moving_mass_kg")
    _require(damping is None or (_is_number(damping) and damping >= 0.0), handle, "handle", "damping_ns_per_m")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(map(_is_number, value))


def _is_matrix(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(map(_is_pair, value))


def _is_single(value: Any) -> bool:
    """Return True for a 2x2 matrix of which only the first number is nonzero."""
    return _is_matrix(value) and bool(value[0][0]) and not any((value[0][1], *value[1]))


def _is_regular(value: Any) -> bool:
    """Return True for an invertible 2x2 matrix."""
    if not _is_matrix(value):
        return False
    (a, b), (c, d) = value
    return bool(abs(a * d - b * c) > 1e-9 * math.hypot(a, c) * math.hypot(b, d))
