"""Driver of the pantograph; see `devices.pantograph` for the opening procedure and the hazards."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from devices.common.exchange import ExchangeDriver, ExchangeSettings
from devices.pantograph import guardian
from devices.pantograph.board import Board, WireError, find_port, open_port
from devices.pantograph.kernels import NO_LINKAGE, PANTOGRAPH, fill_mechanism, give_pantograph, take_pantograph
from devices.pantograph.mechanisms import MAX_TORQUE, MECHANISMS
from haptics.clock import Clock, pause
from haptics.errors import ConfigurationError, DeviceFault, DeviceOpenError
from haptics.settings import bounded, choice, documented, flag, string

STILL = 1.0
"""Maximum distance of the arms from the home pose during homing [degree]."""

_SAMPLE_PAUSE = 2e-3  # time between two measurements of the angles while opening [s]


@documented
@dataclass(frozen=True)
class PantographSettings(ExchangeSettings):
    """Settings of the pantograph, in addition to `ExchangeSettings`."""

    mechanism: str = choice("gen-1", MECHANISMS, doc="type of pantograph on the board")
    port: str = string(
        "", allowed="a serial port such as /dev/ttyACM0", doc="serial port; empty to search for the board"
    )
    at_home: bool = flag(False, doc="confirms that the arms are held at their home pose")
    hold: float = bounded(
        0.2, minimum=0.05, maximum=10.0, unit="s", doc="time for which the arms are monitored at home"
    )
    homing_timeout: float = bounded(
        30.0, minimum=0.1, maximum=600.0, unit="s", doc="time to bring the handle into the workspace"
    )
    reply_timeout: float = bounded(
        0.05, minimum=5e-3, maximum=0.5, unit="s", doc="time without an answer after which the protocol is out of step"
    )
    resyncs: int = bounded(3, minimum=0, maximum=1000, doc="largest number of resynchronisations in a run")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reply_timeout > 0.5 * self.watchdog:
            raise ConfigurationError(
                f"device.reply_timeout = {self.reply_timeout:g} s: must be at most half of device.watchdog = "
                f"{self.watchdog:g} s, so that a late answer does not look like the end of the driver."
            )

    @property
    def held(self) -> bool:
        """Whether the user confirmed that the arms are held at their home pose."""
        return self.at_home

    @property
    def home_readings(self) -> int:
        """Number of readings of the angles while the arms are monitored at home."""
        return max(round(self.hold / _SAMPLE_PAUSE), 1)

    @property
    def identity(self) -> str:
        """Identity of the board for messages."""
        return self.port or "the only board"


class Pantograph(ExchangeDriver):
    """hAPI board with two motors: motion in the sample, force in the command.

    The position of the handle is relative to the centre of the workspace, with x from the left to the right motor.
    Every ``read`` uses the latest angles. The velocity uses nominal time, so that its integral is the displacement of
    the handle. The largest force is reached by the motors in every direction in the whole workspace. The board itself
    has no watchdog.

    Parameters
    ----------
    settings : mapping, optional
        Settings of `PantographSettings`.
    clock : Clock, optional
        Clock of the run; without it, time counts from ``open``.

    Raises
    ------
    ConfigurationError
        On a wrong setting.
    """

    name = "pantograph"
    settings_class: ClassVar[type[PantographSettings]] = PantographSettings
    settings: PantographSettings

    def __init__(self, settings: Mapping[str, Any] | None = None, *, clock: Clock | None = None) -> None:
        super().__init__(settings, clock, PANTOGRAPH, (take_pantograph, give_pantograph))
        own, mechanism = self.settings, MECHANISMS[self.settings.mechanism]
        lever, (x, y) = mechanism.largest_lever(), mechanism.half_size
        self._mechanism = mechanism
        self._set_sheet(
            f"{own.mechanism}, {own.identity}",
            (-x, -y),
            (x, y),
            max_force=MAX_TORQUE / lever,
            resolution=math.radians(360.0 / mechanism.counts) * lever,
        )
        fill_mechanism(self._record, mechanism)

    def open(self) -> None:
        """Home the arms and wait until the handle is in the workspace; does nothing if it is open.

        Raises
        ------
        DeviceNotFoundError
            If no board is connected.
        DeviceOpenError
            If it cannot be used, or was not homed.
        """
        if not self.settings.held:
            raise DeviceOpenError(
                f"{self.name}: hold both arms at the home pose ({self._mechanism.pose}) and start again with "
                "device.at_home=true; the board's encoders count from there."
            )
        super().open()

    def _fault_error(self, fault: int) -> DeviceFault:
        if fault != NO_LINKAGE:
            return super()._fault_error(fault)
        _, left, right = self._record["sample"][0]
        return DeviceFault(
            f"{self.name}: angles of {left:.1f} and {right:.1f} degrees are impossible for a {self.settings.mechanism} "
            "pantograph: home it again, or choose another device.mechanism."
        )

    def _connect(self, resources: contextlib.ExitStack) -> Board:
        """Open the port, start the guardian and home the arms."""
        own = self.settings
        port = open_port(self._far_end(resources))
        resources.callback(os.close, port)
        board = Board(port, self._mechanism, own, own.resyncs)
        words = str(port), board.zero.hex(), board.setup.hex()
        self._safeguard(board, resources, guardian.__file__, words, port)
        try:
            self._home(board)
        except WireError as error:
            raise DeviceOpenError(
                f"{self.name}: {error}; is this a hAPI board, with its native USB port in use?"
            ) from error
        except OSError as error:
            raise DeviceOpenError(f"{self.name}: the board is gone ({error}): check its cable.") from error
        board.patience = own.reply_timeout
        return board

    def _far_end(self, resources: contextlib.ExitStack) -> str:
        """Return the port of the board; `resources` receives the clean-up."""
        return self.settings.port or find_port()

    def _home(self, board: Board) -> None:
        """Define the home pose as the board's origin, and wait until the handle is in the workspace."""
        own, mechanism = self.settings, self._mechanism

        def angles() -> tuple[float, ...]:
            pause(_SAMPLE_PAUSE)
            return board.transfer((0.0, 0.0))

        board.resynchronise()
        for _ in range(own.home_readings):
            if max(abs(angle - home) for angle, home in zip(angles(), mechanism.home, strict=True)) > STILL:
                raise DeviceOpenError(
                    f"{self.name}: the arms moved while they were being homed. Hold them still at the home pose "
                    f"({mechanism.pose}) and start again."
                )
        latest = time.monotonic() + own.homing_timeout
        while not mechanism.contains(angles()):
            if time.monotonic() > latest:
                raise DeviceOpenError(
                    f"{self.name}: the handle was not brought into the workspace within {own.homing_timeout:g} s."
                )
