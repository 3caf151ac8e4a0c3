"""Force sensors by the name in ``device.sensor``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from devices.arm.sensors.ati import AtiSettings
from devices.arm.sensors.force_sensor import ForceSensor
from devices.arm.sensors.onrobot import OnRobotSettings
from devices.arm.sensors.optoforce import OptoForceSettings
from haptics.errors import ConfigurationError
from haptics.settings import build, unknown_name

SENSORS: dict[str, type[AtiSettings] | type[OnRobotSettings] | type[OptoForceSettings]] = {
    "ati": AtiSettings,
    "onrobot-hex": OnRobotSettings,
    "optoforce": OptoForceSettings,
}
"""Settings class by name; its ``build`` creates the sensor."""


def make_sensor(table: Mapping[str, Any] | None) -> ForceSensor:
    """Create the force sensor that a settings table describes, not opened.

    Parameters
    ----------
    table : mapping
        ``name`` and the settings of the sensor.

    Raises
    ------
    ConfigurationError
        If the sensor is unknown or a setting is invalid.
    """
    if not isinstance(table, Mapping) or "name" not in table:
        raise ConfigurationError(
            f"device.sensor = {table!r}: must be a table such as {{name = 'ati'}}; names are {', '.join(SENSORS)}."
        )
    given = dict(table)
    name = str(given.pop("name"))
    if name not in SENSORS:
        raise unknown_name("force sensor", name, SENSORS)
    return build(SENSORS[name], given, "device.sensor").build()
