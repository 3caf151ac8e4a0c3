"""OnRobot HEX with an Ethernet box: raw data transfer with a fixed scale and additional commands.

It needs some time after every command.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from devices.arm.sensors.mounting import check_one_of
from devices.arm.sensors.optoforce import FILTERS
from devices.arm.sensors.rdt import RdtSettings, RdtWire
from haptics.errors import ConfigurationError
from haptics.settings import bounded, documented

FILTER, SPEED = 0x0081, 0x0082
"""Additional commands to the commands of `devices.arm.sensors.rdt`: number of the filter, period [ms]."""

SETTLING = 5e-3
"""Waiting time after a command [s]."""

FORCE, TORQUE = 1e-4, 1e-5
"""Units of the counts [N], [N m]."""


@documented
@dataclass(frozen=True, kw_only=True)
class OnRobotSettings(RdtSettings):
    """Settings of an OnRobot HEX."""

    rate: int = bounded(1000, minimum=100, maximum=1000, unit="Hz", doc="records per second; a divisor of 1000")
    filter: float = bounded(
        500.0, minimum=0.0, unit="Hz", doc="cut-off frequency of the sensor's low-pass filter, 0 for none"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of(self, "filter", list(FILTERS), "Hz")
        if 1000 % self.rate:
            raise ConfigurationError(
                f"device.sensor.rate = {self.rate} Hz: its period must be a whole number of milliseconds (1000, 500, "
                "250, 200, 125 or 100 Hz)."
            )


class OnRobotWire(RdtWire):
    """OnRobot HEX with an Ethernet box.

    Parameters
    ----------
    settings : OnRobotSettings
        Address and configuration of the sensor.
    """

    def __init__(self, settings: OnRobotSettings) -> None:
        super().__init__(settings, f"the OnRobot force sensor at {settings.address}")
        self._settings = settings
        self.scale = FORCE, TORQUE
        self.meanings = {}  # any status but 0 is a fault; the meaning of its bits is unknown

    def set_up(self) -> None:
        """Set filter and rate of the sensor, each twice; the units of its counts are fixed."""
        own = self._settings
        for command, count in 2 * [(FILTER, FILTERS[own.filter])] + 2 * [(SPEED, 1000 // own.rate)]:
            self.send_command(command, count)
            time.sleep(SETTLING)
