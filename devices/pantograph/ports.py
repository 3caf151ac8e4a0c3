"""Serial port of the board."""

from __future__ import annotations

import termios
from pathlib import Path

from devices.common.bus import serial_port
from devices.pantograph.identities import IDENTITIES

_SETTING = "device.port"


def find_port(system: Path = serial_port.SYSTEM) -> str:
    """Return the device file of the only connected hAPI board; see `serial_port.find_port`."""
    return serial_port.find_port(
        IDENTITIES,
        "hAPI board (Arduino Zero, M0 or Due, at its native USB port)",
        _SETTING,
        system,
        otherwise="Or do without one: device.emulated=true.",
    )


def open_port(path: str) -> int:
    """Open the port, see `serial_port.open_port`. 1200 baud would start the boot loader of an Arduino."""
    return serial_port.open_port(path, _SETTING, termios.B57600)
