"""Faults of an emulated OptoForce unit, by name and time (`devices.emulators.wire_faults`)."""

from __future__ import annotations

OPTOFORCE_FAULTS: dict[str, str] = {
    "lost": "every second frame is lost",
    "duplicated": "every second frame comes twice",
    "truncated": "every second frame lacks its last bytes",
    "inserted": "every second frame has foreign bytes in its middle",
    "damaged": "every second frame has a wrong bit",
    "overloaded": "the status of all frames says that the sensor is overloaded",
    "stalled": "frames go on with one and the same number",
    "mute": "nothing is sent",
    "unplug": "the cable is pulled out, for good: the port goes away",
    "delay-1ms": "every frame comes 1 ms later",
    "delay-5ms": "every frame comes 5 ms later",
    "delay-20ms": "every frame comes 20 ms later",
}
"""Faults: name to description."""

OVERLOADED = 0x0200
"""Status of a frame if the sensor is overloaded in Fx."""

PER_FRAME = {
    "lost": "lose",
    "duplicated": "duplicate",
    "truncated": "truncate",
    "inserted": "insert",
    "damaged": "damage",
}
"""Faults of single frames, with the counting attribute of `devices.emulators.optoforce.program.Faults`."""
