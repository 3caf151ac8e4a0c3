"""Motor stage of two motors on an ODrive v3.6 with firmware 0.5, over USB: checks, homing, arming and disarming."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from devices.arm.motors.errors import WATCHDOG_EXPIRED
from devices.arm.motors.limits import NAMES, Demands, read_limits, require_enough
from devices.arm.motors.native import Drive, Line, connect, table_folder
from devices.arm.motors.rounds import NativeRounds, TextLine, TextRounds, axis_errors, trouble
from devices.arm.motors.settings import NATIVE, TEXT, WHERE, OdriveSettings
from devices.arm.motors.stage import (
    AXES,
    CLOSED_LOOP,
    IDLE,
    PASS_THROUGH,
    PATIENCE,
    POSITION_CONTROL,
    STILL,
    MotorStage,
    Rounds,
    require_voltage,
)
from devices.arm.motors.usb import Pipes, open_drive, open_serial_port
from devices.common.bus import TransferError
from haptics.device import Vector
from haptics.errors import DeviceFault, DeviceOpenError

_MISLEADING = {
    "config.enable_step_dir": "pulses at its pins would move the motor besides our commands",
    "controller.config.circular_setpoints": "a position would stand for any turn, and the motor could go the other way",
}
"""Settings of an axis that are incompatible with driving an arm, and the reason."""

_FIRST_ABSOLUTE = 256
"""First encoder mode whose positions are known after power-on."""

_STATE_TIMEOUT = 1.0
_POLL = 2e-3

_HOMED_WITHIN = 2.5
"""Tolerance between the position set by homing and the position read afterwards [encoder counts]."""


class OdriveStage(MotorStage):
    """Both axes of an ODrive in position control, which get position and speed in every tick.

    See `MotorStage`.

    Parameters
    ----------
    settings : mapping, optional
        Settings of `OdriveSettings`.
    period : float
        Period of a tick [s], from which the speed of commands without a speed is computed.
    backend : usb.backend.IBackend, optional
        USB backend instead of libusb.
    demands : Demands, optional
        Requirements of the arm on the motors; a drive with lower limits is refused.

    Raises
    ------
    ConfigurationError
        If a setting is invalid.

    Attributes
    ----------
    drive : Drive
        Access to the drive's properties and functions while the stage is open; not to be used between `arm` and
        `disarm`.
    """

    drive: Drive

    def __init__(
        self,
        settings: Mapping[str, Any] | None = None,
        *,
        period: float = 1e-3,
        backend: Any = None,
        demands: Demands | None = None,
    ) -> None:
        super().__init__(settings, period)
        self._backend, self._demands = backend, demands or Demands()
        self._pipes: Pipes | None = None
        self._text: TextLine | None = None

    def _connect(self) -> Line:
        self._pipes = open_drive(self.settings.serial, self._backend)
        return Line(self._pipes)

    def _examine(self, line: Line) -> None:
        assert self._pipes is not None
        drive = self.drive = connect(line, table_folder())
        require_usable(drive, self.settings)
        limits = require_limits(drive, self.settings, self._demands)
        self.facts = {"serial": self._pipes.serial, "transfers": self._pipes.transfers, **limits}
        self.homed = all(drive.get(f"axis{axis}.encoder.config.mode") >= _FIRST_ABSOLUTE for axis in AXES)

    def _set_home(self, turns: Vector) -> None:
        drive = self.drive
        for axis in AXES:
            if drive.get(f"axis{axis}.current_state") != IDLE:
                raise DeviceOpenError("the motors are armed: disarm them, then home the arm by hand.")
            if abs(drive.get(f"axis{axis}.encoder.vel_estimate")) > STILL:
                raise DeviceOpenError("the arm moved while it was being homed: hold it still and start again.")
        for axis in AXES:
            counts = drive.get(f"axis{axis}.encoder.config.cpr")
            drive.call(f"axis{axis}.encoder.set_linear_count", round(float(turns[axis]) * counts))
            time.sleep(_POLL)  # the estimate is updated in the next control iteration
            found = drive.get(f"axis{axis}.encoder.pos_estimate")
            if not abs(found - turns[axis]) * counts <= _HOMED_WITHIN:
                raise DeviceOpenError(
                    f"axis {axis} of the drive is at {found:.5g} turns after it was homed to {turns[axis]:.5g}: check "
                    "its encoder's cable and coupling, hold the arm still and start again."
                )

    def _energise(self) -> tuple[Rounds, float]:
        rounds = self._begin_rounds()  # before the watchdogs are enabled
        try:
            return rounds, arm_motors(self.drive, self.settings)
        except BaseException:
            self._end_text()
            raise

    def _begin_rounds(self) -> Rounds:
        """Return rounds in lines of text if the drive and the settings allow them, otherwise native rounds."""
        own, drive = self.settings, self.drive
        port = open_serial_port(self._pipes) if self._pipes is not None and own.protocol != NATIVE else None
        if port is not None:
            self._text = TextLine(port)
            rounds = TextRounds(drive, own, self._text)
            with contextlib.suppress(TransferError):
                rounds.poll(PATIENCE)
                return rounds
            self._end_text()
        if own.protocol == TEXT:
            raise DeviceOpenError(
                "the drive does not answer lines of text at its serial port on USB: end other programs that use "
                f"this port, or choose {WHERE}.protocol=native."
            )
        return NativeRounds(drive, own)

    def _end_text(self) -> None:
        text, self._text = self._text, None
        if text is not None:
            text.close()

    def _turns(self) -> Vector:
        return np.array([self.drive.get(f"axis{axis}.encoder.pos_estimate") for axis in AXES])

    def _disarm(self) -> None:
        self._end_text()
        disarm_motors(self.drive)


# --- checks -----------------------------------------------------------------------------------------------------------


def require_usable(drive: Drive, settings: OdriveSettings) -> None:
    """Require a supported drive with power, without errors, and with calibrated motors and encoders.

    Its motors are disarmed in any case. Errors of an earlier run are cleared if they are only expired watchdogs, or if
    the settings allow it. Positions must be absolute, and no other input may move the motors.

    Raises
    ------
    DeviceOpenError
        With the problem and its remedy.
    """
    version = _version(drive)
    if not version.startswith("0.5."):
        raise DeviceOpenError(f"the drive's firmware is {version}: this driver is for 0.5, and knows no other.")
    require_voltage(drive.get("vbus_voltage"), settings)
    disarm_motors(drive)
    found = trouble(drive)
    if found:
        _clear(drive, found, settings.clear_errors)
    for axis in AXES:
        for name, reason in _MISLEADING.items():
            path = f"axis{axis}.{name}"
            if path in drive.table.properties and drive.get(path):
                raise DeviceOpenError(f"{path} is true in the drive: {reason}. Set it to false with the maker's tool.")
    for axis in AXES:
        for name, part in (("motor.is_calibrated", "motor"), ("encoder.is_ready", "encoder")):
            if not drive.get(f"axis{axis}.{name}"):
                raise DeviceOpenError(
                    f"axis {axis} of the drive: its {part} is not calibrated; calibrate it with the maker's tool and "
                    "save that, or find its index, then start again."
                )


def _version(drive: Drive) -> str:
    return ".".join(str(drive.get(f"fw_version_{part}")) for part in ("major", "minor", "revision"))


def _clear(drive: Drive, found: str, allowed: bool) -> None:
    """Clear the errors `found` if they are only expired watchdogs, or if allowed."""
    only_watchdogs = not drive.get("error") and all(
        bits == (WATCHDOG_EXPIRED if part == "" else 0)
        for axis in AXES
        for part, bits in axis_errors(drive, axis).items()
        if bits
    )
    if not (allowed or only_watchdogs):
        raise DeviceOpenError(
            f"the drive has errors from earlier: {found}. See to it, then start again with {WHERE}.clear_errors=true."
        )
    drive.call("clear_errors")
    left = trouble(drive)
    if left:
        raise DeviceOpenError(f"the drive has errors that do not go away: {left}.")


def require_limits(drive: Drive, settings: OdriveSettings, demands: Demands) -> dict[str, Any]:
    """Return firmware and limits of the drive; raise `DeviceOpenError` if they are below the `demands`."""
    facts: dict[str, Any] = {"firmware": _version(drive)}
    for axis in AXES:
        own = read_limits({name: drive.get(f"axis{axis}.{name}") for name in NAMES.values()}, axis, settings)
        require_enough(axis, own, demands, settings)
        facts[f"axis{axis}"] = own.facts
    return facts


# --- arming and disarming ---------------------------------------------------------------------------------------------


def arm_motors(drive: Drive, settings: OdriveSettings) -> float:
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
        controllers = [f"axis{axis}.controller.config" for axis in AXES]
        limits = [drive.get(f"{name}.vel_limit") * drive.get(f"{name}.vel_limit_tolerance") for name in controllers]
        for axis in AXES:  # feed before enabling: a watchdog enabled without remaining time is an error at once
            drive.set(f"axis{axis}.config.watchdog_timeout", settings.watchdog)
            drive.call(f"axis{axis}.watchdog_feed")
            drive.set(f"axis{axis}.config.enable_watchdog", True)
        for axis in AXES:
            drive.set(f"axis{axis}.requested_state", CLOSED_LOOP)
        _await_state(drive, CLOSED_LOOP)
        return float(max(limits))
    except DeviceFault as error:
        disarm_motors(drive)
        raise DeviceOpenError(f"the motors could not be armed: {error}") from error
    except BaseException:
        disarm_motors(drive)
        raise


def _set_up(drive: Drive, axis: int, settings: OdriveSettings) -> None:
    """Configure the controller of an axis, and command its present position."""
    name = f"axis{axis}.controller"
    drive.set(f"{name}.config.control_mode", POSITION_CONTROL)
    drive.set(f"{name}.config.input_mode", PASS_THROUGH)
    for setting, value, given in (
        ("vel_limit", settings.speed_limit, settings.speed_limit > 0.0),
        ("pos_gain", settings.position_gain, settings.position_gain > 0.0),
        ("vel_gain", settings.speed_gain, settings.speed_gain > 0.0),
        ("vel_integrator_gain", settings.integrator_gain, settings.integrator_gain >= 0.0),
    ):
        if given:
            drive.set(f"{name}.config.{setting}", value)
    drive.set(f"{name}.input_vel", 0.0)
    drive.set(f"{name}.input_torque", 0.0)
    drive.set(f"{name}.input_pos", drive.get(f"axis{axis}.encoder.pos_estimate"))


def disarm_motors(drive: Drive) -> None:
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
    _await_state(drive, IDLE)
    for axis in AXES:
        drive.set(f"axis{axis}.config.enable_watchdog", False)


def _await_state(drive: Drive, state: int) -> None:
    """Wait until both axes are in a state, feeding the watchdogs."""
    latest = time.monotonic() + _STATE_TIMEOUT
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
