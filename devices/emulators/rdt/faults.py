"""Faults of an emulated network sensor, by name and time (`devices.emulators.wire_faults`)."""

from __future__ import annotations

RDT_FAULTS: dict[str, str] = {
    "lost": "every second record is lost",
    "duplicated": "every record comes twice",
    "reordered": "every second record comes after the one behind it",
    "truncated": "every second record is cut short",
    "flood": "7000 records a second come, whatever was wanted",
    "saturated": "the status of all records says that the transducer is saturated",
    "stalled": "records go on with one and the same measurement",
    "mute": "nothing is sent",
    "delay-1ms": "every record comes 1 ms later",
    "delay-5ms": "every record comes 5 ms later",
    "delay-20ms": "every record comes 20 ms later",
}
"""Faults: name to description."""

SATURATED = 0x80020000
"""Status word of a record with a saturated transducer."""

PER_RECORD = {"lost": "lose", "duplicated": "duplicate", "reordered": "swap", "truncated": "truncate"}
"""Faults of single records, with the counting attribute of `devices.emulators.rdt.program.Faults`."""
