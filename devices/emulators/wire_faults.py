"""Fault injection in emulated communication, by name and time, for every emulator: ``stall@2+0.05``.

Each emulator has a separate table of faults. The texts have the same form as for faults of samples and commands
(`devices.faults`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from devices.common.timed import Timed, parts_of
from haptics.errors import ConfigurationError
from haptics.settings import unknown_name

DELAYS = {"delay-1ms": 1e-3, "delay-5ms": 5e-3, "delay-20ms": 20e-3, "delay-100ms": 0.1}
"""Delays by fault name [s]; a table of faults may contain all or some of them, with descriptions."""


_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class WireFault(Timed):
    """Fault and its time; the emulator defines the origin of the time."""

    KIND: ClassVar[str] = "fault of the wire"

    def covers(self, now: float) -> bool:
        """Return True if the fault is active at `now` [s]."""
        return self.start <= now and (self.duration is None or now < self.start + self.duration)


def parse_wire_fault(text: str, known: Mapping[str, str]) -> WireFault:
    """Parse ``NAME@SECONDS``, or ``NAME@SECONDS+DURATION`` with the duration in seconds.

    Parameters
    ----------
    text : str
        The fault.
    known : mapping
        Known faults: name to description.

    Raises
    ------
    ConfigurationError
        With the text and the allowed values.
    """
    parts = parts_of(text)
    name = parts[0] if parts else text.strip().partition("@")[0]
    if name not in known:
        raise unknown_name(f"fault of the wire in {text!r}:", name, known)
    if parts is None:
        raise ConfigurationError(
            f"fault of the wire {text!r}: must have the form NAME@SECONDS or NAME@SECONDS+DURATION, for instance "
            f"{name}@2 or {name}@2+0.05."
        )
    return WireFault(*parts)


class WireFaults:
    """Faults of one device: timed faults, and faults that are switched manually.

    Parameters
    ----------
    known : mapping
        Known faults: name to description.
    timed : iterable of str
        Texts as for `parse_wire_fault`.

    Attributes
    ----------
    origin : float
        Origin of the fault times on the caller's clock [s].
    """

    def __init__(self, known: Mapping[str, str], timed: Iterable[str] = ()) -> None:
        self._known = known
        self._timed = tuple(parse_wire_fault(text, known) for text in timed)
        self._on: set[str] = set()
        self.origin = 0.0

    def set(self, *names: str) -> None:
        """Activate faults manually."""
        for name in names:
            if name not in self._known:
                raise unknown_name("fault of the wire", name, self._known)
        self._on.update(names)

    def clear(self, *names: str) -> None:
        """Deactivate manually activated faults; all of them if none is named."""
        self._on.difference_update(names or set(self._on))

    def at(self, now: float) -> frozenset[str]:
        """Return the names of the faults that are active at `now` [s]."""
        if not self._timed and not self._on:
            return _NONE
        return frozenset(self._on).union(fault.name for fault in self._timed if fault.covers(now - self.origin))

    def delay(self, now: float) -> float:
        """Return the additional duration of a transfer at `now` [s]."""
        return max((DELAYS.get(name, 0.0) for name in self.at(now)), default=0.0)
