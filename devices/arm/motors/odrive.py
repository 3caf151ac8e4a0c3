"""Motor stage of two motors on an ODrive v3.6 with firmware 0.5, over USB.

It checks, homes, arms and disarms the motors. In a round, commands go out, and positions, speeds and one state come in.
With the native protocol a round takes about ten transfers out and five in; with a queue (`devices.common.usb_queue`)
they are in flight at once. Lines of text, which firmware 0.5 accepts at an additional serial port, need one transfer in
each direction.
"""

from __future__ import annotations

import contextlib
import math
import struct
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from devices.arm.motors import stage
from devices.arm.motors.errors import PARTS, SYSTEM, WATCHDOG_EXPIRED, explain, in_words
from devices.arm.motors.native import Drive, Line, connect, table_folder, wait_all
from devices.arm.motors.settings import NATIVE, TEXT, WHERE, Demands, OdriveSettings
from devices.arm.motors.stage import AXES, IDLE, Answer, Command, MotorStage, Rounds
from devices.arm.motors.usb import Pipes, open_drive, open_serial_port
from devices.common.bus import TransferError, Trouble
from haptics.device import Vector
from haptics.errors import DeviceFault, DeviceOpenError

# --- rounds -----------------------------------------------------------------------------------------------------------

_ECHO = "test_property"  # property for free use of every drive with firmware 0.5; it stores the number of a round

LONGEST = 4096
"""Maximum length of a line; longer data are discarded [byte]."""

_COMMAND = struct.Struct("<6f")
_FEEDS_AFTER = 0.1  # interval between feeds of a watchdog as a fraction of its timeout

# First round number, and the count of numbers from it on. No state or error has such a value, and the drive prints at
# most 9 characters.
_ROUNDS = 400_000_000


def axis_errors(drive: Drive, axis: int) -> dict[str, int]:
    """Return the error bits of an axis by part."""
    return {part: drive.get(f"axis{axis}.{part}.error" if part else f"axis{axis}.error") for part in PARTS}


def trouble(drive: Drive) -> str:
    """Return a description of the errors of drive and axes, in one line; empty if none."""
    axes = [explain(axis, axis_errors(drive, axis)) for axis in AXES]
    system = in_words(drive.get("error"), SYSTEM)
    return "; ".join([*filter(None, axes), *([f"the drive: {', '.join(system)}"] if system else [])])


class NativeRounds(Rounds):
    """Rounds with the native protocol; all requests of a round are in flight at once.

    Parameters
    ----------
    drive : Drive
        Drive with both axes in closed loop.
    settings : OdriveSettings
        Contains the timeouts of replies and of the watchdogs.
    """

    def __init__(self, drive: Drive, settings: OdriveSettings) -> None:
        self._drive, self._line = drive, drive.line
        self._timeout, self._watchdog = settings.reply_timeout, settings.watchdog
        axes = [f"axis{axis}" for axis in AXES]
        self._positions = [drive.find(f"{axis}.controller.input_pos") for axis in axes]
        self._speeds = [drive.find(f"{axis}.controller.input_vel") for axis in axes]
        self._torques = [drive.find(f"{axis}.controller.input_torque") for axis in axes]
        self._feeds = [drive.find(f"{axis}.watchdog_feed()").number for axis in axes]
        self._estimates = [
            drive.find(f"{axis}.encoder.{name}") for name in ("pos_estimate", "vel_estimate") for axis in axes
        ]
        # properties that show whether the motors are armed; each round reads one of them
        self._states = [drive.find(f"{axis}.{name}") for name in ("current_state", "error") for axis in axes]
        self._sent_torques: list[float | None] = [0.0, 0.0]  # the motors were armed with 0
        self._next_feed = 0.0
        self._count = 0

    def exchange(self, command: Command | None, *, alive: bool = False, timeout: float = 0.0) -> Answer:
        """See `Rounds.exchange`."""
        line = self._line
        self._count += command is not None
        endpoints = (*self._estimates, self._states[self._count % len(self._states)])
        with line.batch():
            if command is not None:
                self.send(command, alive=alive)
            requested = time.perf_counter()
            tickets = [line.request(endpoint.number, b"", endpoint.form.size) for endpoint in endpoints]
        data = wait_all(line, tickets, timeout or self._timeout)
        one, two, one_speed, two_speed, state = (
            e.form.unpack(part)[0] for e, part in zip(endpoints, data, strict=True)
        )
        return Answer(requested, (one, two, one_speed, two_speed), endpoints[-1].name, state)

    def send(self, command: Command, *, alive: bool) -> None:
        """Send a command and feed the watchdogs at intervals; if not `alive`, command a stop instead."""
        drive = self._drive
        for axis in AXES:
            drive.post(self._speeds[axis], command[2 + axis] if alive else 0.0)
            drive.post(self._positions[axis], command[axis])
            torque = command[4 + axis] if alive else 0.0
            if torque != self._sent_torques[axis]:
                drive.post(self._torques[axis], torque)
                self._sent_torques[axis] = torque
        now = time.perf_counter()
        if alive and now >= self._next_feed:
            for feed in self._feeds:
                self._line.request(feed, acknowledged=False)
            self._next_feed = now + _FEEDS_AFTER * self._watchdog

    def invalidate(self) -> None:
        """See `Rounds.invalidate`."""
        self._sent_torques = [None, None]
        self._next_feed = 0.0

    def trouble(self) -> str:
        """See `Rounds.trouble`."""
        return trouble(self._drive)

    def disable_motors(self) -> None:
        """See `Rounds.disable_motors`."""
        with contextlib.suppress(TransferError, DeviceOpenError):
            for axis in AXES:
                state = self._drive.find(f"axis{axis}.requested_state")
                self._drive.post(self._speeds[axis], 0.0)
                self._drive.post(state, IDLE)


# --- lines of text ----------------------------------------------------------------------------------------------------


class TextLine:
    """Exchange of text lines with a drive. Only one thread at a time may use it.

    Parameters
    ----------
    pipes : Pipes
        The open serial port.
    """

    def __init__(self, pipes: Pipes) -> None:
        self._pipes = pipes
        self._rest = b""

    def exchange(self, lines: list[str], last: str, count: int, timeout: float) -> list[str]:
        """Send lines in one transfer, and return the replies before the reply `last`.

        Late replies to earlier requests arrive before them and are skipped.

        Parameters
        ----------
        lines : list of str
            Lines to send.
        last : str
            Last reply, which must differ from all earlier replies.
        count : int
            Number of replies before it.
        timeout : float
            Timeout [s].

        Raises
        ------
        TransferError
            If a reply is missing.
        """
        self._pipes.write("".join(f"{line}\n" for line in lines).encode("ascii"))
        latest = time.perf_counter() + timeout
        answers: list[str] = []
        while not answers or answers[-1] != last:
            left = latest - time.perf_counter()
            packet = self._pipes.read(left) if left > 0.0 else None
            if packet is None:
                raise TransferError("the drive does not answer at its serial port.", Trouble.TIMEOUT)
            *whole, self._rest = (self._rest + packet).replace(b"\r", b"\n").split(b"\n")
            self._rest = self._rest[-LONGEST:]
            answers += [line.decode("ascii", "replace") for line in whole if line]
            if last in answers:
                del answers[answers.index(last) + 1 :]
        found = answers[-1 - count : -1]
        if len(found) < count:
            raise TransferError("an answer of the drive at its serial port was lost.", Trouble.TIMEOUT)
        return found

    def close(self) -> None:
        """Close the serial port."""
        self._pipes.close()


class TextRounds(NativeRounds):
    """Rounds with lines of text.

    Every text command feeds the watchdogs. A stop is therefore commanded over the native protocol.

    Parameters
    ----------
    drive : Drive
        Drive with both axes in closed loop.
    settings : OdriveSettings
        Contains the timeout of replies.
    line : TextLine
        Serial port of the drive.
    """

    def __init__(self, drive: Drive, settings: OdriveSettings, line: TextLine) -> None:
        super().__init__(drive, settings)
        self._text = line

    def exchange(self, command: Command | None, *, alive: bool = False, timeout: float = 0.0) -> Answer:
        """Send lines and read the replies, identified by the round number, which is written and read back.

        See `Rounds.exchange`. Other replies than numbers mean that a line was lost.
        """
        lines: list[str] = []
        if command is not None and alive:
            single = _COMMAND.unpack(_COMMAND.pack(*command))  # single precision is exact in 9 digits
            lines = [f"p {axis} {single[axis]:.9g} {single[2 + axis]:.9g} {single[4 + axis]:.9g}" for axis in AXES]
        elif command is not None:
            self.invalidate()  # the text commands have changed its cached values
            self.send(command, alive=False)
        self._count = (self._count + 1) % _ROUNDS
        state, number = self._states[self._count % len(self._states)], _ROUNDS + self._count
        requested = time.perf_counter()
        lines += [*(f"f {axis}" for axis in AXES), f"r {state.name}", f"w {_ECHO} {number}", f"r {_ECHO}"]
        *estimates, value = self._text.exchange(lines, str(number), 3, timeout or self._timeout)
        numbers: list[float] = []
        for answer in estimates:
            try:
                position, speed = map(float, answer.split())
            except ValueError:
                raise TransferError(f"the drive answered {answer!r} in place of 2 numbers.", Trouble.TIMEOUT) from None
            numbers += position, speed
        if not value.isdecimal():
            raise TransferError(f"the drive answered {value!r} in place of a state.", Trouble.TIMEOUT)
        one, one_speed, two, two_speed = numbers
        return Answer(requested, (one, two, one_speed, two_speed), state.name, int(value))


# --- stage ------------------------------------------------------------------------------------------------------------

# Settings of an axis that are incompatible with driving an arm, and the reason.
_MISLEADING = {
    "config.enable_step_dir": "pulses at its pins would move the motor besides our commands",
    "controller.config.circular_setpoints": "a position would stand for any turn, and the motor could go the other way",
}

_FIRST_ABSOLUTE = 256  # first encoder mode whose positions are known after power-on

_STATE_TIMEOUT = 1.0
_POLL = 2e-3

_HOMED_WITHIN = 2.5  # tolerance between the position set by homing and the position read afterwards [encoder counts]


class OdriveStage(MotorStage):
    """Both axes of an ODrive in position control, which get position and speed in every tick.

    See `MotorStage`; its `far_end` is a backend for pyusb instead of libusb. A drive with limits below the `demands` is
    refused.

    Attributes
    ----------
    drive : Drive
        Access to the drive's properties and functions while the stage is open; not to be used between `arm` and
        `disarm`.
    """

    drive: Drive
    _pipes: Pipes
    _text: TextLine | None = None

    def _connect(self) -> None:
        own = self.settings
        self._pipes = pipes = open_drive(own.serial, self._far_end)
        self._line = Line(pipes)
        drive = self.drive = connect(self._line, table_folder())
        version = self._require_usable()
        self.facts = {"serial": pipes.serial, "transfers": pipes.transfers, "firmware": version}
        for axis in AXES:
            found = {limit: drive.get(f"axis{axis}.{name}") for limit, name in NAMES.items()}
            if own.speed_limit > 0.0:  # replaces the drive's own for the run
                found["speed_limit"] = own.speed_limit
            for limit in ("current_limit", "torque_constant", "torque_limit", "speed_limit"):
                if not found[limit] > 0.0:
                    raise DeviceOpenError(
                        f"axis{axis}.{NAMES[limit]} is {found[limit]:g} in the drive: it must be more than 0. In "
                        f"odrivetool: odrv0.axis{axis}.{NAMES[limit]} = VALUE; {_SAVED}."
                    )
            limits = AxisLimits(**found)
            require_enough(axis, limits, self._demands, own)
            self.facts[f"axis{axis}"] = limits.facts
        self.homed = all(drive.get(f"axis{axis}.encoder.config.mode") >= _FIRST_ABSOLUTE for axis in AXES)

    def _require_usable(self) -> str:
        """Require a supported drive with power, without errors, and with calibrated motors and encoders.

        Its motors are disarmed in any case. Errors of an earlier run are cleared if they are only expired watchdogs, or
        if the settings allow it. Positions must be absolute, and no other input may move the motors. Returns the
        version of the firmware.

        Raises
        ------
        DeviceOpenError
            With the problem and its remedy.
        """
        drive = self.drive
        version = ".".join(str(drive.get(f"fw_version_{part}")) for part in ("major", "minor", "revision"))
        if not version.startswith("0.5."):
            raise DeviceOpenError(f"the drive's firmware is {version}: this driver is for 0.5, and knows no other.")
        stage.require_voltage(drive.get("vbus_voltage"), self.settings)
        self._disarm()
        if found := trouble(drive):
            only_watchdogs = not drive.get("error") and all(
                bits == (WATCHDOG_EXPIRED if part == "" else 0)
                for axis in AXES
                for part, bits in axis_errors(drive, axis).items()
                if bits
            )
            if not (self.settings.clear_errors or only_watchdogs):
                raise DeviceOpenError(
                    f"the drive has errors from earlier: {found}. See to it, then start again with "
                    f"{WHERE}.clear_errors=true."
                )
            drive.call("clear_errors")
            if left := trouble(drive):
                raise DeviceOpenError(f"the drive has errors that do not go away: {left}.")
        for axis in AXES:
            for name, reason in _MISLEADING.items():
                path = f"axis{axis}.{name}"
                if path in drive.table.endpoints and drive.get(path):
                    raise DeviceOpenError(
                        f"{path} is true in the drive: {reason}. Set it to false with the maker's tool."
                    )
        for axis in AXES:
            for name, part in (("motor.is_calibrated", "motor"), ("encoder.is_ready", "encoder")):
                if not drive.get(f"axis{axis}.{name}"):
                    raise DeviceOpenError(
                        f"axis {axis} of the drive: its {part} is not calibrated; calibrate it with the maker's tool "
                        "and save that, or find its index, then start again."
                    )
        return version

    def _set_home(self, turns: Vector) -> None:
        drive = self.drive
        for axis in AXES:
            if drive.get(f"axis{axis}.current_state") != stage.IDLE:
                raise DeviceOpenError("the motors are armed: disarm them, then home the arm by hand.")
            if abs(drive.get(f"axis{axis}.encoder.vel_estimate")) > stage.STILL:
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
        own, drive = self.settings, self.drive
        rounds: Rounds | None = None  # chosen before the watchdogs are enabled
        port = open_serial_port(self._pipes) if own.protocol != NATIVE else None
        if port is not None:
            self._text = TextLine(port)
            text_rounds = TextRounds(drive, own, self._text)
            with contextlib.suppress(TransferError):
                text_rounds.exchange(None, timeout=stage.PATIENCE)
                rounds = text_rounds
            if rounds is None:
                self._end_text()
        if rounds is None and own.protocol == TEXT:
            raise DeviceOpenError(
                "the drive does not answer lines of text at its serial port on USB: end other programs that use "
                f"this port, or choose {WHERE}.protocol=native."
            )
        return rounds or NativeRounds(drive, own), self._arm_motors()

    def _arm_motors(self) -> float:
        """Arm both motors at their present positions, with the drive's watchdogs enabled; disarm them if that fails.

        Returns the speed beyond which the drive disarms a motor [turn/s].
        """
        drive, own = self.drive, self.settings
        given: dict[str, float] = {"control_mode": stage.POSITION_CONTROL, "input_mode": stage.PASS_THROUGH}
        if own.speed_limit > 0.0:
            given["vel_limit"] = own.speed_limit
        if own.position_gain > 0.0:
            given["pos_gain"] = own.position_gain
        if own.speed_gain > 0.0:
            given["vel_gain"] = own.speed_gain
        if own.integrator_gain >= 0.0:
            given["vel_integrator_gain"] = own.integrator_gain
        controllers = [f"axis{axis}.controller" for axis in AXES]
        try:
            for axis, name in zip(AXES, controllers, strict=True):
                for setting, value in given.items():
                    drive.set(f"{name}.config.{setting}", value)
                drive.set(f"{name}.input_vel", 0.0)
                drive.set(f"{name}.input_torque", 0.0)
                drive.set(f"{name}.input_pos", drive.get(f"axis{axis}.encoder.pos_estimate"))
            limits = [
                drive.get(f"{name}.config.vel_limit") * drive.get(f"{name}.config.vel_limit_tolerance")
                for name in controllers
            ]
            for axis in AXES:  # feed before enabling: a watchdog enabled without remaining time is an error at once
                drive.set(f"axis{axis}.config.watchdog_timeout", own.watchdog)
                drive.call(f"axis{axis}.watchdog_feed")
                drive.set(f"axis{axis}.config.enable_watchdog", True)
            for axis in AXES:
                drive.set(f"axis{axis}.requested_state", stage.CLOSED_LOOP)
            self._await_state(stage.CLOSED_LOOP)
            return float(max(limits))
        except BaseException as error:
            self._disarm()
            if isinstance(error, DeviceFault):
                raise DeviceOpenError(f"the motors could not be armed: {error}") from error
            raise

    def _end_text(self) -> None:
        text, self._text = self._text, None
        if text is not None:
            text.close()

    def _turns(self) -> Vector:
        return np.array([self.drive.get(f"axis{axis}.encoder.pos_estimate") for axis in AXES])

    def _disarm(self) -> None:
        """Close the serial port, disarm both motors, verify it, and disable the watchdogs."""
        self._end_text()
        drive = self.drive
        for axis in AXES:
            drive.set(f"axis{axis}.controller.input_vel", 0.0)
            drive.set(f"axis{axis}.controller.input_torque", 0.0)
            drive.set(f"axis{axis}.requested_state", stage.IDLE)
        self._await_state(stage.IDLE)
        for axis in AXES:
            drive.set(f"axis{axis}.config.enable_watchdog", False)

    def _await_state(self, state: int) -> None:
        """Wait until both axes are in a state, feeding the watchdogs."""
        drive, latest = self.drive, time.monotonic() + _STATE_TIMEOUT
        while True:
            now = [drive.get(f"axis{axis}.current_state") for axis in AXES]
            if all(found == state for found in now):
                return
            found = trouble(drive) if state != stage.IDLE else ""
            if found:
                raise DeviceFault(found)
            if time.monotonic() > latest:
                raise DeviceFault(f"its axes are in the states {now[0]} and {now[1]}, not in {state}")
            for axis in AXES:
                drive.call(f"axis{axis}.watchdog_feed")
            time.sleep(_POLL)


# --- limits -----------------------------------------------------------------------------------------------------------

_ENOUGH = 1.0 - 1e-3  # relative tolerance of limits, because the drive rounds them to single precision

_SINGLE = 1e-6  # relative resolution of single precision, for rounding

_SAVED = "odrv0.save_configuration()"


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


def require_enough(axis: int, own: AxisLimits, demands: Demands, settings: OdriveSettings) -> None:
    """Require that the limits of an axis meet the requirements of the arm.

    A drive clips values beyond its limits without an error: an arm whose motors get less current than its settings
    assume does not follow its reference, and motors that exceed their speed limit are disarmed in mid-motion.

    Raises
    ------
    DeviceOpenError
        With the limit that is too low, its required value, and the commands to type.
    """
    name = {limit: f"axis{axis}.{path}" for limit, path in NAMES.items()}
    if not own.torque >= _ENOUGH * demands.torque:
        by_current = own.current_limit * own.torque_constant
        commands, reasons = [], []
        if not by_current >= _ENOUGH * demands.torque:
            reasons.append(
                f"{name['current_limit']} is {own.current_limit:g} A, with {name['torque_constant']} = "
                f"{own.torque_constant:g} N m/A that is {by_current:.3g} N m"
            )
            needed = _rounded(demands.torque / own.torque_constant, up=True)
            commands.append(f"odrv0.{name['current_limit']} = {needed:g}")
        if not own.torque_limit >= _ENOUGH * demands.torque:
            reasons.append(f"{name['torque_limit']} is {own.torque_limit:g} N m")
            commands.append(f"odrv0.{name['torque_limit']} = {_rounded(demands.torque, up=True):g}")
        raise DeviceOpenError(
            f"the drive gives its motor less torque than {demands.torque_setting} says, {demands.torque:g} N m: "
            f"{' and '.join(reasons)}. If motor and drive stand it, type in odrivetool: "
            f"{'; '.join([*commands, _SAVED])}. Else set {demands.torque_setting} to "
            f"{_rounded(own.torque, up=False):g}."
        )
    needed = demands.speeds[axis]
    if not own.speed >= _ENOUGH * needed:
        where = f"{name['speed_limit']} in the drive"
        command = f"odrv0.{name['speed_limit']} = {_rounded(needed, up=True):g}"
        remedy = f"type in odrivetool: {command}; {_SAVED}; or set {WHERE}.speed_limit to that"
        if settings.speed_limit > 0.0:
            where, remedy = f"{WHERE}.speed_limit", f"set {WHERE}.speed_limit to {_rounded(needed, up=True):g}"
        raise DeviceOpenError(
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
