"""A device's own friction, from the parameter file of its identification.

Read are the tables ``[joint.x.friction]`` and ``[joint.y.friction]`` of joints that slide, with levels in newtons::

    [provenance]
    device = "virtual-joystick virtual, seed 1"

    [joint.x]
    rotary = false

    [joint.x.friction]
    model = "stribeck-asymmetric"
    coulomb_force_forward_n = 1.2       # or coulomb_force_n, for both directions
    coulomb_force_backward_n = 0.9
    static_force_forward_n = 1.8        # only where the friction falls
    static_force_backward_n = 1.5
    stribeck_velocity_m_per_s = 0.01
    viscosity_ns_per_m = 1.0            # or viscosity_forward_ns_per_m, viscosity_backward_ns_per_m

    [joint.x.friction.interval_95]      # as far as they are known
    coulomb_force_forward_n = [1.19, 1.21]

A joint of an arm turns (``rotary = true``) and has torques: ``coulomb_torque_nm``, ``viscosity_nms_per_rad``.

A constant force (``offset_force_n``) cannot be told from friction that is larger forwards than backwards, as long as
the handle moves; it is taken for that, so that nothing is added at rest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from devices.common.friction import AXES, DIRECTIONS, AxisLaws
from devices.common.parameter_keys import key
from haptics.errors import ConfigurationError
from haptics.friction.law import Law
from haptics.friction.laws import CoulombViscous, GaussianStribeck, Stribeck
from haptics.reading import read_toml

JOINTS = ("1", "2")


@dataclass(frozen=True)
class OwnFriction:
    """What is known of the friction of a handle.

    Attributes
    ----------
    laws : AxisLaws
        By axis and direction.
    doubt : float
        How much more the largest level may be than was found [N], by the intervals in the file.
    """

    laws: AxisLaws
    doubt: float

    @property
    def breakaway_force(self) -> float:
        """The largest level [N]."""
        return max(law.breakaway_force for laws in self.laws for law in laws)

    def least_friction(self, share: float) -> float:
        """Return the residual friction where a `share` is compensated [N]: in the worst direction, doubts included."""
        return (1.0 - share) * self.breakaway_force + self.doubt

    @property
    def viscosity(self) -> float:
        """The largest viscosity of all axes and directions [N s/m]."""
        return max(law.slopes[1] for laws in self.laws for law in laws)


def read_own_friction(path: str, device: str, identity: str = "") -> OwnFriction:
    """Read the friction of a device.

    Parameters
    ----------
    path : str
        The file.
    device : str
        Name of the device that it must belong to.
    identity : str
        What tells this very device from its siblings; empty where it does not matter.

    Raises
    ------
    ConfigurationError
        If it cannot be read, belongs to another device, or a value in it is missing or wrong: names file and key.
    """
    x, y = _read(path, device, identity, AXES, rotary=False)
    return OwnFriction((x.laws(), y.laws()), max(x.doubt(), y.doubt()))


def read_joint_friction(path: str, device: str) -> AxisLaws:
    """Read the friction of the joints of an arm, 1 and 2: laws of torques [N m] at speeds [rad/s].

    Parameters
    ----------
    path : str
        The file.
    device : str
        Name of a device that makes one.

    Raises
    ------
    ConfigurationError
        If it cannot be read, or a value in it is missing or wrong: names file and key.
    """
    first, second = _read(path, device, None, JOINTS, rotary=True)
    return first.laws(), second.laws()


def _read(path: str, device: str, identity: str | None, names: tuple[str, ...], *, rotary: bool) -> list[_Friction]:
    """Return what the file has of the joints of these names; without an identity it may be of any device."""
    content = read_toml(
        path, f"friction_parameters = {path!r}", f"haptics calibrate friction --device {device} makes such a file"
    )
    try:
        if identity is not None:
            _require_device(content, device, identity)
        joints = _table(content, "joint")
        if not set(names) & set(joints):
            raise ConfigurationError(
                f"has neither a table [joint.{names[0]}.friction] nor [joint.{names[1]}.friction]."
            )
        found = [_Friction(name, _table(joints, name), rotary=rotary) for name in names]
        for friction in found:
            friction.laws()  # complains in time, with the name of the file
            friction.doubt()
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from error
    return found


def _require_device(content: Mapping[str, Any], device: str, identity: str) -> None:
    found = str(_table(content, "provenance").get("device", ""))
    wanted = f"{device} {identity}".strip()
    if found and not (found == wanted if identity else found.split(maxsplit=1)[0] == device):
        raise ConfigurationError(f"is of the device {found!r}; must be of {wanted!r}.")


def _table(tables: Mapping[str, Any], name: str) -> dict[str, Any]:
    table = tables.get(name, {})
    if not isinstance(table, dict):
        raise ConfigurationError(f"{name} = {table!r}: must be a table.")
    return table


class _Friction:
    """The friction of one joint as the file has it; a joint that the file does not have has none."""

    def __init__(self, name: str, joint: dict[str, Any], *, rotary: bool) -> None:
        self._where = f"joint.{name}.friction"
        if joint.get("rotary", rotary) is not rotary:
            kind, what = ("true", "turns") if rotary else ("false", "slides")
            raise ConfigurationError(f"joint.{name}.rotary = {joint['rotary']!r}: must be {kind}, for it {what}.")
        self._rotary = rotary
        self._table = _table(joint, "friction")
        self._intervals = _table(self._table, "interval_95")

    def laws(self) -> tuple[Law, Law]:
        """Return the laws forwards and backwards."""
        forward, backward = map(self._law, DIRECTIONS)
        return forward, backward

    def doubt(self) -> float:
        """Return by how much a level may be larger than was found."""
        levels = tuple(self._key(name, "force").rpartition("_")[0] for name in ("coulomb", "static"))
        keys = [key for key in self._intervals if key.startswith(levels)]
        return max((self._upper(key) - self._number(key) for key in keys if key in self._table), default=0.0)

    def _law(self, direction: str) -> Law:
        if not self._table:
            return CoulombViscous(0.0, 0.0)
        table, speed = self._table, self._key("stribeck_velocity", "velocity")
        offset = self._key("offset", "force")
        more = self._number(offset) if offset in table else 0.0
        if direction == "backward":
            more = -more
        dry = 0.0 if table.get("model") == "viscous" else self._of(direction, "coulomb", "force")
        coulomb = max(dry + more, 0.0)
        viscosity = self._of(direction, "viscosity", "viscosity")
        if speed not in table:
            return CoulombViscous(coulomb, viscosity)
        static = max(self._level(self._key(f"static_{direction}", "force")) + more, 0.0)
        if static <= coulomb:  # of a law that rises the lowest level counts: less is compensated than could be
            return CoulombViscous(static, viscosity)
        if not self._number(speed) > 0.0:
            raise ConfigurationError(f"{self._where}.{speed} = {self._number(speed):g}: must be greater than 0.")
        shape = GaussianStribeck if "gaussian" in str(table.get("model", "")) else Stribeck
        return shape(coulomb, static, self._number(speed), viscosity)

    def _key(self, name: str, dimension: str) -> str:
        return key(name, dimension, self._rotary)

    def _of(self, direction: str, name: str, dimension: str) -> float:
        """Return a level in a direction, or the one that holds for both."""
        return self._level(self._key(f"{name}_{direction}", dimension), self._key(name, dimension))

    def _level(self, *keys: str) -> float:
        """Return the first of the keys that is there."""
        found = next((each for each in keys if each in self._table), None)
        if found is None:
            raise ConfigurationError(f"{self._where}.{keys[-1]} is missing.")
        value = self._number(found)
        if value < 0.0:
            raise ConfigurationError(
                f"{self._where}.{found} = {value:g}: is no friction; must be at least 0: identify it again "
                "without --unbounded."
            )
        return value

    def _number(self, key: str) -> float:
        return _finite(self._table[key], f"{self._where}.{key}")

    def _upper(self, key: str) -> float:
        where = f"{self._where}.interval_95.{key}"
        interval = self._intervals[key]
        if not isinstance(interval, list) or len(interval) != 2:
            raise ConfigurationError(f"{where} = {interval!r}: must be two numbers.")
        return _finite(interval[1], where)


def _finite(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigurationError(f"{where} = {value!r}: must be a finite number.")
    return float(value)
