"""Driver of a calibrated force-feedback stick of the USB class Physical Interface Device."""

from __future__ import annotations

import atexit
import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from devices.common.compensation import compensation_of
from devices.common.driver import ForceDriver, ForceDriverSettings
from devices.common.latch import Wake
from devices.common.settings import velocity_lag
from devices.joystick.families import family_of
from devices.joystick.hid.descriptor import DescriptorError, ReportDescriptor, actuated_axes, parse_descriptor
from devices.joystick.hid.usages import X, Y
from devices.joystick.kernels import STICK, fill_stick, give_stick, take_stick
from devices.joystick.parameters import StickParameters, read_parameters
from devices.joystick.reports import InputLayout, Playbook
from devices.joystick.session import PidSession
from devices.joystick.streaming import READ_TIMEOUT, Streaming
from devices.joystick.trial import require_force
from devices.joystick.usb.finding import TRANSPORTS, Transport, connect
from devices.joystick.usb.transport import Link
from haptics.clock import Clock
from haptics.device import Causality, DeviceSpec
from haptics.errors import ConfigurationError, DeviceFault, DeviceNotFoundError, DeviceOpenError
from haptics.settings import bounded, build, choice, documented, string

# --- settings ---------------------------------------------------------------------------------------------------------

LONGEST = 0.25
"""Maximum duration of a force after the host process has died [s]."""


@documented
@dataclass(frozen=True)
class StickSettings(ForceDriverSettings):
    """Settings of a stick, in addition to `ForceDriverSettings`."""

    parameters: str = string(
        "", allowed="a file", doc="parameter file, from haptics calibrate joystick; required unless it is emulated"
    )
    serial: str = string("", doc="serial number of the stick, to select one of several")
    port: str = string(
        "", doc="USB port of the stick, such as 1-2.3, to select one of several without distinct serial numbers"
    )
    transport: str = choice(
        "auto", TRANSPORTS, doc="access to the stick: libusb, Linux's hidraw, or hidraw if libusb fails"
    )
    force_duration: float = bounded(
        0.2, minimum=0.02, maximum=LONGEST, unit="s", doc="time after which the device ends a force by itself"
    )
    keep_alive: float = bounded(
        0.05, minimum=0.01, maximum=LONGEST / 2.0, unit="s", doc="restart period of a force, and validity of a command"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.keep_alive > 0.5 * self.force_duration:
            raise ConfigurationError(
                f"device.keep_alive = {self.keep_alive:g} s: must be at most half of device.force_duration = "
                f"{self.force_duration:g} s, or the force would end in between."
            )


# --- opening ----------------------------------------------------------------------------------------------------------

THE_MOTORS = ()
"""Placeholder for the axis of a wheel: selects the first axis with a motor."""

_FIRST_REPORT = 1.0  # timeout for the first position after opening [s]


def require_parameters(known: StickParameters | None, link: Link, file: str) -> StickParameters:
    """Return the parameters after validating that they belong to the connected stick.

    Parameters
    ----------
    known : StickParameters or None
        Parameters of the stick.
    link : Link
        Properties of the connected stick.
    file : str
        Name of the parameter file.

    Raises
    ------
    ConfigurationError
        If parameters are missing or belong to another stick; names the difference.
    """
    if known is None:
        raise ConfigurationError(
            f"device.parameters is missing: the stick {link} is not calibrated (metres per count, newtons per level). "
            "Run haptics calibrate joystick, then name its file: --set device.parameters=FILE."
        )
    own = known.device
    for name, there, here in (
        ("identity", own.vid_pid, link.vid_pid),
        ("serial", own.serial, link.serial),
        ("report descriptor", own.report_descriptor_sha256, link.digest),
    ):
        if there != here:
            raise ConfigurationError(
                f"device.parameters = {file!r}: belongs to another stick; {name} is {there!r} in the file and "
                f"{here!r} of the stick. Run haptics calibrate joystick for this one."
            )
    button = known.handle.dead_man_button
    buttons = InputLayout(_parsed(link), *known.axes.usages).buttons
    if button > buttons:
        raise ConfigurationError(
            f"device.parameters = {file!r}: handle.dead_man_button = {button}: the stick has {buttons} buttons that "
            "can be used; choose one of them, or 0 for none."
        )
    return known


@contextlib.contextmanager
def playing(
    transport: Transport,
    duration: float,
    keep_alive: float,
    axes: tuple[int, ...] = (X, Y),
    patience: float = _FIRST_REPORT,
    effects: int = 2,
) -> Iterator[Streaming]:
    """Set up a connected stick and stream to its effects. On exit, the force is zero in any case.

    Parameters
    ----------
    transport : Transport
        Open connection.
    duration : float
        Time without a restart after which the stick itself ends the force [s].
    keep_alive : float
        Interval of the restarts, and age at which a command expires [s].
    axes : tuple of int
        Usages of the two axes of a stick, or of the one axis of a wheel, which may be `THE_MOTORS`.
    patience : float
        Timeout for the first position [s].
    effects : int
        Number of effects that the stick adds. With 1, the direction of one effect is streamed. A wheel always has one.

    Raises
    ------
    DeviceOpenError
        If its reports cannot be parsed or are insufficient, it rejects a request, or it sends no positions.
    """
    link = transport.link
    descriptor, family = _parsed(link), family_of(link.vid_pid)
    motors = actuated_axes(descriptor)
    if axes == THE_MOTORS:
        axes = motors[:1] or (X,)
    elif len(axes) > 1 and len(motors) == 1:  # the second axis could not exert force
        raise DeviceOpenError(
            f"{link} is a wheel: one axis with a motor, by its report descriptor. A force in the plane needs two. "
            "Calibrate it as a wheel: haptics calibrate joystick --rim-radius M."
        )
    layout = InputLayout(descriptor, *axes)
    session = PidSession(transport, Playbook(descriptor, family), family, duration, min(effects, len(axes)))
    with contextlib.ExitStack() as undo:
        session.start()
        undo.callback(session.stop)
        streaming = Streaming(transport, session, layout, keep_alive)
        undo.callback(streaming.stop)
        streaming.start(patience)
        yield streaming


def _parsed(link: Link) -> ReportDescriptor:
    try:
        return parse_descriptor(link.descriptor)
    except DescriptorError as error:
        raise DeviceOpenError(f"the stick's report descriptor cannot be read: {error}") from error


# --- driver -----------------------------------------------------------------------------------------------------------

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
        self.settings = own = build(self.settings_class, settings or {}, "device")
        self.backend = backend
        self.parameters = known = self._known()
        if own.serial and known and known.device.serial not in ("", own.serial):
            raise ConfigurationError(
                f"device.serial = {own.serial!r}: device.parameters belongs to the stick with "
                f"serial {known.device.serial!r}. Each stick needs its own file."
            )
        super().__init__(STICK, (take_stick, give_stick), clock, own.period)
        self._streaming: Streaming | None = None
        resolution, added = 0.0, None
        if known is not None:
            resolution = known.axes.resolution
            added = compensation_of(own, NAME, self._identity, self._clock.period, resolution)
        self._fill(own, resolution, added)

    def _known(self) -> StickParameters | None:
        """Return the parameters of the stick, None without a parameter file."""
        return read_parameters(self.settings.parameters) if self.settings.parameters else None

    def _bus(self) -> Any:
        """Return the USB backend with which the stick is opened, None for libusb."""
        return self.backend

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
        family = family_of(identity.vid_pid)
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
            known = self.parameters
            identity, serial = (known.device.vid_pid, known.device.serial) if known else ("", "")
            try:
                transport = connect(identity, own.serial or serial, own.transport, self._bus(), own.port)
            except DeviceNotFoundError as error:
                hint = ""
                if known is None:
                    hint = (
                        " It will also need a parameter file (device.parameters): haptics calibrate joystick makes it."
                    )
                elif own.parameters:
                    hint = f" The file device.parameters = {own.parameters!r} is that of {known.device}."
                raise DeviceNotFoundError(f"{error}{hint}") from error
            undo.callback(transport.close)
            known = require_parameters(known, transport.link, own.parameters)
            self._begin_log(own.log)
            times, axes = (own.force_duration, own.keep_alive), known.axes.usages
            streaming = undo.enter_context(playing(transport, *times, axes, effects=known.force.effects))
            firmware = transport.link.bcd_device
            if firmware is not None and known.device.bcd_device not in (None, firmware):
                require_force(streaming, known, firmware)
            fill_stick(self._record, known, streaming)
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

    def _wake(self) -> Wake:
        return self._opened().wake

    def _fault_error(self, fault: int) -> DeviceFault:
        loss = self._opened().loss()
        error = DeviceFault(str(loss))
        error.__cause__ = loss
        return error
