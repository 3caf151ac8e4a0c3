"""The pantograph behind the device contract; see `devices.pantograph` for how to open it, and for its dangers."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from devices.common.bus.guarding import FAREWELL, Guard
from devices.common.compensation import compensation_of
from devices.common.driver import ForceDriver
from devices.common.velocity import velocity_lag
from devices.common.waking import Wake
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
from haptics.clock import Clock, go_on, pause
from haptics.device import Causality, DeviceSpec
from haptics.errors import DeviceFault, DeviceOpenError
from haptics.settings import build

NAME = "pantograph"

STILL = 1.0
"""How far the arms may be from the home pose while they are watched there [degree]."""

SAMPLE_PAUSE = 2e-3
"""Time between two looks at the arms while they are brought home and to work [s]."""


class Pantograph(ForceDriver):
    """A hAPI board with two motors: motion in the sample, force in the command.

    The position is that of the handle from the centre of the workspace, x along the line from the left to the right
    motor. The latest angles are taken at every ``read``; the velocity counts nominal time, so that what it adds up to
    is the displacement of the handle.

    Parameters
    ----------
    settings : mapping, optional
        Those of `PantographSettings`.
    clock : Clock, optional
        The run's clock; without one, time since ``open`` counts.

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
        """The data sheet. Its largest force is what the motors can do everywhere in the workspace, in any direction.

        The watchdog is the driver's and its guardian's; the board has none.
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

    # --- the contract ------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Home the arms and wait until the handle is in the workspace; nothing happens if it is open.

        Raises
        ------
        DeviceNotFoundError
            If there is no board.
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
            go_on()
            exchange.start()
        except BaseException:
            with contextlib.suppress(DeviceFault):  # the first error is the one to report
                resources.close()
            raise
        self._exchange, self._resources = exchange, resources

    def close(self) -> None:
        """Take the torques away, make sure of it, reset the board; nothing happens if it is not open.

        Raises
        ------
        DeviceFault
            If the board did not confirm that it has no torques.
        """
        if self._exchange is None:
            return
        self._exchange = None
        self.compensate(0.0)
        self._resources.close()
        self._end_log()

    # --- for an observer ---------------------------------------------------------------------------------------------

    @property
    def resyncs(self) -> int:
        """How often the board got out of step since it was opened."""
        return self._exchange.resyncs if self._exchange is not None else 0

    # --- inside ------------------------------------------------------------------------------------------------------

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
        """Open the port and post the guardian; `resources` gets what undoes it, the board at rest first."""
        own = self.settings
        port = open_port(self._far_end(resources))
        resources.callback(os.close, port)
        line = Line(port, self._mechanism)
        words = str(port), line.zero.hex(), line.setup.hex()
        guard = Guard("the serial port", guardian.__file__, words, files=(port,), silence=own.watchdog)
        resources.callback(_leave, line, guard)
        return line, guard

    def _far_end(self, resources: contextlib.ExitStack) -> str:
        """Return the port that the board is at; `resources` gets what undoes it."""
        return self.settings.port or find_port()

    def _home(self, line: Line) -> None:
        """Have the board count from the home pose, and wait until the handle is in the workspace."""
        own, home = self.settings, self._mechanism.home
        try:
            line.resynchronise()
            for _ in range(max(round(own.hold / SAMPLE_PAUSE), 1)):
                left, right = _look(line)
                if max(abs(left - home[0]), abs(right - home[1])) > STILL:
                    raise DeviceOpenError(
                        f"{NAME}: the arms moved while they were being homed. Hold them still at the home pose "
                        f"({self._mechanism.pose}) and start again."
                    )
            latest = time.monotonic() + own.homing_timeout
            while not self._inside(*_look(line)):
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


def _look(line: Line) -> tuple[float, float]:
    """Return the angles [degree] after a pause; there is no torque."""
    pause(SAMPLE_PAUSE)
    return line.exchange((0.0, 0.0))


def _leave(line: Line, guard: Guard) -> None:
    """Bring the board to rest and let the guardian go; if it cannot be done here, the guardian tries."""
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
