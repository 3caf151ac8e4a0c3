"""Force sensor of the emulated arm, by its name in the driver's settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from contextlib import AbstractContextManager
from typing import Any

SENSITIVITY = ((7925, 300), (8641, 300), (6049, 2000))
"""Sensitivity of the emulated OptoForce sensor: counts at full load, and that load [N], for each axis."""

Wrench = Callable[[], Sequence[float]]
Standing = Callable[[], Set[str]]


def make_sensor(
    name: str, table: dict[str, Any], wrench: Wrench, standing: Standing
) -> tuple[AbstractContextManager[Any], dict[str, Any]]:
    """Return an emulated sensor, which serves as a context manager, and the settings that locate it.

    Parameters
    ----------
    name : str
        ``ati``, ``onrobot-hex`` or ``optoforce``.
    table : dict
        The driver's own settings of the sensor.
    wrench : callable
        Returns the present measurement of the sensor, (6,) [N], [N m].
    standing : callable
        Returns the names of the active faults.
    """
    if name == "optoforce":
        from devices.emulators.optoforce.port import OptoForceUnit

        unit = OptoForceUnit(wrench, [counts / load for counts, load in table["sensitivity"]], standing)
        return unit, {"port": unit.port}
    from devices.emulators.rdt.box import RdtBox

    box = RdtBox(wrench, standing, is_hex=name == "onrobot-hex")
    return box, box.address if name == "onrobot-hex" else box.web_address
