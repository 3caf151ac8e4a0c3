"""What a procedure moves: a device that can be made anew, here or in a servo process."""

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
"""Ticks per second of a calibration."""


@dataclass(frozen=True)
class Mover:
    """A device that is to be moved, not yet made.

    Attributes
    ----------
    factory : callable
        Makes the device, given the settings that only a recording decides (``log``) and a clock; picklable.
    live : bool
        Whether by the wall's clock, in a servo process, or as fast as the machine can.
    rate : float
        Ticks per second [Hz].
    device : dict
        Name and settings of the device, for the recording.
    logs : bool
        Whether it can keep a log of its commands.
    real_time : RealTimeSettings
        What to ask the operating system for.
    clock_of : callable or None
        Returns the clock of a device that lives by one of its own, as one that is emulated in this process may.
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
        """Return the mover of the device `name` with its `settings`; by the wall's clock unless it is virtual."""
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
        """Return a device of the kind, to look at: not open, and not the one that will be moved."""
        return self.factory({}, Clock(self.period))

    @property
    def spec(self) -> DeviceSpec:
        """The data sheet; nothing is opened."""
        return self.make().spec


def _is_made(value: Any) -> bool:
    """Tell whether a setting is an object, as a hand may be, and not what a file could hold."""
    return not isinstance(value, Mapping | Sequence | bool | int | float | None)


def _make(
    name: str, settings: dict[str, Any], faults: tuple[Fault, ...], more: Mapping[str, Any], clock: Clock
) -> Device:
    own = {**settings, **more}
    return create_faulty(name, own, faults, int(own.get("seed", 0)), clock)
