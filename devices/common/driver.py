"""Base class of drivers with a port, which exchanges samples and commands.

Threads of the driver communicate with the device. A driver consists of a record and two parts: one provides the newest
sample, the other processes a command. They form its port (`haptics.device`). The compiled loop calls them without the
interpreter, which remains available to the threads. ``read`` and ``write`` call the same parts.
"""

from __future__ import annotations

import functools
import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from devices.common.compensation import Compensation, CompensationSettings
from devices.common.kernels import NOT_FINITE
from devices.common.latch import Wake
from devices.common.log import CommandLog
from devices.common.settings import RunSettings, VelocitySettings
from devices.common.velocity import fill_velocity, prepare_velocity
from haptics.clock import Clock, WallClock
from haptics.device import Managed, Port, State, Vector
from haptics.errors import DeviceFault
from haptics.jit import address_of_part, run_part
from haptics.settings import documented


@documented
@dataclass(frozen=True)
class ForceDriverSettings(RunSettings, CompensationSettings, VelocitySettings, section="device"):
    """Settings of a driver with force commands and position measurements."""


class Driver(Managed):
    """Driver with a port. Subclasses open and close the device, run threads and describe faults.

    Parameters
    ----------
    dtype : dtype
        Type of the record, which begins with `devices.common.kernels.DRIVER_FIELDS`.
    parts : (callable, callable)
        Parts that read a sample and process a command.
    clock : Clock or None
        Clock of the run; None for the time since construction.
    period : float
        Period of a tick if there is no clock [s].
    """

    name: ClassVar[str]
    commands: ClassVar[str] = "finite"
    """Requirement on commands, for error messages."""
    of_samples: ClassVar[tuple[int, ...]] = ()
    """Faults after which commands are still accepted, so that the device can be stopped."""

    def __init__(
        self,
        dtype: np.dtype[Any],
        parts: tuple[Callable[..., None], Callable[..., None]],
        clock: Clock | None,
        period: float,
    ) -> None:
        self._record, self._parts = np.zeros(1, dtype), parts
        self._record["hand_force"] = np.nan
        self._own_clock, self._clock = clock is None, clock or WallClock(period)
        self._log: CommandLog | None = None
        record = self._record
        self._state = State(0.0, record["position"][0], record["velocity"][0], record["force"][0])

    @abstractmethod
    def _wake(self) -> Wake:
        """Return the wake-up of the sending thread; raise `DeviceOpenError` if the device is not open."""

    @abstractmethod
    def _fault_error(self, fault: int) -> DeviceFault:
        """Return the error for a ``fault``."""

    # --- device interface -------------------------------------------------------------------------------------------

    def read(self) -> State:
        """Return the newest sample without waiting; its arrays are reused.

        Raises
        ------
        DeviceFault
            If no further samples will arrive, or the sample is invalid.
        """
        self._wake()
        self._take(*self._record_time())
        if self._record["fault"][0]:
            raise self._fault_error(int(self._record["fault"][0]))
        self._state.time, self._state.buttons = float(self._record["time"][0]), int(self._record["buttons"][0])
        return self._state

    def write(self, command: Vector) -> None:
        """Set the command, (2,) [N] or [m], to be sent as soon as the bus is free.

        A newer command replaces it if it was not sent yet.

        Raises
        ------
        DeviceFault
            If the command is invalid, for instance not finite, or the device is lost.
        """
        wake, fault = self._wake(), self._record["fault"]
        self._record_time()
        x, y = float(command[0]), float(command[1])
        self._give(x, y)
        wake.call()
        if fault[0] == NOT_FINITE:
            fault[0] = 0
            raise DeviceFault(f"{self.name} was given the command ({x:g}, {y:g}): it must be {self.commands}.")
        if fault[0] and fault[0] not in self.of_samples:
            raise self._fault_error(int(fault[0]))

    def port(self) -> Port | None:
        """Return the port of the driver, which follows the wall clock.

        The result is None with another clock, or if the system has no ``eventfd`` to wake threads.

        Raises
        ------
        DeviceOpenError
            If the device is not open.
        """
        wake, clock = self._wake().descriptor, self._clock
        if self._own_clock or type(clock) is not WallClock or wake < 0:
            return None
        self._record["origin"] = 1e-9 * clock.origin_ns[0]
        return Port(self._record, *self._addresses(), wake)

    # --- for subclasses ---------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Compile the parts before they are needed in real time, and reset the fault state."""
        record, place = self._record, self._record.ctypes.data
        take, give = self._addresses()
        self._take, self._give = functools.partial(run_part, take, place), functools.partial(run_part, give, place)
        record["fault"] = record["assistance"] = 0

    def _begin_log(self, file: str) -> None:
        """Start logging commands to `file`, if it is not empty.

        Raises
        ------
        DeviceOpenError
            If the file cannot be created.
        """
        self._log = CommandLog(file) if file else None
        self._record["log"] = 0 if self._log is None else self._log.address

    def _end_log(self) -> None:
        self._log, self._record["log"] = None, 0

    def _now(self) -> float:
        """Return the nominal time of the tick, or the elapsed time if there is no run [s]."""
        return self._clock.elapsed() if self._own_clock else self._clock.time

    def _addresses(self) -> tuple[int, int]:
        take, give = self._parts
        return address_of_part(take, self._record.dtype), address_of_part(give, self._record.dtype)

    def _record_time(self) -> tuple[float, float]:
        """Update the time in the record; return the nominal time and the time since the zero of the clock [s]."""
        now, elapsed, instant = self._now(), self._clock.elapsed(), time.perf_counter()
        self._record["origin"], self._record["instant"], self._record["now"] = instant - elapsed, instant, now
        return now, elapsed


class ForceDriver(Driver):
    """Driver with force commands and position measurements, velocity estimation and friction compensation.

    See `Driver`. The record begins with `devices.common.kernels.FORCE_DRIVER_FIELDS`. The motors compensate the
    friction of the device if it is known and compensation is enabled.
    """

    _compensation: Compensation | None = None

    def compensate(self, share: float) -> None:
        """Apply a fraction, 0 to 1, of the friction compensation in the settings; 0 after ``open``."""
        self._record["assistance"] = share

    def _fill(self, settings: VelocitySettings, resolution: float, compensation: Compensation | None) -> None:
        """Set up velocity estimation for positions of a `resolution` [m], and friction compensation."""
        fill_velocity(self._record["estimator"], settings, resolution, self._clock.period)
        self._compensation = compensation
        if compensation is not None:
            self._record["compensation"] = compensation.record

    def _prepare(self) -> None:
        record = self._record
        prepare_velocity(record["estimator"])
        if self._compensation is not None:
            record["compensation"]["step"] = self._compensation.address
        super()._prepare()
        record["estimator"]["samples"] = 0

    def _end_log(self) -> None:
        """Log a force of zero at the end."""
        if self._log is not None:
            self._log.append(self._now(), 0.0, 0.0)
        super()._end_log()
