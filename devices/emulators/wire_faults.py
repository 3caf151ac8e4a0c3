"""Faults of a wire on demand, by name and time, for every emulator: ``stall@2+0.05``.

Each emulator has a table of its own of what can go wrong. The texts are those of the faults of samples and commands
(`devices.faults`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from haptics.errors import ConfigurationError
from haptics.settings import unknown

DELAYS = {"delay-1ms": 1e-3, "delay-5ms": 5e-3, "delay-20ms": 20e-3, "delay-100ms": 0.1}
"""Those faults that are delays [s]; a table has them, or some, with a description."""

ALLOWED = "a list of texts NAME@SECONDS, such as ['unplug@2+0.5']"
"""What a setting ``wire_faults`` may be, in words."""


@dataclass(frozen=True, slots=True)
class WireFault:
    """A fault and its time.

    Attributes
    ----------
    name : str
        What it is.
    start, length : float
        From when on and for how long [s]; the emulator says from when its time counts.
    """

    name: str
    start: float
    length: float = math.inf

    def covers(self, now: float) -> bool:
        """Tell whether it is there at `now` [s]."""
        return self.start <= now < self.start + self.length


def parse_wire_fault(text: str, known: Mapping[str, str]) -> WireFault:
    """Read ``NAME@SECONDS``, or ``NAME@SECONDS+DURATION`` with the duration in seconds.

    Parameters
    ----------
    text : str
        The fault.
    known : mapping
        Name to description.

    Raises
    ------
    ConfigurationError
        Naming the text and what is allowed.
    """
    name, _, when = text.strip().partition("@")
    if name not in known:
        raise unknown(f"fault of the wire in {text!r}:", name, known)
    start, plus, length = when.partition("+")
    try:
        fault = WireFault(name, float(start), float(length) if plus else math.inf)
    except ValueError:
        fault = WireFault(name, math.nan)
    if not (0.0 <= fault.start < math.inf and fault.length > 0.0):
        raise ConfigurationError(
            f"fault of the wire {text!r}: must have the form NAME@SECONDS or NAME@SECONDS+DURATION, for instance "
            f"{name}@2 or {name}@2+0.05."
        )
    return fault


def check_wire_faults(faults: Any, emulated: bool, what: str, known: Mapping[str, str]) -> None:
    """Check the value `faults` of the setting ``device.wire_faults`` of `what`.

    Raises
    ------
    ConfigurationError
        If it is no list of known faults, or the device is not emulated.
    """
    if not isinstance(faults, list | tuple) or not all(isinstance(text, str) for text in faults):
        raise ConfigurationError(f"device.wire_faults = {faults!r}: must be {ALLOWED}.")
    if faults and not emulated:
        raise ConfigurationError(f"device.wire_faults = {faults!r}: only an emulated {what} has an emulated wire.")
    for text in faults:
        parse_wire_fault(text, known)


class WireFaults:
    """The faults of one device: those with a time, and those that are switched by hand.

    Parameters
    ----------
    known : mapping
        Name to description.
    timed : iterable of str
        As `parse_wire_fault` reads them.

    Attributes
    ----------
    origin : float
        Instant from which the times count [s, of whoever asks].
    """

    def __init__(self, known: Mapping[str, str], timed: Iterable[str] = ()) -> None:
        self._known = known
        self._timed = tuple(parse_wire_fault(text, known) for text in timed)
        self._on: set[str] = set()
        self.origin = 0.0

    def set(self, *names: str) -> None:
        """Switch faults on, beginning now."""
        for name in names:
            if name not in self._known:
                raise unknown("fault of the wire", name, self._known)
        self._on.update(names)

    def clear(self, *names: str) -> None:
        """Switch faults off that were switched on by hand; all of them where none is named."""
        self._on.difference_update(names or set(self._on))

    def at(self, now: float) -> frozenset[str]:
        """Return the names of the faults that are there at `now` [s]."""
        return frozenset(self._on).union(fault.name for fault in self._timed if fault.covers(now - self.origin))

    def delay(self, now: float) -> float:
        """Return how much longer a transfer takes at `now` [s]."""
        return max((DELAYS.get(name, 0.0) for name in self.at(now)), default=0.0)
