"""Motor stage of two motors on a CAN bus: ODrives with firmware 0.5, Pro or S1, with CAN Simple."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from devices.arm.motors.can import codec
from devices.arm.motors.can.checks import (
    energise,
    generation_of,
    listen,
    prove_watchdogs,
    require_rates,
    require_usable,
    rest,
)
from devices.arm.motors.can.generations import OLD, Generation
from devices.arm.motors.can.line import CanLine
from devices.arm.motors.can.port import Port, open_interface
from devices.arm.motors.can.rounds import CanRounds
from devices.arm.motors.limits import Demands
from devices.arm.motors.native.line import PATIENCE
from devices.arm.motors.streamed import StreamedStage, opening
from devices.arm.motors.streaming import Streaming
from haptics.device import Vector
from haptics.errors import ConfigurationError, DeviceOpenError

_FASTEST = 100.0
"""Maximum plausible speed of a motor if the requirements of the arm are unknown [turn/s]."""

_RESERVE = 2.0
"""Maximum plausible speed of a motor as a multiple of the speed that the arm requires."""

_STILL = 0.05
"""Maximum speed of a motor at rest [turn/s]."""


class CanStage(StreamedStage):
    """Two axes in position control that get position and speed in every tick.

    See `devices.arm.motors.stage.MotorStage`.

    The arm's zero is stored here and not in the drive, because positions on the bus count from the encoders' start. The
    stage must therefore be homed whenever it was opened.

    Parameters
    ----------
    settings : mapping, optional
        Settings of `devices.arm.motors.settings.OdriveSettings`.
    period : float
        Period of a tick [s].
    port : callable, optional
        Opens the port for frames; by default the interface of the settings.
    demands : Demands, optional
        Requirements of the arm on the motors.

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
        port: Callable[[], Port] | None = None,
        demands: Demands | None = None,
    ) -> None:
        super().__init__(settings, period)
        self._port, self._demands = port, demands or Demands()
        self._line: CanLine | None = None
        self._generation: Generation = OLD
        self._proven = False

    # --- opening and arming ------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Listen to both axes, check them and disarm their motors; do nothing if already open.

        Raises
        ------
        DeviceNotFoundError
            If the interface does not exist.
        DeviceOpenError
            If the interface or the drive cannot be used; the message contains the remedy.
        """
        if self._line is not None:
            return
        own = self.settings
        port = self._port() if self._port is not None else open_interface(own.interface)
        line = CanLine(port, own.interface, (own.node_1, own.node_2))
        with contextlib.ExitStack() as undo:
            undo.callback(line.close)
            with opening():
                rates = listen(line)
                generation = generation_of(line)
                require_rates(rates, generation)
                require_usable(line, generation, own)
            undo.pop_all()
        self._line, self._generation = line, generation
        self.homed = self._proven = False
        self._offsets[:] = 0.0
        self.facts = {
            "interface": own.interface,
            "nodes": list(line.nodes),
            "firmware": generation.firmware,
            **{name: round(rate, 1) for name, rate in rates.items()},
        }

    @property
    def _open_line(self) -> CanLine:
        if self._line is None:
            raise DeviceOpenError("the motors are not open: call open() first.")
        return self._line

    def home(self, angles: Vector) -> None:
        """Define the present pose of the joints, at rest and not armed, as `angles`, (2,) [rad].

        Raises
        ------
        DeviceOpenError
            If the motors are armed or move.
        ConfigurationError
            If the angles are not finite.
        """
        if self._streaming is not None:
            raise DeviceOpenError("the motors are armed: disarm them, then home the arm by hand.")
        if not np.isfinite(angles).all():
            raise ConfigurationError(f"the motors are to be homed to {angles}: angles must be finite.")
        with opening():
            positions, speeds = self._estimates()
            if np.abs(speeds).max() > _STILL:
                raise DeviceOpenError("the arm moved while it was being homed: hold it still and start again.")
            self._offsets[:] = positions - np.asarray(angles, np.float64) * self._per_radian
        self.homed = True

    def _estimates(self) -> tuple[Vector, Vector]:
        """Return the next estimates of both axes: positions [turn], speeds [turn/s]."""
        line = self._open_line
        before = [line.latest(node, codec.ESTIMATES).total for node in line.nodes]
        line.wait(lambda: all(map(self._newer, line.nodes, before)), PATIENCE)
        found = []
        for node, was in zip(line.nodes, before, strict=True):
            numbers = codec.pair(line.latest(node, codec.ESTIMATES).data)
            if numbers is None or not self._newer(node, was):
                raise line.silent(node)
            found.append(numbers)
        positions, speeds = np.array(found).T
        return positions, speeds

    def _newer(self, node: int, count: int) -> bool:
        return self._open_line.latest(node, codec.ESTIMATES).total > count

    def arm(self) -> None:
        """Arm the motors at their present positions; do nothing if already armed.

        The first time, they are armed once before that to verify that the drive's watchdogs disarm them.

        Raises
        ------
        DeviceOpenError
            If they cannot be armed, their watchdogs do not disarm them, or the joint angles are unknown.
        """
        if self._streaming is not None:
            return
        line, own = self._open_line, self.settings
        self.require_homed()
        with opening():
            if not self._proven:
                prove_watchdogs(line, self._generation, own)
                self._proven = True
            rounds = CanRounds(line, self._generation, own)
            try:
                energise(line, self._generation, own)
                fastest = _RESERVE * max(self._demands.speeds) or _FASTEST
                self._stream(Streaming(rounds, fastest))
            except BaseException:
                self.disarm()
                raise

    # --- ticks and closing -------------------------------------------------------------------------------------------

    def _turns(self) -> Vector:
        return self._estimates()[0]

    def _disarm(self) -> None:
        rest(self._open_line)

    def close(self) -> None:
        """Disarm the motors and close the interface; do nothing if not open."""
        line = self._line
        if line is None:
            return
        try:
            self.disarm()
        finally:
            self._line = None
            line.close()
