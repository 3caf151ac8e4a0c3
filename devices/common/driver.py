"""Base of drivers with a port: threads talk to the device, the port holds the newest sample and command.

A driver is a record and two parts, which make the newest sample and act on a command. They are its port
(`haptics.ports`): a loop without Python calls them, and the threads have the interpreter to themselves. ``read`` and
``write`` call the very same parts.
"""

from __future__ import annotations

import functools
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np

from devices.common.compensation import Compensation
from devices.common.driver_kernels import NOT_FINITE
from devices.common.log import CommandLog
from devices.common.velocity import VelocitySettings, fill_velocity, prepare_velocity
from devices.common.waking import Wake
from haptics.clock import Clock, WallClock
from haptics.device import State, Vector
from haptics.errors import DeviceFault
from haptics.parts import address_of_part, run_part
from haptics.ports import Port


class Managed(ABC):
    """A device that a ``with`` statement opens on the way in and closes on the way out, whatever happens between."""

    @abstractmethod
    def open(self) -> None:
        """Open the device (`haptics.device.Device.open`)."""

    @abstractmethod
    def close(self) -> None:
        """Leave the device safe and close it; closing twice does nothing."""

    def __enter__(self) -> Self:
        """Open the device."""
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        """Close the device."""
        self.close()


class Driver(Managed):
    """A driver with a port. A subclass opens and closes, has threads and says what is wrong.

    Parameters
    ----------
    dtype : dtype
        Of its record, which begins with `devices.common.driver_kernels.DRIVER_FIELDS`.
    parts : (callable, callable)
        The parts that take the sample and act on a command.
    clock : Clock or None
        The run's clock; without one the time since it was built counts.
    period : float
        Period of a tick where there is no clock [s].
    """

    name: ClassVar[str]
    commands: ClassVar[str] = "finite"
    """What a command must be, in words."""
    of_samples: ClassVar[tuple[int, ...]] = ()
    """Faults after which commands are still obeyed: whoever ends the run can bring the device to rest."""

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
    def _threads(self) -> Wake:
        """Return what wakes the thread that sends commands; raise `DeviceOpenError` if it is not open."""

    @abstractmethod
    def _words(self, fault: int) -> DeviceFault:
        """Return what is said about a ``fault``."""

    # --- the contract ------------------------------------------------------------------------------------------------

    def read(self) -> State:
        """Return the newest sample at once; its arrays are reused.

        Raises
        ------
        DeviceFault
            If there will be no more, or it cannot be used.
        """
        self._threads()
        self._take(*self._note_time())
        if self._record["fault"][0]:
            raise self._words(int(self._record["fault"][0]))
        self._state.time, self._state.buttons = float(self._record["time"][0]), int(self._record["buttons"][0])
        return self._state

    def write(self, command: Vector) -> None:
        """Take a command, (2,) [N] or [m]; it is sent as soon as the bus allows, unless a newer one comes first.

        Raises
        ------
        DeviceFault
            If it cannot be followed, such as one that is not finite, or the device is lost.
        """
        wake, fault = self._threads(), self._record["fault"]
        self._note_time()
        x, y = float(command[0]), float(command[1])
        self._give(x, y)
        wake.call()
        if fault[0] == NOT_FINITE:
            fault[0] = 0
            raise DeviceFault(f"{self.name} was given the command ({x:g}, {y:g}): it must be {self.commands}.")
        if fault[0] and fault[0] not in self.of_samples:
            raise self._words(int(fault[0]))

    def port(self) -> Port | None:
        """Return its port, which follows the wall's clock; None with another one, or where nothing can wake threads.

        Raises
        ------
        DeviceOpenError
            If it is not open.
        """
        wake, clock = self._threads().descriptor, self._clock
        if self._own_clock or type(clock) is not WallClock or wake < 0:
            return None
        self._record["origin"] = 1e-9 * clock.origin_ns[0]
        return Port(self._record, *self._addresses(), wake)

    # --- for the subclass --------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Compile what a tick needs before anything depends on its speed, and forget what was before."""
        record, place = self._record, self._record.ctypes.data
        take, give = self._addresses()
        self._take, self._give = functools.partial(run_part, take, place), functools.partial(run_part, give, place)
        record["fault"] = record["assistance"] = 0

    def _begin_log(self, file: str) -> None:
        """Log commands to a `file`, or not at all where it is empty.

        Raises
        ------
        DeviceOpenError
            If it cannot be made.
        """
        self._log = CommandLog(file) if file else None
        self._record["log"] = 0 if self._log is None else self._log.place

    def _end_log(self) -> None:
        """Log no more."""
        self._log, self._record["log"] = None, 0

    def _now(self) -> float:
        """Return the nominal time of the tick; without a run, the time that has gone by [s]."""
        return self._clock.elapsed() if self._own_clock else self._clock.time

    def _addresses(self) -> tuple[int, int]:
        take, give = self._parts
        return address_of_part(take, self._record.dtype), address_of_part(give, self._record.dtype)

    def _note_time(self) -> tuple[float, float]:
        """Note what a loop without Python knows; return the nominal time and the time since the clock's zero [s]."""
        now, elapsed, instant = self._now(), self._clock.elapsed(), time.perf_counter()
        self._record["origin"], self._record["instant"], self._record["now"] = instant - elapsed, instant, now
        return now, elapsed


class ForceDriver(Driver):
    """A driver that takes forces and tells positions: velocity is estimated, friction compensated; see `Driver`.

    Its record begins with `devices.common.driver_kernels.FORCE_DRIVER_FIELDS`. The motors add what friction takes away,
    where that is known and allowed.
    """

    _compensation: Compensation | None = None

    def compensate(self, share: float) -> None:
        """Apply this `share` of the friction compensation that the settings allow, 0 to 1.

        It is 0 after ``open``.
        """
        self._record["assistance"] = share

    def _fill(self, settings: VelocitySettings, resolution: float, compensation: Compensation | None) -> None:
        """Fill in how velocities are made of positions of a `resolution` [m], and what is added to commands."""
        fill_velocity(self._record["estimator"], settings, resolution, self._clock.period)
        self._compensation = compensation
        if compensation is not None:
            self._record["compensation"] = compensation.record

    def _prepare(self) -> None:
        """See `Driver._prepare`."""
        record = self._record
        prepare_velocity(record["estimator"])
        if self._compensation is not None:
            record["compensation"]["step"] = self._compensation.address
        super()._prepare()
        record["estimator"]["samples"] = 0

    def _end_log(self) -> None:
        """Log that there is no force any more."""
        if self._log is not None:
            self._log.append(self._now(), 0.0, 0.0)
        super()._end_log()
