"""Faults of the wire: what may go wrong between a host and a stick, on demand.

They are named and timed as the faults of samples and commands are (`devices.faults`): ``stall@2+0.05``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from haptics.errors import ConfigurationError
from haptics.settings import unknown

WIRE_FAULTS: dict[str, str] = {
    "unplug": "the stick is not there; if the fault ends, it is back under another address",
    "read-error": "reading reports an input/output error",
    "write-error": "writing reports an input/output error, reading goes on",
    "stall": "the interrupt endpoints are halted until somebody clears that",
    "nak": "the stick takes nothing and has nothing to say",
    "dropout": "no input reports, output is taken",
    "short": "input reports are cut in half",
    "delay-1ms": "every transfer takes 1 ms longer",
    "delay-5ms": "every transfer takes 5 ms longer",
    "delay-20ms": "every transfer takes 20 ms longer",
    "full-pool": "there is no block left for an effect",
    "stale-block-load": "block load tells of the request before",
    "no-permission": "the stick may not be opened",
    "busy": "another program holds the interface",
}
"""Fault name to what it is."""

_DELAYS = {"delay-1ms": 1e-3, "delay-5ms": 5e-3, "delay-20ms": 20e-3}


@dataclass(frozen=True, slots=True)
class WireFault:
    """A fault and its time.

    Attributes
    ----------
    name : str
        A key of `WIRE_FAULTS`.
    start, length : float
        From when on and for how long [s], from the time the stick was made.
    """

    name: str
    start: float
    length: float = math.inf

    def covers(self, now: float) -> bool:
        """Tell whether it is there at `now` [s]."""
        return self.start <= now < self.start + self.length


def parse_wire_fault(text: str) -> WireFault:
    """Read ``NAME@SECONDS``, or ``NAME@SECONDS+DURATION`` with the duration in seconds.

    Raises
    ------
    ConfigurationError
        Naming the text and what is allowed.
    """
    name, _, when = text.strip().partition("@")
    if name not in WIRE_FAULTS:
        raise unknown(f"fault of the wire in {text!r}:", name, WIRE_FAULTS)
    start, plus, length = when.partition("+")
    try:
        fault = WireFault(name, float(start), float(length) if plus else math.inf)
    except ValueError:
        fault = WireFault(name, math.nan)
    if not (0.0 <= fault.start < math.inf and fault.length > 0.0):
        raise ConfigurationError(
            f"fault of the wire {text!r}: must have the form NAME@SECONDS or NAME@SECONDS+DURATION, for instance "
            "stall@2 or nak@2+0.05."
        )
    return fault


class WireFaults:
    """The faults of one stick: those with a time, and those that are switched by hand.

    Parameters
    ----------
    timed : iterable of str
        As `parse_wire_fault` reads them.
    """

    def __init__(self, timed: Iterable[str] = ()) -> None:
        self._timed = tuple(parse_wire_fault(text) for text in timed)
        self._on: set[str] = set()

    def set(self, *names: str) -> None:
        """Switch faults on, beginning now."""
        for name in names:
            if name not in WIRE_FAULTS:
                raise unknown("fault of the wire", name, WIRE_FAULTS)
        self._on.update(names)

    def clear(self, *names: str) -> None:
        """Switch faults off that were switched on by hand; all of them where none is named."""
        self._on.difference_update(names or set(self._on))

    def at(self, now: float) -> frozenset[str]:
        """Return the names of the faults that are there at `now` [s]."""
        return frozenset(self._on).union(fault.name for fault in self._timed if fault.covers(now))

    def delay(self, now: float) -> float:
        """Return how much longer a transfer takes at `now` [s]."""
        return max((_DELAYS.get(name, 0.0) for name in self.at(now)), default=0.0)
