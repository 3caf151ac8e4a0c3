"""Limits of the drive, and their comparison with the requirements of the arm.

A drive clips values beyond its limits without an error: an arm whose motors get less current than its settings assume
does not follow its reference, and motors that exceed their speed limit are disarmed in mid-motion.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from devices.arm.motors.settings import WHERE, OdriveSettings
from haptics.errors import DeviceOpenError

_ENOUGH = 1.0 - 1e-3
"""Relative tolerance of limits, because the drive rounds them to single precision."""

_SINGLE = 1e-6
"""Relative resolution of single precision, for rounding."""

_SAVED = "odrv0.save_configuration()"


@dataclass(frozen=True)
class Demands:
    """Requirements of an arm on its motors; 0 where unknown.

    Attributes
    ----------
    torque : float
        Maximum torque at a motor's shaft [N m].
    speeds : (float, float)
        Maximum speed of each motor [turn/s].
    torque_setting, speed_setting : str
        Settings from which they follow, for messages.
    """

    torque: float = 0.0
    speeds: tuple[float, float] = (0.0, 0.0)
    torque_setting: str = ""
    speed_setting: str = ""


@dataclass(frozen=True)
class AxisLimits:
    """Limits of an axis, as configured in its drive.

    Attributes
    ----------
    current_limit : float
        Current limit of the motor [A].
    torque_constant : float
        Torque per current [N m/A].
    torque_limit : float
        Torque limit of the motor [N m]; infinite where only the current is limited.
    speed_limit : float
        Speed limit of the controller [turn/s].
    limits_speed : bool
        Whether the controller clips speeds to the limit.
    minds_overspeed : bool
        Whether the motor is disarmed beyond `overspeed` times the limit.
    overspeed : float
        Factor on the speed limit beyond which the motor is disarmed.
    """

    current_limit: float
    torque_constant: float
    torque_limit: float = math.inf
    speed_limit: float = math.inf
    limits_speed: bool = True
    minds_overspeed: bool = True
    overspeed: float = 1.2

    @property
    def torque(self) -> float:
        """Maximum torque of the drive [N m]."""
        return min(self.current_limit * self.torque_constant, self.torque_limit)

    @property
    def speed(self) -> float:
        """Maximum speed that the drive allows [turn/s]."""
        held = self.speed_limit if self.limits_speed else math.inf
        return min(held, self.speed_limit * self.overspeed if self.minds_overspeed else math.inf)

    @property
    def facts(self) -> dict[str, float | bool | None]:
        """Limits for a recording: units in the names, None for unlimited values."""
        units = {"current_limit": "a", "torque_constant": "nm_per_a", "torque_limit": "nm", "speed_limit": "turn_per_s"}
        return {
            f"{name}_{units[name]}" if name in units else name: value if math.isfinite(value) else None
            for name, value in asdict(self).items()
        }


NAMES: Mapping[str, str] = {
    "current_limit": "motor.config.current_lim",
    "torque_constant": "motor.config.torque_constant",
    "torque_limit": "motor.config.torque_lim",
    "speed_limit": "controller.config.vel_limit",
    "limits_speed": "controller.config.enable_vel_limit",
    "minds_overspeed": "controller.config.enable_overspeed_error",
    "overspeed": "controller.config.vel_limit_tolerance",
}
"""Limits by their property in an axis of firmware 0.5."""


def read_limits(properties: Mapping[str, Any], axis: int, settings: OdriveSettings) -> AxisLimits:
    """Return the limits of an axis, including the limits that the settings replace for the run.

    Parameters
    ----------
    properties : mapping
        Value of each property in the values of `NAMES`.
    axis : int
        Number of the axis.
    settings : OdriveSettings
        May contain a speed limit.

    Raises
    ------
    DeviceOpenError
        If a limit is not greater than 0.
    """
    found = {limit: properties[name] for limit, name in NAMES.items()}
    if settings.speed_limit > 0.0:
        found["speed_limit"] = settings.speed_limit
    for limit in ("current_limit", "torque_constant", "torque_limit", "speed_limit"):
        if not found[limit] > 0.0:
            raise DeviceOpenError(
                f"axis{axis}.{NAMES[limit]} is {found[limit]:g} in the drive: it must be more than 0. In odrivetool: "
                f"odrv0.axis{axis}.{NAMES[limit]} = VALUE; {_SAVED}."
            )
    return AxisLimits(**found)


def require_enough(axis: int, own: AxisLimits, demands: Demands, settings: OdriveSettings) -> None:
    """Require that the limits of an axis meet the requirements of the arm.

    Raises
    ------
    DeviceOpenError
        With the limit that is too low, its required value, and the commands to type.
    """
    if not own.torque >= _ENOUGH * demands.torque:
        raise _too_weak(axis, own, demands)
    if not own.speed >= _ENOUGH * demands.speeds[axis]:
        raise _too_slow(axis, own, demands, settings)


def _too_weak(axis: int, own: AxisLimits, demands: Demands) -> DeviceOpenError:
    """Return the error for a torque limit that is too low."""
    by_current = own.current_limit * own.torque_constant
    lines, reasons = [], []
    if not by_current >= _ENOUGH * demands.torque:
        name = f"axis{axis}.{NAMES['current_limit']}"
        reasons.append(
            f"{name} is {own.current_limit:g} A, with axis{axis}.{NAMES['torque_constant']} = "
            f"{own.torque_constant:g} N m/A that is {by_current:.3g} N m"
        )
        lines.append(f"odrv0.{name} = {_rounded(demands.torque / own.torque_constant, up=True):g}")
    if not own.torque_limit >= _ENOUGH * demands.torque:
        name = f"axis{axis}.{NAMES['torque_limit']}"
        reasons.append(f"{name} is {own.torque_limit:g} N m")
        lines.append(f"odrv0.{name} = {_rounded(demands.torque, up=True):g}")
    return DeviceOpenError(
        f"the drive gives its motor less torque than {demands.torque_setting} says, {demands.torque:g} N m: "
        f"{' and '.join(reasons)}. If motor and drive stand it, type in odrivetool: {'; '.join([*lines, _SAVED])}. "
        f"Else set {demands.torque_setting} to {_rounded(own.torque, up=False):g}."
    )


def _too_slow(axis: int, own: AxisLimits, demands: Demands, settings: OdriveSettings) -> DeviceOpenError:
    """Return the error for a speed limit that is too low."""
    needed = demands.speeds[axis]
    name = f"axis{axis}.{NAMES['speed_limit']}"
    if settings.speed_limit > 0.0:
        where, remedy = f"{WHERE}.speed_limit", f"set {WHERE}.speed_limit to {_rounded(needed, up=True):g}"
    else:
        where = f"{name} in the drive"
        command = f"odrv0.{name} = {_rounded(needed, up=True):g}"
        remedy = f"type in odrivetool: {command}; {_SAVED}; or set {WHERE}.speed_limit to that"
    return DeviceOpenError(
        f"{where} is {own.speed_limit:g} turn/s, and {demands.speed_setting} takes the motor of axis {axis} to "
        f"{needed:.3g} turn/s. If motor and gear stand it, {remedy}. Else lower "
        f"{demands.speed_setting.split(' ')[0]} to {own.speed / needed:.2g} times what it is."
    )


def _rounded(value: float, *, up: bool) -> float:
    """Return `value` rounded up or down to three significant digits."""
    step = 10.0 ** (math.floor(math.log10(value)) - 2)
    if up:
        return math.ceil(value / step * (1.0 - _SINGLE)) * step
    return math.floor(value / step * (1.0 + _SINGLE)) * step
