"""Driver of a calibrated force-feedback stick of the USB class Physical Interface Device."""

from __future__ import annotations

import atexit
import contextlib
from collections.abc import Mapping
from typing import Any, ClassVar

from devices.common.compensation import compensation_of
from devices.common.driver import ForceDriver
from devices.common.latch import Wake
from devices.common.settings import velocity_lag
from devices.joystick.families import family_of
from devices.joystick.kernels import STICK, connect, give_stick, take_stick
from devices.joystick.opening import playing, reach, require_parameters
from devices.joystick.parameters import StickParameters, read_parameters
from devices.joystick.settings import StickSettings
from devices.joystick.streaming import READ_TIMEOUT, Streaming
from devices.joystick.trial import require_force
from haptics.clock import Clock
from haptics.device import Causality, DeviceSpec
from haptics.errors import ConfigurationError, DeviceFault, DeviceOpenError
from haptics.settings import build

NAME = "pid-joystick"
_RATE_MIN, _RATE_MAX = 100.0, 1000.0
_MAX_SPEED = 2.0
_MAX_ACCELERATION = 100.0
_NOTHING_KNOWN = (_RATE_MIN, _RATE_MAX, (-0.05, -0.05), (0.05, 0.05), 100.0, 1e5, _MAX_SPEED, _MAX_ACCELERATION, 0.02)


class PidJoystick(ForceDriver):
    """Driver of a force-feedback stick (impedance device): motion in the sample, force in the command.

    Constructing it does not access hardware. It can be constructed without a parameter file, but not opened.

    Parameters
    ----------
    settings : mapping, optional
        Settings of `StickSettings`.
    clock : Clock, optional
        Clock of the run; without it, time counts from the construction.
    backend : usb.backend.IBackend, optional
        USB backend to use instead of libusb.

    Attributes
    ----------
    settings : StickSettings
        Validated settings.
    parameters : StickParameters or None
        Parameters of the stick.
    backend : usb.backend.IBackend or None
        USB backend, None for libusb.

    Raises
    ------
    ConfigurationError
        On a wrong setting or a wrong parameter file.
    """

    name = NAME
    settings_class: ClassVar[type[StickSettings]] = StickSettings

    def __init__(
        self, settings: Mapping[str, Any] | None = None, *, clock: Clock | None = None, backend: Any = None
    ) -> None:
        self.settings = build(self.settings_class, settings or {}, "device")
        self.backend = backend
        self.parameters = self._known()
        self._check_serial()
        super().__init__(STICK, (take_stick, give_stick), clock, self.settings.period)
        self._streaming: Streaming | None = None
        resolution, added = 0.0, None
        if self.parameters is not None:
            resolution = self.parameters.axes.resolution
            added = compensation_of(self.settings, NAME, self._identity, self._clock.period, resolution)
        self._fill(self.settings, resolution, added)

    def _known(self) -> StickParameters | None:
        """Return the parameters of the stick, None without a parameter file."""
        return read_parameters(self.settings.parameters) if self.settings.parameters else None

    def _bus(self) -> Any:
        """Return the USB backend with which the stick is opened, None for libusb."""
        return self.backend

    def _check_serial(self) -> None:
        serial, known = self.settings.serial, self.parameters.device.serial if self.parameters else ""
        if serial and known and serial != known:
            raise ConfigurationError(
                f"device.serial = {serial!r}: the parameters of device.parameters are those of the stick with serial "
                f"{known!r}. Each stick has a file of its own."
            )

    # --- data sheet ---------------------------------------------------------------------------------------------------

    @property
    def _identity(self) -> str:
        assert self.parameters is not None
        return str(self.parameters.device)

    @property
    def spec(self) -> DeviceSpec:
        """Data sheet; a placeholder for a stick without parameters, which cannot be opened."""
        known = self.parameters
        if known is None:
            return DeviceSpec(NAME, Causality.IMPEDANCE, "not calibrated", *_NOTHING_KNOWN)
        identity, axes, force, handle = known.device, known.axes, known.force, known.handle
        damping, added = handle.damping_ns_per_m, self._compensation
        if added is not None and damping is not None:
            damping = added.left_of(damping)
        family = family_of(identity.vendor_id, identity.product_id)
        vector = len(axes.usages) * family.out_interval(identity.out_interval_s)
        return DeviceSpec(
            name=NAME,
            causality=Causality.IMPEDANCE,
            identity=self._identity,
            rate_min=_RATE_MIN,
            rate_max=max(_RATE_MAX, 1.0 / identity.in_interval_s),
            workspace_min=axes.workspace_min_m,
            workspace_max=axes.workspace_max_m,
            max_force=force.max_force_n,
            max_force_rate=2.0 * force.max_force_n / vector,
            dimensions=len(axes.usages),
            max_speed=_MAX_SPEED,
            max_acceleration=_MAX_ACCELERATION,
            max_sample_age=2.0 * (READ_TIMEOUT + identity.in_interval_s),
            dead_man="button" if handle.dead_man_button else "none",
            watchdog=max(self.settings.force_duration, force.release_s or 0.0),
            position_resolution=axes.resolution,
            mass=handle.moving_mass_kg,
            damping=damping,
            delay=identity.in_interval_s + vector,
            velocity_lag=velocity_lag(self.settings, axes.resolution, self._clock.period),
            least_friction=added.least_friction if added else None,
            force_resolution=force.resolution,
        )

    # --- driver interface ---------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Connect to the stick, set it up and wait for its first position; does nothing if it is open.

        Raises
        ------
        DeviceNotFoundError
            If it is not connected.
        DeviceOpenError
            If it could not be opened, or its firmware has changed and its force is wrong. The message states the
            remedy.
        ConfigurationError
            If it has no parameters, or the parameters belong to another stick.
        """
        if self._streaming is not None:
            return
        self._prepare()
        own = self.settings
        with contextlib.ExitStack() as undo:
            transport = reach(own, self.parameters, self._bus())
            undo.callback(transport.close)
            known = require_parameters(self.parameters, transport.link, own.parameters)
            self._begin_log(own.log)
            times, axes = (own.force_duration, own.keep_alive), known.axes.usages
            streaming = undo.enter_context(playing(transport, *times, axes, effects=known.force.effects))
            firmware = transport.link.bcd_device
            if firmware is not None and known.device.bcd_device not in (None, firmware):
                require_force(streaming, known, firmware)
            connect(self._record, known, streaming)
            self._undo, self._streaming = undo.pop_all(), streaming
        atexit.register(self.close)

    def close(self) -> None:
        """Set the force to zero, stop the effects and release the stick.

        A failed step does not prevent the others.
        """
        if self._streaming is None:
            return
        self.compensate(0.0)
        self._end_log()
        self._streaming = None
        atexit.unregister(self.close)
        self._undo.close()

    # --- private ------------------------------------------------------------------------------------------------------

    def _opened(self) -> Streaming:
        if self._streaming is None:
            raise DeviceOpenError(f"{NAME} is not open: call open() first.")
        return self._streaming

    def _threads(self) -> Wake:
        return self._opened().wake

    def _words(self, fault: int) -> DeviceFault:
        loss = self._opened().loss()
        said = DeviceFault(str(loss))
        said.__cause__ = loss
        return said
