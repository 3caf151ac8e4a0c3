"""Settings of a force-feedback stick."""

from __future__ import annotations

from dataclasses import dataclass

from devices.common.compensation import CompensationSettings
from devices.common.settings import RunSettings, VelocitySettings, check_velocity
from devices.joystick.usb.finding import TRANSPORTS
from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, choice, documented, string

LONGEST = 0.25
"""Maximum duration of a force after the host process has died [s]."""


@documented
@dataclass(frozen=True)
class StickSettings(RunSettings, CompensationSettings, VelocitySettings):
    """Settings of a stick, in addition to `RunSettings`, `CompensationSettings` and `VelocitySettings`."""

    parameters: str = string(
        "", allowed="a file", doc="parameters of a stick that is not emulated, from haptics calibrate joystick"
    )
    serial: str = string("", doc="serial number of the stick, where several are plugged in")
    port: str = string(
        "",
        doc="USB port of the stick, such as 1-2.3, where no serial number tells those apart that are plugged in",
    )
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

    def __post_init__(self) -> None:
        check(self, "device")
        check_velocity(self, "device.")
        if self.keep_alive > 0.5 * self.force_duration:
            raise ConfigurationError(
                f"device.keep_alive = {self.keep_alive:g} s: must be at most half of device.force_duration = "
                f"{self.force_duration:g} s, or the force would end in between."
            )
