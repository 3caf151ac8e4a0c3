"""What a person can choose about an emulated device, beside the settings of its driver."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from devices.common.settings import SeedSettings
from devices.emulators.wire_faults import parse_wire_fault
from devices.virtual.hands.registry import parse_hand
from haptics.errors import ConfigurationError
from haptics.settings import build, documented, flag, free

_FAULTS = "a list of texts NAME@SECONDS, such as ['unplug@2+0.5']"


@documented
@dataclass(frozen=True)
class EmulationSettings(SeedSettings):
    """Settings of every emulated device, besides `SeedSettings`. A subclass adds those of the driver."""

    NOUN: ClassVar[str]
    """What the device is called in messages."""

    emulated: bool = flag(False, doc="whether the driver talks to an emulated device in place of a real one")
    wire_faults: tuple[str, ...] = free((), _FAULTS, doc="faults of the emulated wire, on demand")
    hand: Any = free(None, "a table", doc="the hand on the emulated handle")

    @property
    @abstractmethod
    def known_faults(self) -> Mapping[str, str]:
        """What can go wrong on the wire, name to description."""

    def check_emulation(self) -> None:
        """Check what is declared here; refuse what only an emulated device has where there is a real one.

        Raises
        ------
        ConfigurationError
            Naming the setting and what is allowed.
        """
        faults = self.wire_faults
        if not isinstance(faults, list | tuple) or not all(isinstance(text, str) for text in faults):
            raise ConfigurationError(f"device.wire_faults = {faults!r}: must be {_FAULTS}.")
        if faults and not self.emulated:
            raise ConfigurationError(
                f"device.wire_faults = {faults!r}: only an emulated {self.NOUN} has an emulated wire."
            )
        for text in faults:
            parse_wire_fault(text, self.known_faults)
        if self.hand is not None and not self.emulated:
            raise ConfigurationError(
                f"device.hand: only an emulated {self.NOUN} has a hand in software; add device.emulated=true."
            )
        parse_hand(self.hand)


def table_of_driver(table: Mapping[str, Any], driver: type, emulation: type[EmulationSettings]) -> dict[str, Any]:
    """Return what of a device's `table` is for the driver of a real one.

    Parameters
    ----------
    table : mapping
        The device's settings, those of emulation among them.
    driver : type
        The class of the driver's own settings.
    emulation : type
        The class of its settings in front of an emulated device, which knows both.

    Raises
    ------
    ConfigurationError
        If something is wrong with it, or only an emulated device has it.
    """
    build(emulation, table, "device")
    own = {field.name for field in fields(driver)}
    return {name: value for name, value in table.items() if name in own}
