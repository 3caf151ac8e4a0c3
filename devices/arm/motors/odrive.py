"""Motor stage of two motors on an ODrive v3.6 with firmware 0.5, over USB."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

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
from devices.arm.motors.limits import Demands
from devices.arm.motors.native.drive import Drive, connect
from devices.arm.motors.native.endpoints import table_folder
from devices.arm.motors.native.line import PATIENCE, Line
from devices.arm.motors.rounds import NativeRounds, Rounds, TextRounds
from devices.arm.motors.settings import NATIVE, TEXT, WHERE
from devices.arm.motors.streamed import StreamedStage, opening
from devices.arm.motors.streaming import Streaming
from devices.arm.motors.usb.finding import open_drive
from devices.arm.motors.usb.pipes import Pipes
from devices.arm.motors.usb.serial_port import open_serial_port
from devices.arm.motors.usb.text import TextLine
from devices.common.bus import TransferError
from haptics.device import Vector
from haptics.errors import ConfigurationError, DeviceOpenError


class OdriveStage(StreamedStage):
    """Both axes of an ODrive in position control, which get position and speed in every tick.

    See `devices.arm.motors.stage.MotorStage`.

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
    """

    def __init__(
        self,
        settings: Mapping[str, Any] | None = None,
        *,
        period: float = 1e-3,
        backend: Any = None,
        demands: Demands | None = None,
    ) -> None:
        super().__init__(settings, period)
        self._backend = backend
        self._demands = demands or Demands()
        self._drive: Drive | None = None
        self._pipes: Pipes | None = None
        self._text: TextLine | None = None
        self.serial = ""

    # --- information for observers -----------------------------------------------------------------------------------

    @property
    def drive(self) -> Drive:
        """Access to the drive's properties and functions; not to be used between `arm` and `disarm`."""
        if self._drive is None:
            raise DeviceOpenError("the motors are not open: call open() first.")
        return self._drive

    # --- opening and arming ------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Connect to the drive, check it and disarm its motors; do nothing if already open.

        Raises
        ------
        DeviceNotFoundError
            If the drive is not found.
        DeviceOpenError
            If it cannot be used; the message contains the remedy.
        """
        if self._drive is not None:
            return
        pipes = open_drive(self.settings.serial, self._backend)
        line = Line(pipes)
        with contextlib.ExitStack() as undo:
            undo.callback(line.close)
            with opening():
                drive = connect(line, table_folder())
                require_usable(drive, self.settings)
                limits = require_limits(drive, self.settings, self._demands)
                self.facts = {"serial": pipes.serial, "transfers": pipes.transfers, **limits}
                self.homed = has_absolute_encoders(drive)
            undo.pop_all()
        self._drive, self._pipes, self.serial = drive, pipes, pipes.serial

    def home(self, angles: Vector) -> None:
        """Define the present pose of the joints, at rest and not armed, as `angles`, (2,) [rad].

        Incremental encoders lose their zero when the power is switched off: hold the arm in a known pose.

        Raises
        ------
        DeviceOpenError
            If the motors are armed or move, or the positions differ afterwards.
        ConfigurationError
            If the angles are not finite.
        """
        if self._streaming is not None:
            raise DeviceOpenError("the motors are armed: disarm them, then home the arm by hand.")
        if not np.isfinite(angles).all():
            raise ConfigurationError(f"the motors are to be homed to {angles}: angles must be finite.")
        with opening():
            set_home(self.drive, np.asarray(angles, np.float64) * self._per_radian)
        self.homed = True

    def arm(self) -> None:
        """Arm the motors at their present positions; do nothing if already armed.

        Raises
        ------
        DeviceOpenError
            If they cannot be armed, or the joint angles are unknown.
        """
        if self._streaming is not None:
            return
        drive = self.drive
        self.require_homed()
        with opening():
            rounds = self._begin_rounds(drive)  # before the watchdogs are enabled
            try:
                self._stream(Streaming(rounds, energise(drive, self.settings)))
            except BaseException:
                self._end_text()
                self.disarm()  # raises if the motors may still be armed
                raise

    def _begin_rounds(self, drive: Drive) -> Rounds:
        """Return rounds in lines of text if the drive and the settings allow them, otherwise native rounds."""
        wanted, own = self.settings.protocol, self.settings
        port = open_serial_port(self._pipes) if self._pipes is not None and wanted != NATIVE else None
        if port is not None:
            self._text = TextLine(port)
            rounds = TextRounds(drive, own, self._text)
            with contextlib.suppress(TransferError):
                rounds.poll(PATIENCE)
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

    # --- ticks and closing -------------------------------------------------------------------------------------------

    def _turns(self) -> Vector:
        return np.array([self.drive.get(f"axis{axis}.encoder.pos_estimate") for axis in AXES])

    def _disarm(self) -> None:
        self._end_text()
        rest(self.drive)

    def close(self) -> None:
        """Disarm the motors and close the drive; do nothing if not open."""
        if self._drive is None:
            return
        line = self._drive.line
        try:
            self.disarm()
        finally:
            self._drive = self._pipes = None
            line.close()
