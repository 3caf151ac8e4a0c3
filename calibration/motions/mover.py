"""Factory of the device that a procedure moves, in this process or in a servo process."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from devices import has_simulated_hand, is_virtual
from devices.faults import Fault, create_faulty
from haptics.clock import Clock
from haptics.device import Device, DeviceSpec
from haptics.servo.realtime import RealTimeSettings

RATE = 1000.0
"""Default tick rate of a calibration [Hz]."""


@dataclass(frozen=True)
class Mover:
    """Device to be moved, not yet created.

    Attributes
    ----------
    factory : callable
        Creates the device from settings that depend on the recording (``log``) and a clock; picklable.
    live : bool
        Whether to run in real time in a servo process, or as fast as possible in this process.
    rate : float
        Ticks per second [Hz].
    device : dict
        Name and settings of the device, for the recording.
    logs : bool
        Whether it can write a log of its commands.
    real_time : RealTimeSettings
        Requests to the operating system.
    clock_of : callable or None
        Returns the clock of a device that has a separate one, such as a device emulated in this process.
    """

    factory: Callable[[Mapping[str, Any], Clock], Device]
    live: bool
    rate: float = RATE
    device: Mapping[str, Any] = field(default_factory=dict)
    logs: bool = False
    real_time: RealTimeSettings = field(default_factory=RealTimeSettings)
    clock_of: Callable[[Any], Clock] | None = None

    @classmethod
    def of(
        cls, name: str, settings: Mapping[str, Any], faults: Sequence[Fault] = (), *, live: bool | None = None
    ) -> Mover:
        """Return the mover of the device `name` with its `settings`; in real time unless it is virtual."""
        return cls(
            functools.partial(_make, name, dict(settings), tuple(faults)),
            live=not is_virtual(name) if live is None else live,
            device={"name": name, **{key: value for key, value in settings.items() if not _is_made(value)}},
            logs=has_simulated_hand(name, settings),
        )

    @property
    def period(self) -> float:
        """Time between two ticks [s]."""
        return 1.0 / self.rate

    def make(self) -> Device:
        """Return a new device for inspection, not open, and separate from the device that will be moved."""
        return self.factory({}, Clock(self.period))

    @property
    def spec(self) -> DeviceSpec:
        """Data sheet of the device, without opening it."""
        return self.make().spec


def _is_made(value: Any) -> bool:
    """Return True if a setting is an object, such as a hand, which a file cannot contain."""
    return not isinstance(value, Mapping | Sequence | bool | int | float | None)


def _make(
    name: str, settings: dict[str, Any], faults: tuple[Fault, ...], more: Mapping[str, Any], clock: Clock
) -> Device:
    own = {**settings, **more}
    return create_faulty(name, own, faults, int(own.get("seed", 0)), clock)
