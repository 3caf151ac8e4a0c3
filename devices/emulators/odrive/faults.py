"""Faults of an emulated drive, on demand (`devices.emulators.wire_faults`)."""

from __future__ import annotations

from collections.abc import Iterable

from devices.emulators.wire_faults import WireFaults

ODRIVE_FAULTS: dict[str, str] = {
    "unplug": "the drive is not there; if the fault ends, it is back under another address, switched on anew",
    "read-error": "reading reports an input/output error",
    "write-error": "writing reports an input/output error",
    "stall": "the endpoints are halted until somebody clears that",
    "nak": "the drive neither takes nor sends anything (NAK)",
    "wrong-crc": "the drive has another table than it announced, and drops every native request silently",
    "lost-answer": "the drive does what it is told and does not answer",
    "short": "answers are only a header, as for an endpoint that the drive does not know; of text, only the line end",
    "motor-fault": "the gate driver of axis 0 reports a fault, latched",
    "encoder-jump": "the encoder of axis 0 jumps by an eighth of a turn, once",
    "delay-1ms": "every transfer takes 1 ms longer",
    "delay-5ms": "every transfer takes 5 ms longer",
    "delay-20ms": "every transfer takes 20 ms longer",
    "link-down": "of CAN: the interface is down",
    "bus-off": "of CAN: the interface has left the bus; when the fault ends it is back",
    "wrong-bit-rate": "of CAN: the interface has another bit rate than the drive",
    "lost-frames": "of CAN: every second frame is lost, in both directions",
    "reset-comes-anew": "when its port is reset the drive leaves the bus and comes back under another address",
    "no-permission": "the drive may not be opened",
    "busy": "another program holds the interface",
}
"""Faults: name to description."""


class OdriveFaults(WireFaults):
    """Faults of one drive; their times count from the creation of the drive.

    Parameters
    ----------
    timed : iterable of str
        ``NAME@SECONDS``, or ``NAME@SECONDS+DURATION``.

    Raises
    ------
    ConfigurationError
        With the text and the allowed values.
    """

    def __init__(self, timed: Iterable[str] = ()) -> None:
        super().__init__(ODRIVE_FAULTS, timed)
