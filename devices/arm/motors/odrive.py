"""Two motors on an ODrive v3.6 with firmware 0.5, over its native USB protocol."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np

from devices.arm.motors.checks import (
    AXES,
    energise,
    has_absolute_encoders,
    require_limits,
    require_usable,
    rest,
    set_home,
)
from devices.arm.motors.drive import Drive, connect
from devices.arm.motors.endpoints import table_folder
from devices.arm.motors.limits import Demands
from devices.arm.motors.line import PATIENCE, Line
from devices.arm.motors.rounds import NativeRounds, Rounds, TextRounds
from devices.arm.motors.settings import NATIVE, TEXT, WHERE, OdriveSettings
from devices.arm.motors.streaming import Streaming
from devices.arm.motors.text import TextLine
from devices.arm.motors.usb.pipes import Pipes, open_drive
from devices.arm.motors.usb.serial_port import open_serial_port
from devices.common.bus.transfers import TransferError
from haptics.device import Vector
from haptics.errors import ConfigurationError, DeviceFault, DeviceOpenError
from haptics.settings import build

_TURN = math.tau
_FARTHEST = 1e5
"""The drive's numbers have no room for fractions of so many turns, or turns per second."""


class OdriveStage:
    """Both axes of an ODrive in position control, told position and speed in every tick (`MotorStage`).

    Parameters
    ----------
    settings : mapping, optional
        Those of `OdriveSettings`.
    period : float
        Of a tick [s]; what a command has moved in it is its speed where none is given.
    backend : usb.backend.IBackend, optional
        What to reach USB by, instead of libusb.
    demands : Demands, optional
        What the arm is going to ask of the motors; a drive whose own limits are lower is refused.

    Attributes
    ----------
    settings : OdriveSettings
        What was chosen.
    homed : bool
        Whether the angles count from the arm's zero: after `home`, or with absolute encoders.
    facts : dict
        What the drive says of itself, once it was opened: serial number, firmware, limits (`MotorStage.facts`).

    Raises
    ------
    ConfigurationError
        On a wrong setting.
    """

    def __init__(
        self,
        settings: Mapping[str, Any] | None = None,
        *,
        period: float = 1e-3,
        backend: Any = None,
        demands: Demands | None = None,
    ) -> None:
        self.settings = build(OdriveSettings, settings or {}, WHERE)
        self.homed = False
        self.facts: dict[str, Any] = {}
        self._demands = demands or Demands()
        self._period, self._backend = period, backend
        self._ratios = np.array((self.settings.reduction_1, self.settings.reduction_2))
        self._per_radian = self._ratios / _TURN
        self._angles, self._speeds, self._nothing = np.zeros(2), np.zeros(2), np.zeros(2)
        self._last: Vector | None = None
        self._drive: Drive | None = None
        self._streaming: Streaming | None = None
        self._pipes: Pipes | None = None
        self._text: TextLine | None = None
        self.serial = ""

    # --- for an observer ---------------------------------------------------------------------------------------------

    @property
    def drive(self) -> Drive:
        """The drive by the names of what it has; not to be used between `arm` and `disarm`."""
        if self._drive is None:
            raise DeviceOpenError("the motors are not open: call open() first.")
        return self._drive

    @property
    def speeds(self) -> Vector:
        """Speeds of the latest sample, (2,) [rad/s]; reused."""
        return self._speeds

    @property
    def sampled(self) -> float:
        """When the latest sample was asked for [s, perf_counter]."""
        return self._streaming.sample.time if self._streaming is not None else -math.inf

    # --- beginning ---------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Connect to the drive and check it; its motors are disarmed afterwards. Nothing happens if it is open.

        Raises
        ------
        DeviceNotFoundError
            If it is not plugged in.
        DeviceOpenError
            If it cannot be used; says what to do.
        """
        if self._drive is not None:
            return
        pipes = open_drive(self.settings.serial, self._backend)
        line = Line(pipes)
        with contextlib.ExitStack() as undo:
            undo.callback(line.close)
            with _opening():
                drive = connect(line, table_folder())
                require_usable(drive, self.settings)
                limits = require_limits(drive, self.settings, self._demands)
                self.facts = {"serial": pipes.serial, **limits}
                self.homed = has_absolute_encoders(drive)
            undo.pop_all()
        self._drive, self._pipes, self.serial = drive, pipes, pipes.serial

    def home(self, angles: Vector) -> None:
        """Declare that the joints, which are at rest and not armed, are at `angles`, (2,) [rad].

        Incremental encoders lose their zero with the power: bring the arm to a known pose and hold it there.

        Raises
        ------
        DeviceOpenError
            If the motors are armed, move, or do not count from there afterwards.
        ConfigurationError
            If the angles are not finite.
        """
        if self._streaming is not None:
            raise DeviceOpenError("the motors are armed: disarm them, then home the arm by hand.")
        if not np.isfinite(angles).all():
            raise ConfigurationError(f"the motors are to be homed to {angles}: angles must be finite.")
        with _opening():
            set_home(self.drive, np.asarray(angles, np.float64) * self._per_radian)
        self.homed = True

    def arm(self) -> None:
        """Have the motors hold where they are; nothing happens if they do already.

        Raises
        ------
        DeviceOpenError
            If they cannot, or it is not known where the joints are.
        """
        if self._streaming is not None:
            return
        drive = self.drive
        if not self.homed:
            raise DeviceOpenError(
                "the arm was not homed, and its encoders lose their zero when the power goes: bring it to its home "
                "pose, hold it there and home it."
            )
        self._last = None
        with _opening():
            rounds = self._begin_rounds(drive)  # before the watchdogs are on
            try:
                self._streaming = Streaming(drive, rounds, energise(drive, self.settings))
                self._streaming.start()
            except BaseException:
                self._end_text()
                self.disarm()  # which says so if they may still be driven
                raise

    def _begin_rounds(self, drive: Drive) -> Rounds:
        """Return rounds in lines of text if the drive answers them and the settings let it, else native ones."""
        wanted, own = self.settings.protocol, self.settings
        port = open_serial_port(self._pipes) if self._pipes is not None and wanted != NATIVE else None
        if port is not None:
            self._text = TextLine(port)
            rounds = TextRounds(drive, own, self._text)
            with contextlib.suppress(TransferError):
                rounds.look(PATIENCE)
                return rounds
            self._end_text()
        if wanted == TEXT:
            raise DeviceOpenError(
                "the drive does not answer lines of text at its serial port on USB: end what else uses that port, or "
                f"choose {WHERE}.protocol=native."
            )
        return NativeRounds(drive, own)

    def _end_text(self) -> None:
        text, self._text = self._text, None
        if text is not None:
            text.close()

    # --- the tick ----------------------------------------------------------------------------------------------------

    def look(self) -> Vector:
        """Return the angles of the joints; see `MotorStage.look`."""
        if self._streaming is None:
            turns = [self.drive.get(f"axis{axis}.encoder.pos_estimate") for axis in AXES]
            np.divide(turns, self._per_radian, out=self._angles)
            return self._angles
        sample = self._alive().sample
        np.divide((sample.first, sample.second), self._per_radian, out=self._angles)
        np.divide((sample.first_speed, sample.second_speed), self._per_radian, out=self._speeds)
        return self._angles

    def tick(self, command: Vector, speeds: Vector | None = None, torques: Vector | None = None) -> Vector:
        """Take the angles to go to, return those of the latest sample; see `MotorStage.tick`."""
        streaming = self._alive()
        wanted = np.asarray(command, np.float64) * self._per_radian
        if speeds is not None:
            moving = np.asarray(speeds, np.float64) * self._per_radian
        elif self._last is not None:
            moving = (wanted - self._last) / self._period
        else:
            moving = np.zeros(2)
        pushing = self._nothing if torques is None else np.asarray(torques, np.float64) / self._ratios
        told = (*wanted.tolist(), *moving.tolist(), *pushing.tolist())
        if not sum(map(abs, told)) < _FARTHEST:
            raise DeviceFault(f"the motors were given the command {command}: it must be finite, and not that far.")
        self._last = wanted
        streaming.command(told)
        return self.look()

    def _alive(self) -> Streaming:
        streaming = self._streaming
        if streaming is None:
            raise DeviceOpenError("the motors are not armed: call arm() first.")
        if streaming.failure:
            raise DeviceFault(streaming.failure)
        return streaming

    # --- the end -----------------------------------------------------------------------------------------------------

    def disarm(self) -> None:
        """Stop and disarm the motors; nothing happens if they are disarmed.

        Raises
        ------
        DeviceFault
            If it is not certain that they are.
        """
        streaming, self._streaming = self._streaming, None
        if streaming is None:
            return
        streaming.stop()
        try:
            self._end_text()
            rest(self.drive)
        except DeviceFault as error:
            raise DeviceFault(
                f"the motors could not be disarmed ({error}) Their own watchdog does so within "
                f"{self.settings.watchdog:g} s; if it does not, switch their supply off."
            ) from error

    def close(self) -> None:
        """Disarm and give the drive back; nothing happens if it is not open."""
        if self._drive is None:
            return
        line = self._drive.line
        try:
            self.disarm()
        finally:
            self._drive = self._pipes = None
            line.close()

    def __enter__(self) -> Self:
        """Open the stage."""
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        """Close the stage."""
        self.close()


@contextlib.contextmanager
def _opening() -> Iterator[None]:
    """Turn what goes wrong before the motors move into a refusal to open."""
    try:
        yield
    except DeviceFault as error:
        raise DeviceOpenError(str(error)) from error
