"""Settings of an emulated device, in addition to the settings of its driver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from devices.common.settings import SeedSettings
from devices.emulators.wire_faults import parse_wire_fault
from devices.virtual.hands.registry import parse_hand
from haptics.errors import ConfigurationError
from haptics.settings import build, documented, flag, unrestricted

STARVED = 0.02
"""Time without execution after which an emulated device may appear to have failed [s]."""

_FAULTS = "a list of texts NAME@SECONDS, such as ['unplug@2+0.5']"


@documented
@dataclass(frozen=True)
class EmulationSettings(SeedSettings):
    """Settings of every emulated device, in addition to `SeedSettings`.

    A subclass adds the settings of the driver.
    """

    NOUN: ClassVar[str]
    """Name of the device in messages."""

    emulated: bool = flag(False, doc="use an emulated device instead of a real one")
    wire_faults: tuple[str, ...] = unrestricted((), _FAULTS, doc="injected faults of the emulated connection")
    hand: Any = unrestricted(None, "a table", doc="the hand on the emulated handle")

    def check_emulation(self, known_faults: Mapping[str, str]) -> None:
        """Validate the settings, and raise an error if a real device has settings of an emulated one.

        Parameters
        ----------
        known_faults : mapping
            Faults of the communication: name to description.

        Raises
        ------
        ConfigurationError
            With the setting and its allowed values.
        """
        faults = self.wire_faults
        if not isinstance(faults, list | tuple) or not all(isinstance(text, str) for text in faults):
            raise ConfigurationError(f"device.wire_faults = {faults!r}: must be {_FAULTS}.")
        if faults and not self.emulated:
            raise ConfigurationError(
                f"device.wire_faults = {faults!r}: only an emulated {self.NOUN} has an emulated wire."
            )
        for text in faults:
            parse_wire_fault(text, known_faults)
        if self.hand is not None and not self.emulated:
            raise ConfigurationError(
                f"device.hand: only an emulated {self.NOUN} has a hand in software; add device.emulated=true."
            )
        parse_hand(self.hand)


def table_of_driver(table: Mapping[str, Any], driver: type, emulation: type[EmulationSettings]) -> dict[str, Any]:
    """Return the part of a device's `table` that applies to the driver of a real device.

    Parameters
    ----------
    table : mapping
        Settings of the device, including emulation.
    driver : type
        Class of the driver's own settings.
    emulation : type
        Class of the driver's settings with an emulated device, which includes both.

    Raises
    ------
    ConfigurationError
        If a setting is invalid, or applies only to an emulated device.
    """
    build(emulation, table, "device")
    own = {field.name for field in fields(driver)}
    return {name: value for name, value in table.items() if name in own}


def too_busy(noun: str, lost: float) -> str:
    """Return the message that the emulator of a device was starved for `lost` [s]; empty if below `STARVED`."""
    if lost < STARVED:
        return ""
    return (
        f"this machine is too busy for the emulation: it kept the emulated {noun} from running for "
        f"{1e3 * lost:.0f} ms. End other programs that use the processors, or use a virtual device."
    )
