"""What a person can choose about a force-feedback stick."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from devices.common.compensation import CompensationSettings
from devices.common.friction import parse_friction
from devices.common.velocity import VelocitySettings, check_velocity
from devices.emulators.pid.faults import WIRE_FAULTS
from devices.emulators.pid.profiles.known import PROFILES
from devices.emulators.wire_faults import ALLOWED, check_wire_faults
from devices.joystick.usb.finding import TRANSPORTS
from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, choice, documented, flag, free, string

EMULATORS = tuple(PROFILES)
LONGEST = 0.25
"""A force of a host that has died must not stay for longer [s]."""


@documented
@dataclass(frozen=True)
class StickSettings(CompensationSettings, VelocitySettings):
    """Settings of a stick, besides those of the velocity estimator and of `CompensationSettings`."""

    parameters: str = string(
        "", allowed="a file", doc="parameters of a stick that is not emulated, from haptics calibrate joystick"
    )
    serial: str = string("", doc="serial number of the stick, where several are plugged in")
    transport: str = choice(
        "auto", TRANSPORTS, doc="how to reach the stick: libusb, Linux's hidraw, or hidraw where libusb fails"
    )
    force_duration: float = bounded(
        0.2, minimum=0.02, maximum=LONGEST, unit="s", doc="the device ends a force that is not restarted for so long"
    )
    keep_alive: float = bounded(
        0.05,
        minimum=0.01,
        maximum=LONGEST / 2.0,
        unit="s",
        doc="how often a force is restarted, how long a command counts",
    )
    emulated: bool = flag(False, doc="whether the driver talks to an emulated stick")
    emulator: str = choice("openffboard", EMULATORS, doc="which stick is emulated")
    wire_faults: tuple[str, ...] = free(
        (), ALLOWED, doc="faults of the emulated wire, on demand, from the time the stick is opened"
    )
    friction: Any = free(
        None, "tables x and y of levels [N]", doc="own dry friction, by axis and direction, emulated only"
    )
    seed: int = bounded(
        0, minimum=0, maximum=2**62, doc="seed of everything random about an emulated stick and its hand"
    )
    period: float = bounded(1e-3, minimum=1e-5, maximum=1.0, unit="s", doc="period of a tick where there is no clock")
    log: str = string("", allowed="a file", doc="where to log what was commanded and when")

    def __post_init__(self) -> None:
        check(self, "device")
        check_velocity(self, "device.")
        if self.keep_alive > 0.5 * self.force_duration:
            raise ConfigurationError(
                f"device.keep_alive = {self.keep_alive:g} s: must be at most half of device.force_duration = "
                f"{self.force_duration:g} s, or the force would end in between."
            )
        check_wire_faults(self.wire_faults, self.emulated, "stick", WIRE_FAULTS)
        if parse_friction(self.friction) is not None and not self.emulated:
            raise ConfigurationError("device.friction: only an emulated stick can be given friction of its own.")
        if self.emulated and self.transport == "hidraw":
            raise ConfigurationError("device.transport = 'hidraw': an emulated stick is on an emulated USB only.")
