"""OnRobot HEX behind an Ethernet box: raw data transfer with a fixed scale and commands of its own.

Leave it a little time after every command. Being zeroed does not end its stream.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from devices.arm.sensors.force_sensor import ForceSensor
from devices.arm.sensors.mounting import check_one_of
from devices.arm.sensors.rdt import ZERO, RdtSettings, RdtWire
from haptics.errors import ConfigurationError
from haptics.settings import bounded, documented

FILTER, SPEED = 0x0081, 0x0082
"""Commands besides those of `devices.arm.sensors.rdt`: number of the filter, period [ms]."""

SETTLING = 5e-3
"""Time it wants after a command [s]."""

FILTERS: Mapping[float, int] = {0: 0, 500: 1, 150: 2, 50: 3, 15: 4, 5: 5, 1.5: 6}
"""Cut-off frequency [Hz], 0 for none, to its number."""

FORCE, TORQUE = 1e-4, 1e-5
"""One count [N], [N m]."""

ON = 0xFF
"""Count with which a load is zeroed away; 0 brings it back."""


@documented
@dataclass(frozen=True, kw_only=True)
class OnRobotSettings(RdtSettings):
    """What a person can choose about an OnRobot HEX."""

    rate: int = bounded(
        1000, minimum=100, maximum=1000, unit="Hz", doc="records per second; 1000 is a whole multiple of it"
    )
    filter: float = bounded(500.0, minimum=0.0, unit="Hz", doc="cut-off frequency of its low-pass filter, 0 for none")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of(self, "filter", list(FILTERS), "Hz")
        if 1000 % self.rate:
            raise ConfigurationError(
                f"device.sensor.rate = {self.rate} Hz: its period must be a whole number of milliseconds (1000, 500, "
                "250, 200, 125 or 100 Hz)."
            )

    def build(self) -> ForceSensor:
        """Return the sensor, not opened."""
        return ForceSensor(OnRobotWire(self), self)


class OnRobotWire(RdtWire):
    """An OnRobot HEX behind an Ethernet box.

    Parameters
    ----------
    settings : OnRobotSettings
        Where it is and what is wanted of it.
    """

    def __init__(self, settings: OnRobotSettings) -> None:
        super().__init__(settings, f"the OnRobot force sensor at {settings.address}")
        self._settings = settings
        self.scale = FORCE, TORQUE
        self.meanings = {}  # any status but 0 is a fault; what its bits mean is not known

    def zero(self) -> None:
        """Tare the sensor; it streams on."""
        self._tell_twice(ZERO, ON)

    def set_up(self) -> None:
        """Have it filter and send as wanted; what its counts mean is the same for all of them."""
        own = self._settings
        self._tell_twice(FILTER, FILTERS[own.filter])
        self._tell_twice(SPEED, 1000 // own.rate)

    def _tell_twice(self, command: int, count: int) -> None:
        for _ in range(2):
            self.tell(command, count)
            time.sleep(SETTLING)
