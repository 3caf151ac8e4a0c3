"""Serial port of the board."""

from __future__ import annotations

import termios
from pathlib import Path

from devices.common import bus
from devices.pantograph.identities import IDENTITIES

_SETTING = "device.port"


def find_port(system: Path = bus.SYSTEM) -> str:
    """Return the device file of the only connected hAPI board; see `devices.common.bus.find_port`."""
    return bus.find_port(
        IDENTITIES,
        "hAPI board (Arduino Zero, M0 or Due, at its native USB port)",
        _SETTING,
        system,
        otherwise="Or do without one: device.emulated=true.",
    )


def open_port(path: str) -> int:
    """Open the port, see `devices.common.bus.open_port`. 1200 baud would start the boot loader of an Arduino."""
    return bus.open_port(path, _SETTING, termios.B57600)
