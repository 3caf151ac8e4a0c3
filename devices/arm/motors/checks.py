"""Checks of a drive before its motors may move; homing, arming and disarming them."""

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
"""A drive has two."""

IDLE, CLOSED_LOOP = 1, 8
"""States of an axis."""

POSITION_CONTROL, PASS_THROUGH = 3, 1
"""Control mode and input mode in which positions are followed as they come."""

_MISLEADING = {
    "config.enable_step_dir": "pulses at its pins would move the motor besides our commands",
    "controller.config.circular_setpoints": "a position would stand for any turn, and the motor could go the other way",
}
"""Settings of an axis with which an arm cannot be driven, and why."""

_FIRST_ABSOLUTE = 256
_SETTLE = 1.0
_POLL = 2e-3
_STILL = 0.05
"""A motor that turns no faster is at rest [turn/s]."""

_HOMED_WITHIN = 2.5
"""Counts between where a motor was said to be and where it then says it is."""


def trouble(drive: Drive) -> str:
    """Return what is wrong with the drive and its axes, in one line; empty if nothing is."""
    told = [explain(axis, _errors(drive, axis)) for axis in AXES]
    system = in_words(drive.get("error"), SYSTEM)
    return "; ".join([*filter(None, told), *([f"the drive: {', '.join(system)}"] if system else [])])


def _errors(drive: Drive, axis: int) -> dict[str, int]:
    return {part: drive.get(f"axis{axis}.{part}.error" if part else f"axis{axis}.error") for part in PARTS}


def require_usable(drive: Drive, settings: OdriveSettings) -> None:
    """Make sure that the drive is one that is known, has power, no errors, and is calibrated.

    Its motors are let go, whatever they were doing. Errors of an earlier run are cleared if they are only that its
    watchdog has expired, or if the settings say so.

    Raises
    ------
    DeviceOpenError
        Saying what is not so, and what to do.
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
    """Return firmware and own limits of the drive; raise `DeviceOpenError` if these are below the `demands`."""
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
    """Make sure that a position means the same turn always, and that nobody else may move the motors."""
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
    """Tell whether both encoders know where they are when the drive is switched on."""
    return all(drive.get(f"axis{axis}.encoder.config.mode") >= _FIRST_ABSOLUTE for axis in AXES)


def set_home(drive: Drive, turns: Vector) -> None:
    """Have the encoders count so that the motors, which are at rest and loose, are at `turns`, (2,).

    Raises
    ------
    DeviceOpenError
        If they are not at rest, or do not count from there afterwards.
    """
    for axis in AXES:
        if drive.get(f"axis{axis}.current_state") != IDLE:
            raise DeviceOpenError("the motors are armed: disarm them, then home the arm by hand.")
        if abs(drive.get(f"axis{axis}.encoder.vel_estimate")) > _STILL:
            raise DeviceOpenError("the arm moved while it was being homed: hold it still and start again.")
    for axis in AXES:
        counts = drive.get(f"axis{axis}.encoder.config.cpr")
        drive.call(f"axis{axis}.encoder.set_linear_count", round(float(turns[axis]) * counts))
        time.sleep(_POLL)  # it is the next control iteration that tells
        found = drive.get(f"axis{axis}.encoder.pos_estimate")
        if not abs(found - turns[axis]) * counts <= _HOMED_WITHIN:
            raise DeviceOpenError(
                f"axis {axis} of the drive is at {found:.5g} turns after it was homed to {turns[axis]:.5g}: check its "
                "encoder's cable and coupling, hold the arm still and start again."
            )


def energise(drive: Drive, settings: OdriveSettings) -> float:
    """Arm both motors where they are, with the drive's watchdogs on: it disarms them if the host falls silent.

    Returns
    -------
    float
        The speed beyond which the drive lets go of a motor, too [turn/s].

    Raises
    ------
    DeviceOpenError
        If they do not; they are let go again.
    """
    try:
        for axis in AXES:
            _set_up(drive, axis, settings)
        fastest = _fastest(drive)
        for axis in AXES:  # in this order: enabling it with no time left is an error at once
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
    """Disarm both motors, make sure of it, and switch the watchdogs off.

    Raises
    ------
    DeviceFault
        If it is not certain that they are disarmed.
    """
    for axis in AXES:
        drive.set(f"axis{axis}.controller.input_vel", 0.0)
        drive.set(f"axis{axis}.controller.input_torque", 0.0)
        drive.set(f"axis{axis}.requested_state", IDLE)
    _settle(drive, IDLE)
    for axis in AXES:
        drive.set(f"axis{axis}.config.enable_watchdog", False)


def _settle(drive: Drive, state: int) -> None:
    """Wait until both axes are in a state; they are kept alive meanwhile."""
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
