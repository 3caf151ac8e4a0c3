"""Two motors on an ODrive v3.6 with firmware 0.5, over USB: its native protocol, and lines of text."""

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
from devices.common.bus.transfers import TransferError
from haptics.device import Vector
from haptics.errors import ConfigurationError, DeviceOpenError


class OdriveStage(StreamedStage):
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
        super().__init__(settings, period)
        self._backend = backend
        self._demands = demands or Demands()
        self._drive: Drive | None = None
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
            with opening():
                drive = connect(line, table_folder())
                require_usable(drive, self.settings)
                limits = require_limits(drive, self.settings, self._demands)
                self.facts = {"serial": pipes.serial, "transfers": pipes.transfers, **limits}
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
        with opening():
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
        self.require_homed()
        self._warm_up()
        with opening():
            rounds = self._begin_rounds(drive)  # before the watchdogs are on
            try:
                self._stream(Streaming(rounds, energise(drive, self.settings)))
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

    # --- the tick and the end ----------------------------------------------------------------------------------------

    def _turns(self) -> Vector:
        return np.array([self.drive.get(f"axis{axis}.encoder.pos_estimate") for axis in AXES])

    def _let_go(self) -> None:
        self._end_text()
        rest(self.drive)

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
