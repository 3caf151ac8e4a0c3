"""Driver of the pantograph; see `devices.pantograph` for the opening procedure and the hazards."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from devices.common.compensation import compensation_of
from devices.common.driver import ForceDriver
from devices.common.guard import FAREWELL, Guard
from devices.common.latch import Wake
from devices.common.settings import velocity_lag
from devices.pantograph import guardian
from devices.pantograph.exchange import REMEDY, Exchange
from devices.pantograph.kernels import (
    NO_LINKAGE,
    PANTOGRAPH,
    connect,
    fill_mechanism,
    give_pantograph,
    take_pantograph,
)
from devices.pantograph.line import Line
from devices.pantograph.mechanisms import MAX_TORQUE
from devices.pantograph.ports import find_port, open_port
from devices.pantograph.settings import PantographSettings
from devices.pantograph.wire import WireError
from haptics.clock import Clock, pause, raise_if_cancelled
from haptics.device import Causality, DeviceSpec
from haptics.errors import DeviceFault, DeviceOpenError
from haptics.settings import build

NAME = "pantograph"

STILL = 1.0
"""Maximum distance of the arms from the home pose during homing [degree]."""

SAMPLE_PAUSE = 2e-3
"""Time between two measurements of the angles while opening [s]."""


class Pantograph(ForceDriver):
    """hAPI board with two motors: motion in the sample, force in the command.

    The position of the handle is relative to the centre of the workspace, with x from the left to the right motor.
    Every ``read`` uses the latest angles. The velocity uses nominal time, so that its integral is the displacement of
    the handle.

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

    name = NAME
    settings_class: ClassVar[type[PantographSettings]] = PantographSettings

    def __init__(self, settings: Mapping[str, Any] | None = None, *, clock: Clock | None = None) -> None:
        self.settings = build(self.settings_class, settings or {}, "device")
        self._mechanism = self.settings.geometry
        super().__init__(PANTOGRAPH, (take_pantograph, give_pantograph), clock, self.settings.period)
        lever = self._mechanism.largest_lever()
        self._max_force = MAX_TORQUE / lever
        self._resolution = math.radians(360.0 / self._mechanism.counts) * lever
        added = compensation_of(self.settings, NAME, self._identity, self._clock.period, self._resolution)
        self._fill(self.settings, self._resolution, added)
        fill_mechanism(self._record, self._mechanism)
        self._exchange: Exchange | None = None
        self._resources = contextlib.ExitStack()

    @property
    def _identity(self) -> str:
        return f"{self.settings.mechanism}, {self.settings.identity}"

    @property
    def spec(self) -> DeviceSpec:
        """Data sheet, with the largest force that the motors reach in every direction in the whole workspace.

        The driver and its guardian implement the watchdog; the board has none.
        """
        own, mechanism, added = self.settings, self._mechanism, self._compensation
        return DeviceSpec(
            name=NAME,
            causality=Causality.IMPEDANCE,
            identity=self._identity,
            rate_min=100.0,
            rate_max=1000.0,
            workspace_min=mechanism.lower,
            workspace_max=mechanism.upper,
            max_force=self._max_force,
            max_force_rate=2000.0,
            max_speed=1.0,
            max_acceleration=self._max_force / own.mass,
            max_sample_age=10e-3,
            watchdog=own.watchdog,
            position_resolution=self._resolution,
            mass=own.mass,
            damping=added.left_of(own.damping) if added else own.damping,
            delay=max(min(self._clock.period, own.keep_alive), own.round_trip),
            velocity_lag=velocity_lag(own, self._resolution, self._clock.period),
            least_friction=added.least_friction if added else None,
        )

    # --- driver interface ---------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Home the arms and wait until the handle is in the workspace; does nothing if it is open.

        Raises
        ------
        DeviceNotFoundError
            If no board is connected.
        DeviceOpenError
            If it cannot be used, or was not homed.
        """
        if self._exchange is not None:
            return
        own = self.settings
        if not own.held:
            raise DeviceOpenError(
                f"{NAME}: hold both arms at the home pose ({self._mechanism.pose}) and start again with "
                "device.at_home=true; the board's encoders count from there."
            )
        self._prepare()
        self._begin_log(own.log)
        resources = contextlib.ExitStack()
        try:
            line, guard = self._connect(resources)
            self._home(line)
            line.patience = own.reply_timeout
            exchange = Exchange(line, guard, pause=own.keep_alive, watchdog=own.watchdog, resyncs=own.resyncs)
            resources.callback(exchange.stop)
            connect(self._record, exchange)
            raise_if_cancelled()
            exchange.start()
        except BaseException:
            with contextlib.suppress(DeviceFault):  # report the first error
                resources.close()
            raise
        self._exchange, self._resources = exchange, resources

    def close(self) -> None:
        """Set the torques to zero, verify that, and reset the board; does nothing if it is not open.

        Raises
        ------
        DeviceFault
            If the board did not confirm zero torques.
        """
        if self._exchange is None:
            return
        self._exchange = None
        self.compensate(0.0)
        self._resources.close()
        self._end_log()

    # --- observation --------------------------------------------------------------------------------------------------

    @property
    def resyncs(self) -> int:
        """Number of resynchronisations since the board was opened."""
        return self._exchange.resyncs if self._exchange is not None else 0

    # --- private ------------------------------------------------------------------------------------------------------

    def _opened(self) -> Exchange:
        if self._exchange is None:
            raise DeviceOpenError(f"{NAME} is not open: call open() first.")
        return self._exchange

    def _threads(self) -> Wake:
        return self._opened().wake

    def _words(self, fault: int) -> DeviceFault:
        if fault == NO_LINKAGE:
            _, left, right = self._record["sample"][0]
            return DeviceFault(
                f"{NAME}: angles of {left:.1f} and {right:.1f} degrees are impossible for a {self.settings.mechanism} "
                "pantograph: home it again, or choose another device.mechanism."
            )
        return DeviceFault(f"{NAME}: {self._opened().failure}")

    def _connect(self, resources: contextlib.ExitStack) -> tuple[Line, Guard]:
        """Open the port and start the guardian. `resources` receives the clean-up, zero torques first."""
        own = self.settings
        port = open_port(self._far_end(resources))
        resources.callback(os.close, port)
        line = Line(port, self._mechanism)
        words = str(port), line.zero.hex(), line.setup.hex()
        guard = Guard("the serial port", guardian.__file__, words, files=(port,), silence=own.watchdog)
        resources.callback(_shut_down, line, guard)
        return line, guard

    def _far_end(self, resources: contextlib.ExitStack) -> str:
        """Return the port of the board; `resources` receives the clean-up."""
        return self.settings.port or find_port()

    def _home(self, line: Line) -> None:
        """Define the home pose as the board's origin, and wait until the handle is in the workspace."""
        own, home = self.settings, self._mechanism.home
        try:
            line.resynchronise()
            for _ in range(max(round(own.hold / SAMPLE_PAUSE), 1)):
                left, right = _read_angles(line)
                if max(abs(left - home[0]), abs(right - home[1])) > STILL:
                    raise DeviceOpenError(
                        f"{NAME}: the arms moved while they were being homed. Hold them still at the home pose "
                        f"({self._mechanism.pose}) and start again."
                    )
            latest = time.monotonic() + own.homing_timeout
            while not self._inside(*_read_angles(line)):
                if time.monotonic() > latest:
                    raise DeviceOpenError(
                        f"{NAME}: the handle was not brought into the workspace within {own.homing_timeout:g} s."
                    )
        except WireError as error:
            raise DeviceOpenError(f"{NAME}: {error}; is this a hAPI board, with its native USB port in use?") from error
        except OSError as error:
            raise DeviceOpenError(f"{NAME}: the board is gone ({error}): check its cable.") from error

    def _inside(self, left: float, right: float) -> bool:
        end = self._mechanism.linkage.positions(np.radians([(left, right)]))[0] - self._mechanism.centre
        return bool((end >= self._mechanism.lower).all() and (end <= self._mechanism.upper).all())


def _read_angles(line: Line) -> tuple[float, float]:
    """Return the angles [degree] after a pause; the torques are zero."""
    pause(SAMPLE_PAUSE)
    return line.exchange((0.0, 0.0))


def _shut_down(line: Line, guard: Guard) -> None:
    """Set the torques to zero and dismiss the guardian; if that fails, hand over to the guardian."""
    at_rest, reason = False, "it did not confirm that"
    try:
        at_rest = line.come_to_rest()
    except OSError as error:
        reason = str(error)
    finally:
        if at_rest:
            guard.dismiss()
        else:
            guard.hand_over(FAREWELL)
    if not at_rest:
        raise DeviceFault(f"{NAME}: the torques could not be set to 0 ({reason}); {REMEDY}.")
