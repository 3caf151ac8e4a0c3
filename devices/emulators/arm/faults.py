"""Faults of the emulated arm, by name and time: faults of the drive and of the force sensor."""

from __future__ import annotations

from collections.abc import Iterable

from devices.emulators.odrive.faults import ODRIVE_FAULTS
from devices.emulators.optoforce.faults import OPTOFORCE_FAULTS
from devices.emulators.rdt.faults import RDT_FAULTS

MOTORS, SENSOR = "motors.", "sensor."
"""Prefixes of the fault names of each part."""


def sensor_faults(name: str) -> dict[str, str]:
    """Return the faults of the force sensor `name`: name to description."""
    return OPTOFORCE_FAULTS if name == "optoforce" else RDT_FAULTS


def known_faults(name: str) -> dict[str, str]:
    """Return all faults of an arm with the force sensor `name`: name to description."""
    parts = ((MOTORS, ODRIVE_FAULTS), (SENSOR, sensor_faults(name)))
    return {prefix + fault: words for prefix, faults in parts for fault, words in faults.items()}


def of_part(prefix: str, faults: Iterable[str]) -> list[str]:
    """Return the timed `faults` of the part with this prefix, without the prefix."""
    return [text.strip().removeprefix(prefix) for text in faults if text.strip().startswith(prefix)]
