"""Driver of a Force Dimension device; see `devices.forcedimension` for the guarantees about its force."""

from __future__ import annotations

import contextlib
import functools
import math
import re
import time
import warnings
from collections.abc import Mapping
from ctypes import c_double, c_int, c_ubyte, c_uint, c_ushort
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from devices.common.kernels import accept, begin_sample, copy_sample, send_command
from devices.common.output import OutputDriver
from devices.common.plane import (
    PlaneDriver,
    PlaneSettings,
    component,
    estimate_in_plane,
    place_in_plane,
    plane_fields,
    spread_force,
)
from devices.forcedimension.exchange import DeviceExchange
from devices.forcedimension.library import (
    FORCE,
    LIBRARY,
    NAME,
    OPTIONAL,
    RESET,
    SYMBOLS,
    VELOCITY_WINDOWING,
    WATCHDOG_UNIT,
    Sdk,
    SdkError,
    failure,
    trouble,
)
from haptics.clock import Clock, instruct, pause, raise_if_cancelled
from haptics.device import Channel
from haptics.errors import ConfigurationError, DeviceNotFoundError, DeviceOpenError
from haptics.jit import kernel
from haptics.settings import bounded, choice, documented, flag, string

_OMEGA, _DELTA, _SIGMA, _LAMBDA, _FALCON = "omega", "delta", "sigma", "lambda", "falcon"


@dataclass(frozen=True)
class Kind:
    """Family of devices: half the sides of the workspace along the device's axes [m], and its largest force [N]."""

    half: tuple[float, float, float]
    max_force: float


KINDS = {
    _OMEGA: Kind((0.04, 0.05, 0.05), 12.0),
    _DELTA: Kind((0.1, 0.12, 0.12), 20.0),
    _SIGMA: Kind((0.05, 0.06, 0.06), 20.0),
    _LAMBDA: Kind((0.06, 0.075, 0.075), 20.0),
    _FALCON: Kind((0.035, 0.035, 0.035), 8.0),
}
"""Families by name. The boxes lie within the round workspaces of the makers' data sheets."""

TYPES = {
    **dict.fromkeys((33, 34, 35, 36, 37), _OMEGA),
    **dict.fromkeys((63, 64), _DELTA),
    **dict.fromkeys((104, 105, 106, 107, 206), _SIGMA),
    **dict.fromkeys((108, 109, 203), _LAMBDA),
    60: _FALCON,
}
"""Families by the maker's number of the type (``dhdGetSystemType``)."""

OUTPUT_TYPES = (63, 104, 105)
"""Types with programmable output bits (``dhdSetOutput``) according to the maker: delta.3 and sigma.7."""

WARNING_TIME = 3.0
"""Time between the warning that the device moves and the initialisation [s]."""

LONGEST_WATCHDOG = 255 * WATCHDOG_UNIT
"""Longest time of the device's own watchdog [s]."""

_ARMING = 0.5  # timeout until the device has its forces on [s]
_ARMING_PAUSE = 5e-3
_MARGIN = 1.05  # of the maker's limit of the force above ours, which comes first


@documented
@dataclass(frozen=True)
class ForceDimensionSettings(PlaneSettings):
    """Settings of a Force Dimension device, in addition to `PlaneSettings`."""

    plane: str = string(
        "y-x",
        allowed="two axes of the device such as yz, y-x or -xy",
        doc="axes of the device that become x and y; x points to the person, y to the right and z up",
    )
    round_trip: float = bounded(
        5e-4, above=0.0, maximum=0.1, unit="s", doc="expected time of an exchange, for advice on parameters"
    )
    mass: float = bounded(
        0.2, minimum=0.05, maximum=5.0, unit="kg", doc="moving mass at the handle, for advice and for the emulation"
    )
    hold_stiffness: float = bounded(
        1000.0, minimum=0.0, maximum=1000.0, unit="N/m", doc="spring that holds the third axis; 0 to leave it free"
    )
    hold_damping: float = bounded(5.0, minimum=0.0, maximum=10.0, unit="N s/m", doc="damper that holds the third axis")
    hold_force: float = bounded(6.0, minimum=0.0, maximum=8.0, unit="N", doc="largest force that holds the third axis")
    library: str = string("", allowed="a path", doc="folder of the Force Dimension SDK, or file of its library libdrd")
    serial: str = string(
        "",
        allowed="a serial number such as 1234",
        digits=True,
        doc="serial number; may be empty if there is only one device",
    )
    kind: str = choice(_OMEGA, KINDS, doc="family of the device, which determines its workspace and largest force")
    initialise: bool = flag(False, doc="initialise the device if needed: it moves by itself through its workspace")
    gravity_compensation: bool = flag(True, doc="compensate the weight of the handle in the maker's library")
    effector_mass: float = bounded(
        0.0, minimum=0.0, maximum=5.0, unit="kg", doc="mass of the handle for the compensation; 0 for the maker's value"
    )
    velocity_threshold: int = bounded(
        0, minimum=0, maximum=20, unit="m/s", doc="speed at which the device switches off; 0 for the maker's value"
    )
    hardware_watchdog: float = bounded(
        0.03,
        minimum=0.0,
        maximum=LONGEST_WATCHDOG,
        unit="s",
        doc="time without a force after which the device switches off; 0 to do without, for devices that have none",
    )
    velocity_source: str = choice(
        "positions", ("positions", "maker"), doc="velocities from positions, or the maker's estimate"
    )
    maker_window: int = bounded(20, minimum=1, maximum=100, unit="ms", doc="window of the maker's estimate of velocity")
    output: str = string("", allowed="a path", doc="shared file of codes for the digital output; triggers set it")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not re.fullmatch(r"[0-9]*", self.serial):
            raise ConfigurationError(f"device.serial = {self.serial!r}: must be a serial number such as 1234.")
        largest = KINDS[self.kind].max_force
        if self.max_force > largest:
            raise ConfigurationError(
                f"device.max_force = {self.max_force:g} N: must be at most {largest:g} N for device.kind = "
                f"{self.kind!r}."
            )
        if 0.0 < self.hardware_watchdog < 2.0 * self.keep_alive:
            raise ConfigurationError(
                f"device.hardware_watchdog = {self.hardware_watchdog:g} s: must be at least twice device.keep_alive = "
                f"{self.keep_alive:g} s, or 0 to do without."
            )

        if self.output and not self.has_output:
            raise ConfigurationError(f"device.output: no {self.kind} has a digital output; leave it out.")

    @property
    def has_output(self) -> bool:
        """Whether a device of this family has a digital output."""
        return any(TYPES[number] == self.kind for number in OUTPUT_TYPES)

    @property
    def identity(self) -> str:
        """Identity of the device for messages."""
        return f"{self.kind} {self.serial or '(the only device)'}"


# --- per tick ---------------------------------------------------------------------------------------------------------

FORCE_DIMENSION = np.dtype(
    [*plane_fields(DeviceExchange.sample_size, DeviceExchange.command_size), ("maker_velocity", "<i8")]
)
"""State of the device in one record; ``maker_velocity`` is 1 if the maker's estimate is the velocity of the sample."""

CHANNELS: tuple[Channel, ...] = (
    ("maker_velocity", "m/s", 2),
    ("skipped_readings", "count", 1),
    ("saturated_forces", "count", 1),
    ("communication_rate", "Hz", 1),
)
"""Recorded channels, after the common ones of devices in a plane.

The maker's estimate of the velocity in the plane; since the opening, the numbers of positions that the library did not
read because the last reading was too recent, and of forces that it scaled down because the motors were saturated; and
the rate of the communication according to the library.
"""


@kernel
def take_force_dimension(s: Any, now: float, elapsed: float) -> None:
    """Read the newest sample at the nominal time `now`, `elapsed` after the clock's zero [s]."""
    if not begin_sample(s, now, elapsed):
        return
    if copy_sample(s):
        place_in_plane(s, 1)
        s.buttons = int(s.sample[7])
    estimate_in_plane(s)
    for i in range(2):
        s.channels[2 + i] = component(s, i, 4)
        if s.maker_velocity != 0:
            s.velocity[i] = s.channels[2 + i]
    for i in range(3):
        s.channels[4 + i] = s.sample[8 + i]


@kernel
def give_force_dimension(s: Any, x: float, y: float) -> None:
    """Publish the force [N]: the force in the plane, and the force that holds the third axis."""
    if accept(s, x, y):
        spread_force(s)
        send_command(s)


# --- driver -----------------------------------------------------------------------------------------------------------


class ForceDimension(PlaneDriver):
    """Force Dimension device in a plane: motion in the sample, force in the command.

    The settings of the device itself (watchdog, velocity threshold, largest force, gravity compensation) are set when
    it is opened, and recorded as `facts` together with its serial number and versions.

    Parameters
    ----------
    settings : mapping, optional
        Settings of `ForceDimensionSettings`.
    clock : Clock, optional
        Clock of the run; without it, time counts from ``open``.

    Attributes
    ----------
    facts : dict
        Properties of the open device.

    Raises
    ------
    ConfigurationError
        On a wrong setting.
    """

    name = NAME
    settings_class: ClassVar[type[ForceDimensionSettings]] = ForceDimensionSettings
    settings: ForceDimensionSettings

    def __init__(self, settings: Mapping[str, Any] | None = None, *, clock: Clock | None = None) -> None:
        super().__init__(
            settings,
            clock,
            FORCE_DIMENSION,
            (take_force_dimension, give_force_dimension),
            identity=lambda own: own.identity,
            half=lambda own: KINDS[own.kind].half,
            channels=CHANNELS,
        )
        self.facts: dict[str, Any] = {}
        own = self.settings
        if own.velocity_source == "maker":
            self._record["maker_velocity"] = 1
            lag = 0.5 * max(1e-3 * own.maker_window - self._clock.period, 0.0)  # of a mean over the window
            self.spec = replace(self.spec, velocity_lag=lag)

    @property
    def digital_output(self) -> bool:
        """Whether the device sets its digital output to the codes in the file ``output``."""
        return self.settings.has_output

    def _library(self, resources: contextlib.ExitStack) -> str:
        """Return the setting of the library; `resources` receives the clean-up."""
        return self.settings.library

    def _connect(self, resources: contextlib.ExitStack) -> DeviceExchange:
        """Open the device, initialise it on request, set its limits and switch its forces on."""
        library = LIBRARY.load(self._library(resources), SYMBOLS, OPTIONAL)
        sdk = self._open_device(library, resources)
        try:
            self._require_kind(sdk)
            self._require_initialised(sdk)
            self._set_limits(sdk)
            exchange = DeviceExchange(sdk, self.settings, watched=self.facts["watchdog_s"] > 0.0)
            if self.settings.output:
                exchange.output = OutputDriver(self.settings.output, functools.partial(sdk.call, "dhdSetOutput"))
            raise_if_cancelled()
            self._safeguard(exchange, resources)
            self._arm(sdk)
            exchange.samples.publish(*exchange.exchange(time.perf_counter(), (0.0, 0.0, 0.0)))  # for the first tick
        except SdkError as error:
            raise DeviceOpenError(f"{NAME}: {error}.") from error
        return exchange

    def _open_device(self, library: Any, resources: contextlib.ExitStack) -> Sdk:
        """Open the device with the serial number of the settings, or the only one."""
        count, wanted = library.dhdGetDeviceCount(), self.settings.serial
        if count < 0:
            raise DeviceOpenError(f"{NAME}: {failure(library, 'dhdGetDeviceCount')}.")
        found: dict[str, Sdk] = {}
        refused = None
        with contextlib.ExitStack() as opened:
            for index in range(count):
                device = library.dhdOpenID(index)
                if device < 0:
                    refused = failure(library, "dhdOpenID")
                    continue
                opened.callback(library.dhdClose, device)
                sdk = Sdk(library, device)
                try:
                    serial = str(sdk.number("dhdGetSerialNumber", c_ushort))
                except SdkError:  # old devices have none
                    serial = f"without a serial number, index {index}"
                found[serial] = sdk
                if serial == wanted:
                    break
            chosen = [wanted] if wanted in found else [] if wanted else [*found]
            if len(chosen) == 1:
                opened.pop_all()
                for serial, sdk in found.items():
                    if serial == chosen[0]:
                        resources.callback(library.dhdClose, sdk.device)
                    else:
                        library.dhdClose(sdk.device)
                return found[chosen[0]]
        if refused is not None and not chosen:
            raise DeviceOpenError(
                f"{NAME}: no usable device: {refused}: close other programs that use it, and give this user access: "
                "haptics doctor --udev forcedimension prints the udev rules."
            )
        if len(chosen) > 1:
            raise DeviceOpenError(
                f"{NAME}: several devices are there; choose one with device.serial: {', '.join(chosen)}."
            )
        if found:
            raise DeviceNotFoundError(
                f"{NAME}: there is no device.serial = {wanted!r}; the library finds {', '.join(found)}."
            )
        raise DeviceNotFoundError(
            f"{NAME}: the library finds no device: plug it in, switch it on, and give this user access: haptics doctor "
            "--udev forcedimension prints the udev rules. Or do without one: device.emulated=true."
        )

    def _require_kind(self, sdk: Sdk) -> None:
        """Raise an error if the device is of another family than the settings say; record its properties."""
        library, device = sdk.library, sdk.device
        number = sdk.call("dhdGetSystemType")
        title = (library.dhdGetSystemName(device) or b"").decode(errors="replace")
        family = TYPES.get(number)
        if family is not None and family != self.settings.kind:
            raise DeviceOpenError(
                f"{NAME}: the device is a {title or family}, with another workspace than device.kind = "
                f"{self.settings.kind!r}: set device.kind={family}."
            )
        version = [c_int() for _ in range(4)]
        library.dhdGetSDKVersion(*version)
        self.facts = {"name": title, "type": number, "sdk": ".".join(str(part.value) for part in version)}
        with contextlib.suppress(SdkError):  # old devices have none
            self.facts["firmware"] = sdk.number("dhdGetVersion", c_double)
            self.facts["serial"] = sdk.number("dhdGetSerialNumber", c_ushort)

    def _require_initialised(self, sdk: Sdk) -> None:
        """Check that the device is initialised, or initialise it if the settings allow that."""
        sdk.call("drdOpenID")  # the robotic functions of a device that is open already
        if sdk.library.drdIsInitialized(sdk.device) and not sdk.status()[RESET]:
            return
        if not self.settings.initialise:
            raise DeviceOpenError(
                f"{NAME}: the device is not initialised, and its positions are wrong: put its handle into the "
                "calibration position as its manual says, or set device.initialise=true: it then moves by itself, so "
                "take your hands off and clear its workspace."
            )
        words = f"the device moves by itself in {WARNING_TIME:g} s to initialise: hands off, clear its workspace."
        if not instruct(words):
            warnings.warn(f"{NAME}: {words}", RuntimeWarning, stacklevel=2)
        pause(WARNING_TIME)
        try:
            sdk.call("drdAutoInit")
        finally:
            # Its regulation must not act against our forces. A failure may mean that it has ended already.
            sdk.library.drdStop(False, sdk.device)
        if not sdk.library.drdIsInitialized(sdk.device) or sdk.status()[RESET]:
            raise SdkError("the initialisation did not succeed: initialise the device as its manual says")
        instruct("")

    def _set_limits(self, sdk: Sdk) -> None:
        """Set and record the limits and the compensation of the device and of the maker's library."""
        own, library, facts = self.settings, sdk.library, self.facts
        if library.dhdEnableExpertMode() < 0:
            raise failure(library, "dhdEnableExpertMode")
        try:
            try:
                units = round(own.hardware_watchdog / WATCHDOG_UNIT)
                sdk.call("dhdSetWatchdog", units)
                found = sdk.number("dhdGetWatchdog", c_ubyte)
                if units and not 0 < found <= units:
                    raise SdkError(f"dhdSetWatchdog had no effect (the device has {WATCHDOG_UNIT * found:g} s)")
                facts["watchdog_s"] = WATCHDOG_UNIT * found
            except SdkError as error:
                if own.hardware_watchdog > 0.0:
                    raise SdkError(
                        f"{error}: this device may have no watchdog, so that its last force would stay if this "
                        "computer stopped; set device.hardware_watchdog=0 if you accept that"
                    ) from error
                facts["watchdog_s"] = 0.0
            if own.velocity_threshold:
                sdk.call("dhdSetVelocityThreshold", own.velocity_threshold)
            with contextlib.suppress(SdkError):  # not on every device
                facts["velocity_threshold"] = sdk.number("dhdGetVelocityThreshold", c_uint)
        finally:
            library.dhdDisableExpertMode()
        sdk.call("dhdSetGravityCompensation", own.gravity_compensation)
        facts["gravity_compensation"] = own.gravity_compensation
        if own.effector_mass:
            sdk.call("dhdSetEffectorMass", own.effector_mass)
            facts["effector_mass_kg"] = own.effector_mass
        if hasattr(library, "dhdSetMaxForce"):
            sdk.call("dhdSetMaxForce", _MARGIN * math.hypot(own.max_force, own.hold_force))
            facts["max_force_n"] = float(library.dhdGetMaxForce(sdk.device))
        sdk.call("dhdConfigLinearVelocity", own.maker_window, VELOCITY_WINDOWING)

    def _arm(self, sdk: Sdk) -> None:
        """Switch the forces on, with a force of zero, and wait until the device states so."""
        latest = time.monotonic() + _ARMING
        while True:
            sdk.call("dhdSetBrakes", False)
            sdk.call("dhdEnableForce", True)
            sdk.call("dhdSetForce", 0.0, 0.0, 0.0)
            status = sdk.status()
            if status[FORCE]:
                return
            if time.monotonic() > latest:
                raise SdkError(trouble(status) or "the device does not switch its forces on")
            pause(_ARMING_PAUSE)
