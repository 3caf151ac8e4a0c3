"""ATI Net F/T and Axia: raw data transfer, configured through web pages."""

from __future__ import annotations

from dataclasses import dataclass

from devices.arm.sensors.force_sensor import ForceSensor
from devices.arm.sensors.mounting import check_one_of
from devices.arm.sensors.rdt import ZERO, RdtSettings, RdtWire
from devices.arm.sensors.rdt_status import AXIA, NET_FT
from devices.arm.sensors.rdt_web import FILTERS, WebPages
from haptics.settings import bounded, documented


@documented
@dataclass(frozen=True, kw_only=True)
class AtiSettings(RdtSettings):
    """Settings of an ATI Net F/T or Axia."""

    web_port: int = bounded(80, minimum=1, maximum=65535, doc="port of its web pages")
    rate: int = bounded(1000, minimum=100, maximum=7000, unit="Hz", doc="records per second")
    filter: float = bounded(0.0, minimum=0.0, unit="Hz", doc="cut-off frequency of its low-pass filter, 0 for none")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of(self, "filter", list(FILTERS), "Hz")

    def build(self) -> ForceSensor:
        """Return the sensor, not opened."""
        return ForceSensor(AtiWire(self), self)


class AtiWire(RdtWire):
    """ATI Net F/T or Axia.

    Parameters
    ----------
    settings : AtiSettings
        Address and configuration of the sensor.
    """

    def __init__(self, settings: AtiSettings) -> None:
        super().__init__(settings, f"the ATI force sensor at {settings.address}")
        self._settings = settings

    def zero(self) -> None:
        """Tare the sensor. Like any command, this ends the stream, which is therefore restarted."""
        for _ in range(2):
            self.send_command(ZERO)
        self.begin()

    def set_up(self) -> None:
        """Set rate and filter of the sensor, and read the units of its counts."""
        own = self._settings
        calibration = WebPages(own.address, own.web_port).set_up(own.rate, own.filter)
        self.scale = calibration.force, calibration.torque
        self.meanings = AXIA if "axia" in calibration.product.lower() else NET_FT
