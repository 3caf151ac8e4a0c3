"""Fault injection on emulated wires, by name and time, for every emulator: ``stall@2+0.05``.

Each emulator has a table of its own of what can go wrong. The texts are those of the faults of samples and commands
(`devices.faults`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from devices.common.timed import Timed, parts_of
from haptics.errors import ConfigurationError
from haptics.settings import unknown

DELAYS = {"delay-1ms": 1e-3, "delay-5ms": 5e-3, "delay-20ms": 20e-3, "delay-100ms": 0.1}
"""Those faults that are delays [s]; a table has them, or some, with a description."""


_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class WireFault(Timed):
    """A fault and its time; the emulator says from when its time counts."""

    KIND: ClassVar[str] = "fault of the wire"

    def covers(self, now: float) -> bool:
        """Tell whether it is there at `now` [s]."""
        return self.start <= now and (self.duration is None or now < self.start + self.duration)


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
    parts = parts_of(text)
    name = parts[0] if parts else text.strip().partition("@")[0]
    if name not in known:
        raise unknown(f"fault of the wire in {text!r}:", name, known)
    if parts is None:
        raise ConfigurationError(
            f"fault of the wire {text!r}: must have the form NAME@SECONDS or NAME@SECONDS+DURATION, for instance "
            f"{name}@2 or {name}@2+0.05."
        )
    return WireFault(*parts)


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
        if not self._timed and not self._on:
            return _NONE
        return frozenset(self._on).union(fault.name for fault in self._timed if fault.covers(now - self.origin))

    def delay(self, now: float) -> float:
        """Return how much longer a transfer takes at `now` [s]."""
        return max((DELAYS.get(name, 0.0) for name in self.at(now)), default=0.0)
