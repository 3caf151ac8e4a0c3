"""Faults between a host and a stick, on demand (`devices.emulators.wire_faults`)."""

from __future__ import annotations

from collections.abc import Iterable

from devices.emulators import wire_faults
from devices.emulators.wire_faults import WireFault

WIRE_FAULTS: dict[str, str] = {
    "unplug": "the stick is not there; if the fault ends, it is back under another address",
    "read-error": "reading reports an input/output error",
    "write-error": "writing reports an input/output error, reading goes on",
    "stall": "the interrupt endpoints are halted until somebody clears that",
    "nak": "the stick neither takes nor sends anything (NAK)",
    "dropout": "no input reports, output is taken",
    "short": "input reports are cut in half",
    "delay-1ms": "every transfer takes 1 ms longer",
    "delay-5ms": "every transfer takes 5 ms longer",
    "delay-20ms": "every transfer takes 20 ms longer",
    "full-pool": "there is no block left for an effect",
    "stale-block-load": "block load reports the previous request",
    "no-permission": "the stick may not be opened",
    "busy": "another program holds the interface",
}
"""Faults: name to description."""


def parse_wire_fault(text: str) -> WireFault:
    """Parse ``NAME@SECONDS``, or ``NAME@SECONDS+DURATION`` with the duration in seconds.

    Raises
    ------
    ConfigurationError
        With the text and the allowed values.
    """
    return wire_faults.parse_wire_fault(text, WIRE_FAULTS)


class WireFaults(wire_faults.WireFaults):
    """Faults of one stick; their times count from the creation of the stick.

    Parameters
    ----------
    timed : iterable of str
        Texts as for `parse_wire_fault`.
    """

    def __init__(self, timed: Iterable[str] = ()) -> None:
        super().__init__(WIRE_FAULTS, timed)
