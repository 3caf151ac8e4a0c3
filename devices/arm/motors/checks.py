"""Checks of a drive before its motors may move; homing, arming and disarming."""

from __future__ import annotations

import time
from typing import Any

from devices.arm.motors.errors import PARTS, SYSTEM, WATCHDOG_EXPIRED, explain, in_words
from devices.arm.motors.limits import NAMES, Demands, read_limits, require_enough
from devices.arm.motors.native.drive import Drive
from devices.arm.motors.settings import OdriveSettings
from haptics.device import Vector
from haptics.errors import DeviceFault, DeviceOpenError

AXES = (0, 1)
"""Axes of a drive."""

IDLE, CLOSED_LOOP = 1, 8
"""States of an axis."""

POSITION_CONTROL, PASS_THROUGH = 3, 1
"""Control mode and input mode in which positions are followed without a trajectory."""

_MISLEADING = {
    "config.enable_step_dir": "pulses at its pins would move the motor besides our commands",
    "controller.config.circular_setpoints": "a position would stand for any turn, and the motor could go the other way",
}
"""Settings of an axis that are incompatible with driving an arm, and the reason."""

_FIRST_ABSOLUTE = 256
_SETTLE = 1.0
_POLL = 2e-3
_STILL = 0.05
"""Maximum speed of a motor at rest [turn/s]."""

_HOMED_WITHIN = 2.5
"""Tolerance between the position set by homing and the position read afterwards [encoder counts]."""


def trouble(drive: Drive) -> str:
    """Return a description of the errors of drive and axes, in one line; empty if none."""
    told = [explain(axis, _errors(drive, axis)) for axis in AXES]
    system = in_words(drive.get("error"), SYSTEM)
    return "; ".join([*filter(None, told), *([f"the drive: {', '.join(system)}"] if system else [])])


def _errors(drive: Drive, axis: int) -> dict[str, int]:
    return {part: drive.get(f"axis{axis}.{part}.error" if part else f"axis{axis}.error") for part in PARTS}


def require_usable(drive: Drive, settings: OdriveSettings) -> None:
    """Require a supported drive with power, without errors, and with calibrated motors and encoders.

    Its motors are disarmed in any case. Errors of an earlier run are cleared if they are only expired watchdogs, or if
    the settings allow it.

    Raises
    ------
    DeviceOpenError
        With the problem and its remedy.
    """
    _require_version(drive)
    voltage = drive.get("vbus_voltage")
    if not settings.min_voltage <= voltage <= settings.max_voltage:
        raise DeviceOpenError(
            f"the drive's supply has {voltage:.1f} V, it must have {settings.min_voltage:g} to "
            f"{settings.max_voltage:g} V: switch it on, or check it."
        )
    rest(drive)
    found = trouble(drive)
    if found:
        _clear(drive, found, settings.clear_errors)
    _require_plain_positions(drive)
    for axis in AXES:
        for name, what in (("motor.is_calibrated", "motor"), ("encoder.is_ready", "encoder")):
            if not drive.get(f"axis{axis}.{name}"):
                raise DeviceOpenError(
                    f"axis {axis} of the drive: its {what} is not calibrated; calibrate it with the maker's tool and "
                    "save that, or find its index, then start again."
                )


def require_limits(drive: Drive, settings: OdriveSettings, demands: Demands) -> dict[str, Any]:
    """Return firmware and limits of the drive; raise `DeviceOpenError` if they are below the `demands`."""
    facts: dict[str, Any] = {"firmware": _version(drive)}
    for axis in AXES:
        own = read_limits({name: drive.get(f"axis{axis}.{name}") for name in NAMES.values()}, axis, settings)
        require_enough(axis, own, demands, settings)
        facts[f"axis{axis}"] = own.facts
    return facts


def _version(drive: Drive) -> str:
    return ".".join(str(drive.get(f"fw_version_{part}")) for part in ("major", "minor", "revision"))


def _require_version(drive: Drive) -> None:
    version = _version(drive)
    if not version.startswith("0.5."):
        raise DeviceOpenError(f"the drive's firmware is {version}: this driver is for 0.5, and knows no other.")


def _require_plain_positions(drive: Drive) -> None:
    """Require that positions are absolute and that no other input can move the motors."""
    for axis in AXES:
        for name, why in _MISLEADING.items():
            path = f"axis{axis}.{name}"
            if path in drive.table.properties and drive.get(path):
                raise DeviceOpenError(f"{path} is true in the drive: {why}. Set it to false with the maker's tool.")


def _clear(drive: Drive, found: str, allowed: bool) -> None:
    only_watchdogs = not drive.get("error") and all(
        bits == (WATCHDOG_EXPIRED if part == "" else 0)
        for axis in AXES
        for part, bits in _errors(drive, axis).items()
        if bits
    )
    if not (allowed or only_watchdogs):
        raise DeviceOpenError(
            f"the drive has errors from earlier: {found}. See to it, then start again with "
            "device.motors.clear_errors=true."
        )
    drive.call("clear_errors")
    left = trouble(drive)
    if left:
        raise DeviceOpenError(f"the drive has errors that do not go away: {left}.")


def has_absolute_encoders(drive: Drive) -> bool:
    """Return True if both encoders are absolute, so that positions are known after power-on."""
    return all(drive.get(f"axis{axis}.encoder.config.mode") >= _FIRST_ABSOLUTE for axis in AXES)


def set_home(drive: Drive, turns: Vector) -> None:
    """Set the encoder counts so that the motors, at rest and disarmed, are at `turns`, (2,).

    Raises
    ------
    DeviceOpenError
        If they are not at rest, or the positions differ afterwards.
    """
    for axis in AXES:
        if drive.get(f"axis{axis}.current_state") != IDLE:
            raise DeviceOpenError("the motors are armed: disarm them, then home the arm by hand.")
        if abs(drive.get(f"axis{axis}.encoder.vel_estimate")) > _STILL:
            raise DeviceOpenError("the arm moved while it was being homed: hold it still and start again.")
    for axis in AXES:
        counts = drive.get(f"axis{axis}.encoder.config.cpr")
        drive.call(f"axis{axis}.encoder.set_linear_count", round(float(turns[axis]) * counts))
        time.sleep(_POLL)  # the estimate is updated in the next control iteration
        found = drive.get(f"axis{axis}.encoder.pos_estimate")
        if not abs(found - turns[axis]) * counts <= _HOMED_WITHIN:
            raise DeviceOpenError(
                f"axis {axis} of the drive is at {found:.5g} turns after it was homed to {turns[axis]:.5g}: check its "
                "encoder's cable and coupling, hold the arm still and start again."
            )


def energise(drive: Drive, settings: OdriveSettings) -> float:
    """Arm both motors at their present positions, with the drive's watchdogs enabled.

    Returns
    -------
    float
        Speed beyond which the drive disarms a motor [turn/s].

    Raises
    ------
    DeviceOpenError
        If they cannot be armed; they are disarmed again.
    """
    try:
        for axis in AXES:
            _set_up(drive, axis, settings)
        fastest = _fastest(drive)
        for axis in AXES:  # feed before enabling: a watchdog enabled without remaining time is an error at once
            drive.set(f"axis{axis}.config.watchdog_timeout", settings.watchdog)
            drive.call(f"axis{axis}.watchdog_feed")
            drive.set(f"axis{axis}.config.enable_watchdog", True)
        for axis in AXES:
            drive.set(f"axis{axis}.requested_state", CLOSED_LOOP)
        _settle(drive, CLOSED_LOOP)
        return fastest
    except DeviceFault as error:
        rest(drive)
        raise DeviceOpenError(f"the motors could not be armed: {error}") from error
    except BaseException:
        rest(drive)
        raise


def _set_up(drive: Drive, axis: int, settings: OdriveSettings) -> None:
    name = f"axis{axis}.controller"
    drive.set(f"{name}.config.control_mode", POSITION_CONTROL)
    drive.set(f"{name}.config.input_mode", PASS_THROUGH)
    for what, value, set_at_all in (
        ("vel_limit", settings.speed_limit, settings.speed_limit > 0.0),
        ("pos_gain", settings.position_gain, settings.position_gain > 0.0),
        ("vel_gain", settings.speed_gain, settings.speed_gain > 0.0),
        ("vel_integrator_gain", settings.integrator_gain, settings.integrator_gain >= 0.0),
    ):
        if set_at_all:
            drive.set(f"{name}.config.{what}", value)
    drive.set(f"{name}.input_vel", 0.0)
    drive.set(f"{name}.input_torque", 0.0)
    drive.set(f"{name}.input_pos", drive.get(f"axis{axis}.encoder.pos_estimate"))


def rest(drive: Drive) -> None:
    """Disarm both motors, verify it, and disable the watchdogs.

    Raises
    ------
    DeviceFault
        If the motors may still be armed.
    """
    for axis in AXES:
        drive.set(f"axis{axis}.controller.input_vel", 0.0)
        drive.set(f"axis{axis}.controller.input_torque", 0.0)
        drive.set(f"axis{axis}.requested_state", IDLE)
    _settle(drive, IDLE)
    for axis in AXES:
        drive.set(f"axis{axis}.config.enable_watchdog", False)


def _settle(drive: Drive, state: int) -> None:
    """Wait until both axes are in a state, feeding the watchdogs."""
    latest = time.monotonic() + _SETTLE
    while True:
        now = [drive.get(f"axis{axis}.current_state") for axis in AXES]
        if all(found == state for found in now):
            return
        found = trouble(drive) if state != IDLE else ""
        if found:
            raise DeviceFault(found)
        if time.monotonic() > latest:
            raise DeviceFault(f"its axes are in the states {now[0]} and {now[1]}, not in {state}")
        for axis in AXES:
            drive.call(f"axis{axis}.watchdog_feed")
        time.sleep(_POLL)


def _fastest(drive: Drive) -> float:
    limits = (
        drive.get(f"axis{axis}.controller.config.vel_limit")
        * drive.get(f"axis{axis}.controller.config.vel_limit_tolerance")
        for axis in AXES
    )
    return float(max(limits))
