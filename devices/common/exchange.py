"""Drivers whose thread exchanges commands for samples with a device.

A tick never waits for the bus: it reads the newest sample and publishes the newest command. A thread performs one
exchange after the other. An exchange begins when a new command arrives. Without a new command, the last one is repeated
after a pause, to keep the samples current. If no command arrives within the watchdog's time, a command of zeros is
sent. The driver sets the output to zero at every end of a run, also after errors. A second process, the guardian
(`devices.common.guardian`), can do so when the driver dies or stops responding. Where the library of a manufacturer has
the thread, a `Link` takes the place of the exchange.

A driver consists of two classes and two kernels. The connection has the exchange of one command and sample, and the
safe output::

    class PuckConnection(Exchange):
        noun, remedy = "puck", "switch the puck off"
        sample_size, command_size = 2, 2

        def exchange(self, now, command):
            return now, *self.transfer(command)

        def come_to_rest(self):
            return self.transfer((0.0, 0.0)) is not None

The driver has the opening. It calls `_safeguard` as soon as the device can have an output other than zero::

    class Puck(ExchangeDriver):
        name, settings_class = "puck", PuckSettings

        def __init__(self, settings=None, *, clock=None):
            super().__init__(settings, clock, RECORD, (take_puck, give_puck))
            self._set_sheet("puck 1", (-0.05, -0.05), (0.05, 0.05), max_force=3.0, resolution=1e-5)

        def _connect(self, resources):
            connection = PuckConnection(self.settings, open_port(self.settings.port))
            resources.callback(connection.close)
            self._safeguard(connection, resources)
            return connection

The kernels (`devices.common.kernels`) convert between the numbers of the exchange and the sample of the tick. Their
record begins with the fields of ``exchange_fields(2, 2)``::

    @kernel
    def take_puck(s, now, elapsed):
        if begin_sample(s, now, elapsed):
            if copy_sample(s):
                s.position[0], s.position[1] = s.sample[1], s.sample[2]
            estimate_velocity(s)

    @kernel
    def give_puck(s, x, y):
        if accept(s, x, y):
            s.given[0], s.given[1] = s.compensation.total[0], s.compensation.total[1]
            send_command(s)
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from devices.common.compensation import compensation_of
from devices.common.driver import ForceDriver, ForceDriverSettings
from devices.common.guard import FAREWELL, Guard
from devices.common.latch import Latch, Wake
from devices.common.settings import Point, velocity_lag
from haptics.clock import Clock, raise_if_cancelled
from haptics.device import Causality, Channel, DeviceSpec
from haptics.errors import DeviceFault, DeviceOpenError, HapticError, reason_of
from haptics.settings import bounded, build, documented


@documented
@dataclass(frozen=True)
class ExchangeSettings(ForceDriverSettings):
    """Settings of every driver whose thread exchanges commands for samples."""

    watchdog: float = bounded(
        0.1, minimum=0.02, maximum=1.0, unit="s", doc="time without a command after which the force is zero"
    )
    keep_alive: float = bounded(
        2e-3,
        minimum=2e-4,
        maximum=0.01,
        unit="s",
        doc="time after which the last command is repeated if no new one arrives",
    )
    round_trip: float = bounded(
        1e-3, above=0.0, maximum=0.1, unit="s", doc="expected time of an exchange, for advice on parameters"
    )
    mass: float = bounded(
        0.1, minimum=0.05, maximum=5.0, unit="kg", doc="moving mass at the handle, for advice and for the emulation"
    )
    damping: float = bounded(
        0.5,
        minimum=0.0,
        maximum=20.0,
        unit="N s/m",
        doc="viscous friction at the handle, for advice and for the emulation",
    )


# --- thread -----------------------------------------------------------------------------------------------------------


class ExchangeEnded(HapticError):
    """Reason to end the exchange with the output at zero, or set to zero by the guardian; the message is complete."""


class Link(ABC):
    """Open connection to a device, which exchanges commands for samples through two latches.

    Parameters
    ----------
    settings : ExchangeSettings
        Settings of the exchange.

    Attributes
    ----------
    samples : Latch
        Time of the latest sample (`time.perf_counter`) [s], and its numbers.
    commands : Latch
        Numbers of the latest command, and its time (`time.perf_counter`) [s].
    wake : Wake
        Event that the tick sets after a new command.
    guard : Guard or None
        Guardian, which receives heartbeats.
    failure : str
        Reason of a failure, after which samples stop; empty otherwise.
    lost : (1,) float array
        Failure flag for the tick: 1 after a failure.
    """

    noun: ClassVar[str]
    """Name of the far end in messages."""
    remedy: str
    """Action of the user if the output of the device is unknown."""
    sample_size: ClassVar[int]
    """Number of numbers in a sample, without its time."""
    command_size: ClassVar[int]
    """Number of numbers in a command, without its time."""

    def __init__(self, settings: ExchangeSettings) -> None:
        self.samples, self.commands, self.wake = Latch(1 + self.sample_size), Latch(self.command_size + 1), Wake()
        self.failure, self.lost = "", np.zeros(1)
        self.guard: Guard | None = None

    @abstractmethod
    def start(self) -> None:
        """Begin to apply commands."""

    @abstractmethod
    def stop(self) -> None:
        """Stop applying commands."""

    @abstractmethod
    def come_to_rest(self) -> bool:
        """Set the output to zero after `stop`; return True if the device confirmed that.

        Raises
        ------
        HapticError, OSError
            If the device is lost.
        """


class Exchange(Link):
    """Link with a thread that exchanges commands for samples until it is stopped or fails.

    Parameters
    ----------
    settings : ExchangeSettings
        Its watchdog is the age at which a command expires.

    Attributes
    ----------
    commanded : float
        Time of the command of the present exchange [s].
    files : tuple
        Files (descriptors or sockets) that start an exchange when they can be read.
    """

    def __init__(self, settings: ExchangeSettings) -> None:
        super().__init__(settings)
        self.commanded = 0.0
        self.files: tuple[Any, ...] = ()
        self._keep_alive, self._watchdog = settings.keep_alive, settings.watchdog
        self._ending = False
        self._thread = threading.Thread(target=self._run, name=f"exchange with the {self.noun}", daemon=True)

    @abstractmethod
    def exchange(self, now: float, command: tuple[float, ...]) -> tuple[float, ...] | None:
        """Exchange a command for a sample.

        Parameters
        ----------
        now : float
            Present time (`time.perf_counter`) [s].
        command : tuple of float
            Latest command; zeros if it has expired.

        Returns
        -------
        tuple of float or None
            Time of the sample [s] and its numbers; None if there is no new sample.

        Raises
        ------
        HapticError, OSError
            If the device is lost: the thread ends, and the tick reports the reason.
        """

    def fail_safe(self, error: Exception) -> None:
        """Try to set the output to zero in the thread that ends with an `error`; errors are ignored."""
        self.come_to_rest()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread after the current exchange; the caller may then use the connection."""
        self._ending = True
        self.wake.call()
        if self._thread.is_alive():
            self._thread.join()

    def check_guardian(self) -> None:
        """Send a heartbeat to the guardian.

        Raises
        ------
        ExchangeEnded
            If the guardian has taken over or exited.
        """
        if self.guard is not None and not self.guard.beat():
            raise ExchangeEnded(
                "the guardian process has ended: it set the force to 0 because this process was silent for too long, "
                "or another program ended it. If the handle still pushes, switch the device off; then start again."
            )

    def _run(self) -> None:
        try:
            while not self._ending:
                self.wake.wait(self._keep_alive, *self.files)
                self.check_guardian()
                now = time.perf_counter()
                *command, self.commanded = self.commands.read()
                if now - self.commanded >= self._watchdog:
                    command = [0.0] * self.command_size
                sample = self.exchange(now, tuple(command))
                if sample is not None:
                    self.samples.publish(*sample)
        except Exception as error:  # report every kind of exception to the tick
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Report to the tick that samples have stopped, with the reason, and try to set the output to zero."""
        try:
            self.check_guardian()
        except ExchangeEnded as gone:  # the guardian may have caused the error
            error = gone
        match error:
            case ExchangeEnded():
                failure = str(error)
            case HapticError():
                failure = f"{reason_of(error)}; {self.remedy}."
            case OSError():
                reason = os.strerror(error.errno) if error.errno else error
                failure = f"the {self.noun} is gone ({reason}); {self.remedy}."
            case _:
                reason = f"{type(error).__name__}: {error}"
                failure = f"the exchange with the {self.noun} failed ({reason}); report this."
        self.failure = self.failure or failure  # later errors, as of another thread, are often its consequences
        self.lost[0] = 1.0
        with contextlib.suppress(HapticError, OSError):
            self.fail_safe(error)


# --- driver -----------------------------------------------------------------------------------------------------------


class ExchangeDriver(ForceDriver):
    """Impedance device behind a `Link`. Subclasses call `_set_sheet` and write `_connect`.

    Parameters
    ----------
    settings : mapping or None
        Settings of the class `settings_class`.
    clock : Clock or None
        Clock of the run; without it, time counts from ``open``.
    dtype : dtype
        Type of the record, which begins with `devices.common.kernels.exchange_fields`.
    parts : (callable, callable)
        Parts that read a sample and process a command.

    Attributes
    ----------
    spec : DeviceSpec
        Data sheet.

    Raises
    ------
    ConfigurationError
        On a wrong setting.
    """

    settings_class: ClassVar[type[ExchangeSettings]]
    spec: DeviceSpec
    _exchange: Link | None = None

    def __init__(
        self,
        settings: Mapping[str, Any] | None,
        clock: Clock | None,
        dtype: np.dtype[Any],
        parts: tuple[Callable[..., None], Callable[..., None]],
    ) -> None:
        self.settings = build(self.settings_class, settings or {}, "device")
        super().__init__(dtype, parts, clock, self.settings.period)
        self._resources = contextlib.ExitStack()

    def _set_sheet(
        self,
        identity: str,
        lower: Point,
        upper: Point,
        *,
        max_force: float,
        resolution: float,
        channels: tuple[Channel, ...] = (),
    ) -> None:
        """Set the data sheet, the velocity estimator and the friction compensation.

        The driver and its guardian implement the watchdog.

        Parameters
        ----------
        identity : str
            Identity of the individual device.
        lower, upper : (float, float)
            Corners of the workspace [m].
        max_force : float
            Largest force [N].
        resolution : float
            Smallest step of the position [m].
        channels : tuple
            Additional measured quantities.
        """
        own, period = self.settings, self._clock.period
        added = compensation_of(own, self.name, identity, period, resolution)
        self._fill(own, resolution, added)
        if channels:
            self._state.channels = self._record["channels"][0][: sum(size for _, _, size in channels)]
        self.spec = DeviceSpec(
            name=self.name,
            causality=Causality.IMPEDANCE,
            identity=identity,
            rate_min=100.0,
            rate_max=1000.0,
            workspace_min=lower,
            workspace_max=upper,
            max_force=max_force,
            max_force_rate=2000.0,
            max_speed=1.0,
            max_acceleration=max_force / own.mass,
            max_sample_age=10e-3,
            watchdog=own.watchdog,
            position_resolution=resolution,
            mass=own.mass,
            damping=added.left_of(own.damping) if added else own.damping,
            delay=max(min(period, own.keep_alive), own.round_trip),
            velocity_lag=velocity_lag(own, resolution, period),
            least_friction=added.least_friction if added else None,
            channels=channels,
        )

    @abstractmethod
    def _connect(self, resources: contextlib.ExitStack) -> Link:
        """Connect to the device and prepare it for the exchange of samples; `resources` receives the clean-up.

        Raises
        ------
        DeviceNotFoundError, DeviceOpenError
            With the remedy.
        """

    def _safeguard(
        self,
        exchange: Link,
        resources: contextlib.ExitStack,
        script: str = "",
        words: Sequence[str] = (),
        file: int = -1,
    ) -> None:
        """Set the output to zero when `resources` are closed, and start a guardian if there is a `script` for one.

        Parameters
        ----------
        exchange : Link
            Connection whose output is set to zero.
        resources : ExitStack
            Receives the clean-up, after the closing of the connection.
        script, words, file
            Duty of the guardian, its arguments, and the file that it inherits, if any (`devices.common.guard.Guard`).
        """
        if script:
            silence, files = self.settings.watchdog, () if file < 0 else (file,)
            exchange.guard = Guard(f"the {exchange.noun}", script, words, files=files, silence=silence)
        resources.callback(self._shut_down, exchange)

    def _shut_down(self, exchange: Link) -> None:
        """Set the output to zero and dismiss the guardian; if that fails, hand over to the guardian."""
        exchange.stop()
        at_rest, reason = False, "it did not confirm that"
        try:
            at_rest = exchange.come_to_rest()
        except (HapticError, OSError) as error:
            reason = reason_of(error)
        finally:
            if exchange.guard is not None and at_rest:
                exchange.guard.dismiss()
            elif exchange.guard is not None:
                exchange.guard.hand_over(FAREWELL)
        if not at_rest:
            raise DeviceFault(f"{self.name}: the force could not be set to 0 ({reason}); {exchange.remedy}.")

    # --- device interface ---------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Connect to the device and start the exchange; does nothing if it is open.

        Raises
        ------
        DeviceNotFoundError
            If the device is not found.
        DeviceOpenError
            If it cannot be used.
        """
        if self._exchange is not None:
            return
        self._prepare()
        self._begin_log(self.settings.log)
        resources = contextlib.ExitStack()
        try:
            exchange = self._connect(resources)
            record = self._record
            record["samples"], record["commanded"] = exchange.samples.place, exchange.commands.place
            record["lost"] = exchange.lost.ctypes.data
            raise_if_cancelled()
            exchange.start()
        except BaseException:
            with contextlib.suppress(DeviceFault):  # report the first error
                resources.close()
            raise
        self._exchange, self._resources = exchange, resources

    def close(self) -> None:
        """Set the force to zero, verify that, and disconnect; does nothing if it is not open.

        Raises
        ------
        DeviceFault
            If the device did not confirm zero force.
        """
        if self._exchange is None:
            return
        self._exchange = None
        self.compensate(0.0)
        self._resources.close()
        self._end_log()

    def _opened(self) -> Link:
        if self._exchange is None:
            raise DeviceOpenError(f"{self.name} is not open: call open() first.")
        return self._exchange

    def _wake(self) -> Wake:
        return self._opened().wake

    def _fault_error(self, fault: int) -> DeviceFault:
        return DeviceFault(f"{self.name}: {self._opened().failure}")
