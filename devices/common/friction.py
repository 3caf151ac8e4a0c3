"""Friction along the two axes of a handle, with separate levels forwards and backwards, and its parameter file."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.common.parameter_keys import key
from haptics.errors import ConfigurationError
from haptics.files import read_toml
from haptics.friction.kernels import LAW, SLIDING
from haptics.friction.laws import CoulombViscous, GaussianStribeck, Law, Stribeck
from haptics.jit import inlined_kernel, kernel
from haptics.settings import Checked, bounded, build, documented, subtable, unknown_name

# --- friction along two axes ------------------------------------------------------------------------------------------
#
# Friction along the two axes of a handle, with separate levels forwards and backwards.
#
# It describes the intrinsic friction of the handle of a joystick or of a table with two slides. A plant simulates it
# (`devices.virtual.joystick`), and a driver compensates it (`devices.common.compensation`).

AXES = ("x", "y")

AxisLaws = tuple[tuple[Law, Law], tuple[Law, Law]]
"""Laws for motion forwards and backwards, for each axis."""

AXIS_LAWS = ("axis_laws", LAW, (2, 2))
"""Field of a kernel record: laws by axis and direction."""


@documented
@dataclass(frozen=True)
class AxisFriction(Checked, section="friction"):
    """Dry friction along one axis that falls from a static to a Coulomb level, without viscous friction."""

    coulomb_forward: float = bounded(0.0, minimum=0.0, maximum=100.0, unit="N", doc="level at speed, forwards")
    coulomb_backward: float = bounded(0.0, minimum=0.0, maximum=100.0, unit="N", doc="level at speed, backwards")
    static_forward: float = bounded(
        0.0, minimum=0.0, maximum=100.0, unit="N", doc="break-away level, forwards; at least that at speed"
    )
    static_backward: float = bounded(
        0.0, minimum=0.0, maximum=100.0, unit="N", doc="break-away level, backwards; at least that at speed"
    )
    stribeck_velocity: float = bounded(
        0.01, minimum=1e-5, maximum=10.0, unit="m/s", doc="speed over which the level falls"
    )

    @property
    def laws(self) -> tuple[Law, Law]:
        """Laws for motion forwards and backwards."""
        forward, backward = (
            Stribeck(coulomb, max(static, coulomb), self.stribeck_velocity)
            for coulomb, static in (
                (self.coulomb_forward, self.static_forward),
                (self.coulomb_backward, self.static_backward),
            )
        )
        return forward, backward


def parse_friction(table: Any, where: str = "device.friction") -> AxisLaws | None:
    """Return the laws that a table with the tables ``x`` and ``y`` (`AxisFriction`) describes.

    Parameters
    ----------
    table : mapping or None
        An axis that is not in the table has no friction.
    where : str
        Name of the table in messages.

    Returns
    -------
    AxisLaws or None
        None without friction.

    Raises
    ------
    ConfigurationError
        If an axis or level is unknown, or a level is invalid.
    """
    if not isinstance(table, Mapping | None):
        raise ConfigurationError(f"{where} = {table!r}: must be a table such as {{x = {{coulomb_forward = 1.0}}}}.")
    if not table:
        return None
    for axis, levels in table.items():
        if axis not in AXES:
            raise unknown_name("axis", f"{where}.{axis}", [f"{where}.{name}" for name in AXES])
        if not isinstance(levels, Mapping):
            raise ConfigurationError(f"{where}.{axis} = {levels!r}: must be a table such as {{coulomb_forward = 1.0}}.")
    x, y = (build(AxisFriction, table.get(axis, {}), f"{where}.{axis}").laws for axis in AXES)
    return (x, y) if any(law.breakaway_force > 0.0 for law in (*x, *y)) else None


def law_records(laws: AxisLaws) -> NDArray[Any]:
    """Return the kernel records of the laws, (2, 2) of dtype `haptics.friction.kernels.LAW`."""
    return np.array([[law.record[0] for law in axis] for axis in laws], dtype=LAW)


def law_kinds(laws: AxisLaws) -> tuple[int, ...]:
    """Return the sorted kinds of the laws."""
    return tuple(sorted({int(law.record["kind"][0]) for axis in laws for law in axis}))


@functools.cache
def _sliding(kinds: tuple[int, ...]) -> Callable[..., Any]:
    """Return the kernel that solves only laws of these kinds while sliding."""
    first, others = SLIDING[kinds[0]], kinds[1:]
    if not others:
        return first
    kind, rest = kinds[0], _sliding(others)

    @kernel
    def sliding(law: Any, r: float, Z: float) -> Any:
        return first(law, r, Z) if law.kind == kind else rest(law, r, Z)

    return sliding


@inlined_kernel
def _frictionless(law: Any, x: float, Z: float) -> tuple[float, float]:
    return 0.0, x


@functools.cache
def axis_friction(kinds: tuple[int, ...]) -> Callable[..., Any]:
    """Return the kernel ``(law, x, Z)`` of friction along one axis, for laws of these `kinds` only.

    `kinds` is the result of `law_kinds`. The kernel returns (f, v) with f = Phi_Z(x) and v = x - Z f; v is exactly zero
    while sticking; (16). The law must be the law for the direction of x, which is also the direction of motion, because
    Z f never exceeds x. Without kinds there is no friction.
    """
    if not kinds:
        return _frictionless
    sliding = _sliding(kinds)

    @inlined_kernel
    def friction(law: Any, x: float, Z: float) -> tuple[float, float]:
        r = abs(x)
        if r <= Z * law.numbers[0]:
            return x / Z, 0.0
        g, s = sliding(law, r, Z)
        return math.copysign(g, x), math.copysign(s, x)

    return friction


# --- friction in a parameter file -------------------------------------------------------------------------------------
#
# Intrinsic friction of a device, from the parameter file of its identification.
#
# The tables ``[joint.x.friction]`` and ``[joint.y.friction]`` of linear joints are read, with levels in newtons::
#
#     [provenance]
#     device = "virtual-joystick virtual, seed 1"
#
#     [joint.x]
#     rotary = false
#
#     [joint.x.friction]
#     model = "stribeck-asymmetric"
#     coulomb_force_forward_n = 1.2       # or coulomb_force_n, for both directions
#     coulomb_force_backward_n = 0.9
#     static_force_forward_n = 1.8        # only where the friction falls
#     static_force_backward_n = 1.5
#     stribeck_velocity_m_per_s = 0.01
#     viscosity_ns_per_m = 1.0            # or viscosity_forward_ns_per_m, viscosity_backward_ns_per_m
#
#     [joint.x.friction.interval_95]      # if known
#     coulomb_force_forward_n = [1.19, 1.21]
#
# A joint of an arm is rotary (``rotary = true``) and has torques: ``coulomb_torque_nm``, ``viscosity_nms_per_rad``.
#
# While the handle moves, a constant force (``offset_force_n``) is indistinguishable from friction that is larger
# forwards than backwards. It is treated as friction, so that no force is added at rest.

JOINTS = ("1", "2")

_Joint = tuple[tuple[Law, Law], float]  # laws for motion forwards and backwards, and largest uncertainty of a level


@dataclass(frozen=True)
class HandleFriction:
    """Identified friction of a handle.

    Attributes
    ----------
    laws : AxisLaws
        Laws by axis and direction.
    doubt : float
        Uncertainty of the largest level [N], from the intervals in the file.
    """

    laws: AxisLaws
    doubt: float


def read_own_friction(path: str, device: str, identity: str = "") -> HandleFriction:
    """Read the friction of a device.

    Parameters
    ----------
    path : str
        Path of the file.
    device : str
        Name of the device that the file must belong to.
    identity : str
        Identity of the individual device; empty to accept any device of this name.

    Raises
    ------
    ConfigurationError
        If the file cannot be read, belongs to another device, or contains a missing or invalid value. The message
        contains the file and the key.
    """
    (x, doubt_x), (y, doubt_y) = _read(path, device, identity, AXES, rotary=False)
    return HandleFriction((x, y), max(doubt_x, doubt_y))


def read_joint_friction(path: str, device: str) -> AxisLaws:
    """Read the friction of joints 1 and 2 of an arm: laws of torques [N m] at speeds [rad/s].

    Parameters
    ----------
    path : str
        Path of the file.
    device : str
        Name of a device for which such a file can be created.

    Raises
    ------
    ConfigurationError
        If the file cannot be read, or contains a missing or invalid value. The message contains the file and the key.
    """
    (first, _), (second, _) = _read(path, device, None, JOINTS, rotary=True)
    return first, second


def _read(path: str, device: str, identity: str | None, names: tuple[str, ...], *, rotary: bool) -> list[_Joint]:
    """Return the friction of the joints with these names; an identity of None accepts any device."""
    content = read_toml(
        path, f"friction_parameters = {path!r}", f"haptics calibrate friction --device {device} makes such a file"
    )
    try:
        found_device = str(subtable(content, "provenance").get("device", "")) if identity is not None else ""
        wanted = f"{device} {identity or ''}".strip()
        if found_device and not (found_device == wanted if identity else found_device.split(maxsplit=1)[0] == device):
            raise ConfigurationError(f"is of the device {found_device!r}; must be of {wanted!r}.")
        joints = subtable(content, "joint")
        if not set(names) & set(joints):
            raise ConfigurationError(
                f"has neither a table [joint.{names[0]}.friction] nor [joint.{names[1]}.friction]."
            )
        return [_friction_of(name, subtable(joints, name), rotary=rotary) for name in names]
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from error


def _friction_of(name: str, joint: dict[str, Any], *, rotary: bool) -> _Joint:
    """Return the friction of one joint in the file; a joint that is not in the file has no friction."""
    where = f"joint.{name}.friction"
    if joint.get("rotary", rotary) is not rotary:
        allowed = "true, for it turns" if rotary else "false, for it slides"
        raise ConfigurationError(f"joint.{name}.rotary = {joint['rotary']!r}: must be {allowed}.")
    table = subtable(joint, "friction")
    intervals = subtable(table, "interval_95")

    def number(name: str) -> float:
        return _finite(table[name], f"{where}.{name}")

    def level(name: str, dimension: str, direction: str, *, both: bool = True) -> float:
        """Return a level for a direction, or where allowed the level for `both` directions."""
        keys = [key(f"{name}_{direction}", dimension, rotary), *([key(name, dimension, rotary)] if both else [])]
        found = next((each for each in keys if each in table), None)
        if found is None:
            raise ConfigurationError(f"{where}.{keys[-1]} is missing.")
        value = number(found)
        if value < 0.0:
            raise ConfigurationError(
                f"{where}.{found} = {value:g}: is no friction; must be at least 0: identify it again "
                "without --unbounded."
            )
        return value

    def law(direction: str) -> Law:
        if not table:
            return CoulombViscous(0.0, 0.0)
        speed, offset = key("stribeck_velocity", "velocity", rotary), key("offset", "force", rotary)
        more = number(offset) if offset in table else 0.0
        if direction == "backward":
            more = -more
        dry = 0.0 if table.get("model") == "viscous" else level("coulomb", "force", direction)
        coulomb = max(dry + more, 0.0)
        viscosity = level("viscosity", "viscosity", direction)
        if speed not in table:
            return CoulombViscous(coulomb, viscosity)
        static = max(level("static", "force", direction, both=False) + more, 0.0)
        if static <= coulomb:  # use the lower level of a rising law, so that friction is not overcompensated
            return CoulombViscous(static, viscosity)
        if not number(speed) > 0.0:
            raise ConfigurationError(f"{where}.{speed} = {number(speed):g}: must be greater than 0.")
        shape = GaussianStribeck if "gaussian" in str(table.get("model", "")) else Stribeck
        return shape(coulomb, static, number(speed), viscosity)

    laws, doubts = (law("forward"), law("backward")), list[float]()
    levels = tuple(key(level_name, "force", rotary).rpartition("_")[0] for level_name in ("coulomb", "static"))
    for known, interval in intervals.items():
        if known.startswith(levels) and known in table:
            place = f"{where}.interval_95.{known}"
            if not isinstance(interval, list) or len(interval) != 2:
                raise ConfigurationError(f"{place} = {interval!r}: must be two numbers.")
            doubts.append(_finite(interval[1], place) - number(known))
    return laws, max(doubts, default=0.0)


def _finite(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigurationError(f"{where} = {value!r}: must be a finite number.")
    return float(value)
