"""Two motors on a CAN bus: ODrives with firmware 0.5, Pro or S1, by CAN Simple."""

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
"""No motor turns faster where nobody knows [turn/s] ..."""

_RESERVE = 2.0
"""... else than so many times what the arm asks of it."""

_STILL = 0.05
"""A motor that turns no faster is at rest [turn/s]."""


class CanStage(StreamedStage):
    """Two axes in position control, told position and speed in every tick (`devices.arm.motors.stage.MotorStage`).

    Where the arm's zero is, is known here and not in the drive: positions on the bus count from wherever the encoders
    began. So it must be homed whenever it was opened.

    Parameters
    ----------
    settings : mapping, optional
        Those of `devices.arm.motors.settings.OdriveSettings`.
    period : float
        Of a tick [s].
    port : callable, optional
        Opens what frames go through; by default the interface of the settings.
    demands : Demands, optional
        What the arm is going to ask of the motors.

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
        port: Callable[[], Port] | None = None,
        demands: Demands | None = None,
    ) -> None:
        super().__init__(settings, period)
        self._port, self._demands = port, demands or Demands()
        self._line: CanLine | None = None
        self._generation: Generation = OLD
        self._proven = False

    # --- beginning ---------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Listen to both axes and check them; their motors are disarmed afterwards. Nothing happens if it is open.

        Raises
        ------
        DeviceNotFoundError
            If there is no such interface.
        DeviceOpenError
            If it or the drive cannot be used; says what to do.
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
        """Declare that the joints, which are at rest and not armed, are at `angles`, (2,) [rad].

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
        """Return what both axes say next: positions [turn], speeds [turn/s]."""
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
        """Have the motors hold where they are; nothing happens if they do already.

        Before they do for the first time they are armed once to see that the drive's watchdogs let go of them.

        Raises
        ------
        DeviceOpenError
            If they cannot, their watchdogs do not, or it is not known where the joints are.
        """
        if self._streaming is not None:
            return
        line, own = self._open_line, self.settings
        self.require_homed()
        self._warm_up()
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

    # --- the tick and the end ----------------------------------------------------------------------------------------

    def _turns(self) -> Vector:
        return self._estimates()[0]

    def _let_go(self) -> None:
        rest(self._open_line)

    def close(self) -> None:
        """Disarm and give the interface back; nothing happens if it is not open."""
        line = self._line
        if line is None:
            return
        try:
            self.disarm()
        finally:
            self._line = None
            line.close()
